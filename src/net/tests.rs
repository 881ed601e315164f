mod reach;
mod tls;

use std::time::Duration;

use reqwest::{Url, header::HeaderMap};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{method, path},
};

use super::{client::refuse_redirect, *};

const POLICY: RetryPolicy =
    RetryPolicy { retries: 3, min_wait: Duration::from_secs(5), max_wait: Duration::from_secs(30) };

#[test]
fn waits_double_within_bounds() {
    let waits: Vec<_> = (1..=4)
        .map(|attempts| POLICY.wait(attempts, Failure::Connection, 0.0).map(|wait| wait.as_secs()))
        .collect();
    assert_eq!(waits, [Some(5), Some(10), Some(20), None]);
    assert_eq!(POLICY.wait(3, Failure::Connection, 1.0), Some(Duration::from_secs(24)));
    let many = RetryPolicy::flux(100);
    assert_eq!(many.wait(90, Failure::Connection, 1.0), Some(Duration::from_secs(30)));
    assert_eq!(RetryPolicy::NEVER.wait(1, Failure::Connection, 0.0), None);
}

#[test]
fn statuses_decide_whether_to_try_again() {
    let wait = |code, retry_after| {
        POLICY.wait(1, Failure::Status { code, retry_after }, 0.0).map(|wait| wait.as_secs())
    };
    for code in [408, 429, 500, 502, 503, 504, 599] {
        assert_eq!(wait(code, None), Some(5), "{code}");
    }
    for code in [400, 401, 403, 404, 410, 501] {
        assert_eq!(wait(code, None), None, "{code}");
    }
    assert_eq!(wait(429, Some(Duration::from_secs(12))), Some(12));
    assert_eq!(wait(429, Some(Duration::from_secs(1))), Some(5));
    assert_eq!(wait(503, Some(Duration::from_hours(1))), Some(30));
    assert_eq!(POLICY.wait(1, Failure::Final, 0.0), None);
}

#[test]
fn retry_after_understands_seconds_and_dates() {
    let headers = |pairs: &[(&'static str, &str)]| {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    };
    let parse = |pairs: &[(&'static str, &str)]| {
        let headers: HeaderMap = headers(pairs);
        retry_after(&headers)
    };
    assert_eq!(parse(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
    let dated = [
        ("date", "Sat, 21 Nov 2026 08:00:00 GMT"),
        ("retry-after", "Sat, 21 Nov 2026 08:04:30 GMT"),
    ];
    assert_eq!(parse(&dated), Some(Duration::from_secs(270)));
    assert_eq!(parse(&dated[1..]), None);
    assert_eq!(parse(&[("retry-after", "soon")]), None);
}

#[test]
fn jitter_stays_between_zero_and_one() {
    let values: Vec<f64> = (0..64).map(|_| jitter()).collect();
    assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
    assert!(values.iter().any(|value| (value - values[0]).abs() > 1e-3));
}

#[test]
fn redirects_stay_on_their_host() {
    let allowed = |from: &str, to: &str| {
        refuse_redirect(&[Url::parse(from).unwrap()], &Url::parse(to).unwrap(), false)
    };
    assert_eq!(allowed("http://a/x", "http://a/y"), None);
    assert_eq!(allowed("http://a/x", "https://a/x"), None);
    assert_eq!(allowed("http://a:80/x", "http://a/y"), None);
    for (from, to) in [
        ("http://a/x", "http://b/x"),
        ("http://a/x", "http://a:8080/x"),
        ("https://a/x", "http://a/x"),
        ("https://a/x", "https://a.b/x"),
    ] {
        assert!(allowed(from, to).is_some(), "{from} -> {to}");
    }
    let anywhere = |from: &str, to: &str| {
        refuse_redirect(&[Url::parse(from).unwrap()], &Url::parse(to).unwrap(), true)
    };
    assert_eq!(anywhere("http://a/x", "https://b/x"), None);
    assert_eq!(anywhere("https://a/x", "https://a:8443/x"), None);
    assert!(anywhere("https://a/x", "http://b/x").is_some());
    assert!(anywhere("http://a/x", "file:///etc/passwd").is_some());
    let url = Url::parse("http://a/x").unwrap();
    assert!(refuse_redirect(&vec![url.clone(); 6], &url, false).unwrap().contains("more than 5"));
}

#[test]
fn setup_errors_name_the_part() {
    let options = ClientOptions { ca_bundle: Some(b"no pem".to_vec()), ..Default::default() };
    assert_eq!(
        client(&options).unwrap_err().to_string(),
        "CA bundle: holds no certificate in PEM form"
    );
    let options = ClientOptions {
        identity: Some(Identity {
            certificate: Vec::new(),
            key: crate::secret::Secret::new(b"hunter2".to_vec()),
        }),
        ..Default::default()
    };
    let shown = format!("{} {options:?}", client(&options).unwrap_err());
    assert!(shown.starts_with("client certificate's key: "), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
}

#[tokio::test]
async fn a_proxy_is_used_with_its_credentials_and_not_shown() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(200).set_body_string("by proxy"))
        .mount(&server)
        .await;
    let address = server.uri().replace("http://", "http://bot:hunter2@");
    let options =
        ClientOptions { proxies: proxies(&[("http_proxy", &address)]), ..ClientOptions::default() };
    let answer = client(&options).unwrap().get("http://nowhere.invalid/x").send().await.unwrap();
    assert_eq!(read_bounded(answer, 100).await.unwrap(), b"by proxy");
    let request = &server.received_requests().await.unwrap()[0];
    // Base64 of bot:hunter2.
    assert_eq!(request.headers["proxy-authorization"], "Basic Ym90Omh1bnRlcjI=");

    let shown = format!("{options:?}");
    assert!(!shown.contains("hunter2") && shown.contains("127.0.0.1"), "{shown}");
}

fn proxies(variables: &[(&str, &str)]) -> Proxies {
    try_proxies(variables).unwrap()
}

fn try_proxies(variables: &[(&str, &str)]) -> Result<Proxies, NetError> {
    Proxies::from_variables(|name| {
        variables.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    })
}

#[test]
fn proxies_are_chosen_by_scheme_and_exceptions() {
    let rules = proxies(&[
        ("HTTP_PROXY", "plain.example:3128"),
        ("http_proxy", "http://ignored.example"),
        ("https_proxy", "https://secure.example"),
        (
            "NO_PROXY",
            "Example.com, .cluster.local.,.svc,*.only-below.org, 10.0.0.0/8, 192.168.1.5,h.example:8443,[2001:db8::1]:80",
        ),
    ]);
    let chosen = |url: &str| {
        let url = Url::parse(url).unwrap();
        rules.select(&url).map(|proxy| proxy.reveal().as_str().to_owned())
    };
    let (plain, secure) =
        (Some("http://plain.example:3128/".to_owned()), Some("https://secure.example/".to_owned()));
    for url in [
        "http://git.test/x",
        "http://xexample.com",
        "http://only-below.org",
        "http://11.0.0.1",
        "http://svc",
    ] {
        assert_eq!(chosen(url), plain, "{url}");
    }
    for url in ["https://git.test", "https://h.example", "https://[2001:db8::1]"] {
        assert_eq!(chosen(url), secure, "{url}");
    }
    for url in [
        "http://localhost:3000",
        "http://127.0.0.9",
        "https://[::1]:8443",
        "http://example.com:8080",
        "https://A.example.com",
        "http://source-controller.flux-system.svc.cluster.local./x.tar.gz",
        "http://source-controller.flux-system.svc",
        "http://a.only-below.org",
        "https://10.96.0.1",
        "http://192.168.1.5",
        "https://h.example:8443",
        "http://[2001:db8::1]",
    ] {
        assert_eq!(chosen(url), None, "{url}");
    }
    let none = proxies(&[("HTTPS_PROXY", "p"), ("NO_PROXY", "*")]);
    assert_eq!(none.select(&Url::parse("https://git.test").unwrap()), None);
    assert!(Proxies::default().is_empty() && proxies(&[("HTTP_PROXY", " ")]).is_empty());
}

#[test]
fn a_proxy_that_is_none_is_refused_without_its_password() {
    let error =
        try_proxies(&[("HTTPS_PROXY", "socks5://u:hunter2@p:1080")]).unwrap_err().to_string();
    assert_eq!(error, "HTTPS_PROXY: socks5:// proxies are not supported, use http or https");
    let error = try_proxies(&[("HTTP_PROXY", "http://u:hunter2@:x")]).unwrap_err().to_string();
    assert!(
        error.starts_with("HTTP_PROXY: is no address") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_to_another_host_are_errors() {
    let other = MockServer::start().await;
    let server = MockServer::start().await;
    let elsewhere = ResponseTemplate::new(302)
        .insert_header("location", format!("{}/?token=hunter2", other.uri()).as_str());
    Mock::given(path("/away")).respond_with(elsewhere).mount(&server).await;
    Mock::given(path("/near"))
        .respond_with(ResponseTemplate::new(302).insert_header("location", "/here"))
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .and(path("/here"))
        .respond_with(ResponseTemplate::new(200).set_body_string("0123456789"))
        .mount(&server)
        .await;
    let client = client(&ClientOptions::default()).unwrap();
    let get = async |path: &str| {
        let url = Url::parse(&format!("{}{path}", server.uri())).unwrap();
        client.get(url.clone()).send().await.map_err(|error| NetError::from_reqwest(&url, error))
    };

    let error = get("/away").await.unwrap_err();
    assert!(matches!(error, NetError::Redirect { .. }), "{error:?}");
    assert!(error.to_string().contains("another host"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(other.received_requests().await.unwrap().is_empty());

    assert_eq!(read_bounded(get("/near").await.unwrap(), 10).await.unwrap(), b"0123456789");
    let error = read_bounded(get("/near").await.unwrap(), 9).await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { limit: 9, .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_connection_is_retryable_and_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://u:hunter2@{}/", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    let error =
        client(&ClientOptions::default()).unwrap().get(url.clone()).send().await.unwrap_err();
    let error = NetError::from_reqwest(&url, error);
    assert_eq!(error.failure(), Failure::Connection);
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}
