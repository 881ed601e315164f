//! When something is deployed and validated: intervals, switches, retries and requests.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{
        Case, EventSink, SHARED, STUCK, SinkMode, condition, config_map, is_ready, message_of,
        ready_reason, with,
    },
    tests,
};

tests![
    what_goes_wrong_between_deployments_is_found_and_its_end_too,
    a_rollout_is_no_failure,
    validation_can_be_left_to_deployments_or_switched_off,
    changes_can_wait_for_a_request,
    a_failed_deployment_is_tried_again,
    a_request_is_handled_by_a_run_that_fails,
    waiting_for_readiness_ends_at_the_timeout,
];

/// An object whose readiness the test decides: the conditions of this kind are nobody else's business here.
const JUDGED: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata:\n  name: judged\nspec: {}\n";

async fn what_goes_wrong_between_deployments_is_found_and_its_end_too(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let one = config_map("one", "first");
    let files = with(&SHARED, &[("config/one.yaml", &one), ("config/judged.yaml", JUDGED)]);
    // Only the periodic validation can find out: everything else is an hour away.
    let spec = json!({"validateInterval": "1s", "retryInterval": "1s", "timeout": "10s"});
    case.deploy_files("app", &files, spec).await?;
    judge(case, "True").await?;
    let deployed = case.wait_ready("app").await?;

    judge(case, "False").await?;
    let object = case.wait_failed("app", "ValidateFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("judged") && message.contains("as the test says"), "{message}");
    ensure!(message.contains("not ready within spec.timeout (10s)"), "{message}");
    let result = &object["status"]["lastValidateResult"];
    ensure!(result["ready"] == false && result["errors"] == 1, "{result}");
    ensure!(object["status"]["failedObjects"][0]["name"] == "judged", "{}", object["status"]);
    judge(case, "True").await?;
    case.wait_ready("app").await?;

    case.delete("v1", "ConfigMap", "one").await?;
    let object = case.wait_failed("app", "ValidateFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("ConfigMap/one") && message.contains("not found"), "{message}");
    let by_hand = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    case.apply(by_hand).await?;
    let object = case.wait_ready("app").await?;
    ensure!(object["status"]["lastValidateResult"]["ready"] == true, "{}", object["status"]);
    ensure!(object["status"]["failedObjects"].is_null(), "{}", object["status"]);
    let times = [&deployed, &object].map(|object| &object["status"]["lastDeployResult"]["time"]);
    ensure!(times[0] == times[1], "deployInterval is never, but it was deployed: {times:?}");
    Ok(())
}

async fn a_rollout_is_no_failure(case: &mut Case) -> Result<()> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    case.start_controller(&[&format!("--events-addr={}", sink.url)]).await?;
    let files = with(&SHARED, &[("config/judged.yaml", JUDGED)]);
    // Nothing waits in the project, and the retry interval is far away.
    case.deploy_files("app", &files, json!({"retryInterval": "1h"})).await?;
    let waits = |object: &Value| {
        message_of(object, "Reconciling").starts_with("Waiting until all objects are ready")
    };
    let object = case.wait_deployment("app", "that it waits", waits).await?;
    let ready = condition(&object, "Ready").cloned().unwrap_or_default();
    ensure!(ready["status"] == "Unknown" && ready["reason"] == "Progressing", "{ready}");
    ensure!(message_of(&object, "Reconciling").contains("judged"), "{}", object["status"]);
    ensure!(object["status"]["failedObjects"].is_null(), "{}", object["status"]);
    case.wait_reconciliations("app", 1).await?;
    judge(case, "True").await?;
    case.wait_ready("app").await?;
    let events =
        || sink.received().into_iter().filter(|event| event["involvedObject"]["name"] == "app");
    case.wait_until("the event at its end", || async {
        Ok(events().any(|event| event["message"].to_string().contains("Reconciliation finished")))
    })
    .await?;
    let errors: Vec<_> = events().filter(|event| event["severity"] == "error").collect();
    ensure!(errors.is_empty(), "told as a failure: {errors:#?}");

    // What cannot become ready by itself is a failure at once.
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "Judged", "message": "for good",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"conditions": [stalled]}});
    case.patch_status("source.toolkit.fluxcd.io/v1", "ExternalArtifact", "judged", status).await?;
    case.request_reconcile("app", "1").await?;
    let object = case.wait_failed("app", "ValidateFailed").await?;
    ensure!(message_of(&object, "Ready").contains("for good"), "{}", object["status"]);
    Ok(())
}

/// Sets the condition Ready of the object `judged`.
async fn judge(case: &Case, status: &str) -> Result<()> {
    let (api_version, kind) = ("source.toolkit.fluxcd.io/v1", "ExternalArtifact");
    case.wait_for(api_version, kind, "judged", "it", Value::is_object).await?;
    let condition = json!({"type": "Ready", "status": status, "reason": "Judged", "message": "as the test says",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"conditions": [condition]}});
    case.patch_status(api_version, kind, "judged", status).await
}

async fn validation_can_be_left_to_deployments_or_switched_off(case: &mut Case) -> Result<()> {
    case.start_controller(&["--interval-jitter-percentage=0"]).await?;
    let manifest = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/it.yaml", &manifest)]);
    let never = json!({"interval": "1s", "validateInterval": "never"});
    case.deploy_files("never", &files, never).await?;
    case.deploy_files("off", &files, json!({"interval": "1s", "validate": false})).await?;
    case.deploy_files("default", &files, json!({"interval": "1s"})).await?;
    for name in ["never", "off"] {
        let object = case.wait_ready(name).await?;
        let validated = &object["status"]["lastValidateResult"]["ready"];
        ensure!(*validated == json!((name == "never").then_some(true)), "{name}: {validated}");
        case.delete("v1", "ConfigMap", name).await?;
    }
    for name in ["never", "off"] {
        case.wait_reconciliations(name, 2).await?;
        let object = case.get_deployment(name).await?;
        ensure!(is_ready(&object), "{name} was validated: {}", object["status"]);
        ensure!(case.config_map(name).await?.is_null(), "{name} was deployed at the interval");
        case.request_reconcile(name, "1").await?;
    }
    // Left out, the interval of validation is the other one.
    case.wait_ready("default").await?;
    case.delete("v1", "ConfigMap", "default").await?;
    case.wait_failed("default", "ValidateFailed").await?;
    ensure!(case.config_map("default").await?.is_null(), "deployed at the interval");
    // Asking for a reconciliation asks for a validation, too, unless there is none.
    let object = case.wait_handled("never", "1").await?;
    ensure!(ready_reason(&object) == "ValidateFailed", "{}", object["status"]);
    let object = case.wait_handled("off", "1").await?;
    ensure!(is_ready(&object), "off: {}", object["status"]);
    Ok(())
}

async fn changes_can_wait_for_a_request(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let (first, second) = (config_map("one", "first"), config_map("one", "second"));
    let files = with(&SHARED, &[("config/one.yaml", &first)]);
    case.deploy_files("app", &files, json!({"deployOnChanges": false})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed at all");

    let files = with(&SHARED, &[("config/one.yaml", &second)]);
    case.publish("app", &files, "v2@sha256:0002").await?;
    let object = case
        .wait_deployment("app", "that the change waits", |object| {
            is_ready(object) && message_of(object, "Ready").contains("deployOnChanges")
        })
        .await?;
    let status = &object["status"];
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "the change was deployed");
    ensure!(status["lastAppliedRevision"] == "v1@sha256:0001", "{status}");
    ensure!(status["lastAttemptedRevision"] == "v2@sha256:0002", "{status}");

    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "now").await?;
    let object = case
        .wait_deployment("app", "the requested deployment", |object| {
            object["status"]["lastHandledDeployAt"] == "now" && is_ready(object)
        })
        .await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "second", "not deployed on request");
    ensure!(object["status"]["lastAppliedRevision"] == "v2@sha256:0002", "{}", object["status"]);
    Ok(())
}

async fn a_failed_deployment_is_tried_again(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let manifest = config_map("one", "first");
    let manifest =
        manifest.replace("name: one", "name: one\n  namespace: \"{{ args.elsewhere }}\"");
    let project = SHARED[0].1.replace("- name: name\n", "- name: name\n  - name: elsewhere\n");
    let deployment = "deployments:\n  - path: config\n";
    let changes = [
        (".kluctl.yaml", project.as_str()),
        ("deployment.yaml", deployment),
        ("config/one.yaml", &manifest),
    ];
    let elsewhere = format!("{}-late", case.namespace);
    let args = json!({"namespace": case.namespace, "name": "app", "elsewhere": elsewhere});
    case.deploy_files("app", &with(&SHARED, &changes), json!({"args": args})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    ensure!(message_of(&object, "Ready").contains(&elsewhere), "{}", object["status"]);
    ensure!(
        condition(&object, "Reconciling").is_some_and(|c| c["reason"] == "ProgressingWithRetry"),
        "{}",
        object["status"]
    );
    // Nobody tells the controller, and the interval is an hour.
    case.apply_cluster(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}}),
    )
    .await?;
    case.wait_ready("app").await?;
    case.delete_deployment("app").await?;
    case.delete_cluster("v1", "Namespace", &elsewhere).await
}

async fn a_request_is_handled_by_a_run_that_fails(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let broken = with(&SHARED, &[("config/one.yaml", "{{ nope }}")]);
    case.deploy_files("app", &broken, json!({"retryInterval": "1h"})).await?;
    case.wait_failed("app", "PrepareFailed").await?;
    case.request_reconcile("app", "1").await?;
    let object = case.wait_handled("app", "1").await?;
    ensure!(ready_reason(&object) == "PrepareFailed", "{}", object["status"]);
    // A deployment stays asked for until one took place.
    case.annotate_deployment("app", "deploy.flux.kluctl.io/requestedAt", "now").await?;
    case.request_reconcile("app", "2").await?;
    let object = case.wait_handled("app", "2").await?;
    ensure!(object["status"]["lastHandledDeployAt"].is_null(), "{}", object["status"]);
    let one = config_map("one", "first");
    case.publish("app", &with(&SHARED, &[("config/one.yaml", &one)]), "v2@sha256:0002").await?;
    let object = case.wait_ready("app").await?;
    ensure!(object["status"]["lastHandledDeployAt"] == "now", "{}", object["status"]);
    Ok(())
}

async fn waiting_for_readiness_ends_at_the_timeout(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let wait = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(&SHARED, &[("deployment.yaml", wait), ("config/stuck.yaml", STUCK)]);
    case.deploy_files("app", &files, json!({"timeout": "3s", "retryInterval": "1h"})).await?;
    let object = case.wait_failed("app", "DeployFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("spec.timeout (3s)"), "the timeout is not told: {message}");
    ensure!(message.contains("Deployment/app"), "who is not ready? {message}");
    Ok(())
}
