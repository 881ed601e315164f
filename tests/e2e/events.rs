//! Kubernetes events, and events for notification-controller.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, EventSink, SinkMode, TWO_CONFIG_MAPS, config_map},
    tests,
};

tests![
    an_alert_delivers_what_the_controller_sends,
    events_carry_revision_and_commit_status,
    a_failing_event_endpoint_delays_nothing,
    a_hanging_event_endpoint_delays_nothing,
    kubernetes_events_are_recorded,
];

async fn an_alert_delivers_what_the_controller_sends(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    case.apply(json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
        "metadata": {"name": "sink"}, "spec": {"type": "generic", "address": sink.url}}))
        .await?;
    case.apply(json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "all"}, "spec": {"providerRef": {"name": "sink"}, "eventSeverity": "info",
        "eventSources": [{"kind": "KluctlDeployment", "name": "*"}]}}))
    .await?;
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    let object = case.wait_ready("app").await?;
    // notification-controller knows an Alert only once its watch has seen it, so the first events may pass it by.
    let asked = AtomicUsize::new(0);
    case.wait_until("an event at the receiver", || async {
        let token = asked.fetch_add(1, Ordering::SeqCst).to_string();
        case.request_reconcile("app", &token).await?;
        case.wait_handled("app", &token).await?;
        Ok(!sink.received().is_empty())
    })
    .await?;
    let events = sink.received();
    let revision = &object["status"]["lastAppliedRevision"];
    ensure!(events.iter().any(|event| event["metadata"]["revision"] == *revision), "{events:#?}");
    ensure!(events.iter().all(|event| event["involvedObject"]["name"] == "app"), "{events:#?}");
    Ok(())
}

async fn events_carry_revision_and_commit_status(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let mut annotated = case.deployment("app", json!({"args": {"namespace": case.namespace}}));
    annotated["metadata"]["annotations"] = json!({"event.toolkit.fluxcd.io/team": "shop"});
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    case.git_repository("app", &repo).await?;
    case.apply(annotated).await?;
    let object = case.wait_ready("app").await?;
    let finished = |event: &Value| event["metadata"]["flux.kluctl.io/commit_status"] == "update";
    case.wait_until("the finishing event", || async { Ok(sink.received().iter().any(finished)) })
        .await?;
    let event = sink.received().into_iter().find(finished).unwrap_or_default();
    let revision = &object["status"]["lastAppliedRevision"];
    ensure!(event["metadata"]["flux.kluctl.io/revision"] == *revision, "{event:#}");
    ensure!(event["metadata"]["event.toolkit.fluxcd.io/team"] == "shop", "{event:#}");
    ensure!(
        event["severity"] == "info" && event["reason"] == "ReconciliationSucceeded",
        "{event:#}"
    );
    ensure!(event["involvedObject"]["apiVersion"] == "flux.kluctl.io/v1alpha1", "{event:#}");

    let commit = repo.commit(&[("config/one.yaml", "{{ nope }}")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_failed("app", "PrepareFailed").await?;
    let failed = |event: &Value| event["severity"] == "error";
    case.wait_until("the error event", || async { Ok(sink.received().iter().any(failed)) }).await?;
    let event = sink.received().into_iter().find(failed).unwrap_or_default();
    let revision = event["metadata"]["flux.kluctl.io/revision"].as_str().unwrap_or_default();
    ensure!(revision.ends_with(&commit), "{event:#}");
    Ok(())
}

/// Deploys with the given endpoint and returns how long it took.
async fn time_to_ready(case: &mut Case, events: &str) -> Result<Duration> {
    case.start_controller(&[&format!("--events-addr={events}")]).await?;
    let started = Instant::now();
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let commit = repo.commit(&[("config/one.yaml", &config_map("one", "second"))])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    Ok(started.elapsed())
}

async fn a_failing_event_endpoint_delays_nothing(case: &mut Case) -> Result<()> {
    // Nobody listens on port 1.
    let took = time_to_ready(case, "http://127.0.0.1:1/").await?;
    ensure!(took < Duration::from_secs(30), "took {took:?}");
    Ok(())
}

async fn a_hanging_event_endpoint_delays_nothing(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Hang).await?;
    let took = time_to_ready(case, &sink.url).await?;
    ensure!(took < Duration::from_secs(30), "took {took:?}");
    ensure!(!sink.received().is_empty(), "nothing was sent");
    Ok(())
}

async fn kubernetes_events_are_recorded(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    case.wait_until("an event", || async {
        let shown = case.suite.kubectl(&[
            "events",
            "-n",
            &case.namespace,
            "--for",
            "kluctldeployment/app",
        ])?;
        Ok(shown.contains("ReconciliationSucceeded")
            && shown.contains("Normal")
            && !shown.contains("Warning"))
    })
    .await
}
