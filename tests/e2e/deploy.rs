//! New revisions deploy, unchanged ones do not, and removed objects are pruned.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{support::Case, tests};

tests![a_new_revision_deploys_and_a_removed_object_is_pruned];

const PROJECT: &[(&str, &str)] = &[
    (
        ".kluctl.yaml",
        "discriminator: deploy-test-{{ args.namespace }}\nargs:\n  - name: namespace\n",
    ),
    (
        "deployment.yaml",
        "deployments:\n  - path: config\noverrideNamespace: {{ args.namespace }}\n",
    ),
    (
        "config/one.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  value: first\n",
    ),
    (
        "config/two.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\ndata:\n  value: first\n",
    ),
];

async fn a_new_revision_deploys_and_a_removed_object_is_pruned(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.repo("app", PROJECT)?;
    case.git_repository("app", &repo).await?;
    case.apply(case.deployment("app", json!({"args": {"namespace": case.namespace}}))).await?;
    case.wait_ready("app").await?;
    let one = case.get("v1", "ConfigMap", "one").await?.unwrap_or_default();
    ensure!(one["data"]["value"] == "first", "not deployed: {one}");
    ensure!(
        one["metadata"]["labels"]["kluctl.io/discriminator"].is_string(),
        "no discriminator: {one}"
    );

    let changed =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  value: second\n";
    let commit = repo.commit(&[("config/one.yaml", changed), ("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    let one = case.get("v1", "ConfigMap", "one").await?.unwrap_or_default();
    ensure!(one["data"]["value"] == "second", "not updated: {one}");
    case.wait_gone("v1", "ConfigMap", "two").await
}
