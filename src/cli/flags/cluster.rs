use std::path::PathBuf;

/// How the cluster is reached.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Project arguments")]
pub(in crate::cli) struct ClusterFlags {
    /// Kubeconfig, instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) kubeconfig: Option<PathBuf>,
}

/// For commands that work without a cluster.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Misc arguments")]
pub(in crate::cli) struct OfflineFlags {
    /// Do not talk to any cluster
    #[arg(long)]
    pub(in crate::cli) offline_kubernetes: bool,

    /// Kubernetes version that Helm charts are told when there is no cluster
    #[arg(long, value_name = "VERSION")]
    pub(in crate::cli) kubernetes_version: Option<String>,
}
