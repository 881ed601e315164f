//! Alerts and Receivers for KluctlDeployments, and what an event endpoint gets that answers in unusual ways.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, EventSink, SHARED, SinkMode, TWO_CONFIG_MAPS, config_map, is_ready, with},
    tests,
};

tests![
    a_receiver_reconciles_a_kluctl_deployment,
    a_receiver_of_the_source_deploys_a_new_commit,
    an_alert_with_a_filter_delivers_only_errors,
    an_event_that_is_refused_as_a_duplicate_is_sent_once,
    an_event_that_meets_a_server_error_arrives_in_the_end,
    the_origin_revision_is_told,
    a_failure_that_repeats_is_one_piece_of_news,
];

/// A Receiver for one object; returns its webhook's address.
async fn receiver(case: &Case, name: &str, resource: Value) -> Result<String> {
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "stringData": {"token": "webhook-token"}}))
        .await?;
    let api_version = "notification.toolkit.fluxcd.io/v1";
    case.apply(json!({"apiVersion": api_version, "kind": "Receiver", "metadata": {"name": name},
        "spec": {"type": "generic", "secretRef": {"name": name}, "resources": [resource]}}))
        .await?;
    let object = case
        .wait_for(api_version, "Receiver", name, "its path", |object| {
            object["status"]["webhookPath"].is_string()
        })
        .await?;
    let path = object["status"]["webhookPath"].as_str().context("webhookPath")?;
    Ok(format!("{}{path}", case.suite.flux_receiver))
}

async fn call(url: &str) -> Result<()> {
    let response = reqwest::Client::new().post(url).body("{}").send().await?;
    let status = response.status();
    ensure!(status.is_success(), "POST {url}: {status}: {}", response.text().await?);
    Ok(())
}

async fn a_receiver_reconciles_a_kluctl_deployment(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    case.deploy_files("app", &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await?;
    case.wait_ready("app").await?;
    let resource =
        json!({"apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment", "name": "app"});
    let url = receiver(case, "hook", resource).await?;
    call(&url).await?;
    case.wait_deployment("app", "the handled request", |object| {
        let requested = &object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"];
        requested.is_string() && object["status"]["lastHandledReconcileAt"] == *requested
    })
    .await?;
    Ok(())
}

async fn a_receiver_of_the_source_deploys_a_new_commit(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let resource = json!({"kind": "GitRepository", "name": "app"});
    let url = receiver(case, "hook", resource).await?;
    let commit = repo.commit(&[("config/one.yaml", &config_map("one", "second"))])?;
    // The source's interval is an hour: only the webhook tells of the commit.
    call(&url).await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "second", "not deployed");
    Ok(())
}

async fn an_alert_with_a_filter_delivers_only_errors(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    let api_version = "notification.toolkit.fluxcd.io/v1beta3";
    case.apply(json!({"apiVersion": api_version, "kind": "Provider", "metadata": {"name": "sink"},
        "spec": {"type": "generic", "address": sink.url}}))
        .await?;
    case.apply(json!({"apiVersion": api_version, "kind": "Alert", "metadata": {"name": "errors"},
        "spec": {"providerRef": {"name": "sink"}, "eventSeverity": "error",
            "eventSources": [{"kind": "KluctlDeployment", "name": "app"}]}}))
        .await?;
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let good = with(&SHARED, &[("config/one.yaml", &one)]);
    case.deploy_files("app", &good, json!({"retryInterval": "1h"})).await?;
    case.wait_ready("app").await?;
    // Each attempt is an event with a text of its own, so that an Alert that is not known yet costs one attempt.
    let mut attempt = 0;
    while sink.received().is_empty() {
        attempt += 1;
        ensure!(attempt < 50, "no event arrived");
        let broken = format!("{{{{ nope_{attempt} }}}}");
        let files = with(&SHARED, &[("config/one.yaml", &broken)]);
        let revision = format!("v{attempt}@sha256:0002");
        case.publish("app", &files, &revision).await?;
        case.wait_deployment("app", "the failure", |object| {
            object["status"]["lastAttemptedRevision"] == revision && !is_ready(object)
        })
        .await?;
        let arrived = case.wait_until("an event", || async { Ok(!sink.received().is_empty()) });
        tokio::time::timeout(std::time::Duration::from_secs(2), arrived).await.ok();
    }
    let events = sink.received();
    ensure!(events.iter().all(|event| event["severity"] == "error"), "{events:#?}");
    ensure!(events.iter().all(|event| event["reason"] == "PrepareFailed"), "{events:#?}");
    ensure!(
        events[0]["metadata"]["revision"].as_str().is_some_and(|text| text.contains("@sha256:")),
        "{events:#?}"
    );
    Ok(())
}

/// How often each event was sent.
fn counts(events: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events {
        *counts.entry(event.to_string()).or_default() += 1;
    }
    counts
}

fn is_finishing(event: &Value) -> bool {
    event["metadata"]["flux.kluctl.io/commit_status"] == "update"
}

async fn an_event_that_is_refused_as_a_duplicate_is_sent_once(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Refuse(429)).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let one = config_map("one", "first");
    case.deploy_files("app", &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await?;
    case.wait_ready("app").await?;
    case.wait_until("the first event", || async { Ok(!sink.received().is_empty()) }).await?;
    // Events of one object are sent in order: with the last one here, nothing before it is tried again.
    sink.set_mode(SinkMode::Accept);
    case.request_reconcile("app", "1").await?;
    case.wait_handled("app", "1").await?;
    let all_of_it = || sink.received().iter().filter(|event| is_finishing(event)).count() == 2;
    case.wait_until("the last event", || async { Ok(all_of_it()) }).await?;
    let repeated: Vec<_> =
        counts(&sink.received()).into_iter().filter(|(_, count)| *count > 1).collect();
    ensure!(repeated.is_empty(), "sent more than once: {repeated:#?}");
    Ok(())
}

async fn an_event_that_meets_a_server_error_arrives_in_the_end(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Refuse(503)).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let one = config_map("one", "first");
    case.deploy_files("app", &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await?;
    case.wait_until("a second attempt", || async {
        Ok(counts(&sink.received()).values().any(|count| *count > 1))
    })
    .await?;
    sink.set_mode(SinkMode::Accept);
    let before = sink.received().len();
    case.wait_until("the last event", || async {
        Ok(sink.received()[before..].iter().any(is_finishing))
    })
    .await?;
    let repeated: Vec<_> =
        counts(&sink.received()[before..]).into_iter().filter(|(_, count)| *count > 1).collect();
    ensure!(repeated.is_empty(), "sent again after it was taken: {repeated:#?}");
    Ok(())
}

async fn the_origin_revision_is_told(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let one = config_map("one", "first");
    let files = with(&SHARED, &[("config/one.yaml", &one)]);
    case.publish("app", &files, "v1@sha256:0001").await?;
    let origin = "main@sha1:1234567890123456789012345678901234567890";
    let status = json!({"status": {"artifact": {"metadata": {"org.opencontainers.image.revision": origin}}}});
    case.patch_status("source.toolkit.fluxcd.io/v1", "ExternalArtifact", "app", status).await?;
    case.apply(case.artifact_deployment("app", "app", json!({}))).await?;
    let object = case.wait_ready("app").await?;
    ensure!(object["status"]["lastAppliedOriginRevision"] == origin, "{}", object["status"]);
    case.wait_until("the last event", || async { Ok(sink.received().iter().any(is_finishing)) })
        .await?;
    for event in sink.received().iter().filter(|event| is_finishing(event)) {
        let metadata = &event["metadata"];
        ensure!(metadata["flux.kluctl.io/originRevision"] == origin, "{metadata:#}");
        ensure!(metadata["flux.kluctl.io/revision"] == "v1@sha256:0001", "{metadata:#}");
        let keys: Vec<_> = metadata.as_object().into_iter().flat_map(|all| all.keys()).collect();
        ensure!(keys.iter().all(|key| key.starts_with("flux.kluctl.io/")), "{keys:?}");
    }
    Ok(())
}

async fn a_failure_that_repeats_is_one_piece_of_news(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let broken = with(&SHARED, &[("config/one.yaml", "{{ nope }}")]);
    case.deploy_files("app", &broken, json!({"retryInterval": "1s"})).await?;
    case.wait_failed("app", "PrepareFailed").await?;
    case.wait_reconciliations("app", 2).await?;
    let one = config_map("one", "first");
    case.publish("app", &with(&SHARED, &[("config/one.yaml", &one)]), "v2@sha256:0002").await?;
    case.wait_ready("app").await?;
    case.wait_until("the last event", || async { Ok(sink.received().iter().any(is_finishing)) })
        .await?;
    let events = sink.received();
    let failures: Vec<_> = events.iter().filter(|event| event["severity"] == "error").collect();
    ensure!(failures.len() > 1, "the retries sent nothing, so that nothing is proven");
    // notification-controller tells news from repeats by text and token.
    let first = failures.first().context("no failure")?;
    for failure in &failures {
        ensure!(
            failure["message"] == first["message"]
                && failure["metadata"]["flux.kluctl.io/token"]
                    == first["metadata"]["flux.kluctl.io/token"],
            "{failure:#} and {first:#}"
        );
    }
    let token = &first["metadata"]["flux.kluctl.io/token"];
    let later = events.iter().filter(|event| event["severity"] == "info");
    for event in later {
        ensure!(event["metadata"]["flux.kluctl.io/token"] != *token, "{event:#}");
    }
    Ok(())
}
