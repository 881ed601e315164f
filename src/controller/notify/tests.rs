use std::time::Duration;

use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_partial_json, method, path},
};

use super::{flux::Sent, *};
use crate::{
    controller::summarize::Severity,
    net::{ClientOptions, RetryPolicy, client},
};

const QUICK: RetryPolicy = RetryPolicy {
    retries: 2,
    min_wait: Duration::from_millis(1),
    max_wait: Duration::from_millis(2),
};

pub(super) fn notice(message: &str, token: Token) -> Notice {
    Notice {
        subject: Subject {
            object: ObjectRef::new(api::API_VERSION, api::KIND, Some("apps"), "shop"),
            uid: "uid-1".into(),
            resource_version: "42".into(),
            annotations: [
                ("event.toolkit.fluxcd.io/team".to_owned(), "web".to_owned()),
                ("flux.kluctl.io/revision".to_owned(), "forged".to_owned()),
            ]
            .into(),
        },
        event: Event {
            severity: Severity::Error,
            reason: "DeployFailed",
            message: message.to_owned(),
            finishes: false,
            token,
        },
        at: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        revision: Some("main@sha1:aa".into()),
        origin_revision: None,
        reconcile_id: "rid".into(),
    }
}

fn events(server: &MockServer) -> FluxEvents {
    let client = client(&ClientOptions::default()).unwrap();
    FluxEvents::new(client, server.uri().parse().unwrap(), "host-1".into()).with_retry(QUICK)
}

async fn post(server: &MockServer) -> Sent {
    let cancel = CancellationToken::new();
    events(server).post(&notice("deploy failed", Token::Episode("since".into())), &cancel).await
}

#[tokio::test]
async fn the_body_is_what_notification_controller_reads() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/"))
        .and(body_partial_json(json!({ "reason": "DeployFailed" })))
        .respond_with(ResponseTemplate::new(202))
        .expect(1)
        .mount(&server)
        .await;
    assert_eq!(post(&server).await, Sent::Accepted);
    let request = &server.received_requests().await.unwrap()[0];
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(
        body,
        json!({
            "involvedObject": {
                "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
                "namespace": "apps", "name": "shop", "uid": "uid-1", "resourceVersion": "42",
            },
            "severity": "error",
            "timestamp": "2026-01-02T03:04:05.678Z",
            "message": "deploy failed",
            "reason": "DeployFailed",
            "metadata": {
                "event.toolkit.fluxcd.io/team": "web",
                "flux.kluctl.io/revision": "main@sha1:aa",
                "flux.kluctl.io/token": "since",
            },
            "reportingController": "flux-kluctl-controller",
            "reportingInstance": "host-1",
        })
    );
}

#[tokio::test]
async fn duplicates_and_refusals_are_not_repeated_but_server_errors_are() {
    for (code, expected, requests) in [
        (202, Sent::Accepted, 1),
        (200, Sent::Accepted, 1),
        (429, Sent::Duplicate, 1),
        (400, Sent::Failed, 1),
        (413, Sent::Failed, 1),
        (500, Sent::Failed, 3),
        (503, Sent::Failed, 3),
    ] {
        let server = MockServer::start().await;
        Mock::given(method("POST")).respond_with(ResponseTemplate::new(code)).mount(&server).await;
        assert_eq!(post(&server).await, expected, "{code}");
        assert_eq!(server.received_requests().await.unwrap().len(), requests, "{code}");
    }
}

#[tokio::test]
async fn a_server_that_recovers_gets_the_event() {
    let server = MockServer::start().await;
    let broken = Mock::given(method("POST")).respond_with(ResponseTemplate::new(502));
    broken.up_to_n_times(2).mount(&server).await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(202)).mount(&server).await;
    assert_eq!(post(&server).await, Sent::Accepted);
}

#[tokio::test]
async fn a_server_that_is_down_or_hangs_costs_only_the_event() {
    let nobody = FluxEvents::new(
        client(&ClientOptions::default()).unwrap(),
        "http://127.0.0.1:1/".parse().unwrap(),
        String::new(),
    )
    .with_retry(QUICK);
    let cancel = CancellationToken::new();
    assert_eq!(nobody.post(&notice("m", Token::Always), &cancel).await, Sent::Failed);

    let server = MockServer::start().await;
    let hang = ResponseTemplate::new(202).set_delay(Duration::from_mins(1));
    Mock::given(method("POST")).respond_with(hang).mount(&server).await;
    let started = std::time::Instant::now();
    let once = events(&server).with_retry(RetryPolicy::NEVER);
    assert_eq!(once.post(&notice("m", Token::Always), &cancel).await, Sent::Failed);
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(15), "{took:?}");
}

/// A client of an API server at this address.
pub(super) fn kubernetes(url: &str) -> kube::Client {
    // Whoever was first has set it; any one will do.
    let _ignored = rustls::crypto::ring::default_provider().install_default();
    let mut config = kube::Config::new(url.parse().unwrap());
    // As the controller's own.
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn events_of_one_object_stay_in_order_and_a_full_queue_drops_without_waiting() {
    let refusing = MockServer::start().await;
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(202).set_delay(Duration::from_millis(5));
    Mock::given(method("POST")).respond_with(slow).mount(&server).await;
    let (mut tasks, cancel) = (JoinSet::new(), CancellationToken::new());
    let metrics = Arc::new(Metrics::new());
    let notifier = Notifier::start(
        &kubernetes(&refusing.uri()),
        Some(&events(&server)),
        metrics.clone(),
        &mut tasks,
        &cancel,
    );
    let started = std::time::Instant::now();
    for number in 0..2000 {
        notifier.notify(&notice(&number.to_string(), Token::Always));
    }
    assert!(started.elapsed() < Duration::from_secs(2), "handing over does not wait");
    drop(notifier);
    flush(tasks, Duration::from_mins(1)).await;
    let numbers: Vec<u32> = server
        .received_requests()
        .await
        .unwrap()
        .iter()
        .map(|request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            body["message"].as_str().unwrap().parse().unwrap()
        })
        .collect();
    assert!(numbers.len() >= LANE_LENGTH && numbers.len() < 2000, "{}", numbers.len());
    assert!(numbers.is_sorted(), "in order");
    assert!(metrics.text().contains(r#"kluctl_flux_events_total{result="dropped"}"#));
}

#[test]
fn finishing_events_carry_the_commit_status_key() {
    let mut finishing = notice("done", Token::Always);
    finishing.event.finishes = true;
    finishing.origin_revision = Some("v1@sha1:bb".into());
    let metadata = finishing.metadata();
    assert_eq!(metadata["flux.kluctl.io/commit_status"], "update");
    assert_eq!(metadata["flux.kluctl.io/originRevision"], "v1@sha1:bb");
    assert_eq!(metadata["flux.kluctl.io/token"], "rid", "each occurrence is news");
}

#[test]
fn only_event_annotations_are_copied() {
    let all = [
        ("event.toolkit.fluxcd.io/a".to_owned(), "1".to_owned()),
        ("other/b".to_owned(), "2".to_owned()),
    ]
    .into();
    let copied = Subject::event_annotations(&all);
    assert_eq!(
        copied.into_iter().collect::<Vec<_>>(),
        [("event.toolkit.fluxcd.io/a".into(), "1".into())]
    );
}
