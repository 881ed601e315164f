use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};
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
    },
    engine::Engine,
    git,
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
    /// Renders and builds.
    pub engine: Engine,
    /// What is known, and the queue.
    pub state: Arc<State>,
    /// Events.
    pub notifier: Notifier,
    /// Measurements.
    pub metrics: Arc<Metrics>,
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
}

/// Clusters by access and account, so that deployments which act alike share connections and the list of kinds.
pub(crate) struct Clusters {
    clients: Clients,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    clusters: HashMap<[u8; 32], (Cluster, u64)>,
    uses: u64,
}

impl Clusters {
    /// An empty cache over a cache of clients.
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients, cache: Mutex::default() }
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
        let key = fingerprint(access, account);
        if let Some(cluster) = key.and_then(|key| self.cached(key)) {
            return Ok(cluster);
        }
        let client = self.clients.get(access, account).await?;
        let cluster = Cluster::new(client, ClusterOptions::default());
        if let Some(key) = key {
            self.keep(key, cluster.clone());
        }
        Ok(cluster)
    }

    fn cached(&self, key: [u8; 32]) -> Option<Cluster> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.uses += 1;
        let uses = cache.uses;
        let (cluster, used) = cache.clusters.get_mut(&key)?;
        *used = uses;
        Some(cluster.clone())
    }

    fn keep(&self, key: [u8; 32], cluster: Cluster) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = cache.uses;
        cache.clusters.insert(key, (cluster, uses));
        if cache.clusters.len() > MAX_CLUSTERS {
            let oldest =
                cache.clusters.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                cache.clusters.remove(&oldest);
            }
        }
    }
}

/// What tells clusters apart; `None` when one must not be kept, because a plugin's credentials end at a time of its own.
fn fingerprint(access: &Access, account: Option<&ServiceAccount>) -> Option<[u8; 32]> {
    let mut hasher = Sha256::new();
    if let Access::Kubeconfig { config, .. } = access {
        let users = config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
        if users.into_iter().any(|user| user.exec.is_some()) {
            return None;
        }
        hasher.update(serde_json::to_vec(&**config).ok()?);
    }
    hasher.update([0]);
    hasher.update(account.map(ToString::to_string).unwrap_or_default());
    Some(hasher.finalize().into())
}
