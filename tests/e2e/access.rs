//! Whose rights and which cluster a deployment uses.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, TWO_CONFIG_MAPS, message_of},
    tests,
};

tests![
    a_service_account_without_rights_is_told_which_verbs_are_missing,
    the_default_service_account_is_used,
    a_remote_kubeconfig_with_renamed_contexts_is_used,
    a_missing_context_lists_what_there_is,
    an_exec_plugin_in_a_kubeconfig_is_refused,
    a_changed_kubeconfig_secret_wakes_the_deployment,
];

async fn a_service_account_without_rights_is_told_which_verbs_are_missing(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    case.apply(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
    )
    .await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"serviceAccountName": "tenant"})).await?;
    let object = case
        .wait_deployment("app", "the refusal", |object| {
            message_of(object, "Ready").contains("forbidden")
                || message_of(object, "Ready").contains("may not")
        })
        .await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("patch") && message.contains("configmaps"), "{message}");
    let user = format!("system:serviceaccount:{}:tenant", case.namespace);
    ensure!(message.contains(&user), "{message}");
    ensure!(case.config_map("one").await?.is_null(), "deployed without rights");
    grant(case, "tenant").await?;
    case.wait_ready("app").await?;
    Ok(())
}

/// Gives an account all rights in the test's namespace, and those on cluster scope that finding objects takes.
async fn grant(case: &Case, account: &str) -> Result<()> {
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": case.namespace}],
    }))
    .await?;
    Ok(())
}

async fn the_default_service_account_is_used(case: &mut Case) -> Result<()> {
    case.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default-tenant"}})).await?;
    grant(case, "default-tenant").await?;
    case.start_controller(&["--default-service-account=default-tenant"]).await?;
    let outside = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: not-for-tenants\nrules: []\n";
    let files = [TWO_CONFIG_MAPS, &[("config/zz.yaml", outside)]].concat();
    let repo = case.deploy_project("app", &files, json!({})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    ensure!(
        message_of(&object, "Ready").contains("default-tenant"),
        "{}",
        message_of(&object, "Ready")
    );
    let commit = repo.commit(&[("config/zz.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    Ok(())
}

/// The administrator's kubeconfig as a Secret, after `change`.
async fn kubeconfig_secret(case: &Case, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
    let mut kubeconfig: Value =
        serde_json::from_str(&std::fs::read_to_string(&case.suite.kubeconfig)?)?;
    change(&mut kubeconfig);
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "stringData": {"value": kubeconfig.to_string()}}))
        .await?;
    Ok(())
}

fn with_context(context: &str) -> Vec<(String, String)> {
    let kluctl = format!(
        "discriminator: test-{{{{ args.namespace }}}}\nargs:\n  - name: namespace\ntargets:\n  - name: prod\n    context: {context}\n"
    );
    let mut files: Vec<(String, String)> = TWO_CONFIG_MAPS
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    files[0].1 = kluctl;
    files
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

async fn a_remote_kubeconfig_with_renamed_contexts_is_used(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    kubeconfig_secret(case, "remote", |_| {}).await?;
    let files = with_context("prod-cluster");
    let spec = json!({
        "target": "prod",
        "kubeConfig": {"secretRef": {"name": "remote"}},
        "renameContexts": [
            {"oldContext": "default", "newContext": "stage-cluster"},
            {"oldContext": "stage-cluster", "newContext": "prod-cluster"},
        ],
    });
    case.deploy_project("app", &borrowed(&files), spec).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    Ok(())
}

async fn a_missing_context_lists_what_there_is(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let files = with_context("nowhere");
    let spec = json!({"target": "prod", "renameContexts": [{"oldContext": "default", "newContext": "somewhere"}]});
    case.deploy_project("app", &borrowed(&files), spec).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("nowhere") && message.contains("somewhere"), "{message}");
    Ok(())
}

async fn an_exec_plugin_in_a_kubeconfig_is_refused(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    kubeconfig_secret(case, "remote", |kubeconfig| {
        kubeconfig["users"][0]["user"] = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "touch",
            "args": [case.dir.join("executed").display().to_string()], "interactiveMode": "Never",
        }});
    })
    .await?;
    case.deploy_project(
        "app",
        TWO_CONFIG_MAPS,
        json!({"kubeConfig": {"secretRef": {"name": "remote"}}}),
    )
    .await?;
    let object = case
        .wait_deployment("app", "the refusal", |object| {
            message_of(object, "Ready").contains("exec")
        })
        .await?;
    ensure!(
        message_of(&object, "Ready").contains("--insecure-kubeconfig-exec"),
        "{}",
        message_of(&object, "Ready")
    );
    ensure!(!case.dir.join("executed").exists(), "the plugin was run");
    Ok(())
}

async fn a_changed_kubeconfig_secret_wakes_the_deployment(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let spec = json!({"kubeConfig": {"secretRef": {"name": "remote"}}, "retryInterval": "1h"});
    case.deploy_project("app", TWO_CONFIG_MAPS, spec).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    ensure!(message_of(&object, "Ready").contains("remote"), "{}", message_of(&object, "Ready"));
    // The retry is an hour away: only the watch on the Secret can wake it.
    kubeconfig_secret(case, "remote", |_| {}).await?;
    case.wait_ready("app").await?;
    Ok(())
}
