//! Variables from the cluster, as the account that deploys may read them.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    support::{Case, SHARED, message_of},
    tests,
};

tests![
    secrets_and_config_maps_of_the_cluster_are_variables,
    a_missing_secret_is_named_and_waited_for,
    variables_are_read_as_the_account_that_deploys,
];

const PROJECT: [(&str, &str); 4] = [
    SHARED[0],
    (
        "deployment.yaml",
        "vars:\n  - clusterConfigMap:\n      labels: {role: settings}\n      namespace: \"{{ args.namespace }}\"\n      key: vars.yaml\n  - clusterSecret:\n      name: credentials\n      namespace: \"{{ args.namespace }}\"\n      key: vars.yaml\n      targetPath: credentials\ndeployments:\n  - path: config\noverrideNamespace: \"{{ args.namespace }}\"\n",
    ),
    (
        "config/one.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  colour: \"{{ colour }}\"\n",
    ),
    (
        "config/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: two\nstringData:\n  password: \"{{ credentials.password }}\"\n",
    ),
];

async fn settings(case: &Case, colour: &str) -> Result<()> {
    case.apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "labels": {"role": "settings"}},
        "data": {"vars.yaml": format!("colour: {colour}\n")}}))
        .await?;
    Ok(())
}

async fn credentials(case: &Case, password: &str) -> Result<()> {
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
        "stringData": {"vars.yaml": format!("password: {password}\n")}}))
        .await?;
    Ok(())
}

/// The decoded password of the deployed Secret.
async fn password(case: &Case) -> Result<String> {
    use base64::Engine as _;
    let secret = case.get("v1", "Secret", "two").await?.unwrap_or_default();
    let encoded = secret["data"]["password"].as_str().unwrap_or_default();
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded)?;
    Ok(String::from_utf8(decoded)?)
}

async fn secrets_and_config_maps_of_the_cluster_are_variables(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    settings(case, "green").await?;
    credentials(case, "first-pass").await?;
    case.deploy_files("app", &PROJECT, json!({})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["colour"] == "green", "not deployed");
    ensure!(password(case).await? == "first-pass", "not deployed");

    // They take part in the objects hash: no request to deploy is needed, only one to look.
    settings(case, "blue").await?;
    case.request_reconcile("app", "1").await?;
    case.wait_handled("app", "1").await?;
    ensure!(case.config_map("one").await?["data"]["colour"] == "blue", "the change is not seen");
    // Secrets are watched: their changes need no request.
    credentials(case, "second-pass").await?;
    case.wait_until("the new password", || async { Ok(password(case).await? == "second-pass") })
        .await
}

async fn a_missing_secret_is_named_and_waited_for(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    settings(case, "green").await?;
    case.deploy_files("app", &PROJECT, json!({"retryInterval": "1h"})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    let missing = format!("{}/Secret/credentials", case.namespace);
    ensure!(message.contains(&missing) && message.contains("deployment.yaml:6"), "{message}");
    ensure!(case.config_map("one").await?.is_null(), "something was deployed");
    credentials(case, "first-pass").await?;
    case.wait_ready("app").await?;
    ensure!(password(case).await? == "first-pass", "not deployed");
    Ok(())
}

async fn variables_are_read_as_the_account_that_deploys(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    settings(case, "green").await?;
    credentials(case, "first-pass").await?;
    case.apply(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
    )
    .await?;
    // It may do everything with ConfigMaps, and nothing with Secrets.
    case.apply(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tenant"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}))
        .await?;
    case.apply(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": case.namespace}]}))
        .await?;
    case.deploy_files("app", &PROJECT, json!({"serviceAccountName": "tenant"})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    let user = format!("system:serviceaccount:{}:tenant", case.namespace);
    ensure!(message.contains(&user) && message.contains("secrets"), "{message}");
    Ok(())
}
