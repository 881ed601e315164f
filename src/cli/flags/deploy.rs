use std::time::Duration;

use crate::{
    cluster::Footprint,
    engine::{DeployOptions, DiffOptions},
};

/// Whether to ask, and whether it is meant.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct ConfirmFlags {
    /// Answer all questions with yes; needed where there is no terminal to ask at
    #[arg(long, short)]
    pub(in crate::cli) yes: bool,

    /// Only ask the API server what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

impl ConfirmFlags {
    /// Whether somebody has to be asked.
    pub(in crate::cli) fn asks(self) -> bool {
        !self.yes && !self.dry_run
    }
}

/// What to do about objects that cannot be applied as they are.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct ForceFlags {
    /// Overwrite fields that other field managers own
    #[arg(long)]
    pub(in crate::cli) force_apply: bool,

    /// Replace objects that cannot be applied
    #[arg(long)]
    pub(in crate::cli) replace_on_error: bool,

    /// Delete and create objects that cannot be replaced either
    #[arg(long)]
    pub(in crate::cli) force_replace_on_error: bool,
}

/// How a deployment goes on.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct DeployFlags {
    /// Delete objects that are no longer part of the deployment; needs a discriminator
    #[arg(long)]
    pub(in crate::cli) prune: bool,

    /// Start nothing more after the first error
    #[arg(long)]
    pub(in crate::cli) abort_on_error: bool,

    /// Do not wait for objects to become ready, nor for deletions
    #[arg(long)]
    pub(in crate::cli) no_wait: bool,

    /// How long one object may take to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = super::duration)]
    pub(in crate::cli) readiness_timeout: Duration,
}

/// What is left out of differences.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
pub(in crate::cli) struct IgnoreFlags {
    /// Leave changed tags out: the labels `kluctl.io/tag-*`
    #[arg(long)]
    ignore_tags: bool,

    /// Leave changed labels out
    #[arg(long)]
    ignore_labels: bool,

    /// Leave changed annotations out
    #[arg(long)]
    ignore_annotations: bool,

    /// Leave out what Kluctl adds to the metadata of all objects: tags, discriminator, item directory
    #[arg(long)]
    ignore_kluctl_metadata: bool,
}

impl IgnoreFlags {
    /// The options of the engine.
    pub(in crate::cli) fn options(self) -> DiffOptions {
        DiffOptions {
            ignore_tags: self.ignore_tags,
            ignore_labels: self.ignore_labels,
            ignore_annotations: self.ignore_annotations,
            ignore_kluctl_metadata: self.ignore_kluctl_metadata,
        }
    }
}

/// Which objects belong to the deployment.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct DiscriminatorFlag {
    /// Discriminator, instead of the target's
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) discriminator: Option<String>,
}

impl ForceFlags {
    /// The options of the engine for a deployment, or (without `deploy`) for a diff.
    pub(in crate::cli) fn options(
        self,
        dry_run: bool,
        deploy: Option<DeployFlags>,
        diff: DiffOptions,
    ) -> DeployOptions {
        DeployOptions {
            dry_run,
            force_apply: self.force_apply,
            replace_on_error: self.replace_on_error,
            force_replace_on_error: self.force_replace_on_error,
            abort_on_error: deploy.is_some_and(|deploy| deploy.abort_on_error),
            no_wait: deploy.is_some_and(|deploy| deploy.no_wait),
            prune: deploy.is_some_and(|deploy| deploy.prune),
            readiness_timeout: deploy
                .map_or(DeployOptions::READINESS_TIMEOUT, |deploy| deploy.readiness_timeout),
            diff,
            footprint: Footprint::default(),
        }
    }
}
