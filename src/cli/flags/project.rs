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
}
