//! `dependsOn`: other deployments, other kinds, circles.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, TWO_CONFIG_MAPS, condition, message_of},
    tests,
};

tests![
    a_dependency_is_waited_for,
    a_dependency_of_another_kind_is_judged_by_its_conditions,
    a_cycle_is_named_in_full_and_stalls,
    a_dependency_of_another_namespace_is_waited_for_unless_forbidden,
];

/// A project of one ConfigMap named like the deployment.
async fn deploy(case: &Case, name: &str, spec: Value) -> Result<()> {
    let mut files = TWO_CONFIG_MAPS[..2].to_vec();
    let kluctl = format!(
        "discriminator: test-{{{{ args.namespace }}}}-{name}\nargs:\n  - name: namespace\n"
    );
    let manifest = crate::support::config_map(name, "deployed");
    files[0].1 = &kluctl;
    files.push(("config/it.yaml", &manifest));
    case.deploy_project(name, &files, spec).await?;
    Ok(())
}

async fn a_dependency_is_waited_for(case: &mut Case) -> Result<()> {
    case.start_controller(&["--requeue-dependency=1s"]).await?;
    deploy(case, "second", json!({"dependsOn": [{"name": "first"}]})).await?;
    let object = case.wait_failed("second", "DependencyNotReady").await?;
    ensure!(message_of(&object, "Ready").contains("first"), "{}", message_of(&object, "Ready"));
    ensure!(case.config_map("second").await?.is_null(), "deployed before its dependency");
    deploy(case, "first", json!({})).await?;
    case.wait_ready("first").await?;
    case.wait_ready("second").await?;
    Ok(())
}

async fn a_dependency_of_another_kind_is_judged_by_its_conditions(case: &mut Case) -> Result<()> {
    case.install_kustomization_crd().await?;
    case.start_controller(&["--requeue-dependency=1s"]).await?;
    let kind = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"});
    let mut infra = kind.clone();
    infra["metadata"] = json!({"name": "infra"});
    infra["spec"] = json!({"interval": "1h"});
    case.apply(infra).await?;
    let mut dependency = kind;
    dependency["name"] = "infra".into();
    deploy(case, "app", json!({"dependsOn": [dependency]})).await?;
    let not_ready = json!({"status": {"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    case.patch_status("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "infra", not_ready)
        .await?;
    let object = case.wait_failed("app", "DependencyNotReady").await?;
    ensure!(
        message_of(&object, "Ready").contains("Kustomization"),
        "{}",
        message_of(&object, "Ready")
    );
    let ready = json!({"status": {"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "yes",
        "lastTransitionTime": "2026-01-01T00:00:01Z",
    }]}});
    case.patch_status("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "infra", ready).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn a_cycle_is_named_in_full_and_stalls(case: &mut Case) -> Result<()> {
    case.start_controller(&["--requeue-dependency=1s"]).await?;
    for (name, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        deploy(case, name, json!({"dependsOn": [{"name": next}]})).await?;
    }
    let object = case
        .wait_deployment("a", "Stalled", |object| {
            condition(object, "Stalled").is_some_and(|c| c["status"] == "True")
        })
        .await?;
    let message = message_of(&object, "Ready");
    for name in ["a", "b", "c"] {
        ensure!(
            message.contains(&format!("{}/{name}", case.namespace)),
            "{name} is not named: {message}"
        );
    }
    // Breaking the circle releases all three.
    case.patch(
        "flux.kluctl.io/v1alpha1",
        "KluctlDeployment",
        "c",
        json!({"spec": {"dependsOn": null}}),
    )
    .await?;
    for name in ["c", "b", "a"] {
        case.wait_ready(name).await?;
    }
    Ok(())
}

async fn a_dependency_of_another_namespace_is_waited_for_unless_forbidden(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&["--requeue-dependency=1s"]).await?;
    let other = format!("{}-other", case.namespace);
    case.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}))
        .await?;
    let dependency = json!({"name": "base", "namespace": other});
    deploy(case, "app", json!({"dependsOn": [dependency]})).await?;
    let object = case.wait_failed("app", "DependencyNotReady").await?;
    let named = format!("{other}/base");
    ensure!(message_of(&object, "Ready").contains(&named), "{}", object["status"]);
    // Nobody reconciles the other namespace here, so the status is written by hand.
    let mut base = case.deployment("base", json!({}));
    base["metadata"]["namespace"] = other.clone().into();
    case.apply(base).await?;
    let ready = json!({"status": {"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]}});
    let api = case.api("flux.kluctl.io/v1alpha1", "KluctlDeployment", Some(&other));
    let patch = kube::api::Patch::Merge(ready);
    api.patch_status("base", &kube::api::PatchParams::default(), &patch).await?;
    case.wait_ready("app").await?;

    case.controllers.clear();
    case.start_controller(&["--no-cross-namespace-refs"]).await?;
    case.request_reconcile("app", "1").await?;
    let object = case.wait_failed("app", "AccessDenied").await?;
    ensure!(message_of(&object, "Stalled").contains(&named), "{}", object["status"]);
    case.delete_cluster("v1", "Namespace", &other).await
}
