use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Method;
use tokio_util::sync::CancellationToken;

use crate::{
    git::{
        http::Carrier,
        operation::{Failure, Operation},
        *,
    },
    net::{ClientOptions, client},
    secret::Secret,
};

fn operation() -> Arc<Operation> {
    Arc::new(Operation {
        runtime: tokio::runtime::Handle::current(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(5),
        cancel: CancellationToken::new(),
        interrupt: Arc::default(),
        max_bytes: 10,
        received: 0.into(),
        failure: Mutex::default(),
    })
}

fn carrier(url: &str, login: Login, operation: &Arc<Operation>) -> std::io::Result<Carrier> {
    let client = client(&ClientOptions::default()).unwrap();
    let auth = Auth { login, ..Auth::default() };
    Carrier::new(client, &GitUrl::parse(url).unwrap(), &auth, operation)
}

#[tokio::test]
async fn credentials_go_to_their_origin_alone() {
    let login = || Login::Bearer { token: Secret::new("hunter2".into()) };
    let sent = |of: &str, to: &str| {
        let carrier = carrier(of, login(), &operation()).unwrap();
        let request = carrier.request(Method::GET, to, ["Git-Protocol: version=2"]).unwrap();
        assert_eq!(request.headers()["git-protocol"], "version=2");
        let sent = request.headers().contains_key("authorization");
        assert!(!format!("{request:?}").contains("hunter2"));
        sent
    };
    assert!(sent("https://h/a", "https://h/b/info/refs"));
    assert!(sent("https://h:443/a", "https://h/b"));
    assert!(sent("http://h/a", "http://h/b"));
    for (of, to) in [
        ("http://h/a", "https://h/a"),
        ("https://h/a", "http://h/a"),
        ("https://h/a", "https://h:8443/a"),
        ("https://h/a", "https://h.evil/a"),
        ("https://h/a", "https://evil/h/a"),
    ] {
        assert!(!sent(of, to), "{of} {to}");
    }
}

#[tokio::test]
async fn a_token_that_is_no_header_is_refused_without_showing_it() {
    let operation = operation();
    let login = Login::Bearer { token: Secret::new("hunter2\nx: y".into()) };
    let error = carrier("https://h/a", login, &operation).map(drop).unwrap_err();
    let failure = operation.take_failure().unwrap();
    assert!(matches!(failure, Failure::Denied(_)), "{failure:?}");
    assert!(!format!("{error:?} {failure:?}").contains("hunter2"));
}

#[tokio::test]
async fn bytes_are_counted_up_to_the_limit() {
    let operation = operation();
    operation.count(6).unwrap();
    operation.count(4).unwrap();
    operation.count(1).unwrap_err();
    assert_eq!(operation.take_failure(), Some(Failure::TooLarge));
}
