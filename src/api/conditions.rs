use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the last reconciliation achieved what the spec asks for. Always present after the first one.
pub const READY: &str = "Ready";
/// Present (and True) while the controller works or will retry.
pub const RECONCILING: &str = "Reconciling";
/// Present (and True) when only a change by a person helps; there is no retry.
pub const STALLED: &str = "Stalled";
/// Present (and True) while another object manages the same discriminator on the same cluster.
pub const OWNERSHIP_CONFLICT: &str = "OwnershipConflict";

/// Reasons of conditions and events. Those that Flux has are spelled as Flux spells them.
pub mod reason {
    /// Work is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// The last attempt failed and is going to be repeated.
    pub const PROGRESSING_WITH_RETRY: &str = "ProgressingWithRetry";
    /// Everything is as the spec asks for.
    pub const RECONCILIATION_SUCCEEDED: &str = "ReconciliationSucceeded";
    /// The source or its artifact is missing, or could not be downloaded or verified.
    pub const ARTIFACT_FAILED: &str = "ArtifactFailed";
    /// The source has no artifact yet.
    pub const SOURCE_NOT_READY: &str = "SourceNotReady";
    /// A reference into another namespace while those are forbidden.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// A dependency is missing or not ready.
    pub const DEPENDENCY_NOT_READY: &str = "DependencyNotReady";
    /// Objects depend on each other in a circle.
    pub const DEPENDENCY_CYCLE: &str = "DependencyCycle";
    /// The stored object cannot be read, or contradicts itself.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The spec uses something that this release does not support.
    pub const UNSUPPORTED_FEATURE: &str = "UnsupportedFeature";
    /// A Secret, kubeconfig, included repository or the project itself cannot be used.
    pub const PREPARE_FAILED: &str = "PrepareFailed";
    /// Another object manages the same discriminator on the same cluster.
    pub const OWNERSHIP_CONFLICT: &str = "OwnershipConflict";
    /// Objects were refused by the API server, or did not become ready while deploying.
    pub const DEPLOY_FAILED: &str = "DeployFailed";
    /// Objects that are no longer part of the project could not be deleted.
    pub const PRUNE_FAILED: &str = "PruneFailed";
    /// Deployed objects are missing, not ready, or fail the project's checks.
    pub const VALIDATE_FAILED: &str = "ValidateFailed";
    /// Deployed objects could not be deleted together with the KluctlDeployment.
    pub const DELETE_FAILED: &str = "DeleteFailed";
    /// Objects of a former target stay behind; used by events only.
    pub const OBJECTS_LEFT_BEHIND: &str = "ObjectsLeftBehind";
    /// A `gitops.kluctl.io` object of the same name has taken over.
    pub const MIGRATED: &str = "Migrated";
    /// A reference or deprecated field that has no effect; used by events only.
    pub const DEPRECATED_FIELD: &str = "DeprecatedField";
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known yet.
    Unknown,
}

/// One aspect of the object's state (Kubernetes API conventions).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub condition_type: String,
    /// One of True, False, Unknown.
    pub status: ConditionStatus,
    /// Programmatic identifier of why the condition has this status.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Message for people.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// Generation of the spec that the condition speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// The rules of conditions (Flux, kstatus) that an object's status breaks; empty when all is well.
///
/// `generation` is the object's. Meant for tests that look at an object that was reconciled at least once.
pub fn broken_rules(status: &super::KluctlDeploymentStatus, generation: i64) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, text: &str| {
        if !holds {
            broken.push(text.to_owned());
        }
    };
    let ready = status.condition(READY);
    let [is_ready, is_reconciling, is_stalled] = [READY, RECONCILING, STALLED]
        .map(|name| status.condition(name).is_some_and(Condition::is_true));
    rule(ready.is_some(), "Ready is always present");
    for name in [RECONCILING, STALLED, OWNERSHIP_CONFLICT] {
        let holds = status.condition(name).is_none_or(Condition::is_true);
        rule(holds, &format!("{name} is True or absent"));
    }
    rule(!(is_ready && is_stalled), "Ready and Stalled exclude each other");
    rule(!(is_ready && is_reconciling), "Ready and Reconciling exclude each other");
    rule(!(is_reconciling && is_stalled), "Reconciling and Stalled exclude each other");
    let ready_is_false = ready.is_some_and(|ready| ready.status == ConditionStatus::False);
    rule(!is_stalled || ready_is_false, "Ready is False when Stalled");
    rule(
        is_ready || is_reconciling || is_stalled,
        "Reconciling or Stalled explains why Ready is not True",
    );
    if is_stalled {
        let same = status.condition(STALLED).zip(ready).is_some_and(|(s, r)| s.reason == r.reason);
        rule(same, "Ready and Stalled have the same reason");
        rule(
            status.observed_generation == generation,
            "a Stalled object has observed its generation",
        );
    }
    if is_ready {
        rule(
            status.observed_generation == generation,
            "a Ready object has observed its generation",
        );
    }
    rule(status.observed_generation <= generation, "the observed generation exists");
    for condition in &status.conditions {
        let name = &condition.condition_type;
        let known = condition.observed_generation.is_some_and(|g| g <= generation);
        rule(known, &format!("{name} names the generation it speaks of"));
        rule(!condition.reason.is_empty(), &format!("{name} has a reason"));
    }
    let mut names: Vec<_> = status.conditions.iter().map(|c| &c.condition_type).collect();
    names.sort();
    names.dedup();
    rule(names.len() == status.conditions.len(), "each type of condition occurs once");
    broken
}
