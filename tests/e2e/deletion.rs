//! What happens to deployed objects when their KluctlDeployment goes.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    support::{Case, TWO_CONFIG_MAPS},
    tests,
};

tests![
    deletion_follows_prune_when_delete_is_left_out,
    delete_false_keeps_what_prune_manages,
    delete_true_removes_without_prune,
    a_suspended_deployment_leaves_its_objects_behind,
    deletion_needs_no_source_any_more,
    deletion_removes_only_what_carries_the_own_discriminator,
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
