use jiff::Timestamp;

use super::{
    ClusterInfo, CommandInfo, CommandResult, DeploymentError, RunInfo, TargetKey, ValidateResult,
    types::in_seconds,
};
use crate::{
    deployment::{FixedImageUse, Inclusion},
    schema::FixedImage,
};

impl CommandResult {
    /// The result of a command that starts now: what is known before anything was done.
    pub fn started(command: &str, info: &RunInfo, inclusion: &Inclusion, now: Timestamp) -> Self {
        let command = CommandInfo {
            start_time: Some(in_seconds(now)),
            end_time: None,
            command: command.to_owned(),
            include_tags: inclusion.include_tags.clone(),
            exclude_tags: inclusion.exclude_tags.clone(),
            include_deployment_dirs: inclusion.include_dirs.clone(),
            exclude_deployment_dirs: inclusion.exclude_dirs.clone(),
            ..info.command.clone()
        };
        Self {
            id: info.id.clone(),
            reconcile_id: info.reconcile_id.clone(),
            project_key: info.project_key.clone(),
            target_key: TargetKey::default(),
            target: info.target.clone(),
            command,
            kluctl_deployment: info.kluctl_deployment.clone(),
            overrides_patch: info.overrides_patch.clone(),
            git_info: info.git_info.clone(),
            cluster_info: ClusterInfo::default(),
            deployment: info.deployment.clone(),
            rendered_objects_hash: String::new(),
            objects: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            seen_images: Vec::new(),
            outcomes: Vec::new(),
            interrupted: false,
            has_unlisted: false,
        }
    }

    /// Notes the end: errors and warnings lose repetitions, the time is set.
    pub fn finish(&mut self, now: Timestamp) {
        dedup(&mut self.errors);
        dedup(&mut self.warnings);
        self.command.end_time = Some(in_seconds(now));
    }
}

impl ValidateResult {
    /// The result of a validation that starts now.
    pub fn started(info: &RunInfo, now: Timestamp) -> Self {
        Self {
            id: info.id.clone(),
            reconcile_id: info.reconcile_id.clone(),
            project_key: info.project_key.clone(),
            target_key: TargetKey::default(),
            kluctl_deployment: info.kluctl_deployment.clone(),
            overrides_patch: info.overrides_patch.clone(),
            rendered_objects_hash: String::new(),
            start_time: Some(in_seconds(now)),
            end_time: None,
            ready: false,
            warnings: Vec::new(),
            errors: Vec::new(),
            results: Vec::new(),
            progressing: false,
            interrupted: false,
        }
    }

    /// Notes the end: ready is what has no errors and was not interrupted.
    pub fn finish(&mut self, now: Timestamp) {
        dedup(&mut self.errors);
        dedup(&mut self.warnings);
        self.ready = self.errors.is_empty() && !self.interrupted;
        self.end_time = Some(in_seconds(now));
    }
}

impl From<&FixedImageUse> for FixedImage {
    fn from(seen: &FixedImageUse) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            image: Some(seen.image.clone()),
            result_image: seen.result_image.clone(),
            namespace: text(&seen.namespace),
            deployment: text(&seen.deployment),
            container: text(&seen.container),
            deploy_tags: seen.deploy_tags.clone(),
            deployment_dir: text(&seen.deployment_dir),
            ..Self::default()
        }
    }
}

fn dedup(list: &mut Vec<DeploymentError>) {
    let mut seen = std::collections::HashSet::new();
    list.retain(|entry| seen.insert((entry.reference.to_string(), entry.message.clone())));
}
