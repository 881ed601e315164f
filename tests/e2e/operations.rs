//! One owner per target, sharding, metrics, malformed objects, worker slots.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    support::{
        Case, SHARED, TWO_CONFIG_MAPS, condition, config_map, is_ready, message_of, ready_reason,
        with,
    },
    tests,
};

tests![
    two_owners_of_a_target_are_told_so,
    a_waiting_deployment_holds_no_worker,
    a_repair_does_not_wait_for_what_it_repairs,
    the_label_selector_shards,
    metrics_have_fluxs_names,
    a_suspended_deployment_rests,
    a_malformed_object_is_reported_and_stops_no_other,
    a_forced_reconciliation_deploys_again,
];

async fn two_owners_of_a_target_are_told_so(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("first", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("first").await?;
    case.deploy_project("second", TWO_CONFIG_MAPS, json!({})).await?;
    for (name, other) in [("second", "first"), ("first", "second")] {
        let object = case
            .wait_for(
                "flux.kluctl.io/v1alpha1",
                "KluctlDeployment",
                name,
                "the conflict",
                |object| message_of(object, "OwnershipConflict").contains(other),
            )
            .await?;
        let message = message_of(&object, "Ready");
        ensure!(message.contains(other), "{name} does not name {other}: {message}");
        ensure!(is_ready(&object) == (name == "first"), "{name}: {}", object["status"]);
    }
    let second = case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "second").await?;
    ensure!(
        ready_reason(&second.unwrap_or_default()) == "OwnershipConflict",
        "second is not refused"
    );
    case.delete_deployment("second").await?;
    case.wait_deployment("first", "the end of the conflict", |object| {
        is_ready(object) && condition(object, "OwnershipConflict").is_none()
    })
    .await?;
    ensure!(
        !case.config_map("one").await?.is_null(),
        "the loser's deletion removed the winner's objects"
    );
    Ok(())
}

/// A project with a Deployment that no node can run, so that it never becomes ready.
fn stuck_project() -> Vec<(&'static str, &'static str)> {
    let stuck = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: stuck\nspec:\n  replicas: 1\n  selector:\n    matchLabels: {app: stuck}\n  template:\n    metadata:\n      labels: {app: stuck}\n    spec:\n      nodeSelector: {nowhere: \"true\"}\n      containers:\n        - {name: c, image: example.com/x:1}\n";
    let mut files = TWO_CONFIG_MAPS[..2].to_vec();
    files[0].1 = "discriminator: test-stuck-{{ args.namespace }}\nargs:\n  - name: namespace\n";
    files[1].1 = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: {{ args.namespace }}\n";
    files.push(("config/stuck.yaml", stuck));
    files
}

async fn a_waiting_deployment_holds_no_worker(case: &mut Case) -> Result<()> {
    case.start_controller(&["--concurrent=1"]).await?;
    case.deploy_project("stuck", &stuck_project(), json!({"timeout": "120s"})).await?;
    case.wait_for("apps/v1", "Deployment", "stuck", "it", serde_json::Value::is_object).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let stuck =
        case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "stuck").await?.context("stuck")?;
    ensure!(
        condition(&stuck, "Reconciling").is_some(),
        "it does not wait any more: {}",
        stuck["status"]
    );
    Ok(())
}

async fn a_repair_does_not_wait_for_what_it_repairs(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("stuck", &stuck_project(), json!({"timeout": "300s"})).await?;
    case.wait_for("apps/v1", "Deployment", "stuck", "it", serde_json::Value::is_object).await?;
    let commit = repo.commit(&[
        ("config/stuck.yaml", ""),
        ("config/one.yaml", &crate::support::config_map("one", "repaired")),
    ])?;
    case.fetch_commit("stuck", &commit).await?;
    case.wait_ready_at("stuck", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "repaired", "not deployed");
    Ok(())
}

async fn the_label_selector_shards(case: &mut Case) -> Result<()> {
    case.start_controller(&["--watch-label-selector=sharding.fluxcd.io/key=shard1"]).await?;
    let manifest = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/it.yaml", &manifest)]);
    case.deploy_files("app", &files, json!({})).await?;
    // Whoever comes later and belongs here is deployed: then the first one was passed over.
    let mut sentinel = case.artifact_deployment("sentinel", "app", json!({}));
    sentinel["metadata"]["labels"] = json!({"sharding.fluxcd.io/key": "shard1"});
    case.apply(sentinel).await?;
    case.wait_ready("sentinel").await?;
    ensure!(case.config_map("app").await?.is_null(), "an object of another shard was deployed");
    let object = case.get_deployment("app").await?;
    ensure!(object["metadata"]["finalizers"].is_null(), "an object of another shard was touched");
    let label = json!({"metadata": {"labels": {"sharding.fluxcd.io/key": "shard1"}}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", label).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn metrics_have_fluxs_names(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let controller = case.controllers.first().context("controller")?;
    let url = format!("http://{}/metrics", controller.metrics);
    let labels = format!("name=\"app\",namespace=\"{}\"", case.namespace);
    case.wait_until("the metrics", || async {
        let text = reqwest::get(&url).await?.text().await?;
        let series = |name: &str| {
            text.lines().any(|line| line.starts_with(name) && line.contains("name=\"app\""))
        };
        Ok(series("gotk_reconcile_duration_seconds_count"))
    })
    .await
    .with_context(|| format!("wanted gotk_reconcile_duration_seconds with {labels}"))?;
    let readyz = reqwest::get(format!("http://{}/readyz", controller.health)).await?;
    ensure!(readyz.status().is_success(), "/readyz: {}", readyz.status());
    case.delete_deployment("app").await?;
    case.wait_until("the end of the series", || async {
        Ok(!reqwest::get(&url).await?.text().await?.contains("name=\"app\""))
    })
    .await
}

async fn a_suspended_deployment_rests(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let manifest = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/it.yaml", &manifest)]);
    case.deploy_files("app", &files, json!({"suspend": true})).await?;
    // Neither a new revision nor a request wakes it; the sentinel is deployed from the same source after both.
    let second = config_map("\"{{ args.name }}\"", "second");
    let files = with(&SHARED, &[("config/it.yaml", &second)]);
    case.publish("app", &files, "v2@sha256:0002").await?;
    case.request_reconcile("app", "1").await?;
    case.apply(case.artifact_deployment("sentinel", "app", json!({}))).await?;
    case.wait_ready("sentinel").await?;
    ensure!(case.config_map("app").await?.is_null(), "a suspended deployment was deployed");
    case.patch_spec("app", json!({"suspend": false})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("app").await?["data"]["value"] == "second", "not deployed afterwards");
    Ok(())
}

async fn a_malformed_object_is_reported_and_stops_no_other(case: &mut Case) -> Result<()> {
    // The schema's pattern for durations has no end, so the API server stores what no reader takes.
    let mut malformed =
        case.deployment("malformed", json!({"args": {"namespace": case.namespace}}));
    malformed["spec"]["deployInterval"] = "5mxyz".into();
    case.apply(malformed).await?;
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let object = case
        .wait_deployment("malformed", "the report", |object| ready_reason(object) == "InvalidSpec")
        .await?;
    ensure!(
        message_of(&object, "Ready").contains("deployInterval"),
        "{}",
        message_of(&object, "Ready")
    );
    Ok(())
}

async fn a_forced_reconciliation_deploys_again(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    case.patch("v1", "ConfigMap", "one", json!({"data": {"value": "by hand"}})).await?;
    let both = json!({"metadata": {"annotations": {
        "reconcile.fluxcd.io/requestedAt": "7", "reconcile.fluxcd.io/forceAt": "7",
    }}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", both).await?;
    case.wait_for("v1", "ConfigMap", "one", "the repair", |object| {
        object["data"]["value"] == "first"
    })
    .await?;
    Ok(())
}
