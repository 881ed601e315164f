use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    metrics::Metrics, notify::Notifier, options::Options, persist::ObjectStore, state::State,
    turns::Turns,
};
use crate::{
    artifact,
    cluster::{
        Cluster, ClusterOptions,
        connect::{Clients, ConnectError, ServiceAccount},
        kubeconfig::Access,
        recent::{AccessKey, Recent},
    },
    engine::Engine,
    git,
    helm::Renderer,
};

/// Clusters kept with their connections and kinds.
const MAX_CLUSTERS: usize = 64;

/// What all reconciliations share.
pub(crate) struct Context {
    /// How the controller runs.
    pub options: Options,
    /// The controller's own cluster, as itself.
    pub own: Cluster,
    /// Clusters that are deployed to.
    pub clusters: Clusters,
    /// KluctlDeployments.
    pub store: ObjectStore,
    /// Downloaded artifacts.
    pub artifacts: artifact::Store,
    /// Git repositories.
    pub repositories: git::Cache,
    /// Renders Helm charts.
    pub charts: Renderer,
    /// Renders and builds.
    pub engine: Engine,
    /// What is known, and the queue.
    pub state: Arc<State>,
    /// Events.
    pub notifier: Notifier,
    /// Measurements.
    pub metrics: Arc<Metrics>,
    /// Deployments that are read and not yet known to be worth more; bounds what a start or a mass of changes asks at once.
    pub openings: Semaphore,
    /// Deployments that look up what they refer to; more than work at the same time, for that is mostly waiting.
    pub lookups: Semaphore,
    /// Deployments that are rendered and applied.
    pub slots: Arc<Semaphore>,
    /// One run at a time per target.
    pub turns: Turns,
    /// Fires when the controller stops: nothing new is begun.
    pub stopping: CancellationToken,
    /// Interrupts all runs, when the grace period is over.
    pub interrupt: CancellationToken,
    /// Fires when another replica may be at work: nothing may be written any more, wherever a run is.
    pub deposed: CancellationToken,
}

/// Clusters by access and account, so that deployments which act alike share connections and the list of kinds.
pub(crate) struct Clusters {
    clients: Clients,
    own_server: String,
    recent: Recent<Cluster>,
}

impl Clusters {
    /// An empty cache over a cache of clients. `own_server` is the address of the controller's own API server.
    pub(crate) fn new(clients: Clients, own_server: String) -> Self {
        Self { clients, own_server, recent: Recent::new(MAX_CLUSTERS) }
    }

    /// The address of the controller's own API server.
    pub(crate) fn own_server(&self) -> &str {
        &self.own_server
    }

    /// The cluster behind an access, as `account` if one is given.
    ///
    /// # Errors
    /// When the access cannot be used; nothing is sent yet.
    pub(crate) async fn get(
        &self,
        access: &Access,
        account: Option<&ServiceAccount>,
    ) -> Result<Cluster, ConnectError> {
        let key = AccessKey::new(access, account);
        if let Some(cluster) = key.and_then(|key| self.recent.get(key)) {
            return Ok(cluster);
        }
        let client = self.clients.get(access, account).await?;
        let cluster = Cluster::new(client, ClusterOptions::default());
        if let Some(key) = key {
            self.recent.keep(key, cluster.clone());
        }
        Ok(cluster)
    }
}
