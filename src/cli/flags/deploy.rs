use std::time::Duration;

use crate::{
    cluster::Footprint,
    engine::{DeployOptions, DiffOptions},
};

/// How objects are applied.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
pub(in crate::cli) struct ApplyFlags {
    /// Answer all questions with yes
    #[arg(long, short)]
    pub(in crate::cli) yes: bool,

    /// Only ask the API server what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,

    /// Delete objects that are no longer part of the deployment; needs a discriminator
    #[arg(long)]
    pub(in crate::cli) prune: bool,

    /// Overwrite fields that other field managers own
    #[arg(long)]
    pub(in crate::cli) force_apply: bool,

    /// Replace objects that cannot be applied
    #[arg(long)]
    pub(in crate::cli) replace_on_error: bool,

    /// Delete and create objects that cannot be replaced either
    #[arg(long)]
    pub(in crate::cli) force_replace_on_error: bool,

    /// Start nothing more after the first error
    #[arg(long)]
    pub(in crate::cli) abort_on_error: bool,

    /// Do not wait for objects to become ready, nor for deletions
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,

    /// How long one object may take to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = super::duration)]
    pub(in crate::cli) readiness_timeout: Duration,

    /// Discriminator, instead of the target's
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) discriminator: Option<String>,
}

impl ApplyFlags {
    /// The options of the engine.
    pub(in crate::cli) fn options(&self) -> DeployOptions {
        DeployOptions {
            dry_run: self.dry_run,
            force_apply: self.force_apply,
            replace_on_error: self.replace_on_error,
            force_replace_on_error: self.force_replace_on_error,
            abort_on_error: self.abort_on_error,
            no_wait: self.no_wait,
            prune: self.prune,
            readiness_timeout: self.readiness_timeout,
            diff: DiffOptions::default(),
            footprint: Footprint::default(),
        }
    }
}
