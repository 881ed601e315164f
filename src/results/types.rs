//! The wire format. Field names and what is left out when empty are the reference's (`pkg/types/result` of kluctl); the
//! fields marked as not on the wire are ours.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ObjectOutcome;
use crate::{
    object::{Object, ObjectRef},
    schema::FixedImage,
};

/// What happened to a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It came.
    Insert,
    /// It went.
    Delete,
    /// Its value changed.
    Update,
}

/// One changed field of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: ChangeKind,
    /// Where, in kluctl's notation of paths.
    pub json_path: String,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_value: Option<Value>,
    /// The value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_value: Option<Value>,
    /// The change for people, lines led by `-`, `+` or a space.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unified_diff: String,
}

/// An error or a warning, with the object it is about. An empty reference stands for the run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentError {
    /// The object.
    #[serde(rename = "ref")]
    pub reference: ObjectRef,
    /// What is wrong.
    pub message: String,
}

impl DeploymentError {
    /// About one object, or (with `None`) about the run.
    pub fn new(reference: Option<ObjectRef>, message: impl Into<String>) -> Self {
        let reference = reference.unwrap_or_else(|| ObjectRef::new("", "", None, ""));
        Self { reference, message: message.into() }
    }
}

/// The `KluctlDeployment` that a run belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentInfo {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Identity of the cluster it lives in.
    pub cluster_id: String,
}

/// Who started a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initiator {
    /// A person or pipeline with the `kluctl` command.
    #[default]
    CommandLine,
    /// The controller.
    KluctlDeployment,
}

/// The project, as results are grouped by.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectKey {
    /// `git://host/path` or `oci://host/path`.
    #[serde(default)]
    pub repo_key: String,
    /// Directory of the project within.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sub_dir: String,
}

/// The target, as results are grouped by.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetKey {
    /// Name of the target, empty for the one without a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_name: String,
    /// Identity of the cluster: the UID of namespace `kube-system`.
    #[serde(default)]
    pub cluster_id: String,
    /// The discriminator, empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub discriminator: String,
}

/// Where the project's files came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitInfo {
    /// URL without secrets.
    pub url: Option<String>,
    /// `{branch}`, `{tag}` or `{commit}`.
    #[serde(rename = "ref")]
    pub reference: Option<Value>,
    /// Directory within the repository.
    pub sub_dir: String,
    /// Commit.
    pub commit: String,
    /// Whether there were changes that are not committed.
    pub dirty: bool,
}

/// The cluster a run worked on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInfo {
    /// UID of namespace `kube-system`; empty when it may not be read.
    pub cluster_id: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Which command ran, with which switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the wire format has them")]
pub struct CommandInfo {
    /// Who started it.
    pub initiator: Initiator,
    /// Start, in whole seconds.
    pub start_time: Option<Timestamp>,
    /// End, in whole seconds.
    pub end_time: Option<Timestamp>,
    /// `deploy`, `diff`, `prune`, `delete`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Target asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Name given to the target instead of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_name_override: String,
    /// Context used instead of the target's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context_override: String,
    /// Arguments given from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Fixed images given from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,
    /// Nothing was changed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// Nothing was waited for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_wait: bool,
    /// Conflicting fields were overwritten.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force_apply: bool,
    /// Objects were replaced when applying failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace_on_error: bool,
    /// Objects were recreated when replacing failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force_replace_on_error: bool,
    /// The run stopped at the first error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub abort_on_error: bool,
    /// Tags included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_tags: Vec<String>,
    /// Tags excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,
    /// Item directories included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_deployment_dirs: Vec<String>,
    /// Item directories excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_deployment_dirs: Vec<String>,
}

/// What a run knows about itself before it starts; the caller fills it in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunInfo {
    /// Random id of the result.
    pub id: String,
    /// Id of the controller's pass, also in its logs; empty on the command line.
    pub reconcile_id: String,
    /// When the run started.
    pub started: Timestamp,
    /// Project and its origin.
    pub project_key: ProjectKey,
    /// Where the files came from.
    pub git_info: GitInfo,
    /// The target as templates see it.
    pub target: Value,
    /// Name of the target, empty for the one without a name.
    pub target_name: String,
    /// The custom resource that the run belongs to.
    pub kluctl_deployment: Option<KluctlDeploymentInfo>,
    /// Overrides of a manual request.
    pub overrides_patch: Option<Value>,
    /// The root `deployment.yaml`.
    pub deployment: Option<Value>,
    /// Initiator, target, arguments and images; the engine adds the command, its times and its switches.
    pub command: CommandInfo,
    /// Leave the values of Secrets in the result.
    pub show_secrets: bool,
}

/// What a result tells about any object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the wire format has them")]
pub struct BaseObject {
    /// The object, named as in its diff (`kluctl.io/diff-name`).
    #[serde(rename = "ref")]
    pub reference: ObjectRef,
    /// Changed fields, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// It was not there before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub new: bool,
    /// It is deployed and no longer wanted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub orphan: bool,
    /// It was deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// It was applied as a hook.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hook: bool,
}

/// One object of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultObject {
    /// Reference, flags and changes.
    #[serde(flatten)]
    pub base: BaseObject,
    /// As rendered.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "tree")]
    pub rendered: Option<Arc<Object>>,
    /// As found in the cluster before the run.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "tree")]
    pub remote: Option<Arc<Object>>,
    /// As returned by the API server after applying.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "tree")]
    pub applied: Option<Arc<Object>>,
}

/// Objects on the wire are their trees.
mod tree {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
    use serde_json::Value;

    use crate::object::Object;

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(
        object: &Option<Arc<Object>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        object.as_ref().map(|object| object.value()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<Object>>, D::Error> {
        let value = Option::<Value>::deserialize(deserializer)?;
        let object = value.map(Object::new).transpose().map_err(D::Error::custom)?;
        Ok(object.map(Arc::new))
    }
}

/// What a command did: the only input of status, output and the result store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandResult {
    /// Random id.
    pub id: String,
    /// Id of the controller's pass.
    pub reconcile_id: String,
    /// The project.
    pub project_key: ProjectKey,
    /// The target's identity.
    pub target_key: TargetKey,
    /// The target.
    pub target: Value,
    /// The command and its switches.
    pub command: CommandInfo,
    /// The custom resource, for runs of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kluctl_deployment: Option<KluctlDeploymentInfo>,
    /// Overrides of a manual request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides_patch: Option<Value>,
    /// Where the files came from.
    pub git_info: GitInfo,
    /// The cluster.
    pub cluster_info: ClusterInfo,
    /// The root `deployment.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Value>,
    /// Hash over all rendered objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rendered_objects_hash: String,
    /// All objects concerned, sorted by group, version, kind, namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ResultObject>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<DeploymentError>,
    /// What to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<DeploymentError>,
    /// Images that templates asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_images: Vec<FixedImage>,
    /// Every planned object with what came of it, in the order of the plan. Not on the wire.
    #[serde(skip)]
    pub outcomes: Vec<ObjectOutcome>,
    /// Whether the run was cancelled or ran out of time. Not on the wire.
    #[serde(skip)]
    pub interrupted: bool,
    /// Whether some kinds could not be listed, so that the absence of orphans is not certain. Not on the wire.
    #[serde(skip)]
    pub has_unlisted: bool,
}

/// A value of an annotation `validate-result.kluctl.io/…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateResultEntry {
    /// The object.
    #[serde(rename = "ref")]
    pub reference: ObjectRef,
    /// The annotation's key.
    pub annotation: String,
    /// Its value.
    pub message: String,
}

/// What a validation found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateResult {
    /// Random id.
    pub id: String,
    /// Id of the controller's pass.
    pub reconcile_id: String,
    /// The project.
    pub project_key: ProjectKey,
    /// The target's identity.
    pub target_key: TargetKey,
    /// The custom resource, for runs of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kluctl_deployment: Option<KluctlDeploymentInfo>,
    /// Overrides of a manual request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides_patch: Option<Value>,
    /// Hash over all rendered objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rendered_objects_hash: String,
    /// Start, in whole seconds.
    pub start_time: Option<Timestamp>,
    /// End, in whole seconds.
    pub end_time: Option<Timestamp>,
    /// Whether everything is there and ready.
    pub ready: bool,
    /// What to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<DeploymentError>,
    /// What is missing or not ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<DeploymentError>,
    /// Results that objects themselves report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ValidateResultEntry>,
    /// Whether there are errors, and all are about objects that are on their way and may become ready by themselves. Not on the
    /// wire.
    #[serde(skip)]
    pub progressing: bool,
    /// Whether the validation was cancelled or ran out of time. Not on the wire.
    #[serde(skip)]
    pub interrupted: bool,
}

/// A time in whole seconds, as the wire format has it.
pub(super) fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
