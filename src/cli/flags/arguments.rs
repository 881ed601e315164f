use std::path::PathBuf;

/// Arguments for templates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Project arguments")]
pub(in crate::cli) struct ArgumentFlags {
    /// Set an argument; the value is read as YAML, `@file` reads it from a file, dots in the name nest
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(in crate::cli) arg: Vec<String>,

    /// Set arguments from a YAML file; they win over --arg
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) args_from_file: Vec<PathBuf>,
}
