use std::{collections::BTreeMap, time::Duration};

use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_string, header, method, path},
};

use super::*;

fn http() -> HttpVars {
    HttpVars::new(Proxies::default(), Reach::Anywhere, CancellationToken::new()).unwrap()
}

fn request(server: &MockServer, path: &str) -> HttpRequest {
    HttpRequest {
        url: format!("{}{path}", server.uri()),
        method: None,
        body: None,
        headers: BTreeMap::new(),
        json_path: None,
    }
}

#[tokio::test]
async fn method_headers_and_body_are_sent() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(201).set_body_string("a: 1");
    Mock::given(method("POST"))
        .and(path("/vars"))
        .and(header("x-token", "t"))
        .and(body_string("hello"))
        .respond_with(answer)
        .mount(&server)
        .await;
    let request = HttpRequest {
        method: Some("POST".to_owned()),
        body: Some("hello".to_owned()),
        headers: BTreeMap::from([("X-Token".to_owned(), "t".to_owned())]),
        ..request(&server, "/vars")
    };
    let answer = http().send(&request).await.unwrap();
    assert_eq!(answer, HttpAnswer { status: 201, body: b"a: 1".to_vec() });
}

#[tokio::test]
async fn what_is_safe_to_repeat_is_tried_again() {
    let server = MockServer::start().await;
    let busy = || ResponseTemplate::new(503);
    Mock::given(method("GET")).respond_with(busy()).up_to_n_times(1).mount(&server).await;
    Mock::given(method("GET")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    Mock::given(method("POST")).respond_with(busy()).expect(1).mount(&server).await;
    assert_eq!(http().send(&request(&server, "/")).await.unwrap().status, 200);
    let post = HttpRequest { method: Some("POST".to_owned()), ..request(&server, "/") };
    assert_eq!(http().send(&post).await.unwrap().status, 503);
}

#[tokio::test]
async fn headers_do_not_follow_a_redirect_to_another_host() {
    let server = MockServer::start().await;
    let away =
        ResponseTemplate::new(302).insert_header("location", "http://elsewhere.example.com/");
    Mock::given(path("/away")).respond_with(away).mount(&server).await;
    let near = ResponseTemplate::new(302).insert_header("location", "/there");
    Mock::given(path("/near")).respond_with(near).mount(&server).await;
    Mock::given(path("/there")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    assert_eq!(http().send(&request(&server, "/near")).await.unwrap().status, 200);
    let error = http().send(&request(&server, "/away?key=hunter2")).await.unwrap_err();
    assert!(error.message.contains("another host"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn an_interrupted_run_ends_its_requests() {
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(200).set_delay(Duration::from_secs(30));
    Mock::given(method("GET")).respond_with(slow).mount(&server).await;
    let cancel = CancellationToken::new();
    let http = HttpVars::new(Proxies::default(), Reach::Anywhere, cancel.clone()).unwrap();
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    };
    let request = request(&server, "/");
    let (answer, ()) = tokio::join!(http.send(&request), interrupt);
    assert_eq!(answer.unwrap_err().class, Class::Cancelled);
}

#[tokio::test]
async fn requests_that_cannot_be_sent_are_explained() {
    let request = |url: &str, method: &str, header: &str| HttpRequest {
        url: url.to_owned(),
        method: Some(method.to_owned()),
        body: None,
        headers: BTreeMap::from([(header.to_owned(), "v".to_owned())]),
        json_path: None,
    };
    let mut messages = Vec::new();
    for request in [
        request("nope", "GET", "a"),
        request("file:///etc/passwd", "GET", "a"),
        request("https://h/", "G T", "a"),
        request("https://h/", "GET", "a b"),
    ] {
        messages.push(http().send(&request).await.unwrap_err().to_string());
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    nope is no URL: relative URL without a base
    file:///etc/passwd cannot be asked, expected an http:// or https:// URL
    \"G T\" is no HTTP method
    a header has a name or value that HTTP does not allow
    ");
}

#[tokio::test]
async fn this_host_is_out_of_reach_where_only_others_may_be_asked() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(200))
        .expect(0)
        .mount(&server)
        .await;
    let http =
        HttpVars::new(Proxies::default(), Reach::BeyondThisHost, CancellationToken::new()).unwrap();
    let port = server.address().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let mut request = request(&server, "/");
        request.url = format!("http://{host}:{port}/");
        let error = http.send(&request).await.unwrap_err();
        assert!(error.to_string().contains("may not be asked"), "{host}: {error}");
        assert!(error.to_string().contains("--allow-local-http-vars"), "{host}: {error}");
    }
}
