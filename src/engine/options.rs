use std::time::Duration;

use crate::cluster::Footprint;

/// How objects are applied (kluctl 2.28).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
pub struct DeployOptions {
    /// Only ask the API server what would happen.
    pub dry_run: bool,
    /// Overwrite fields that other field managers own.
    pub force_apply: bool,
    /// Replace an object when applying it fails for another reason than a conflict.
    pub replace_on_error: bool,
    /// Delete and apply anew when replacing fails too.
    pub force_replace_on_error: bool,
    /// Start nothing more after the first error.
    pub abort_on_error: bool,
    /// Do not wait for readiness, nor for deletions.
    pub no_wait: bool,
    /// Prune after applying; needs a discriminator.
    pub prune: bool,
    /// How long one object may take to become ready.
    pub readiness_timeout: Duration,
    /// What is left out of the diff.
    pub diff: DiffOptions,
    /// Where to look for orphans besides, when searching all namespaces is forbidden.
    pub footprint: Footprint,
}

impl DeployOptions {
    /// How long one object may take to become ready, unless told otherwise.
    pub const READINESS_TIMEOUT: Duration = Duration::from_mins(5);
}

impl Default for DeployOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            force_apply: false,
            replace_on_error: false,
            force_replace_on_error: false,
            abort_on_error: false,
            no_wait: false,
            prune: false,
            readiness_timeout: Self::READINESS_TIMEOUT,
            diff: DiffOptions::default(),
            footprint: Footprint::default(),
        }
    }
}

/// What is left out of a diff, besides the project's `ignoreForDiff`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
pub struct DiffOptions {
    /// Labels `kluctl.io/tag-*`.
    pub ignore_tags: bool,
    /// All labels.
    pub ignore_labels: bool,
    /// All annotations.
    pub ignore_annotations: bool,
    /// Everything that kluctl adds: tags, discriminator, item directory.
    pub ignore_kluctl_metadata: bool,
}
