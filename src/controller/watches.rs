//! Watches on the objects that wake deployments. Each runs on its own, restarts by itself with growing delays, and keeps
//! nothing but what [`State`] needs.

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    metrics::Metrics,
    ownership::Target,
    persist,
    state::{GITOPS_GROUP, State},
    triggers::{Entry, SourceKey},
};
use crate::{
    api::{FluxSource, NamespacedName, SOURCE_GROUP, SourceKind},
    cluster::{ApiKind, Cluster},
};

/// How often it is checked whether a kind that was not served is served now.
const SERVED_AGAIN: Duration = Duration::from_mins(1);

/// What the watches see, and where they report it.
#[derive(Clone)]
pub(crate) struct Watches {
    /// The controller's own cluster.
    pub cluster: Cluster,
    /// The only namespace to look at; `None` for all.
    pub namespace: Option<String>,
    /// Label selector on KluctlDeployments.
    pub label_selector: Option<String>,
    /// Where observations go.
    pub state: Arc<State>,
    /// Series of deployments that are gone are dropped.
    pub metrics: Arc<Metrics>,
    /// Ends all watches.
    pub cancel: CancellationToken,
}

/// How far a watch has come.
pub(crate) type Listed = watch::Receiver<bool>;

/// What a watch does with what it sees.
trait Seen<K> {
    /// All keys that are known, to find out what went while nobody watched.
    fn known(&self) -> BTreeSet<NamespacedName>;
    /// An object was listed, added or changed.
    fn seen(&self, key: &NamespacedName, object: K);
    /// An object is gone.
    fn gone(&self, key: &NamespacedName);
}

impl Watches {
    /// Watches KluctlDeployments. The receiver turns true once all are known.
    pub(crate) fn deployments(&self) -> (impl Future<Output = ()> + use<>, Listed) {
        let api = self.api_of(&persist::resource());
        let config = match &self.label_selector {
            Some(selector) => watcher::Config::default().labels(selector),
            None => watcher::Config::default(),
        };
        let seen = Deployments { state: self.state.clone(), metrics: self.metrics.clone() };
        let (listed, receiver) = watch::channel(false);
        (follow("KluctlDeployments", api, config, seen, listed, self.cancel.clone()), receiver)
    }

    /// Watches the sources of one kind, once the cluster serves it.
    pub(crate) async fn sources(self, kind: SourceKind) {
        let seen = Sources { state: self.state.clone(), kind };
        self.served(SOURCE_GROUP, kind.name(), seen, &watch::channel(false).0).await;
    }

    /// Watches KluctlDeployments of the other API group, if the cluster serves them. The receiver turns true once they are
    /// known, or known not to exist.
    pub(crate) fn foreign(&self) -> (impl Future<Output = ()> + use<>, Listed) {
        let seen = Foreign { state: self.state.clone() };
        let (listed, receiver) = watch::channel(false);
        let this = self.clone();
        (
            async move { this.served(GITOPS_GROUP, "KluctlDeployment", seen, &listed).await },
            receiver,
        )
    }

    /// Watches the metadata of Secrets; their content is never listed.
    pub(crate) async fn secrets(self) {
        let client = self.cluster.client().clone();
        let api: Api<PartialObjectMeta<Secret>> = match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let seen = Secrets { state: self.state.clone() };
        let listed = watch::channel(false).0;
        follow("Secrets", api, watcher::Config::default(), seen, listed, self.cancel.clone()).await;
    }

    /// Watches a kind that need not be installed.
    async fn served<S>(self, group: &str, kind: &str, seen: S, listed: &watch::Sender<bool>)
    where
        S: Seen<DynamicObject> + Clone + Send + 'static,
    {
        while !self.cancel.is_cancelled() {
            match self.cluster.refresh_kinds().await {
                Ok(kinds) => {
                    if let Some(found) = kinds.preferred(group, kind) {
                        let api = self.api_of(&resource_of(found));
                        let config = watcher::Config::default();
                        let what = format!("{kind}.{group}");
                        follow(&what, api, config, seen, listed.clone(), self.cancel.clone()).await;
                        return;
                    }
                    tracing::debug!(group, kind, "the cluster does not serve this kind");
                    listed.send_replace(true);
                }
                Err(outcome) => {
                    let message = outcome.message().unwrap_or_default();
                    tracing::warn!(
                        group,
                        kind,
                        "the kinds of the cluster cannot be listed: {message}"
                    );
                }
            }
            let pause = tokio::time::sleep(SERVED_AGAIN);
            if self.cancel.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    fn api_of(&self, resource: &ApiResource) -> Api<DynamicObject> {
        let client: Client = self.cluster.client().clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }
}

fn resource_of(kind: &ApiKind) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// Follows a watch until it is cancelled. Errors are logged, and the watch goes on after a growing pause.
async fn follow<K, S>(
    what: &str,
    api: Api<K>,
    config: watcher::Config,
    seen: S,
    listed: watch::Sender<bool>,
    cancel: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    S: Seen<K>,
{
    let stream = watcher(api, config).default_backoff().into_stream();
    let mut stream = std::pin::pin!(stream);
    let mut present = BTreeSet::new();
    while let Some(Some(event)) = cancel.run_until_cancelled(stream.next()).await {
        match event {
            Ok(Event::Init) => present.clear(),
            Ok(Event::InitApply(object)) => {
                let key = key_of(&object);
                seen.seen(&key, object);
                present.insert(key);
            }
            Ok(Event::InitDone) => {
                for key in seen.known().difference(&present) {
                    seen.gone(key);
                }
                present.clear();
                listed.send_replace(true);
            }
            Ok(Event::Apply(object)) => seen.seen(&key_of(&object), object),
            Ok(Event::Delete(object)) => seen.gone(&key_of(&object)),
            Err(error) => tracing::warn!(what, "the watch was interrupted: {error}"),
        }
    }
}

fn key_of<K: Resource>(object: &K) -> NamespacedName {
    NamespacedName::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// The object's JSON tree.
fn tree(object: DynamicObject) -> Value {
    let metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
    let mut tree = object.data;
    tree["metadata"] = metadata;
    tree
}

struct Deployments {
    state: Arc<State>,
    metrics: Arc<Metrics>,
}

impl Seen<DynamicObject> for Deployments {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.keys()
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        self.state.observe(key, Entry::read(&tree(object)));
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.remove(key);
        self.metrics.forget(key);
    }
}

#[derive(Clone)]
struct Sources {
    state: Arc<State>,
    kind: SourceKind,
}

impl Sources {
    fn key(&self, name: &NamespacedName) -> SourceKey {
        SourceKey { kind: self.kind, name: name.clone() }
    }
}

impl Seen<DynamicObject> for Sources {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.sources_in_use(self.kind)
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        self.state.observe_source(&self.key(key), Some(&FluxSource::read(&tree(object))));
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.observe_source(&self.key(key), None);
    }
}

struct Secrets {
    state: Arc<State>,
}

impl Seen<PartialObjectMeta<Secret>> for Secrets {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.secrets_in_use()
    }

    fn seen(&self, key: &NamespacedName, object: PartialObjectMeta<Secret>) {
        self.state.observe_secret(key, object.metadata.resource_version.as_deref());
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.observe_secret(key, None);
    }
}

#[derive(Clone)]
struct Foreign {
    state: Arc<State>,
}

impl Seen<DynamicObject> for Foreign {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.foreign_keys()
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        let target = &object.data["status"]["targetKey"];
        let text =
            |field: &str| target[field].as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        let target = text("clusterId")
            .zip(text("discriminator"))
            .map(|(cluster_id, discriminator)| Target { cluster_id, discriminator });
        self.state.observe_foreign(key, target);
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.remove_foreign(key);
    }
}
