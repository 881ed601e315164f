//! What happens to deployed objects when their KluctlDeployment goes.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    support::{Case, GitRepo, TWO_CONFIG_MAPS, config_map, message_of},
    tests,
};

tests![
    deletion_follows_prune_when_delete_is_left_out,
    delete_false_keeps_what_prune_manages,
    delete_true_removes_without_prune,
    a_suspended_deployment_leaves_its_objects_behind,
    deletion_needs_no_source_any_more,
    deletion_removes_only_what_carries_the_own_discriminator,
    a_deletion_that_waits_holds_no_worker,
    a_prune_that_waits_holds_no_worker,
    a_second_wait_holds_no_worker_either,
];

async fn deletion_follows_prune_when_delete_is_left_out(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"prune": true})).await?;
    case.wait_ready("app").await?;
    case.delete_deployment("app").await?;
    ensure!(
        case.config_map("one").await?.is_null(),
        "the object is still there when the deployment is gone"
    );
    Ok(())
}

async fn delete_false_keeps_what_prune_manages(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"prune": true, "delete": false})).await?;
    case.wait_ready("app").await?;
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("one").await?.is_null(), "delete: false removed an object");
    Ok(())
}

async fn delete_true_removes_without_prune(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"prune": false, "delete": true})).await?;
    case.wait_ready("app").await?;
    case.delete_deployment("app").await?;
    ensure!(case.config_map("one").await?.is_null(), "delete: true kept an object");
    Ok(())
}

async fn a_suspended_deployment_leaves_its_objects_behind(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"prune": true, "delete": true})).await?;
    case.wait_ready("app").await?;
    case.patch(
        "flux.kluctl.io/v1alpha1",
        "KluctlDeployment",
        "app",
        json!({"spec": {"suspend": true}}),
    )
    .await?;
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("one").await?.is_null(), "a suspended deployment removed an object");
    Ok(())
}

async fn deletion_needs_no_source_any_more(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    case.delete("source.toolkit.fluxcd.io/v1", "GitRepository", "app").await?;
    case.wait_gone("source.toolkit.fluxcd.io/v1", "GitRepository", "app").await?;
    case.delete_deployment("app").await?;
    ensure!(
        case.config_map("one").await?.is_null(),
        "the object is still there when the deployment is gone"
    );
    Ok(())
}

async fn deletion_removes_only_what_carries_the_own_discriminator(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    for (name, label) in [("foreign", "somebody-else"), ("unlabelled", "")] {
        let mut object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        if !label.is_empty() {
            object["metadata"]["labels"] = json!({"kluctl.io/discriminator": label});
        }
        case.apply(object).await?;
    }
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    // Labelled like ours, but written by somebody else: not ours to delete.
    let copied = format!("test-{}", case.namespace);
    case.apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "copied", "labels": {"kluctl.io/discriminator": copied}}}))
        .await?;
    case.delete_deployment("app").await?;
    for name in ["foreign", "unlabelled", "copied"] {
        ensure!(!case.config_map(name).await?.is_null(), "{name} was removed");
    }
    ensure!(case.config_map("one").await?.is_null(), "one is still there");
    Ok(())
}

/// Deploys the ConfigMaps `held`, with a finalizer that nobody serves, and `free`.
async fn deploy_held(case: &mut Case) -> Result<GitRepo> {
    let (held, free) = (config_map("held", "first"), config_map("free", "first"));
    let files = [
        (
            ".kluctl.yaml",
            "discriminator: test-held-{{ args.namespace }}\nargs:\n  - name: namespace\n",
        ),
        TWO_CONFIG_MAPS[1],
        ("config/held.yaml", &held),
        ("config/free.yaml", &free),
    ];
    let repo = case.deploy_project("held", &files, json!({"timeout": "150s"})).await?;
    case.wait_ready("held").await?;
    hold(case, true).await?;
    Ok(repo)
}

async fn hold(case: &Case, is_held: bool) -> Result<()> {
    let finalizers = if is_held { json!(["example.com/hold"]) } else { json!(null) };
    case.patch("v1", "ConfigMap", "held", json!({"metadata": {"finalizers": finalizers}})).await?;
    Ok(())
}

/// Waits until `held` is being waited for; then another deployment must come through on the only worker.
async fn others_work_meanwhile(case: &Case) -> Result<()> {
    case.wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", "held", "its wait", |object| {
        let message = message_of(object, "Reconciling");
        message.contains("ConfigMap/held") && message.contains("example.com/hold")
    })
    .await?;
    another_works(case, "app").await?;
    let held = case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "held").await?;
    let held = held.unwrap_or_default();
    ensure!(
        message_of(&held, "Reconciling").contains("Waiting for"),
        "it does not wait any more: {}",
        held["status"]
    );
    Ok(())
}

/// Deploys a project of its own.
async fn another_works(case: &Case, name: &str) -> Result<()> {
    let config = format!(
        "discriminator: test-{name}-{{{{ args.namespace }}}}\nargs:\n  - name: namespace\n"
    );
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files[0].1 = &config;
    case.deploy_project(name, &files, json!({})).await?;
    case.wait_ready(name).await.map(|_| ())
}

async fn a_deletion_that_waits_holds_no_worker(case: &mut Case) -> Result<()> {
    case.start_controller(&["--concurrent=1"]).await?;
    deploy_held(case).await?;
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "held").await?;
    others_work_meanwhile(case).await?;
    hold(case, false).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "held").await?;
    ensure!(case.config_map("held").await?.is_null(), "released before its object was gone");
    Ok(())
}

async fn a_prune_that_waits_holds_no_worker(case: &mut Case) -> Result<()> {
    case.start_controller(&["--concurrent=1"]).await?;
    let repo = deploy_held(case).await?;
    let commit = repo.commit(&[("config/held.yaml", "")])?;
    case.fetch_commit("held", &commit).await?;
    others_work_meanwhile(case).await?;
    hold(case, false).await?;
    case.wait_ready_at("held", &commit).await?;
    ensure!(case.config_map("held").await?.is_null(), "Ready before the orphan was gone");
    Ok(())
}

/// First an object that does not go, then one that does not become ready: in between, the deployment works.
async fn a_second_wait_holds_no_worker_either(case: &mut Case) -> Result<()> {
    case.start_controller(&["--concurrent=1"]).await?;
    let repo = deploy_held(case).await?;
    let deployment = "deployments:\n  - deleteObjects:\n      - kind: ConfigMap\n        name: held\n        namespace: {{ args.namespace }}\n  \
                      - barrier: true\n  - path: config\n    waitReadiness: true\noverrideNamespace: {{ args.namespace }}\n";
    let stuck = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: stuck\nspec:\n  replicas: 1\n  selector:\n    matchLabels: {app: stuck}\n  template:\n    metadata:\n      labels: {app: stuck}\n    spec:\n      nodeSelector: {nowhere: \"true\"}\n      containers:\n        - {name: c, image: example.com/x:1}\n";
    let commit = repo.commit(&[
        ("deployment.yaml", deployment),
        ("config/held.yaml", ""),
        ("config/stuck.yaml", stuck),
    ])?;
    case.fetch_commit("held", &commit).await?;
    others_work_meanwhile(case).await?;
    hold(case, false).await?;
    case.wait_for(
        "flux.kluctl.io/v1alpha1",
        "KluctlDeployment",
        "held",
        "its second wait",
        |object| message_of(object, "Reconciling").contains("Deployment/stuck"),
    )
    .await?;
    another_works(case, "third").await
}
