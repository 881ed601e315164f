use std::path::PathBuf;

use crate::diagnostic::{Class, Diagnostic};

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

    /// Kubernetes version that Helm charts are told, instead of the cluster's
    #[arg(long, value_name = "VERSION")]
    pub(in crate::cli) kubernetes_version: Option<String>,
}

impl OfflineFlags {
    /// The version for Helm charts.
    ///
    /// # Errors
    /// When it is no version.
    pub(in crate::cli) fn version(&self) -> Result<Option<String>, Diagnostic> {
        let Some(text) = self.kubernetes_version.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let numbers = text.strip_prefix('v').unwrap_or(text).split(['-', '+']).next();
        let numbers: Vec<_> =
            numbers.unwrap_or_default().split('.').map(str::parse::<u32>).collect();
        if matches!(numbers.as_slice(), [Ok(_), Ok(_)] | [Ok(_), Ok(_), Ok(_)]) {
            return Ok(Some(text.to_owned()));
        }
        let message = format!("{text:?} is no version of Kubernetes");
        let diagnostic = Diagnostic::new(Class::Project, message);
        Err(diagnostic.with_field("--kubernetes-version").with_expected("for example 1.33.1"))
    }
}
