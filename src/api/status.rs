use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{conditions::Condition, schemas::is_default};
use crate::object::ObjectRef;

/// How many failed objects are listed in status; more are only counted.
pub const MAX_LISTED_FAILURES: usize = 20;
/// How many namespaces, and kinds, a [`Footprint`] lists.
pub const MAX_FOOTPRINT: usize = 200;
/// How many former targets are listed in status.
pub const MAX_FORMER_TARGETS: usize = 10;

/// What the controller last saw and did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("default" = { "observedGeneration": -1 }))]
pub struct KluctlDeploymentStatus {
    /// Generation of the spec that the conditions speak of; -1 before the first reconciliation.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,

    /// Ready, Reconciling and Stalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// Last value of the annotation `reconcile.fluxcd.io/requestedAt` that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// Last value of the annotation `reconcile.fluxcd.io/forceAt` that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,

    /// Last value of the annotation `deploy.flux.kluctl.io/requestedAt` that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_deploy_at: Option<String>,

    /// Revision of the source that was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,

    /// Digest of the artifact that was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_digest: Option<String>,

    /// Revision of the source that was last deployed without errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,

    /// Revision of the application's source, when the artifact's publisher recorded it (OCI artifacts).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_origin_revision: Option<String>,

    /// Discriminator of the deployed objects, that is the value of their label `kluctl.io/discriminator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,

    /// Identity of the cluster deployed to: the UID of its namespace `kube-system`, or the address of its API server when that
    /// cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// The target that this object wants for itself, and how that stands. Controllers decide by it which of several objects
    /// may deploy to a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<TargetClaim>,

    /// Where there may be deployed objects.
    #[serde(skip_serializing_if = "is_default")]
    pub footprint: Footprint,

    /// Targets deployed to before whose objects are not known to be gone, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub former_targets: Vec<FormerTarget>,

    /// Labels of objects that were deployed by releases before v0.14.0; read only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub common_labels: BTreeMap<String, String>,

    /// Name, context and discriminator of the target that was last deployed, as YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_target: Option<String>,

    /// Git repositories that the project includes, with the commits that were used last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependent_repositories: Vec<DependentRepository>,

    /// Last deployment, or dry run of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_deploy_result: Option<CommandStatus>,

    /// Last prune.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_prune_result: Option<CommandStatus>,

    /// Last validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_validate_result: Option<ValidateStatus>,

    /// Number of objects that failed in the last reconciliation.
    #[serde(skip_serializing_if = "is_default")]
    pub failed_objects_count: i64,

    /// The first 20 objects that failed in the last reconciliation, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub failed_objects: Vec<ObjectFailure>,

    /// Other objects that manage the same discriminator on the same cluster; only one of them is let through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,

    /// Objects whose deletion was due but not confirmed; it is tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<ObjectFailure>,

    /// Tells a `gitops.kluctl.io` controller that the object of the same name there may take over.
    #[serde(skip_serializing_if = "is_default")]
    pub ready_for_migration: bool,
}

impl KluctlDeploymentStatus {
    /// The condition of a type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }
}

/// A claim on a target, which only one object at a time may deploy to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetClaim {
    /// Identity of the cluster, as in `clusterId`.
    pub cluster_id: String,
    /// Address of its API server; tells that two claims are about one cluster when its identity cannot be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Discriminator of the target.
    pub discriminator: String,
    /// How the claim stands.
    pub state: ClaimState,
    /// When it was last asked for, while the claim is `Requested`. A request that nobody renews does not count for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<Time>,
}

/// How a claim on a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClaimState {
    /// It was made, and others are being asked.
    Requested,
    /// The object owns the target.
    Granted,
    /// Another object owns the target, or goes first.
    Refused,
}

/// Namespaces and kinds in which there may be objects of a deployment. Prune and deletion search them when the account may
/// not list across all namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Footprint {
    /// Namespaces, sorted; the first 200.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub namespaces: Vec<String>,
    /// Kinds as `Kind.group`, sorted; the first 200.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub kinds: Vec<String>,
}

/// A target that was deployed to before the present one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FormerTarget {
    /// Discriminator of its objects; left out when they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// Identity of its cluster, as in `status.clusterId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Kubeconfig context that led there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Number of its objects, as last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<i64>,
    /// Where there may be objects of it.
    #[serde(skip_serializing_if = "is_default")]
    pub footprint: Footprint,
    /// Whether its objects are being pruned now, so that nobody else may begin to deploy to it.
    #[serde(skip_serializing_if = "is_default")]
    pub pruning: bool,
    /// What became of its objects, and what to do; empty until a deployment of the present target has succeeded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A Git repository and the commit that was used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependentRepository {
    /// Address, without credentials.
    pub url: String,
    /// Branch or tag that was asked for; the repository's default branch when left out.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Commit that it stood for.
    pub commit: String,
}

/// Outcome of a deployment or prune.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CommandStatus {
    /// When the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Revision of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Name given to the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_name_override: Option<String>,
    /// SHA-256 over the rendered objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_hash: Option<String>,
    /// Generation of the spec that the command followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Whether changes were only pretended.
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
    /// Identity of the reconciliation, as in the controller's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_id: Option<String>,
    /// What went wrong, when the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of objects applied.
    #[serde(skip_serializing_if = "is_default")]
    pub applied_objects: i64,
    /// Number of objects created.
    #[serde(skip_serializing_if = "is_default")]
    pub new_objects: i64,
    /// Number of objects changed.
    #[serde(skip_serializing_if = "is_default")]
    pub changed_objects: i64,
    /// Number of hooks run.
    #[serde(skip_serializing_if = "is_default")]
    pub hook_objects: i64,
    /// Number of objects that the project does not contain any more but the cluster still has.
    #[serde(skip_serializing_if = "is_default")]
    pub orphan_objects: i64,
    /// Number of objects deleted.
    #[serde(skip_serializing_if = "is_default")]
    pub deleted_objects: i64,
    /// Number of errors.
    #[serde(skip_serializing_if = "is_default")]
    pub errors: i64,
    /// Number of warnings.
    #[serde(skip_serializing_if = "is_default")]
    pub warnings: i64,
}

impl CommandStatus {
    /// Whether the command did all it should.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.errors == 0
    }
}

/// Outcome of a validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ValidateStatus {
    /// When the validation ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Revision of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Name given to the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_name_override: Option<String>,
    /// SHA-256 over the rendered objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_hash: Option<String>,
    /// Identity of the reconciliation, as in the controller's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_id: Option<String>,
    /// Whether everything exists, is ready and passes the project's checks.
    #[schemars(extend("default" = null))]
    pub ready: bool,
    /// Since when all that is not ready is on its way, as during a rollout. While that has not lasted for `spec.timeout`, it is no
    /// failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressing_since: Option<Time>,
    /// What was found to be wrong, or what prevented the validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of errors found.
    #[serde(skip_serializing_if = "is_default")]
    pub errors: i64,
    /// Number of warnings found.
    #[serde(skip_serializing_if = "is_default")]
    pub warnings: i64,
}

/// An object and what happened to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectFailure {
    /// API group, left out for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version within the group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, left out for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ObjectFailure {
    /// A failure of the object that `reference` names.
    pub fn new(reference: &ObjectRef, message: impl Into<String>) -> Self {
        Self {
            group: reference.group.clone(),
            version: reference.version.clone(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            message: message.into(),
        }
    }

    /// The object concerned.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }
}
