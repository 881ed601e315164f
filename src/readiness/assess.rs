//! The rules per kind.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::{Object, annotations};

/// How long an object that never gets the status its kind promises counts as not ready. Some controllers never write one.
const STATUS_GRACE_SECONDS: i64 = 15;

/// Where an object stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is ready.
    Ready,
    /// It may become ready.
    Progressing {
        /// What is missing.
        reason: String,
    },
    /// It will not become ready by waiting.
    Failed {
        /// Why.
        reason: String,
    },
}

/// Where an object stands, and what to remark about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The verdict.
    pub readiness: Readiness,
    /// Remarks that do not change it.
    pub warnings: Vec<String>,
}

/// What an assessment needs beside the object.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Whether the kind has a `status` subresource; `None` when that is not known.
    pub has_status: Option<bool>,
    /// The time now, to compare with the object's age.
    pub now: Timestamp,
}

type Verdict = Readiness;

fn progressing(reason: impl Into<String>) -> Verdict {
    Readiness::Progressing { reason: reason.into() }
}

fn failed(reason: impl Into<String>) -> Verdict {
    Readiness::Failed { reason: reason.into() }
}

/// Judges a live object.
///
/// Annotations decide first: `kluctl.io/validate-ignore` and `kluctl.io/is-ready`. An object that is being deleted is not
/// ready. Then the status must be there (if the kind has one) and belong to the current generation; then the rules of the
/// kind apply; kinds without rules of their own are ready unless a condition of kstatus (`Stalled`, `Reconciling`, `Ready`)
/// says otherwise.
pub fn assess(object: &Object, facts: &Facts) -> Assessment {
    let mut warnings = Vec::new();
    let readiness = verdict(object, facts, &mut warnings);
    Assessment { readiness, warnings }
}

fn verdict(object: &Object, facts: &Facts, warnings: &mut Vec<String>) -> Verdict {
    if annotations::is_validate_ignore(object) {
        return Readiness::Ready;
    }
    match annotations::is_ready(object) {
        Some(true) => return Readiness::Ready,
        Some(false) => return progressing("annotation kluctl.io/is-ready is false"),
        None => {}
    }
    let tree = object.value();
    if tree["metadata"]["deletionTimestamp"].is_string() {
        return progressing("being deleted");
    }
    let status = &tree["status"];
    if !status.is_object() {
        return without_status(tree, facts, warnings);
    }
    let observed = status["observedGeneration"].as_i64();
    if let (Some(observed), Some(generation)) = (observed, tree["metadata"]["generation"].as_i64())
        && observed != generation
    {
        return progressing(format!(
            "generation {generation} is not reconciled yet, the status is of generation {observed}"
        ));
    }
    let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
    of_kind(group, object.kind(), tree)
}

fn without_status(tree: &Value, facts: &Facts, warnings: &mut Vec<String>) -> Verdict {
    match facts.has_status {
        Some(false) => return Readiness::Ready,
        None => {
            warnings.push("it is not known whether a status is to be expected".into());
            return Readiness::Ready;
        }
        Some(true) => {}
    }
    let created = tree["metadata"]["creationTimestamp"].as_str();
    let created: Option<Timestamp> = created.and_then(|text| text.parse().ok());
    let is_old = created
        .is_some_and(|created| facts.now.as_second() - created.as_second() > STATUS_GRACE_SECONDS);
    if is_old { Readiness::Ready } else { progressing("no status available yet") }
}

fn of_kind(group: &str, kind: &str, tree: &Value) -> Verdict {
    match (group, kind) {
        ("", "Pod") => pod(tree),
        ("", "Namespace") => phase(tree, "Active"),
        ("", "PersistentVolumeClaim") => phase(tree, "Bound"),
        ("", "Service") => service(tree),
        ("batch", "Job") => job(tree),
        ("apps", "Deployment") => deployment(tree),
        ("apps", "StatefulSet") => stateful_set(tree),
        ("apps", "DaemonSet") => daemon_set(tree),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(tree),
        ("cluster.x-k8s.io", "MachineDeployment") => machine_deployment(tree),
        _ => by_conditions(tree),
    }
}

/// A condition's status, reason and message.
struct Condition<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Condition<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }

    /// Its message, or else `default`.
    fn text(&self, default: &str) -> String {
        match (self.message, self.reason) {
            ("", "") => default.to_owned(),
            ("", reason) => reason.to_owned(),
            (message, _) => message.to_owned(),
        }
    }
}

fn condition<'a>(tree: &'a Value, kind: &str) -> Option<Condition<'a>> {
    let conditions = tree["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    Some(Condition { status: text("status"), reason: text("reason"), message: text("message") })
}

fn status_number(tree: &Value, field: &str) -> i64 {
    tree["status"][field].as_i64().unwrap_or(0)
}

fn phase(tree: &Value, wanted: &str) -> Verdict {
    match tree["status"]["phase"].as_str() {
        Some(phase) if phase == wanted => Readiness::Ready,
        Some("Lost") => failed("the volume is lost"),
        phase => progressing(format!("phase is {}, not {wanted}", phase.unwrap_or("unknown"))),
    }
}

fn pod(tree: &Value) -> Verdict {
    match tree["status"]["phase"].as_str() {
        Some("Succeeded") => return Readiness::Ready,
        Some("Failed") => {
            let reason = tree["status"]["message"].as_str().or(tree["status"]["reason"].as_str());
            return failed(reason.map_or_else(|| container_problem(tree), str::to_owned));
        }
        _ => {}
    }
    match condition(tree, "Ready") {
        Some(ready) if ready.is("True") || ready.reason == "PodCompleted" => Readiness::Ready,
        Some(ready) => progressing(ready.text("not ready")),
        None => progressing("not ready"),
    }
}

/// Which container of a failed pod exited with an error.
fn container_problem(tree: &Value) -> String {
    let containers = tree["status"]["containerStatuses"].as_array().into_iter().flatten();
    let mut ended = containers.filter(|container| {
        container["state"]["terminated"]["exitCode"].as_i64().is_some_and(|code| code != 0)
    });
    match ended.next() {
        Some(container) => format!(
            "container {} exited with code {}",
            container["name"].as_str().unwrap_or_default(),
            container["state"]["terminated"]["exitCode"]
        ),
        None => "the pod failed".into(),
    }
}

fn service(tree: &Value) -> Verdict {
    let spec = &tree["spec"];
    if spec["type"] == "ExternalName" {
        return Readiness::Ready;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        return failed("the service has no cluster IP");
    }
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    if spec["type"] == "LoadBalancer"
        && is_empty(&spec["externalIPs"])
        && is_empty(&tree["status"]["loadBalancer"]["ingress"])
    {
        return progressing("the load balancer has no address yet");
    }
    Readiness::Ready
}

fn job(tree: &Value) -> Verdict {
    if let Some(condition) = condition(tree, "Failed").filter(|condition| condition.is("True")) {
        return failed(condition.text("the job failed"));
    }
    match condition(tree, "Complete") {
        Some(complete) if complete.is("True") => Readiness::Ready,
        _ if tree["spec"]["suspend"] == true => progressing("the job is suspended"),
        _ => progressing("the job has not completed"),
    }
}

/// As `kubectl rollout status` judges: the new pods are there, the old ones gone, and enough are available.
fn deployment(tree: &Value) -> Verdict {
    if let Some(condition) = condition(tree, "Progressing")
        && condition.is("False")
        && condition.reason == "ProgressDeadlineExceeded"
    {
        return failed(condition.text("the rollout exceeded its deadline"));
    }
    let wanted = tree["spec"]["replicas"].as_i64().unwrap_or(1);
    let number = |field| status_number(tree, field);
    let (replicas, updated) = (number("replicas"), number("updatedReplicas"));
    let (ready, available) = (number("readyReplicas"), number("availableReplicas"));
    if updated < wanted {
        progressing(format!("{updated} of {wanted} replicas are updated"))
    } else if replicas > updated {
        progressing(format!("{} old replicas are still there", replicas - updated))
    } else if ready < wanted {
        progressing(format!("{ready} of {wanted} replicas are ready"))
    } else if available < wanted {
        progressing(format!("{available} of {wanted} replicas are available"))
    } else {
        Readiness::Ready
    }
}

fn stateful_set(tree: &Value) -> Verdict {
    let strategy = &tree["spec"]["updateStrategy"];
    if strategy["type"].as_str().is_some_and(|kind| kind != "RollingUpdate") {
        return Readiness::Ready;
    }
    let wanted = tree["spec"]["replicas"].as_i64().unwrap_or(1);
    let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
    let (updated, ready) =
        (status_number(tree, "updatedReplicas"), status_number(tree, "readyReplicas"));
    let to_update = (wanted - partition).max(0);
    let revisions = (&tree["status"]["currentRevision"], &tree["status"]["updateRevision"]);
    let is_settled = revisions.0.is_string() && revisions.0 == revisions.1;
    if updated < to_update && !is_settled {
        progressing(format!("{updated} of {to_update} replicas are updated"))
    } else if ready < wanted {
        progressing(format!("{ready} of {wanted} replicas are ready"))
    } else {
        Readiness::Ready
    }
}

fn daemon_set(tree: &Value) -> Verdict {
    let strategy = &tree["spec"]["updateStrategy"];
    if strategy["type"].as_str().is_some_and(|kind| kind != "RollingUpdate") {
        return Readiness::Ready;
    }
    let status = &tree["status"];
    let Some(wanted) = status["desiredNumberScheduled"].as_i64() else {
        return progressing("it is not known yet on how many nodes to run");
    };
    let (updated, ready) =
        (status_number(tree, "updatedNumberScheduled"), status_number(tree, "numberReady"));
    let unavailable = share(&strategy["rollingUpdate"]["maxUnavailable"], wanted).unwrap_or(1);
    let enough = (wanted - unavailable).max(0);
    if updated < wanted {
        progressing(format!("{updated} of {wanted} pods are updated"))
    } else if ready < enough {
        progressing(format!("{ready} of at least {enough} pods are ready"))
    } else {
        Readiness::Ready
    }
}

/// A number, or a percentage of `total` rounded up as the daemon set controller does.
fn share(value: &Value, total: i64) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    Some((percent * total + 99) / 100)
}

fn definition(tree: &Value) -> Verdict {
    if let Some(names) = condition(tree, "NamesAccepted").filter(|names| names.is("False")) {
        return failed(names.text("the names are not accepted"));
    }
    match condition(tree, "Established") {
        Some(established) if established.is("True") => Readiness::Ready,
        Some(established) => progressing(established.text("not established")),
        None => progressing("not established"),
    }
}

fn machine_deployment(tree: &Value) -> Verdict {
    for kind in ["Ready", "Available"] {
        match condition(tree, kind) {
            Some(condition) if condition.is("True") => {}
            Some(condition) => return progressing(condition.text("not ready")),
            None => return progressing(format!("condition {kind} is not there yet")),
        }
    }
    let number = |field| status_number(tree, field);
    let (ready, replicas) = (number("readyReplicas"), number("replicas"));
    if ready < replicas {
        progressing(format!("{ready} of {replicas} replicas are ready"))
    } else if number("unavailableReplicas") != 0 {
        progressing(format!("{} replicas are unavailable", number("unavailableReplicas")))
    } else {
        Readiness::Ready
    }
}

/// Kinds without rules of their own, by kstatus' conventions: `Stalled`, `Reconciling`, `Ready`.
fn by_conditions(tree: &Value) -> Verdict {
    if let Some(stalled) = condition(tree, "Stalled").filter(|stalled| stalled.is("True")) {
        return failed(stalled.text("stalled"));
    }
    if let Some(busy) = condition(tree, "Reconciling").filter(|busy| busy.is("True")) {
        return progressing(busy.text("reconciling"));
    }
    match condition(tree, "Ready") {
        Some(ready) if !ready.is("True") => progressing(ready.text("not ready")),
        _ => Readiness::Ready,
    }
}
