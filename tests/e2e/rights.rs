//! The controller with the rights that `config/flux` gives it, and no others.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, TWO_CONFIG_MAPS, config_map, is_ready, message_of, root, with},
    tests,
};

tests![
    the_shipped_roles_are_enough_and_deploying_needs_another_account,
    only_the_namespace_asked_for_is_watched,
    a_source_of_another_namespace_is_used,
];

const ACCOUNT: &str = "flux-kluctl-controller";

/// Applies the accounts and roles of `config/flux` and returns a kubeconfig of the controller's account.
async fn shipped_account(case: &Case) -> Result<PathBuf> {
    let built =
        case.suite.kubectl(&["kustomize", &root().join("config/flux").display().to_string()])?;
    let schema = flux_kluctl_controller::yaml::Schema::Manifest;
    let objects = flux_kluctl_controller::yaml::parse_documents("built", built.as_bytes(), schema)?;
    let mut applied = 0;
    for object in objects.into_iter().map(|document| document.value) {
        match object["kind"].as_str().unwrap_or_default() {
            "ClusterRole" | "ClusterRoleBinding" => case.apply_cluster(object).await?,
            "ServiceAccount" | "Role" | "RoleBinding" => {
                ensure!(object["metadata"]["namespace"] == "flux-system", "{object}");
                case.apply(object).await?;
            }
            _ => continue,
        }
        applied += 1;
    }
    ensure!(applied >= 6, "only {applied} accounts and roles are shipped");
    let token = case.suite.kubectl(&["create", "token", ACCOUNT, "-n", "flux-system"])?;
    let mut kubeconfig: Value =
        serde_json::from_str(&std::fs::read_to_string(&case.suite.kubeconfig)?)?;
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = case.dir.join("account.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

async fn the_shipped_roles_are_enough_and_deploying_needs_another_account(
    case: &mut Case,
) -> Result<()> {
    let kubeconfig = shipped_account(case).await?;
    // An account of the tenant's own, which may do everything in its namespace.
    case.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kluctl-deployer"}})).await?;
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "deployer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "kluctl-deployer", "namespace": case.namespace}],
    }))
    .await?;
    case.kubeconfig = kubeconfig;
    case.start_controller(&[
        "--leader-elect",
        "--controller-namespace=flux-system",
        "--default-service-account=kluctl-deployer",
    ])
    .await?;
    // A Secret of the user's, a source, something to prune, and an end: each takes rights of its own.
    let user = std::fs::read_to_string(&case.suite.kubeconfig)?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "remote"},
        "stringData": {"value": user}}))
        .await?;
    let remote = json!({"kubeConfig": {"secretRef": {"name": "remote"}}, "serviceAccountName": "kluctl-deployer"});
    let one = config_map("\"{{ args.name }}\"", "first");
    case.deploy_files("remote", &with(&SHARED, &[("config/one.yaml", &one)]), remote).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("remote").await?;
    case.wait_ready("app").await?;
    let commit = repo.commit(&[("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_gone("v1", "ConfigMap", "two").await?;
    case.wait_until("an event", || async { Ok(!case.events_of("app").await?.is_empty()) }).await?;
    case.delete_deployment("app").await?;
    ensure!(case.config_map("one").await?.is_null(), "not deleted");

    // Whose name nobody gave rights to deploys nothing, and the controller's own rights do not help.
    let nobody = json!({"serviceAccountName": "default"});
    case.deploy_files("nobody", &with(&SHARED, &[("config/one.yaml", &one)]), nobody).await?;
    let object = case
        .wait_deployment("nobody", "the refusal", |object| {
            message_of(object, "Ready").contains("cannot")
                || message_of(object, "Ready").contains("may not")
        })
        .await?;
    ensure!(!is_ready(&object) && case.config_map("nobody").await?.is_null(), "deployed");
    let answer = |verb: &str, resource: &str| {
        let account = format!("system:serviceaccount:flux-system:{ACCOUNT}");
        let namespace = case.namespace.as_str();
        let command = ["auth", "can-i", verb, resource, "-n", namespace, "--as", &account];
        // "no" is an exit code, too.
        case.suite.kubectl(&command).is_ok()
    };
    ensure!(answer("get", "secrets") && answer("impersonate", "serviceaccounts"), "can-i is off");
    for resource in ["configmaps", "deployments.apps", "secrets", "clusterrolebindings"] {
        for verb in ["create", "patch", "delete"] {
            ensure!(!answer(verb, resource), "the controller itself may {verb} {resource}");
        }
    }
    // What it has no use for is not granted either.
    for (verb, resource) in [
        ("create", "kluctldeployments.flux.kluctl.io"),
        ("update", "kluctldeployments.flux.kluctl.io"),
        ("delete", "kluctldeployments.flux.kluctl.io"),
        ("list", "kustomizations.kustomize.toolkit.fluxcd.io"),
        ("delete", "leases.coordination.k8s.io"),
        ("list", "configmaps"),
    ] {
        ensure!(!answer(verb, resource), "the controller itself may {verb} {resource}");
    }
    let log = case.controllers[0].log_text();
    let refused: Vec<_> = log
        .lines()
        .filter(|line| line.contains("forbidden") && !line.contains("\"name\":\"nobody\""))
        .collect();
    ensure!(refused.is_empty(), "rights are missing:\n{}", refused.join("\n"));
    let leases = case.api("coordination.k8s.io/v1", "Lease", Some("flux-system"));
    ensure!(!leases.list(&kube::api::ListParams::default()).await?.items.is_empty(), "no lease");
    Ok(())
}

/// A namespace beside the test's own.
async fn elsewhere(case: &Case) -> Result<Case> {
    Case::start(case.suite.clone(), &format!("elsewhere-{}", case.namespace)).await
}

async fn only_the_namespace_asked_for_is_watched(case: &mut Case) -> Result<()> {
    let other = elsewhere(case).await?;
    let namespace = case.namespace.clone();
    let environment = [("RUNTIME_NAMESPACE", namespace.as_str())];
    case.start_controller_with(&["--watch-all-namespaces=false"], &environment).await?;
    let one = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/one.yaml", &one)]);
    other.deploy_files("there", &files, json!({})).await?;
    case.deploy_files("here", &files, json!({})).await?;
    case.wait_ready("here").await?;
    let there = other.get_deployment("there").await?;
    ensure!(there["status"]["conditions"].is_null(), "reconciled: {}", there["status"]);
    ensure!(other.config_map("there").await?.is_null(), "deployed in a namespace not watched");
    other.finish().await
}

async fn a_source_of_another_namespace_is_used(case: &mut Case) -> Result<()> {
    let other = elsewhere(case).await?;
    // All namespaces are watched, so that other tests' objects must be told apart by a label.
    let selector = format!("--watch-label-selector=test={}", case.namespace);
    case.start_controller(&["--watch-all-namespaces=true", &selector]).await?;
    let (first, second) = (config_map("one", "first"), config_map("one", "second"));
    let files = with(&SHARED, &[("config/one.yaml", &first)]);
    other.publish("app", &files, "v1@sha256:0001").await?;
    let source =
        json!({"kind": "ExternalArtifact", "name": "app", "namespace": other.namespace.as_str()});
    let mut object = case.artifact_deployment("app", "app", json!({"sourceRef": source}));
    object["metadata"]["labels"] = json!({"test": case.namespace});
    case.apply(object).await?;
    case.wait_ready("app").await?;
    let files = with(&SHARED, &[("config/one.yaml", &second)]);
    other.publish("app", &files, "v2@sha256:0002").await?;
    case.wait_for("v1", "ConfigMap", "one", "the new revision", |object| {
        object["data"]["value"] == "second"
    })
    .await?;
    other.finish().await
}
