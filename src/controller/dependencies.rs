//! Whether the objects that a deployment waits for are ready, and whether the waiting can ever end.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::triggers::{Index, SourceKey};
use crate::api::NamespacedName;

/// Whether a dependency lets its dependents go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// It is ready.
    Ready,
    /// It is not, for this reason.
    NotReady(String),
}

/// What the waiting object knows of its own source; a dependency on the same source must have applied the same revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnSource<'a> {
    /// The source.
    pub key: &'a SourceKey,
    /// Revision of its artifact.
    pub revision: &'a str,
}

/// Judges a dependency by the rules of kstatus and of Flux.
///
/// Not ready: an object under deletion; whose status is of an older generation; with Reconciling or Stalled; whose Ready
/// condition is missing although it has conditions, or is not True. An object whose kind has no conditions is judged by
/// the counters and phases of built-in kinds, and counts as ready when it has none of them. An object that deploys from the
/// same source must have applied the same revision.
pub(crate) fn assess(object: &Value, own: Option<OwnSource<'_>>) -> DependencyState {
    match reason_not_ready(object, own) {
        Some(reason) => DependencyState::NotReady(reason),
        None => DependencyState::Ready,
    }
}

fn reason_not_ready(object: &Value, own: Option<OwnSource<'_>>) -> Option<String> {
    let metadata = &object["metadata"];
    let (spec, status) = (&object["spec"], &object["status"]);
    if !metadata["deletionTimestamp"].is_null() {
        return Some("it is being deleted".to_owned());
    }
    let observed = status["observedGeneration"].as_i64();
    if observed.is_some_and(|observed| Some(observed) != metadata["generation"].as_i64()) {
        return Some("its latest change has not been observed yet".to_owned());
    }
    let condition = |name: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(move |condition| condition["type"] == name)
    };
    for (name, bad) in [("Reconciling", "it is being reconciled"), ("Stalled", "it is stalled")] {
        if let Some(found) = condition(name).filter(|c| c["status"] == "True") {
            return Some(with_message(bad, found));
        }
    }
    let has_conditions = status["conditions"].as_array().is_some_and(|list| !list.is_empty());
    match condition("Ready") {
        Some(ready) if ready["status"] == "True" => {}
        Some(ready) => return Some(with_message("it is not ready", ready)),
        // Flux kinds get their conditions with the first reconciliation.
        None if is_flux_kind(object) => return Some("it was not reconciled yet".to_owned()),
        None if has_conditions || status.is_object() => return builtin_reason(object, &condition),
        None => {}
    }
    same_revision_reason(spec, status, metadata, own)
}

fn with_message(text: &str, condition: &Value) -> String {
    match condition["message"].as_str().filter(|message| !message.is_empty()) {
        Some(message) => format!("{text}: {message}"),
        None => text.to_owned(),
    }
}

fn is_flux_kind(object: &Value) -> bool {
    let group =
        object["apiVersion"].as_str().unwrap_or_default().split('/').next().unwrap_or_default();
    group.ends_with(".toolkit.fluxcd.io") || group.ends_with(".kluctl.io")
}

/// The kinds of Kubernetes itself, which have no Ready condition or another name for it.
fn builtin_reason<'a>(
    object: &Value,
    condition: &impl Fn(&str) -> Option<&'a Value>,
) -> Option<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_i64();
    let is_true = |name: &str| condition(name).is_some_and(|c| c["status"] == "True");
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" | "StatefulSet" | "ReplicaSet" => {
            let wanted = number(&spec["replicas"]).unwrap_or(1);
            let ready = number(&status["readyReplicas"]).unwrap_or(0);
            let updated = number(&status["updatedReplicas"]).unwrap_or(ready);
            let least = ready.min(updated);
            (least < wanted).then(|| format!("{least} of {wanted} replicas are ready"))
        }
        "DaemonSet" => {
            let wanted = number(&status["desiredNumberScheduled"]).unwrap_or(0);
            let ready = number(&status["numberReady"]).unwrap_or(0);
            (ready < wanted).then(|| format!("{ready} of {wanted} pods are ready"))
        }
        "Job" if !is_true("Complete") => Some("the job is not complete".to_owned()),
        "CustomResourceDefinition" if !is_true("Established") => {
            Some("the definition is not established".to_owned())
        }
        "Namespace" if status["phase"] == "Terminating" => Some("it is being deleted".to_owned()),
        "PersistentVolumeClaim" if status["phase"] != "Bound" => {
            Some("the claim is not bound".to_owned())
        }
        "Pod" if status["phase"] != "Succeeded" => Some("the pod is not ready".to_owned()),
        _ => None,
    }
}

fn same_revision_reason(
    spec: &Value,
    status: &Value,
    metadata: &Value,
    own: Option<OwnSource<'_>>,
) -> Option<String> {
    let own = own?;
    let source = &spec["sourceRef"];
    let namespace = source["namespace"].as_str().or(metadata["namespace"].as_str());
    let is_same = source["kind"] == own.key.kind.name()
        && source["name"] == own.key.name.name.as_str()
        && namespace == Some(own.key.name.namespace.as_str());
    let applied = status["lastAppliedRevision"].as_str();
    if !is_same || applied == Some(own.revision) {
        return None;
    }
    let applied = applied.unwrap_or("nothing");
    Some(format!("it has the same source but applied {applied}, not {}", own.revision))
}

/// A circle of dependencies that goes through `start`, from `start` back to `start`; `None` when there is none.
///
/// Of several circles the shortest is found.
pub(crate) fn find_cycle(index: &Index, start: &NamespacedName) -> Option<Vec<NamespacedName>> {
    let next = |key: &NamespacedName| {
        index.get(key).map(|entry| entry.dependencies.as_slice()).unwrap_or_default().to_vec()
    };
    let mut reached_from: HashMap<NamespacedName, NamespacedName> = HashMap::new();
    let mut seen = HashSet::from([start.clone()]);
    let mut level = vec![start.clone()];
    while !level.is_empty() {
        let mut below = Vec::new();
        for key in level {
            for dependency in next(&key) {
                if dependency == *start {
                    return Some(path_back(&reached_from, start, key));
                }
                if seen.insert(dependency.clone()) {
                    reached_from.insert(dependency.clone(), key.clone());
                    below.push(dependency);
                }
            }
        }
        level = below;
    }
    None
}

fn path_back(
    reached_from: &HashMap<NamespacedName, NamespacedName>,
    start: &NamespacedName,
    last: NamespacedName,
) -> Vec<NamespacedName> {
    let mut path = vec![start.clone()];
    let mut key = last;
    while key != *start {
        path.push(key.clone());
        let Some(previous) = reached_from.get(&key) else { break };
        key = previous.clone();
    }
    path.push(start.clone());
    path.reverse();
    path
}
