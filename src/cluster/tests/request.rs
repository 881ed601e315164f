use std::time::Duration;

use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpListener};
use wiremock::ResponseTemplate;

use super::script::{Script, aggregated, answer, gone, hasty, refusal};
use crate::{
    cluster::{ApiKind, ApiOutcome, Cluster, ClusterOptions, DeleteMode, WriteMode},
    object::ObjectRef,
    observer::Silent,
};

fn config_map() -> ApiKind {
    ApiKind {
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        ..ApiKind::namespace()
    }
}

const ONE: &str = "/api/v1/namespaces/a/configmaps/x";

async fn get(cluster: &Cluster) -> ApiOutcome {
    cluster.get(&config_map(), Some("a"), "x").await.outcome
}

#[tokio::test]
async fn reads_are_repeated_while_the_server_is_in_trouble() {
    let script = Script::start().await;
    script.on(
        &format!("GET {ONE}"),
        [
            refusal(500, "InternalError", &json!({})),
            ResponseTemplate::new(503).set_body_string("upstream gone"),
            refusal(429, "TooManyRequests", &json!({})),
            answer(200, &json!({"kind": "ConfigMap"})),
        ],
    );
    let cluster = script.cluster(hasty());
    assert_eq!(get(&cluster).await, ApiOutcome::Done(json!({"kind": "ConfigMap"})));
    assert_eq!(script.count("GET"), 4);
}

#[tokio::test]
async fn refusals_are_not_repeated() {
    let script = Script::start().await;
    script.on(&format!("GET {ONE}"), [refusal(403, "Forbidden", &json!({}))]);
    let outcome = get(&script.cluster(hasty())).await;
    assert_eq!(outcome, ApiOutcome::Forbidden("refused with Forbidden".into()));
    assert_eq!(script.count("GET"), 1);
}

#[tokio::test]
async fn the_pause_that_the_server_asks_for_is_kept() {
    let script = Script::start().await;
    let busy = refusal(429, "TooManyRequests", &json!({})).insert_header("Retry-After", "1");
    script.on(&format!("GET {ONE}"), [busy, answer(200, &json!({}))]);
    let started = std::time::Instant::now();
    assert_eq!(get(&script.cluster(hasty())).await, ApiOutcome::Done(json!({})));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_server_that_hangs_is_left() {
    let script = Script::start().await;
    script.on(&format!("GET {ONE}"), [answer(200, &json!({})).set_delay(Duration::from_secs(30))]);
    let mut options = hasty();
    options.request_timeout = Duration::from_millis(50);
    options.retry.attempts_in_vain = 2;
    let outcome = get(&script.cluster(options)).await;
    assert_eq!(outcome, ApiOutcome::Timeout("no answer within 0.05 s".into()));
    assert_eq!(script.count("GET"), 2);
}

#[tokio::test]
async fn broken_connections_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Reads the request, then closes without an answer.
            let _read = stream.read(&mut [0; 1024]).await;
        }
    };
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    let cluster = Cluster::new(kube::Client::try_from(config).unwrap(), hasty());
    let outcome = tokio::select! {
        () = server => unreachable!("the server runs for ever"),
        outcome = get(&cluster) => outcome,
    };
    assert!(matches!(outcome, ApiOutcome::Unreachable(_)), "{outcome:?}");
}

#[tokio::test]
async fn applying_is_sent_once_with_manager_and_mode() {
    let script = Script::start().await;
    let stored = answer(200, &json!({"kind": "ConfigMap"}))
        .insert_header("Warning", r#"299 - "unknown field \"x\"""#);
    script.on(&format!("PATCH {ONE}"), [stored, refusal(500, "InternalError", &json!({}))]);
    let cluster = script.cluster(hasty());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}});
    let done = cluster.apply(&config_map(), &object, WriteMode::DryRun, true).await;
    assert_eq!(done.warnings, [r#"unknown field "x""#]);
    let failed = cluster.apply(&config_map(), &object, WriteMode::Real, false).await;
    assert!(failed.outcome.is_transient());
    assert_eq!(
        script.seen(),
        [
            format!("PATCH {ONE}?fieldManager=kluctl&force=true&dryRun=All"),
            format!("PATCH {ONE}?fieldManager=kluctl&force=false"),
        ]
    );
    assert_eq!(script.bodies("PATCH")[0], object);
}

#[tokio::test]
async fn lists_are_read_page_by_page_and_again_when_a_page_expires() {
    let script = Script::start().await;
    let page = |names: &[&str], next: &str| {
        let items: Vec<Value> =
            names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        answer(200, &json!({"metadata": {"continue": next}, "items": items}))
    };
    script.on(
        "GET /api/v1/configmaps",
        [
            page(&["a", "b"], "more"),
            refusal(410, "Expired", &json!({})),
            page(&["a", "b", "c"], ""),
        ],
    );
    let cluster = script.cluster(hasty());
    let items = cluster.list(&config_map(), None, "k=v").await.unwrap();
    let names: Vec<_> =
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(items[0]["kind"], "ConfigMap");
    assert_eq!(
        script.seen(),
        [
            "GET /api/v1/configmaps?labelSelector=k%3Dv&limit=500",
            "GET /api/v1/configmaps?labelSelector=k%3Dv&limit=500&continue=more",
            "GET /api/v1/configmaps?labelSelector=k%3Dv",
        ]
    );
}

fn removal() -> (ApiKind, ObjectRef, DeleteMode<'static>) {
    let mode = DeleteMode { write: WriteMode::Real, uid: Some("u1") };
    (config_map(), ObjectRef::new("v1", "ConfigMap", Some("a"), "x"), mode)
}

#[tokio::test]
async fn deletions_name_the_object_they_mean_and_wait() {
    let script = Script::start().await;
    let object = answer(
        200,
        &json!({"kind": "ConfigMap", "metadata": {"uid": "u1", "finalizers": ["f/g"]}}),
    );
    script.on(&format!("DELETE {ONE}"), [object.clone()]);
    script
        .on(&format!("GET {ONE}"), [object.clone(), object, refusal(404, "NotFound", &json!({}))]);
    let cluster = script.cluster(hasty());
    let (kind, reference, mode) = removal();
    let outcome =
        cluster.remove(&kind, &reference, mode, Duration::from_secs(5), &Silent).await.outcome;
    assert!(matches!(outcome, ApiOutcome::Done(_)), "{outcome:?}");
    let options = &script.bodies("DELETE")[0];
    assert_eq!(options["propagationPolicy"], "Background");
    assert_eq!(options["preconditions"]["uid"], "u1");
}

#[tokio::test]
async fn what_holds_a_deletion_is_told() {
    let script = Script::start().await;
    let held = answer(
        200,
        &json!({"kind": "ConfigMap", "metadata": {"uid": "u1", "finalizers": ["f/g"]}}),
    );
    script.on(&format!("DELETE {ONE}"), [held.clone()]);
    script.on(&format!("GET {ONE}"), [held]);
    let cluster = script.cluster(hasty());
    let (kind, reference, mode) = removal();
    let outcome = cluster.remove(&kind, &reference, mode, Duration::ZERO, &Silent).await.outcome;
    let message = "the deletion was accepted and is not complete yet: held by finalizers f/g";
    assert_eq!(outcome, ApiOutcome::Timeout(message.into()));
}

#[tokio::test]
async fn another_object_of_the_name_is_not_waited_for() {
    let script = Script::start().await;
    script.on(&format!("DELETE {ONE}"), [answer(200, &json!({"metadata": {"uid": "u1"}}))]);
    script.on(&format!("GET {ONE}"), [answer(200, &json!({"metadata": {"uid": "u2"}}))]);
    let cluster = script.cluster(hasty());
    let (kind, reference, mode) = removal();
    let outcome =
        cluster.remove(&kind, &reference, mode, Duration::from_secs(5), &Silent).await.outcome;
    assert!(matches!(outcome, ApiOutcome::Done(_)), "{outcome:?}");
    script.on(&format!("DELETE {ONE}"), [gone()]);
    let asked = script.count("GET");
    cluster.remove(&kind, &reference, mode, Duration::from_secs(5), &Silent).await;
    assert_eq!(script.count("GET"), asked, "a status says that nothing is left");
}

#[tokio::test]
async fn kinds_are_asked_for_once_and_again_when_unknown() {
    let script = Script::start().await;
    let cluster = script.cluster(hasty());
    let kinds = cluster.kinds().await.unwrap();
    assert!(kinds.find("example.com", "v1", "Widget").is_some());
    assert_eq!(kinds.is_namespaced("", "Namespace"), Some(false));
    cluster.kinds().await.unwrap();
    assert_eq!(script.count("GET /apis"), 1);
    script.on("GET /apis", [aggregated("example.com", "v1", &[("gadgets", "Gadget", true)])]);
    tokio::time::sleep(Duration::from_millis(350)).await;
    let (one, two) = tokio::join!(cluster.refresh_kinds(), cluster.refresh_kinds());
    assert!(one.unwrap().find("example.com", "v1", "Gadget").is_some());
    assert!(two.unwrap().find("example.com", "v1", "Widget").is_none());
    assert_eq!(script.count("GET /apis"), 2, "simultaneous refreshes share one request");
}

#[tokio::test]
async fn old_servers_are_asked_group_by_group() {
    let script = Script::start().await;
    script.on("GET /api", [answer(200, &json!({"kind": "APIVersions", "versions": ["v1"]}))]);
    let groups = json!({"kind": "APIGroupList", "groups": [
        {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        {"name": "broken", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]});
    script.on("GET /apis", [answer(200, &groups)]);
    let list = |plural: &str, kind: &str| {
        answer(
            200,
            &json!({"resources": [{"name": plural, "kind": kind, "namespaced": true, "verbs": ["list", "delete"]}]}),
        )
    };
    script.on("GET /api/v1", [list("configmaps", "ConfigMap")]);
    script.on("GET /apis/apps/v1", [list("deployments", "Deployment")]);
    script.on("GET /apis/broken/v1", [refusal(503, "ServiceUnavailable", &json!({}))]);
    let kinds = script.cluster(hasty()).kinds().await.unwrap();
    assert!(kinds.find("apps", "v1", "Deployment").is_some());
    assert!(kinds.find("", "v1", "ConfigMap").is_some());
    assert_eq!(kinds.unavailable(), ["broken/v1"]);
}

#[tokio::test]
async fn unchanged_discovery_is_not_sent_again() {
    let script = Script::start().await;
    let tagged = |answer: ResponseTemplate| answer.insert_header("ETag", "\"1\"");
    let unchanged = || ResponseTemplate::new(304);
    let core = aggregated("", "v1", &[("configmaps", "ConfigMap", true)]);
    let groups = aggregated("example.com", "v1", &[("widgets", "Widget", true)]);
    script.on("GET /api", [tagged(core), unchanged()]);
    script.on("GET /apis", [tagged(groups), unchanged()]);
    let options = ClusterOptions { discovery_age: Duration::ZERO, ..hasty() };
    let cluster = script.cluster(options);
    let first = cluster.kinds().await.unwrap();
    tokio::time::sleep(Duration::from_millis(350)).await;
    let second = cluster.kinds().await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert_eq!(script.count("GET /apis"), 2);
}

#[tokio::test]
async fn the_clusters_identity_is_asked_for_once() {
    let script = Script::start().await;
    let system = "GET /api/v1/namespaces/kube-system";
    script.on(system, [answer(200, &json!({"metadata": {"uid": "abc"}}))]);
    let cluster = script.cluster(hasty());
    assert_eq!(cluster.id().await.unwrap(), "abc");
    assert_eq!(cluster.id().await.unwrap(), "abc");
    assert_eq!(script.count(system), 1);
    let other = Script::start().await;
    other.on(system, [refusal(403, "Forbidden", &json!({}))]);
    assert_eq!(other.cluster(hasty()).id().await.unwrap(), "");
}
