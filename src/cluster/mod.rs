//! The Kubernetes API as this program uses it: which kinds there are, requests on objects as JSON, and what came of them.

mod clock;
pub mod connect;
mod discovery;
pub mod kubeconfig;
mod observe;
mod outcome;
pub(crate) mod recent;
mod remove;
mod request;
mod retry;
mod watch;

pub use clock::Clock;
pub use discovery::{ApiKind, Discovery};
pub use observe::{Footprint, LiveKey, LiveState, ObserveRequest, Remark, kind_name, observe};
pub use outcome::{ApiOutcome, FieldConflict};
pub use request::{Answer, DeleteMode, WriteMode};
pub use retry::RetryPolicy;
pub use watch::{ObjectEvent, ObjectWatch};

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::sync::Semaphore;

use discovery::DiscoveryCache;

/// The name under which fields are owned.
pub const FIELD_MANAGER: &str = "kluctl";

/// Where objects go that name no namespace, whatever the kubeconfig says.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Limits of a [`Cluster`].
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Requests in flight at once, watches not counted.
    pub max_requests: usize,
    /// Watches open at once; further waits poll.
    pub max_watches: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How reads and deletions are repeated.
    pub retry: RetryPolicy,
    /// After how long the list of kinds is checked again.
    pub discovery_age: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            max_requests: 16,
            max_watches: 32,
            request_timeout: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            discovery_age: Duration::from_mins(5),
        }
    }
}

/// A handle on one cluster as one user: cheap to clone, with connections, limits and the list of kinds shared.
#[derive(Clone)]
pub struct Cluster(Arc<Shared>);

struct Shared {
    client: kube::Client,
    options: ClusterOptions,
    requests: Semaphore,
    watches: Arc<Semaphore>,
    kinds: DiscoveryCache,
    id: OnceLock<String>,
}

impl Cluster {
    /// Wraps a client, which should not retry by itself (`Config::default_retry`), since the rules here do. Nothing is sent
    /// before it is needed.
    pub fn new(client: kube::Client, options: ClusterOptions) -> Self {
        Self(Arc::new(Shared {
            requests: Semaphore::new(options.max_requests.max(1)),
            watches: Arc::new(Semaphore::new(options.max_watches)),
            kinds: DiscoveryCache::default(),
            id: OnceLock::new(),
            client,
            options,
        }))
    }

    /// The client, for typed access to well-known kinds.
    pub fn client(&self) -> &kube::Client {
        &self.0.client
    }

    /// The limits in force.
    pub fn options(&self) -> &ClusterOptions {
        &self.0.options
    }

    /// The cluster's identity: the UID of namespace `kube-system`, asked for once. Empty when reading it is forbidden.
    ///
    /// # Errors
    /// The outcome of the request when it failed in another way.
    pub async fn id(&self) -> Result<String, ApiOutcome> {
        if let Some(id) = self.0.id.get() {
            return Ok(id.clone());
        }
        let namespace = self.get(&ApiKind::namespace(), None, "kube-system").await;
        let id = match namespace.outcome {
            ApiOutcome::Done(namespace) => {
                namespace["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
            }
            outcome if outcome.is_refused() || outcome.is_absent() => return Ok(String::new()),
            outcome => return Err(outcome),
        };
        Ok(self.0.id.get_or_init(|| id).clone())
    }

    /// The version of Kubernetes as the API server tells it, such as `v1.33.1`. Repeated as other reads are.
    ///
    /// # Errors
    /// The outcome of the request.
    pub async fn server_version(&self) -> Result<String, ApiOutcome> {
        match self.get_path("/version".to_owned()).await.outcome {
            ApiOutcome::Done(version) => {
                Ok(version["gitVersion"].as_str().unwrap_or_default().to_owned())
            }
            outcome => Err(outcome),
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("options", &self.0.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests;
