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
