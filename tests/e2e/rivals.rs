//! Objects of both API groups, and objects that the Go controllers left behind.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, condition, config_map, is_ready, message_of, ready_reason, with},
    tests,
};

tests![
    a_twin_in_the_other_group_takes_over,
    a_rival_in_the_other_group_comes_first,
    an_object_of_the_go_controller_is_taken_over,
    an_object_of_the_go_controller_is_deleted_with_what_it_deployed,
];

const GITOPS: &str = "gitops.kluctl.io/v1beta1";

/// The other group's KluctlDeployment, as far as this controller looks at it.
pub(crate) async fn install_gitops_crd(case: &Case) -> Result<()> {
    case.apply_cluster(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kluctldeployments.gitops.kluctl.io"},
        "spec": {
            "group": "gitops.kluctl.io", "scope": "Namespaced",
            "names": {"kind": "KluctlDeployment", "listKind": "KluctlDeploymentList",
                      "plural": "kluctldeployments", "singular": "kluctldeployment"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))
    .await?;
    case.suite.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/kluctldeployments.gitops.kluctl.io",
        "--timeout=30s",
    ])?;
    Ok(())
}

fn gitops_object(name: &str) -> Value {
    json!({"apiVersion": GITOPS, "kind": "KluctlDeployment", "metadata": {"name": name},
        "spec": {"interval": "1h"}})
}

async fn deploy_one(case: &Case, name: &str) -> Result<()> {
    let one = config_map("one", "first");
    case.deploy_files(name, &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await
}

async fn a_twin_in_the_other_group_takes_over(case: &mut Case) -> Result<()> {
    install_gitops_crd(case).await?;
    case.start_controller(&[]).await?;
    deploy_one(case, "app").await?;
    let object = case.wait_ready("app").await?;
    ensure!(object["status"]["readyForMigration"] == true, "{}", object["status"]);
    case.apply(gitops_object("app")).await?;
    let object = case.wait_failed("app", "Migrated").await?;
    ensure!(condition(&object, "Stalled").is_some(), "{}", object["status"]);
    ensure!(message_of(&object, "Ready").contains("gitops.kluctl.io"), "{}", object["status"]);
    // What it deployed belongs to the twin now.
    case.patch("v1", "ConfigMap", "one", json!({"data": {"value": "by the twin"}})).await?;
    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "1").await?;
    case.request_reconcile("app", "1").await?;
    case.wait_handled("app", "1").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "by the twin", "deployed still");
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("one").await?.is_null(), "the twin's object was deleted");
    Ok(())
}

async fn a_rival_in_the_other_group_comes_first(case: &mut Case) -> Result<()> {
    install_gitops_crd(case).await?;
    let system = case.api("v1", "Namespace", None).get("kube-system").await?;
    case.apply(gitops_object("rival")).await?;
    let target = json!({"status": {"targetKey": {
        "clusterId": system.metadata.uid, "discriminator": format!("app-{}", case.namespace)}}});
    case.patch_status(GITOPS, "KluctlDeployment", "rival", target).await?;
    case.start_controller(&[]).await?;
    deploy_one(case, "app").await?;
    let object = case.wait_failed("app", "OwnershipConflict").await?;
    let rival = format!("KluctlDeployment.gitops.kluctl.io {}/rival", case.namespace);
    for kind in ["Ready", "OwnershipConflict"] {
        let message = message_of(&object, kind);
        ensure!(message.contains(&rival), "{kind} does not name the rival: {message}");
    }
    ensure!(object["status"]["rivals"] == json!([rival]), "{}", object["status"]);
    ensure!(case.config_map("one").await?.is_null(), "deployed against the rival");
    their_object_is_told_once(case).await?;

    case.delete(GITOPS, "KluctlDeployment", "rival").await?;
    let object = case.wait_ready("app").await?;
    ensure!(condition(&object, "OwnershipConflict").is_none(), "{}", object["status"]);
    ensure!(!case.config_map("one").await?.is_null(), "not deployed after the rival left");
    Ok(())
}

/// The rival's own controller knows nothing of the conflict, so there is an Event about the rival; one, however often the
/// conflict is found again.
async fn their_object_is_told_once(case: &Case) -> Result<()> {
    let ours = format!("KluctlDeployment.flux.kluctl.io {}/app", case.namespace);
    let told = async || -> Result<Vec<Value>> {
        let events = case.events_of("rival").await?;
        Ok(events.into_iter().filter(|event| event["reason"] == "OwnershipConflict").collect())
    };
    case.wait_until("the event about the rival", || async { Ok(!told().await?.is_empty()) })
        .await?;
    for token in ["1", "2"] {
        case.request_reconcile("app", token).await?;
        case.wait_handled("app", token).await?;
    }
    let rival = case.get(GITOPS, "KluctlDeployment", "rival").await?.unwrap_or_default();
    let events = told().await?;
    ensure!(events.len() == 1 && events[0]["count"] == 1, "told more than once: {events:#?}");
    let about = &events[0]["involvedObject"];
    ensure!(events[0]["type"] == "Warning", "{}", events[0]);
    ensure!(about["apiVersion"] == GITOPS && about["uid"] == rival["metadata"]["uid"], "{about}");
    let message = events[0]["message"].as_str().unwrap_or_default();
    let discriminator = format!("app-{}", case.namespace);
    ensure!(message.contains(&ours) && message.contains(&discriminator), "{message}");
    Ok(())
}

/// What the Go controller leaves: an object with its finalizer and status, and what it deployed.
async fn legacy(case: &Case) -> Result<()> {
    let one = config_map("one", "first");
    case.publish("app", &with(&SHARED, &[("config/one.yaml", &one)]), "v1@sha256:0001").await?;
    let mut object = case.artifact_deployment("app", "app", json!({}));
    object["metadata"]["finalizers"] = json!(["finalizers.flux.kluctl.io"]);
    case.apply(object).await?;
    let discriminator = format!("app-{}", case.namespace);
    let status = json!({"status": {
        "observedGeneration": 1, "discriminator": discriminator,
        "rawTarget": format!("args:\n  name: app\n  namespace: {}\ndiscriminator: {discriminator}\nname: \"\"\n", case.namespace),
        "lastDeployResult": {"time": "2023-01-01T00:00:00Z", "objectsHash": "from-another-time"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
            "message": "deploy: ok", "lastTransitionTime": "2023-01-01T00:00:00Z", "observedGeneration": 1}],
    }});
    case.patch_status("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", status).await?;
    let api = case.api("v1", "ConfigMap", Some(&case.namespace));
    for name in ["one", "old"] {
        let deployed = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"kluctl.io/discriminator": discriminator}},
            "data": {"value": "from another time"}});
        let manager = kube::api::PatchParams::apply("kluctl").force();
        api.patch(name, &manager, &kube::api::Patch::Apply(deployed)).await?;
    }
    Ok(())
}

async fn an_object_of_the_go_controller_is_taken_over(case: &mut Case) -> Result<()> {
    legacy(case).await?;
    case.start_controller(&[]).await?;
    case.wait_gone("v1", "ConfigMap", "old").await?;
    let object = case
        .wait_deployment("app", "our own deployment", |object| {
            is_ready(object) && object["status"]["lastAppliedRevision"] == "v1@sha256:0001"
        })
        .await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let finalizers = &object["metadata"]["finalizers"];
    ensure!(*finalizers == json!(["finalizers.flux.kluctl.io"]), "{finalizers}");
    ensure!(ready_reason(&object) == "ReconciliationSucceeded", "{}", object["status"]);
    case.delete_deployment("app").await?;
    ensure!(case.config_map("one").await?.is_null(), "the object stays without its deployment");
    Ok(())
}

async fn an_object_of_the_go_controller_is_deleted_with_what_it_deployed(
    case: &mut Case,
) -> Result<()> {
    legacy(case).await?;
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    case.start_controller(&[]).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    for name in ["one", "old"] {
        ensure!(case.config_map(name).await?.is_null(), "{name} is orphaned");
    }
    Ok(())
}
