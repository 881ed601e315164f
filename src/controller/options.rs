use std::{net::SocketAddr, path::PathBuf, time::Duration};

use reqwest::Url;

use crate::{
    cluster::{connect::Own, kubeconfig::Guards},
    helm::ProgramChoice,
    net::{Proxies, Reach},
};

/// How the controller runs. The front fills it in; nothing here is read from the environment.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the operator")]
pub struct Options {
    /// The cluster whose KluctlDeployments are reconciled.
    pub own: Own,
    /// The only namespace to watch; `None` for all.
    pub namespace: Option<String>,
    /// Namespace of the controller itself, for its lease.
    pub controller_namespace: String,
    /// Label selector on KluctlDeployments, for sharding.
    pub label_selector: Option<String>,
    /// Where `/metrics` is served; `None` for nowhere.
    pub metrics_address: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are served; `None` for nowhere.
    pub health_address: Option<SocketAddr>,
    /// Whether replicas elect a leader.
    pub elects_leader: bool,
    /// Deployments that are rendered and applied at the same time. Those that wait for readiness do not count.
    pub concurrency: usize,
    /// Service account to impersonate where a deployment names none.
    pub default_service_account: Option<String>,
    /// Whether references into other namespaces are refused.
    pub no_cross_namespace_refs: bool,
    /// Whether all deployments are dry runs.
    pub dry_run: bool,
    /// Pause of deployments that wait for a dependency or an artifact.
    pub requeue_dependency: Duration,
    /// Second attempts at downloads.
    pub http_retry: u32,
    /// What kubeconfigs from Secrets may do.
    pub guards: Guards,
    /// Where notification-controller takes events; `None` for no events.
    pub events_url: Option<Url>,
    /// By how much intervals vary at random, in percent.
    pub interval_jitter: u8,
    /// Time that running reconciliations get to end after the process was asked to.
    pub grace_period: Duration,
    /// Directory for downloaded artifacts and repositories.
    pub cache_dir: PathBuf,
    /// The program that renders Helm charts.
    pub helm: ProgramChoice,
    /// Host to download artifacts from in place of the one in their URL (`SOURCE_CONTROLLER_LOCALHOST`).
    pub source_localhost: Option<String>,
    /// Which addresses `http` variables may be read from.
    pub http_vars_reach: Reach,
    /// Whether kustomizations may name no remote resources.
    pub no_remote_bases: bool,
    /// Proxies for Git, artifacts and events.
    pub proxies: Proxies,
    /// Name of the machine, for events and the lease.
    pub host: String,
}
