//! What becomes of deployed objects when the project or the spec names another discriminator or cluster.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, GitRepo, TWO_CONFIG_MAPS, message_of},
    tests,
};

tests![
    a_changed_discriminator_prunes_what_was_dropped_with_it,
    without_prune_a_changed_discriminator_is_told_until_its_objects_are_gone,
    a_deletion_takes_the_objects_of_a_former_discriminator,
    a_changed_cluster_is_told,
    a_claim_moves_with_the_deployment,
    another_cluster_behind_the_same_secret_is_deployed_to,
];

fn config(number: u32) -> String {
    format!("discriminator: test-{{{{ args.namespace }}}}-{number}\nargs:\n  - name: namespace\n")
}

async fn deploy(case: &mut Case, spec: Value) -> Result<GitRepo> {
    case.start_controller(&[]).await?;
    let first = config(1);
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files[0].1 = &first;
    let repo = case.deploy_project("app", &files, spec).await?;
    case.wait_ready("app").await?;
    Ok(repo)
}

/// Another discriminator, and without `two`.
async fn change(case: &Case, repo: &GitRepo) -> Result<Value> {
    let commit = repo.commit(&[(".kluctl.yaml", &config(2)), ("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await
}

async fn discriminator(case: &Case, name: &str) -> Result<String> {
    let object = case.config_map(name).await?;
    let label = object["metadata"]["labels"]["kluctl.io/discriminator"].as_str();
    Ok(label.unwrap_or_default().to_owned())
}

async fn a_changed_discriminator_prunes_what_was_dropped_with_it(case: &mut Case) -> Result<()> {
    let repo = deploy(case, json!({})).await?;
    let object = change(case, &repo).await?;
    let second = format!("test-{}-2", case.namespace);
    ensure!(discriminator(case, "one").await? == second, "not deployed anew");
    ensure!(case.config_map("two").await?.is_null(), "two is left behind");
    ensure!(object["status"]["discriminator"] == second, "{}", object["status"]);
    ensure!(object["status"]["formerTargets"].is_null(), "{}", object["status"]);
    Ok(())
}

async fn without_prune_a_changed_discriminator_is_told_until_its_objects_are_gone(
    case: &mut Case,
) -> Result<()> {
    let repo = deploy(case, json!({"prune": false})).await?;
    let object = change(case, &repo).await?;
    let first = format!("test-{}-1", case.namespace);
    ensure!(discriminator(case, "two").await? == first, "two was touched");
    let former = &object["status"]["formerTargets"][0];
    ensure!(former["discriminator"] == first, "{}", object["status"]);
    let told = former["message"].as_str().unwrap_or_default();
    ensure!(told.starts_with("1 object") && told.contains("spec.prune"), "{told}");
    ensure!(message_of(&object, "Ready").contains("formerTargets"), "{}", object["status"]);
    case.wait_event("ObjectsLeftBehind", &first).await?;

    case.delete("v1", "ConfigMap", "two").await?;
    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "now").await?;
    let object = case
        .wait_deployment("app", "the end of the remark", |object| {
            object["status"]["formerTargets"].is_null()
        })
        .await?;
    ensure!(!message_of(&object, "Ready").contains("formerTargets"), "{}", object["status"]);
    Ok(())
}

async fn a_deletion_takes_the_objects_of_a_former_discriminator(case: &mut Case) -> Result<()> {
    let repo = deploy(case, json!({"prune": false, "delete": true})).await?;
    change(case, &repo).await?;
    case.delete_deployment("app").await?;
    for name in ["one", "two"] {
        ensure!(case.config_map(name).await?.is_null(), "{name} is left behind");
    }
    Ok(())
}

async fn a_changed_cluster_is_told(case: &mut Case) -> Result<()> {
    deploy(case, json!({})).await?;
    let remote_plane = case.own_control_plane()?;
    let remote = remote_plane.case(case).await?;
    point_to(case, &remote_plane.kubeconfig).await?;
    let before = case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    let home = before.unwrap_or_default()["status"]["clusterId"].clone();
    let there = json!({"spec": {"kubeConfig": {"secretRef": {"name": "remote"}}}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", there).await?;
    let object = case
        .wait_deployment("app", "the deployment to the other cluster", |object| {
            object["status"]["formerTargets"][0]["message"].is_string()
        })
        .await?;
    ensure!(!remote.config_map("one").await?.is_null(), "not deployed to the other cluster");
    ensure!(object["status"]["formerTargets"][0]["clusterId"] == home, "{}", object["status"]);
    let home = home.as_str().unwrap_or_default();
    case.wait_event("ObjectsLeftBehind", &format!("left behind on cluster {home}")).await?;

    case.delete_deployment("app").await?;
    ensure!(remote.config_map("one").await?.is_null(), "the other cluster's object is still there");
    ensure!(!case.config_map("one").await?.is_null(), "deleted without being asked to");
    remote.finish().await
}

async fn a_claim_moves_with_the_deployment(case: &mut Case) -> Result<()> {
    let repo = deploy(case, json!({"deployOnChanges": false, "prune": false})).await?;
    let [first, second] = [1, 2].map(|number| format!("test-{}-{number}", case.namespace));
    let commit = repo.commit(&[(".kluctl.yaml", &config(2))])?;
    case.fetch_commit("app", &commit).await?;
    let object = case
        .wait_deployment("app", "the look at the new revision", |object| {
            message_of(object, "Ready").contains("deployOnChanges")
        })
        .await?;
    let claim = &object["status"]["claim"];
    ensure!(claim["discriminator"] == first && claim["state"] == "Granted", "{claim}");
    ensure!(discriminator(case, "one").await? == first, "deployed although it should not");
    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "now").await?;
    let object = case
        .wait_deployment("app", "the deployment", |object| {
            object["status"]["lastHandledDeployAt"] == "now"
        })
        .await?;
    let claim = &object["status"]["claim"];
    ensure!(claim["discriminator"] == second && claim["state"] == "Granted", "{claim}");
    ensure!(discriminator(case, "one").await? == second, "not deployed");
    Ok(())
}

/// Stores a kubeconfig in the Secret `remote`.
async fn point_to(case: &Case, kubeconfig: &std::path::Path) -> Result<()> {
    let text = std::fs::read_to_string(kubeconfig)?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "remote"},
        "stringData": {"value": text}}))
        .await?;
    Ok(())
}

async fn another_cluster_behind_the_same_secret_is_deployed_to(case: &mut Case) -> Result<()> {
    point_to(case, &case.suite.kubeconfig).await?;
    let remote_plane = case.own_control_plane()?;
    let remote = remote_plane.case(case).await?;
    let spec = json!({"kubeConfig": {"secretRef": {"name": "remote"}}});
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, spec).await?;
    case.wait_ready("app").await?;
    ensure!(remote.config_map("one").await?.is_null(), "deployed there already");
    point_to(case, &remote_plane.kubeconfig).await?;
    case.wait_deployment("app", "what was left behind", |object| {
        object["status"]["formerTargets"][0]["message"].is_string()
    })
    .await?;
    ensure!(!remote.config_map("one").await?.is_null(), "not deployed to the other cluster");
    remote.finish().await
}
