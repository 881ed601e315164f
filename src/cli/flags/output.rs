use std::path::PathBuf;

/// Where plain output goes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct OutputFlags {
    /// Write to this file; `-` is standard output; may be given several times
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(in crate::cli) output: Vec<PathBuf>,
}
