use std::path::PathBuf;

use clap::{Args, FromArgMatches};

use super::{
    ArgumentFlags, ClusterFlags, GitFlags, HelmFlags, ImageFlags, InclusionFlags, ProjectFlags,
    RegistryFlags,
};
use crate::diagnostic::{Class, Diagnostic};

/// Which target is meant.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Project arguments")]
pub(in crate::cli) struct TargetFlags {
    /// Name of the target in .kluctl.yaml
    #[arg(long, short, value_name = "NAME")]
    pub(in crate::cli) target: Option<String>,

    /// Rename the target, after it was looked up and its discriminator was rendered
    #[arg(long, short = 'T', value_name = "NAME")]
    pub(in crate::cli) target_name_override: Option<String>,

    /// Context of the kubeconfig, instead of the target's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) context: Option<String>,
}

/// What every command on a target takes: the project, the target with its arguments and images, the part of it that is meant,
/// how the cluster is reached, and credentials for what the project is made of.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct DeploymentFlags {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectFlags,
    #[command(flatten)]
    pub(in crate::cli) cluster: ClusterFlags,
    #[command(flatten)]
    pub(in crate::cli) target: TargetFlags,
    #[command(flatten)]
    pub(in crate::cli) arguments: ArgumentFlags,
    #[command(flatten)]
    pub(in crate::cli) images: ImageFlags,
    #[command(flatten)]
    pub(in crate::cli) inclusion: InclusionFlags,
    #[command(flatten)]
    pub(in crate::cli) git: GitFlags,
    #[command(flatten)]
    pub(in crate::cli) helm: HelmFlags,
    #[command(flatten)]
    pub(in crate::cli) registry: RegistryFlags,

    /// Write rendered files to this directory
    #[arg(long = "render-output-dir", value_name = "DIR", help_heading = "Misc arguments")]
    pub(in crate::cli) render_output_dir: Option<PathBuf>,
}

impl DeploymentFlags {
    /// The flags of somebody who gave none.
    ///
    /// # Errors
    /// A defect of this program.
    pub(in crate::cli) fn unset() -> Result<Self, Diagnostic> {
        let matches =
            Self::augment_args(clap::Command::new("kluctl")).try_get_matches_from(["kluctl"]);
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| Diagnostic::new(Class::Internal, error.to_string()))
    }
}
