use clap::ArgAction;

/// Whether and where results are stored.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Command Results")]
pub(in crate::cli) struct StoreFlags {
    /// Namespace of the cluster that results are stored in; made when it is missing
    #[arg(long, value_name = "NAME", default_value = "kluctl-results")]
    pub(in crate::cli) command_result_namespace: String,

    /// Store the result in the cluster, for kluctl's web UI
    #[arg(
        long,
        action = ArgAction::Set,
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        value_name = "BOOL"
    )]
    pub(in crate::cli) write_command_result: bool,

    /// Store the result of a dry run, too
    #[arg(long)]
    pub(in crate::cli) force_write_command_result: bool,

    /// How many results of the same target are kept
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(in crate::cli) keep_command_results_count: usize,

    /// How many validate results of the same target are kept; the controller writes these
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(in crate::cli) keep_validate_results_count: usize,
}

impl StoreFlags {
    /// Whether a result is to be stored.
    pub(in crate::cli) fn stores(&self, dry_run: bool) -> bool {
        self.write_command_result && (!dry_run || self.force_write_command_result)
    }
}
