use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ClusterInfo, CommandInfo, CommandResult, DeploymentError, GitInfo, KluctlDeploymentInfo,
    ProjectKey, ResultObject, TargetKey, ValidateResult,
};

/// A command result without its objects, as kept in status and shown in lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandResultSummary {
    /// Id of the result.
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
    pub command_info: CommandInfo,
    /// The custom resource, for runs of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kluctl_deployment: Option<KluctlDeploymentInfo>,
    /// Where the files came from.
    pub git_info: GitInfo,
    /// The cluster.
    pub cluster_info: ClusterInfo,
    /// Hash over all rendered objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rendered_objects_hash: String,
    /// Number of rendered objects.
    pub rendered_objects: usize,
    /// Number of objects that were there before.
    pub remote_objects: usize,
    /// Number of applied objects.
    pub applied_objects: usize,
    /// Number of applied hooks.
    pub applied_hook_objects: usize,
    /// Number of new objects.
    pub new_objects: usize,
    /// Number of changed objects.
    pub changed_objects: usize,
    /// Number of objects that are no longer wanted and still there.
    pub orphan_objects: usize,
    /// Number of deleted objects.
    pub deleted_objects: usize,
    /// What went wrong.
    #[serde(default)]
    pub errors: Vec<DeploymentError>,
    /// What to know.
    #[serde(default)]
    pub warnings: Vec<DeploymentError>,
    /// Number of changed fields.
    pub total_changes: usize,
}

/// A validate result by numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateResultSummary {
    /// Id of the result.
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
    /// Hash over all rendered objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rendered_objects_hash: String,
    /// Start.
    pub start_time: Option<Timestamp>,
    /// End.
    pub end_time: Option<Timestamp>,
    /// Whether everything is there and ready.
    pub ready: bool,
    /// Number of warnings.
    pub warnings: usize,
    /// Number of errors.
    pub errors: usize,
    /// Number of results that objects report.
    pub results: usize,
}

impl CommandResult {
    /// The result without its objects.
    pub fn summary(&self) -> CommandResultSummary {
        let count = |is_meant: fn(&ResultObject) -> bool| {
            self.objects.iter().filter(|object| is_meant(object)).count()
        };
        CommandResultSummary {
            id: self.id.clone(),
            reconcile_id: self.reconcile_id.clone(),
            project_key: self.project_key.clone(),
            target_key: self.target_key.clone(),
            target: self.target.clone(),
            command_info: self.command.clone(),
            kluctl_deployment: self.kluctl_deployment.clone(),
            git_info: self.git_info.clone(),
            cluster_info: self.cluster_info.clone(),
            rendered_objects_hash: self.rendered_objects_hash.clone(),
            rendered_objects: count(|object| object.rendered.is_some()),
            remote_objects: count(|object| object.remote.is_some()),
            applied_objects: count(|object| object.applied.is_some()),
            applied_hook_objects: count(|object| object.base.hook),
            new_objects: count(|object| object.base.new),
            changed_objects: count(|object| !object.base.changes.is_empty()),
            orphan_objects: count(|object| object.base.orphan),
            deleted_objects: count(|object| object.base.deleted),
            errors: self.errors.clone(),
            warnings: self.warnings.clone(),
            total_changes: self.objects.iter().map(|object| object.base.changes.len()).sum(),
        }
    }
}

impl ValidateResult {
    /// The result by numbers.
    pub fn summary(&self) -> ValidateResultSummary {
        ValidateResultSummary {
            id: self.id.clone(),
            reconcile_id: self.reconcile_id.clone(),
            project_key: self.project_key.clone(),
            target_key: self.target_key.clone(),
            kluctl_deployment: self.kluctl_deployment.clone(),
            rendered_objects_hash: self.rendered_objects_hash.clone(),
            start_time: self.start_time,
            end_time: self.end_time,
            ready: self.ready,
            warnings: self.warnings.len(),
            errors: self.errors.len(),
            results: self.results.len(),
        }
    }
}
