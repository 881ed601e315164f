//! Watches on the objects that wake deployments. Each runs on its own, restarts by itself with growing delays, and keeps
//! nothing but what [`State`] needs. A kind that is dropped in the version that is watched is looked for anew.

mod seen;
mod trouble;

use std::{collections::BTreeSet, future::Future, sync::Arc};

use futures::StreamExt;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ApiResource,
    core::DynamicResourceScope,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{
    seen::{Deployments, Foreign, OwnClaims, Secrets, Seen, Sources},
    trouble::{End, Trouble},
};
use super::{metrics::Metrics, ownership::GITOPS_GROUP, persist, state::State};
use crate::{
    api::{KIND, NamespacedName, SOURCE_GROUP, SourceKind},
    cluster::{ApiKind, Cluster},
};

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

/// A kind to be watched.
#[derive(Clone)]
struct Wanted {
    /// The kind itself, or where to find it when the cluster need not have it.
    kind: Find,
    /// The only namespace to look at; `None` for all.
    namespace: Option<String>,
    /// The namespace to be content with where all of them are forbidden.
    fallback: Option<String>,
    /// Label selector.
    selector: Option<String>,
    /// What does not work while the objects, or those of other namespaces, cannot be seen.
    loss: &'static str,
}

#[derive(Clone)]
enum Find {
    /// A kind in the one version that can be read.
    Fixed(ApiResource),
    /// A group and a kind, in whichever version is served, if any.
    Served(&'static str, &'static str),
}

impl Wanted {
    fn title(&self) -> String {
        match &self.kind {
            Find::Fixed(resource) if resource.group.is_empty() => resource.kind.clone(),
            Find::Fixed(resource) => format!("{}.{}", resource.kind, resource.group),
            Find::Served(group, kind) => format!("{kind}.{group}"),
        }
    }
}

impl Watches {
    /// Watches the KluctlDeployments to reconcile. The receiver turns true once all are known.
    pub(crate) fn deployments(&self) -> (impl Future<Output = ()> + use<>, Listed) {
        let wanted = Wanted {
            kind: Find::Fixed(persist::resource()),
            namespace: self.namespace.clone(),
            fallback: None,
            selector: self.label_selector.clone(),
            loss: "nothing is reconciled",
        };
        let seen = Deployments {
            state: self.state.clone(),
            metrics: self.metrics.clone(),
            tells_claims: self.sees_everything(),
        };
        let (listed, receiver) = watch::channel(false);
        (self.clone().keep(wanted, seen, listed), receiver)
    }

    /// Watches the claims of KluctlDeployments that other controllers reconcile, when there may be such. The receiver turns
    /// true once they are known.
    pub(crate) fn claims(&self) -> Option<(impl Future<Output = ()> + use<>, Listed)> {
        if self.sees_everything() {
            return None;
        }
        let wanted = Wanted {
            kind: Find::Fixed(persist::resource()),
            namespace: None,
            fallback: self.namespace.clone(),
            selector: None,
            loss: "another KluctlDeployment with the same target is noticed only in the watched namespace",
        };
        let (listed, receiver) = watch::channel(false);
        let seen = OwnClaims { state: self.state.clone() };
        Some((self.clone().keep(wanted, seen, listed), receiver))
    }

    /// Whether the deployments to reconcile are all there are.
    fn sees_everything(&self) -> bool {
        self.namespace.is_none() && self.label_selector.is_none()
    }

    /// Watches the sources of one kind, in whichever version and once the cluster serves it.
    pub(crate) async fn sources(self, kind: SourceKind) {
        let wanted = Wanted {
            kind: Find::Served(SOURCE_GROUP, kind.name()),
            loss: "sources are looked at only when an interval is over",
            ..self.everywhere()
        };
        let seen = Sources { state: self.state.clone(), kind };
        self.keep(wanted, seen, watch::channel(false).0).await;
    }

    /// Watches KluctlDeployments of the other API group, if the cluster serves them. The receiver turns true once they are
    /// known, or known not to exist, or hidden.
    pub(crate) fn foreign(&self) -> (impl Future<Output = ()> + use<>, Listed) {
        let wanted = Wanted {
            kind: Find::Served(GITOPS_GROUP, KIND),
            loss: "it is not noticed when one of them has the same target",
            ..self.everywhere()
        };
        let (listed, receiver) = watch::channel(false);
        let seen = Foreign { state: self.state.clone() };
        (self.clone().keep(wanted, seen, listed), receiver)
    }

    /// Watches the metadata of Secrets; their content is never listed.
    pub(crate) async fn secrets(self) {
        let wanted = Wanted {
            kind: Find::Fixed(ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&())),
            loss: "changed Secrets are noticed only when an interval is over",
            ..self.everywhere()
        };
        let seen = Secrets { state: self.state.clone() };
        let listed = watch::channel(false).0;
        self.keep(wanted, seen, listed).await;
    }

    /// All namespaces, or the watched one when the rights reach no further.
    fn everywhere(&self) -> Wanted {
        Wanted {
            kind: Find::Served("", ""),
            namespace: None,
            fallback: self.namespace.clone(),
            selector: None,
            loss: "",
        }
    }

    /// Watches a kind until it is cancelled.
    async fn keep<K, S>(self, wanted: Wanted, seen: S, listed: watch::Sender<bool>)
    where
        K: Kind,
        S: Seen<K>,
    {
        let watching = self.keep_on::<K, S>(&wanted, &seen, &listed);
        let _cancelled = self.cancel.run_until_cancelled(watching).await;
    }

    /// Watches a kind for ever, through times in which it is not served or must not be seen.
    async fn keep_on<K, S>(&self, wanted: &Wanted, seen: &S, listed: &watch::Sender<bool>)
    where
        K: Kind,
        S: Seen<K>,
    {
        let mut trouble = Trouble::new(wanted);
        loop {
            let end = match self.find(&wanted.kind).await {
                Ok(Some(resource)) => {
                    let api = self.api_of::<K>(&resource, trouble.namespace());
                    let config = match &wanted.selector {
                        Some(selector) => watcher::Config::default().labels(selector),
                        None => watcher::Config::default(),
                    };
                    let watching = follow(&trouble.what, api, config, seen, listed);
                    tokio::time::timeout(trouble.patience(), watching).await.unwrap_or(End::Due)
                }
                Ok(None) => {
                    // What is not served has no objects.
                    seen.known().iter().for_each(|key| seen.gone(key));
                    listed.send_replace(true);
                    End::NotServed
                }
                Err(message) => End::Unknown(message),
            };
            if trouble.note(&end) {
                listed.send_replace(true);
            }
            tokio::time::sleep(trouble.pause).await;
        }
    }

    /// The kind as it is served now; `None` when it is not.
    async fn find(&self, kind: &Find) -> Result<Option<ApiResource>, String> {
        match kind {
            Find::Fixed(resource) => Ok(Some(resource.clone())),
            Find::Served(group, kind) => match self.cluster.refresh_kinds().await {
                Ok(kinds) => Ok(kinds.preferred(group, kind).map(|found| resource_of(found))),
                Err(outcome) => Err(outcome.message().unwrap_or_default().to_owned()),
            },
        }
    }

    fn api_of<K: Kind>(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<K> {
        let client: Client = self.cluster.client().clone();
        match namespace {
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

/// An object whose kind is known only while running.
trait Kind:
    Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
    + Clone
    + DeserializeOwned
    + std::fmt::Debug
    + Send
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static
{
}

/// Follows a watch until the kind is dropped or must not be seen. Other errors are logged, and the watch goes on after a
/// growing pause.
async fn follow<K: Kind, S: Seen<K>>(
    what: &str,
    api: Api<K>,
    config: watcher::Config,
    seen: &S,
    listed: &watch::Sender<bool>,
) -> End {
    let mut stream = std::pin::pin!(watcher(api, config).default_backoff());
    let mut present = BTreeSet::new();
    let mut worked = false;
    while let Some(event) = stream.next().await {
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
                worked = true;
                listed.send_replace(true);
            }
            Ok(Event::Apply(object)) => seen.seen(&key_of(&object), object),
            Ok(Event::Delete(object)) => seen.gone(&key_of(&object)),
            Err(error) => match code_of(&error) {
                Some(404) => return End::Dropped(worked),
                Some(403) => return End::Forbidden(worked),
                _ => tracing::warn!(what, "the watch was interrupted: {error}"),
            },
        }
    }
    End::Dropped(worked)
}

/// The HTTP status that an error tells of.
fn code_of(error: &watcher::Error) -> Option<u16> {
    use kube::Error::Api;
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(Api(status))
        | WatchStartFailed(Api(status))
        | WatchFailed(Api(status))
        | WatchError(status) => Some(status.code),
        _ => None,
    }
}

fn key_of<K: ResourceExt>(object: &K) -> NamespacedName {
    NamespacedName::new(object.namespace().unwrap_or_default(), object.name_any())
}
