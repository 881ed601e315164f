//! Judges every object of a deployment.

use std::collections::HashMap;

use jiff::Timestamp;

use super::rules::judge;
use crate::{
    cluster::{Discovery, LiveState},
    deployment::DesiredState,
    readiness::Facts,
    results::{DeploymentError, ValidateResultEntry},
};

/// Everything that validation found.
#[derive(Debug, Default)]
pub struct ValidateRun {
    /// What is missing or not ready, in the order of the deployment.
    pub errors: Vec<DeploymentError>,
    /// How many of the errors are about objects that are on their way, and may go by themselves.
    pub progressing: usize,
    /// What to know.
    pub warnings: Vec<DeploymentError>,
    /// Results that objects themselves report.
    pub results: Vec<ValidateResultEntry>,
}

impl ValidateRun {
    /// Whether nothing failed, and what is not ready is on its way.
    pub fn is_progressing(&self) -> bool {
        !self.errors.is_empty() && self.progressing == self.errors.len()
    }
}

/// Judges all objects at one moment.
pub fn run(
    desired: &DesiredState,
    live: &LiveState,
    kinds: &Discovery,
    now: Timestamp,
) -> ValidateRun {
    let mut found = ValidateRun::default();
    // Whether a kind has a status is the same for all its objects.
    let mut has_status: HashMap<(String, String, String), Option<bool>> = HashMap::new();
    for object in desired.objects() {
        let reference = kinds.complete(object.reference());
        let key = (reference.group.clone(), reference.version.clone(), reference.kind.clone());
        let has_status = *has_status
            .entry(key)
            .or_insert_with(|| kinds.of_reference(&reference).map(|kind| kind.has_status));
        let facts = Facts { has_status, now };
        let finding = judge(object, live.get(&reference).map(AsRef::as_ref), &facts);
        found.progressing += if finding.is_progressing { finding.errors.len() } else { 0 };
        let about = |message| DeploymentError::new(Some(reference.clone()), message);
        found.errors.extend(finding.errors.into_iter().map(about));
        found.warnings.extend(finding.warnings.into_iter().map(about));
        found.results.extend(finding.results.into_iter().map(|(annotation, message)| {
            ValidateResultEntry { reference: reference.clone(), annotation, message }
        }));
    }
    found
}
