//! New revisions deploy, unchanged ones do not, removed objects are pruned, bad input loses nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    support::{Case, TWO_CONFIG_MAPS, config_map, message_of},
    tests,
};

tests![
    a_new_revision_deploys_and_a_removed_object_is_pruned,
    an_unchanged_revision_deploys_nothing_until_requested,
    a_changed_spec_deploys,
    a_dry_run_changes_nothing,
    bad_input_names_the_place_and_loses_nothing,
    a_refused_object_is_listed_and_the_others_are_applied,
    a_secret_that_is_not_base64_is_refused_at_once,
    without_prune_and_delete_nothing_is_removed,
    pruning_without_a_discriminator_is_refused,
    an_orphan_whose_deletion_is_refused_survives_in_status_and_is_tried_again,
    a_failed_deployment_prunes_nothing_also_when_a_prune_is_outstanding,
    a_periodic_deployment_repairs_drift,
    features_of_later_releases_are_refused_clearly,
];

async fn a_new_revision_deploys_and_a_removed_object_is_pruned(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let one = case.config_map("one").await?;
    ensure!(one["data"]["value"] == "first", "not deployed: {one}");
    ensure!(
        one["metadata"]["labels"]["kluctl.io/discriminator"].is_string(),
        "no discriminator: {one}"
    );

    let commit =
        repo.commit(&[("config/one.yaml", &config_map("one", "second")), ("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    let object = case.wait_ready_at("app", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "second", "not updated");
    ensure!(object["status"]["lastDeployResult"]["changedObjects"] == 1, "{}", object["status"]);
    case.wait_gone("v1", "ConfigMap", "two").await
}

async fn an_unchanged_revision_deploys_nothing_until_requested(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    let first = case.wait_ready("app").await?;
    // A change by hand shows whether something was applied.
    case.patch("v1", "ConfigMap", "one", json!({"data": {"value": "by hand"}})).await?;

    case.request_reconcile("app", "1").await?;
    let second = case.wait_handled("app", "1").await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "by hand",
        "deployed without a change"
    );
    ensure!(
        first["status"]["lastDeployResult"]["time"] == second["status"]["lastDeployResult"]["time"],
        "a deployment was recorded"
    );

    // A new commit that renders to the same objects is a new revision, but nothing to deploy.
    let commit = repo.commit(&[("README.md", "Nothing that is deployed.")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "by hand",
        "deployed without a change"
    );

    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "now").await?;
    case.wait_deployment("app", "the handled deploy request", |object| {
        object["status"]["lastHandledDeployAt"] == "now" && crate::support::is_ready(object)
    })
    .await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "first",
        "the request did not deploy"
    );
    Ok(())
}

async fn a_changed_spec_deploys(case: &mut Case) -> Result<()> {
    let files: &[(&str, &str)] = &[
        (
            ".kluctl.yaml",
            "discriminator: test-{{ args.namespace }}\nargs:\n  - name: namespace\n  - name: value\n    default: unset\n",
        ),
        (
            "deployment.yaml",
            "deployments:\n  - path: config\noverrideNamespace: {{ args.namespace }}\n",
        ),
        (
            "config/one.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  value: {{ args.value }}\n",
        ),
    ];
    case.start_controller(&[]).await?;
    case.deploy_project("app", files, json!({})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "unset", "the default is not used");
    let spec = json!({"args": {"namespace": case.namespace, "value": "changed"}});
    case.apply(case.deployment("app", spec)).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "changed", "the new arg is not used");
    Ok(())
}

async fn a_dry_run_changes_nothing(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"dryRun": true})).await?;
    case.wait_ready("app").await?;
    ensure!(case.get("v1", "ConfigMap", "one").await?.is_none(), "the dry run created an object");
    case.apply(case.deployment("app", json!({"args": {"namespace": case.namespace}}))).await?;
    case.wait_ready("app").await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "first",
        "not deployed after the dry run"
    );
    Ok(())
}

async fn bad_input_names_the_place_and_loses_nothing(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let broken: [(&str, &str, &[&str]); 3] = [
        (
            "config/one.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ nope }}\n",
            &["config/one.yaml:4", "nope"],
        ),
        ("config/one.yaml", "apiVersion: v1\nkind: [ConfigMap\n", &["config/one.yaml:"]),
        (
            "deployment.yaml",
            "deployments:\n  - path: config\n    barier: true\n",
            &["deployment.yaml:3", "barier"],
        ),
    ];
    for (path, content, mentions) in broken {
        // The other object is dropped in the same commit: it must survive, for nothing was rendered completely.
        let commit = repo.commit(&[(path, content)])?;
        case.fetch_commit("app", &commit).await?;
        let object = case
            .wait_deployment("app", "the failure", |object| {
                object["status"]["lastAttemptedRevision"]
                    .as_str()
                    .is_some_and(|r| r.ends_with(&commit))
                    && crate::support::ready_reason(object) == "PrepareFailed"
            })
            .await?;
        let message = case.message(&object, "Ready");
        for mention in mentions {
            ensure!(message.contains(mention), "{mention:?} is not in: {message}");
        }
        ensure!(case.config_map("one").await?["data"]["value"] == "first", "one was changed");
        ensure!(case.config_map("two").await?["data"]["value"] == "first", "two was changed");
    }
    let commit = repo.commit(&[
        ("config/one.yaml", &config_map("one", "repaired")),
        ("deployment.yaml", TWO_CONFIG_MAPS[1].1),
    ])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(
        case.config_map("one").await?["data"]["value"] == "repaired",
        "not deployed after the repair"
    );
    Ok(())
}

async fn a_refused_object_is_listed_and_the_others_are_applied(case: &mut Case) -> Result<()> {
    let refused = "apiVersion: v1\nkind: Service\nmetadata:\n  name: refused\nspec:\n  ports:\n    - port: 99999999\n";
    let files = [TWO_CONFIG_MAPS, &[("config/zz.yaml", refused)]].concat();
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", &files, json!({})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    let failures = &object["status"]["failedObjects"];
    ensure!(failures[0]["kind"] == "Service" && failures[0]["name"] == "refused", "{failures}");
    ensure!(object["status"]["failedObjectsCount"] == 1, "{}", object["status"]);
    ensure!(
        case.config_map("one").await?["data"]["value"] == "first",
        "the others were not applied"
    );
    ensure!(
        object["status"]["lastAppliedRevision"].is_null(),
        "a failed deployment counts as applied"
    );
    let commit = repo.commit(&[("config/zz.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    let object = case.wait_ready_at("app", &commit).await?;
    ensure!(
        object["status"]["failedObjects"].as_array().is_none_or(Vec::is_empty),
        "{}",
        object["status"]
    );
    Ok(())
}

async fn a_secret_that_is_not_base64_is_refused_at_once(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\ndata:\n  password: hunter-2\n  user: bWU=\n";
    let files = [TWO_CONFIG_MAPS, &[("config/secret.yaml", secret)]].concat();
    case.deploy_project("app", &files, json!({"retryInterval": "1h"})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("Secret/it"), "{message}");
    ensure!(
        message.contains(r#"(data["password"] is not base64; plain text goes into stringData)"#),
        "{message}"
    );
    ensure!(!object["status"].to_string().contains("hunter"), "{}", object["status"]);
    // The pauses between five attempts take longer.
    let metrics = case.metrics().await?;
    let series = "kluctl_stage_duration_seconds_sum{stage=\"deploy\"} ";
    let took = metrics.lines().find_map(|line| line.strip_prefix(series)).context("no duration")?;
    ensure!(took.parse::<f64>()? < 3.0, "tried for {took} s");
    Ok(())
}

async fn without_prune_and_delete_nothing_is_removed(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({"prune": false})).await?;
    case.wait_ready("app").await?;
    let commit = repo.commit(&[("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    let object = case.wait_ready_at("app", &commit).await?;
    ensure!(object["status"]["lastDeployResult"]["orphanObjects"] == 1, "{}", object["status"]);
    case.delete_deployment("app").await?;
    ensure!(
        case.config_map("two").await?["data"]["value"] == "first",
        "an orphan was removed without prune"
    );
    ensure!(
        case.config_map("one").await?["data"]["value"] == "first",
        "deletion removed objects without delete"
    );
    Ok(())
}

async fn pruning_without_a_discriminator_is_refused(case: &mut Case) -> Result<()> {
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files[0].1 = "args:\n  - name: namespace\n";
    case.start_controller(&[]).await?;
    case.deploy_project("app", &files, json!({"prune": true})).await?;
    let object = case
        .wait_deployment("app", "the refusal", |object| {
            !crate::support::ready_reason(object).is_empty()
                && !crate::support::is_ready(object)
                && crate::support::message_of(object, "Ready").contains("discriminator")
        })
        .await?;
    ensure!(case.message(&object, "Ready").contains("discriminator"), "{}", object["status"]);
    case.apply(
        case.deployment("app", json!({"prune": false, "args": {"namespace": case.namespace}})),
    )
    .await?;
    case.wait_ready("app").await?;
    Ok(())
}

/// An admission policy that refuses the deletion of a ConfigMap, as a protection webhook would. Returns its name.
async fn refuse_deletion(case: &Case, name: &str) -> Result<String> {
    let policy = format!("keep-{}", case.namespace);
    let matches = json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["DELETE"],
        "resourceNames": [name],
    }], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": case.namespace}}});
    case.apply_cluster(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {"matchConstraints": matches,
                 "validations": [{"expression": "false", "message": "it is protected"}]},
    }))
    .await?;
    case.apply_cluster(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    }))
    .await?;
    case.wait_until("the policy refuses", || async {
        let api = case.api("v1", "ConfigMap", Some(&case.namespace));
        let dry = kube::api::DeleteParams { dry_run: true, ..Default::default() };
        Ok(api.delete(name, &dry).await.is_err())
    })
    .await?;
    Ok(policy)
}

async fn lift(case: &Case, policy: &str) -> Result<()> {
    let version = "admissionregistration.k8s.io/v1";
    case.delete_cluster(version, "ValidatingAdmissionPolicyBinding", policy).await?;
    case.delete_cluster(version, "ValidatingAdmissionPolicy", policy).await
}

async fn a_failed_deployment_prunes_nothing_also_when_a_prune_is_outstanding(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let spec = json!({"retryInterval": "10s"});
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, spec).await?;
    case.wait_ready("app").await?;
    let policy = refuse_deletion(case, "two").await?;
    let commit = repo.commit(&[("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_failed("app", "PruneFailed").await?;
    // So that the prune falls due before the deployment that is about to fail.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let refused =
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\nspec:\n  ports: [{port: 99999999}]\n";
    let commit = repo.commit(&[("config/one.yaml", ""), ("config/service.yaml", refused)])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_failed("app", "DeployFailed").await?;
    let before = case.reconciliations("app").await?;
    tokio::time::sleep(Duration::from_secs(25)).await;
    ensure!(!case.config_map("one").await?.is_null(), "pruned, while its replacement is refused");
    let runs = case.reconciliations("app").await? - before;
    ensure!((2..=5).contains(&runs), "{runs} runs in 25 s at a retryInterval of 10 s");
    lift(case, &policy).await?;
    let commit = repo.commit(&[("config/service.yaml", &config_map("three", "first"))])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(case.config_map("one").await?.is_null(), "not pruned after the repair");
    Ok(())
}

async fn an_orphan_whose_deletion_is_refused_survives_in_status_and_is_tried_again(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let policy = refuse_deletion(case, "two").await?;
    let commit = repo.commit(&[("config/two.yaml", "")])?;
    case.fetch_commit("app", &commit).await?;
    let object = case.wait_failed("app", "PruneFailed").await?;
    ensure!(object["status"]["survivors"][0]["name"] == "two", "{}", object["status"]);
    ensure!(case.message(&object, "Ready").contains("two"), "{}", case.message(&object, "Ready"));

    lift(case, &policy).await?;
    case.wait_gone("v1", "ConfigMap", "two").await?;
    let object = case.wait_ready_at("app", &commit).await?;
    ensure!(
        object["status"]["survivors"].as_array().is_none_or(Vec::is_empty),
        "{}",
        object["status"]
    );
    Ok(())
}

async fn a_periodic_deployment_repairs_drift(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({"interval": "2s", "deployInterval": "2s"}))
        .await?;
    case.wait_ready("app").await?;
    case.patch("v1", "ConfigMap", "one", json!({"data": {"value": "by hand"}})).await?;
    case.wait_for("v1", "ConfigMap", "one", "the repair", |object| {
        object["data"]["value"] == "first"
    })
    .await?;
    Ok(())
}

async fn features_of_later_releases_are_refused_clearly(case: &mut Case) -> Result<()> {
    let encrypted = "kind: ConfigMap\nsops: {mac: x, version: 3.9.0}\n";
    let files = [TWO_CONFIG_MAPS, &[("config/secret.yaml", encrypted)]].concat();
    case.start_controller(&[]).await?;
    case.deploy_project("app", &files, json!({})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = case.message(&object, "Ready");
    ensure!(message.contains("secret.yaml") && message.contains("SOPS"), "{message}");
    ensure!(case.get("v1", "ConfigMap", "one").await?.is_none(), "something was deployed");
    Ok(())
}
