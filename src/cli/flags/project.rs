use std::{path::PathBuf, time::Duration};

/// Where the project is, and how long a command may take.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Project arguments")]
pub(in crate::cli) struct ProjectFlags {
    /// Project directory, instead of the working directory
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project_dir: Option<PathBuf>,

    /// Configuration file, instead of .kluctl.yaml in the project directory
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(in crate::cli) project_config: Option<PathBuf>,

    /// How long the whole command may take, loading, requests and waiting included
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = super::duration)]
    pub(in crate::cli) timeout: Duration,

    /// Accepted for compatibility; repositories are asked every time, which costs one short request
    #[arg(long, value_name = "DURATION", hide = true, value_parser = super::duration)]
    pub(in crate::cli) git_cache_update_interval: Option<Duration>,

    /// Take a local directory for a Git repository, whatever the revision
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(in crate::cli) local_git_override: Vec<String>,

    /// Take sub directories of a local directory for the Git repositories of a group
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(in crate::cli) local_git_group_override: Vec<String>,

    /// Take a local directory for an OCI artifact, whatever the version
    #[arg(long, value_name = "HOST/REPOSITORY=DIR")]
    pub(in crate::cli) local_oci_override: Vec<String>,

    /// Take sub directories of a local directory for the OCI artifacts of a group
    #[arg(long, value_name = "HOST/REPOSITORY=DIR")]
    pub(in crate::cli) local_oci_group_override: Vec<String>,
}
