//! Claims on targets that nobody stands behind, and clusters that not every account can tell from others.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, config_map, is_ready, message_of, ready_reason, with},
    tests,
};

tests![
    a_request_that_nobody_renews_is_taken_down,
    a_request_of_a_suspended_object_blocks_nobody,
    what_is_owned_blocks_also_while_nobody_reconciles_the_owner,
    a_suspended_object_gives_up_what_it_has_only_asked_for,
    a_rival_is_found_at_the_same_address_without_rights_on_the_identity,
    the_own_cluster_is_recognised_by_its_address,
    who_waits_for_another_to_step_back_holds_no_worker,
];

const API: &str = "flux.kluctl.io/v1alpha1";
const KIND: &str = "KluctlDeployment";

fn project() -> Vec<(&'static str, String)> {
    let [(config, text), deployment] = SHARED;
    // Every object has the same target, whatever its name.
    let text = text.replace("{{ args.name }}-", "shared-");
    let one = config_map("one", "\"{{ args.name }}\"");
    vec![(config, text), (deployment.0, deployment.1.to_owned()), ("config/one.yaml", one)]
}

async fn deploy(case: &Case, name: &str, labels: Value, spec: Value) -> Result<()> {
    let files = project();
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    case.publish("app", &with(&files, &[]), "v1@sha256:0001").await?;
    let mut object = case.artifact_deployment(name, "app", spec);
    object["metadata"]["labels"] = labels;
    case.apply(object).await?;
    Ok(())
}

/// An object of a shard that no controller reconciles, with a claim as its controller left it behind.
async fn orphan(case: &Case, spec: Value, claim: Value) -> Result<()> {
    deploy(case, "orphan", json!({"shard": "nobodys"}), spec).await?;
    let system = case.api("v1", "Namespace", None).get("kube-system").await?;
    let mut all = json!({"clusterId": system.metadata.uid, "server": "https://kubernetes.default.svc",
        "discriminator": format!("shared-{}", case.namespace)});
    crate::support::merge(&mut all, claim);
    case.patch_status(API, KIND, "orphan", json!({"status": {"claim": all}})).await
}

async fn start(case: &mut Case) -> Result<()> {
    let arguments = ["--watch-label-selector=shard=one", "--requeue-dependency=1s"];
    case.start_controller(&arguments).await?;
    Ok(())
}

fn ago(seconds: i64) -> String {
    let time = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds);
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

async fn a_request_that_nobody_renews_is_taken_down(case: &mut Case) -> Result<()> {
    // Fresh, it goes first, for its object is older.
    orphan(case, json!({}), json!({"state": "Requested", "requestedAt": ago(0)})).await?;
    // The API server tells ages by the second.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    start(case).await?;
    deploy(case, "app", json!({"shard": "one"}), json!({})).await?;
    let object = case.wait_failed("app", "OwnershipConflict").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("is being claimed by") && message.contains("orphan"), "{message}");
    ensure!(case.config_map("one").await?.is_null(), "deployed beside a fresh request");

    let old = json!({"status": {"claim": {"requestedAt": ago(121)}}});
    case.patch_status(API, KIND, "orphan", old).await?;
    case.wait_ready("app").await?;
    let orphan = case.get_deployment("orphan").await?;
    let claim = &orphan["status"]["claim"];
    ensure!(claim["state"] == "Refused" && claim["requestedAt"].is_null(), "{claim}");
    Ok(())
}

async fn who_waits_for_another_to_step_back_holds_no_worker(case: &mut Case) -> Result<()> {
    orphan(case, json!({}), json!({"state": "Requested", "requestedAt": ago(0)})).await?;
    // The API server tells ages by the second.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let arguments =
        ["--watch-label-selector=shard=one", "--requeue-dependency=1s", "--concurrent=1"];
    case.start_controller(&arguments).await?;
    for number in 0..6 {
        let name = format!("app-{number}");
        deploy(case, &name, json!({"shard": "one"}), json!({})).await?;
    }
    case.wait_deployment("app-0", "its request", |object| {
        object["status"]["claim"]["state"] == "Requested"
    })
    .await?;
    let manifest = config_map("free", "first");
    case.publish("free", &with(&SHARED, &[("config/it.yaml", &manifest)]), "v1@sha256:0001")
        .await?;
    let mut free = case.artifact_deployment("free", "free", json!({}));
    free["metadata"]["labels"] = json!({"shard": "one"});
    let started = std::time::Instant::now();
    case.apply(free).await?;
    case.wait_ready("free").await?;
    // Each of the six waits for five seconds, again and again.
    let took = started.elapsed();
    ensure!(took < std::time::Duration::from_secs(12), "deployed after {took:?}");
    Ok(())
}

async fn a_request_of_a_suspended_object_blocks_nobody(case: &mut Case) -> Result<()> {
    let request = json!({"state": "Requested", "requestedAt": ago(0)});
    orphan(case, json!({"suspend": true}), request).await?;
    start(case).await?;
    deploy(case, "app", json!({"shard": "one"}), json!({})).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn what_is_owned_blocks_also_while_nobody_reconciles_the_owner(
    case: &mut Case,
) -> Result<()> {
    orphan(case, json!({"suspend": true}), json!({"state": "Granted"})).await?;
    start(case).await?;
    deploy(case, "app", json!({"shard": "one"}), json!({})).await?;
    let object = case.wait_failed("app", "OwnershipConflict").await?;
    ensure!(message_of(&object, "Ready").contains("is managed by"), "{}", object["status"]);
    case.delete_deployment("orphan").await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn a_suspended_object_gives_up_what_it_has_only_asked_for(case: &mut Case) -> Result<()> {
    deploy(case, "app", json!({"shard": "one"}), json!({"suspend": true})).await?;
    let claim = json!({"clusterId": "c", "discriminator": "d", "state": "Requested"});
    case.patch_status(API, KIND, "app", json!({"status": {"claim": claim}})).await?;
    start(case).await?;
    case.wait_for(API, KIND, "app", "no claim", |object| {
        object["metadata"].is_object() && object["status"]["claim"].is_null()
    })
    .await?;
    Ok(())
}

/// A Secret with a kubeconfig for an account that may do everything in the test's namespace and nothing elsewhere; or for the
/// administrator.
async fn kubeconfig(case: &Case, name: &str, host: &str, is_tenant: bool) -> Result<()> {
    let text = std::fs::read_to_string(&case.suite.kubeconfig)?;
    let mut kubeconfig: Value = serde_json::from_str(&text.replace("127.0.0.1", host))?;
    if is_tenant {
        case.apply(
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        )
        .await?;
        case.apply(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": case.namespace}],
        }))
        .await?;
        let token = case.suite.kubectl(&["create", "token", name, "-n", &case.namespace])?;
        kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    }
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "stringData": {"value": kubeconfig.to_string()}}))
        .await?;
    Ok(())
}

fn with_secret(name: &str) -> Value {
    json!({"kubeConfig": {"secretRef": {"name": name}}})
}

async fn a_rival_is_found_at_the_same_address_without_rights_on_the_identity(
    case: &mut Case,
) -> Result<()> {
    // Not the address of the controller's own cluster.
    kubeconfig(case, "tenant", "localhost", true).await?;
    kubeconfig(case, "admin", "localhost", false).await?;
    start(case).await?;
    deploy(case, "first", json!({"shard": "one"}), with_secret("tenant")).await?;
    let first = case.wait_ready("first").await?;
    let address = first["status"]["clusterId"].as_str().unwrap_or_default();
    ensure!(address.starts_with("https://localhost:"), "{}", first["status"]);
    deploy(case, "second", json!({"shard": "one"}), with_secret("admin")).await?;
    let second = case.wait_failed("second", "OwnershipConflict").await?;
    ensure!(message_of(&second, "Ready").contains("first"), "{}", second["status"]);
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "deployed over the owner");

    // With rights the cluster is the same one as before, and nothing is left behind.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "tenant", "namespace": "kube-system"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": case.namespace}]});
    case.apply(role).await?;
    case.annotate_deployment("first", "deploy.flux.kluctl.io/requestedAt", "1").await?;
    let system = case.api("v1", "Namespace", None).get("kube-system").await?;
    let uid = system.metadata.uid.unwrap_or_default();
    let first = case
        .wait_deployment("first", "the UID", |object| {
            is_ready(object) && object["status"]["clusterId"] == uid.as_str()
        })
        .await?;
    ensure!(first["status"]["formerTargets"].is_null(), "{}", first["status"]);
    ensure!(first["status"]["claim"]["state"] == "Granted", "{}", first["status"]);
    let second = case.get_deployment("second").await?;
    ensure!(ready_reason(&second) == "OwnershipConflict", "{}", second["status"]);
    case.api("rbac.authorization.k8s.io/v1", "RoleBinding", Some("kube-system"))
        .delete("tenant", &kube::api::DeleteParams::default())
        .await?;
    Ok(())
}

async fn the_own_cluster_is_recognised_by_its_address(case: &mut Case) -> Result<()> {
    kubeconfig(case, "tenant", "127.0.0.1", true).await?;
    start(case).await?;
    deploy(case, "first", json!({"shard": "one"}), with_secret("tenant")).await?;
    let first = case.wait_ready("first").await?;
    let system = case.api("v1", "Namespace", None).get("kube-system").await?;
    let uid = system.metadata.uid.unwrap_or_default();
    ensure!(first["status"]["clusterId"] == uid.as_str(), "{}", first["status"]);
    Ok(())
}
