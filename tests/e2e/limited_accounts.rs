//! Accounts that may not list across all namespaces, that lose rights, or that are gone.

use anyhow::{Context, Result, bail, ensure};
use flux_kluctl_controller::yaml::{Schema, parse_documents};
use serde_json::{Value, json};

use crate::{
    support::{Case, GitRepo, TWO_CONFIG_MAPS, message_of, root},
    tests,
};

tests![
    prune_and_deletion_search_the_namespaces_deployed_to,
    a_deletion_that_may_not_see_what_was_deployed_fails,
    a_deletion_ends_when_the_kubeconfig_secret_is_gone,
    a_namespace_goes_although_its_account_went_first,
];

/// The name of a second namespace.
fn second(case: &Case) -> String {
    format!("{}-b", case.namespace)
}

/// Gives account `tenant` all rights on ConfigMaps in a namespace, and no others.
async fn grant(case: &Case, namespace: &str) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "tenant", "namespace": namespace});
    case.apply(json!({"apiVersion": rbac, "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}))
        .await?;
    case.apply(json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": case.namespace}]}))
        .await?;
    Ok(())
}

fn in_namespace(namespace: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: far\n  namespace: {namespace}\n")
}

/// Deploys `one` and `two` to the test's namespace and `far` to the second one, as `tenant`.
async fn deploy(case: &mut Case) -> Result<GitRepo> {
    let second = second(case);
    case.start_controller(&[]).await?;
    case.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": second}}))
        .await?;
    case.apply(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
    )
    .await?;
    grant(case, &case.namespace).await?;
    grant(case, &second).await?;
    let deployment = "deployments:\n  - path: config\n  - path: far\n";
    let near = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {{{{ args.namespace }}}}\n"
        )
    };
    let (one, two, far) = (near("one"), near("two"), in_namespace(&second));
    let files = [
        TWO_CONFIG_MAPS[0],
        ("deployment.yaml", deployment),
        ("config/one.yaml", &one),
        ("config/two.yaml", &two),
        ("far/far.yaml", &far),
    ];
    let repo = case.deploy_project("app", &files, json!({"serviceAccountName": "tenant"})).await?;
    case.wait_ready("app").await?;
    ensure!(!far_one(case).await?.is_null(), "far was not deployed");
    Ok(repo)
}

async fn far_one(case: &Case) -> Result<Value> {
    let api = case.api("v1", "ConfigMap", Some(&second(case)));
    Ok(serde_json::to_value(api.get_opt("far").await?)?)
}

async fn clean_up(case: &Case) -> Result<()> {
    case.delete_cluster("v1", "Namespace", &second(case)).await
}

async fn prune_and_deletion_search_the_namespaces_deployed_to(case: &mut Case) -> Result<()> {
    let repo = deploy(case).await?;
    // Nothing of the project mentions the second namespace any more.
    let only = "deployments:\n  - path: config\n";
    let commit = repo.commit(&[("deployment.yaml", only), ("far/far.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    let object = case.wait_ready_at("app", &commit).await?;
    ensure!(far_one(case).await?.is_null(), "far is orphaned");
    let namespaces = &object["status"]["footprint"]["namespaces"];
    ensure!(*namespaces == json!([case.namespace]), "{}", object["status"]["footprint"]);

    let both = "deployments:\n  - path: config\n  - path: far\n";
    let far = in_namespace(&second(case));
    let commit = repo.commit(&[("deployment.yaml", both), ("far/far.yaml", &far)])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    case.delete_deployment("app").await?;
    ensure!(case.config_map("one").await?.is_null(), "one is orphaned");
    ensure!(far_one(case).await?.is_null(), "far is orphaned");
    clean_up(case).await
}

async fn a_deletion_that_may_not_see_what_was_deployed_fails(case: &mut Case) -> Result<()> {
    deploy(case).await?;
    let bindings = case.api("rbac.authorization.k8s.io/v1", "RoleBinding", Some(&second(case)));
    bindings.delete("tenant", &kube::api::DeleteParams::default()).await?;
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    let object = case.wait_failed("app", "DeleteFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("configmaps") && message.contains(&second(case)), "{message}");
    ensure!(message.contains("spec.delete"), "no way out is named: {message}");
    ensure!(!far_one(case).await?.is_null(), "deleted without rights?");
    grant(case, &second(case)).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    ensure!(far_one(case).await?.is_null(), "far is orphaned");
    clean_up(case).await
}

/// Starts the controller with nothing but the rights that `config/flux` gives it.
async fn start_with_shipped_rights(case: &mut Case, home: &str) -> Result<()> {
    let file = "config/flux/rbac/controller.yaml";
    let documents = parse_documents(file, &std::fs::read(root().join(file))?, Schema::Manifest)?;
    let mut roles = documents.into_iter().map(|document| document.value);
    let mut role = roles.find(|value| value["kind"] == "ClusterRole").context("ClusterRole")?;
    let name = format!("shipped-{}", case.namespace);
    role["metadata"]["name"] = name.as_str().into();
    case.apply_cluster(role).await?;
    let rbac = "rbac.authorization.k8s.io";
    case.apply_cluster(json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": home}],
    }))
    .await?;
    case.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "controller", "namespace": home}}))
        .await?;
    let token = case.suite.kubectl(&["create", "token", "controller", "-n", home])?;
    let admin = std::fs::read_to_string(&case.kubeconfig)?;
    let mut kubeconfig: Value = serde_json::from_str(&admin)?;
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = case.dir.join("shipped.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    case.kubeconfig = path;
    case.start_controller(&[]).await?;
    Ok(())
}

async fn drop_shipped_rights(case: &Case) -> Result<()> {
    let name = format!("shipped-{}", case.namespace);
    for kind in ["ClusterRoleBinding", "ClusterRole"] {
        case.delete_cluster("rbac.authorization.k8s.io/v1", kind, &name).await?;
    }
    Ok(())
}

async fn a_deletion_ends_when_the_kubeconfig_secret_is_gone(case: &mut Case) -> Result<()> {
    let kubeconfig = std::fs::read_to_string(&case.kubeconfig)?;
    let home = case.namespace.clone();
    start_with_shipped_rights(case, &home).await?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "remote"},
        "stringData": {"value": kubeconfig}}))
        .await?;
    let spec = json!({"kubeConfig": {"secretRef": {"name": "remote"}}});
    case.deploy_project("app", TWO_CONFIG_MAPS, spec).await?;
    case.wait_ready("app").await?;
    case.delete("v1", "Secret", "remote").await?;
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("one").await?.is_null(), "deleted without a kubeconfig?");
    let discriminator = format!("kluctl.io/discriminator=test-{}", case.namespace);
    let event = case.wait_event("ObjectsLeftBehind", &discriminator).await?;
    ensure!(event["type"] == "Warning", "{event}");
    ensure!(event["message"].as_str().is_some_and(|text| text.contains("/remote")), "{event}");
    drop_shipped_rights(case).await
}

async fn a_namespace_goes_although_its_account_went_first(case: &mut Case) -> Result<()> {
    let mut going = Case::start(case.suite.clone(), &format!("going-{}", case.namespace)).await?;
    // The controller lives elsewhere: without its own account it could not let go of anything.
    start_with_shipped_rights(&mut going, &case.namespace).await?;
    going
        .apply(
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
        )
        .await?;
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": going.namespace}],
    }))
    .await?;
    let spec = json!({"serviceAccountName": "tenant", "args": {"namespace": case.namespace}});
    going.deploy_project("app", TWO_CONFIG_MAPS, spec).await?;
    going.wait_ready("app").await?;
    going.delete("v1", "ServiceAccount", "tenant").await?;
    going.delete_cluster("v1", "Namespace", &going.namespace).await?;
    let namespaces = going.api("v1", "Namespace", None);
    let end = going
        .wait_until("the end of the namespace", || async {
            Ok(namespaces.get_opt(&going.namespace).await?.is_none())
        })
        .await;
    if let Err(error) = end {
        let left = namespaces.get_opt(&going.namespace).await?;
        let object = going
            .get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app")
            .await
            .unwrap_or_default();
        let log = going.controllers[0].log_tail(40);
        bail!("{error}\n{}\n{object:#?}\n{log}", serde_json::to_string_pretty(&left)?);
    }
    ensure!(!case.config_map("one").await?.is_null(), "deleted without an account?");
    let log = going.controllers[0].log_text();
    ensure!(log.contains("the deployed objects stay: service account"), "not a word in the log");
    drop_shipped_rights(&going).await
}
