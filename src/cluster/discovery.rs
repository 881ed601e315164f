//! Which kinds a cluster serves: scopes, verbs, preferred versions. Aggregated discovery where it is served, group by
//! group otherwise; kept in the cluster handle and asked for again when it is old or a kind is unknown.

mod parse;

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{ApiOutcome, Cluster, DEFAULT_NAMESPACE, request::Call, request::encode};
use crate::object::ObjectRef;

/// How often discovery is refreshed at most, however many objects of unknown kinds ask for it.
const REFRESH_GAP: Duration = Duration::from_millis(300);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// A kind in one version, as the API server serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of discovery")]
pub struct ApiKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// The resource's name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether objects can be listed.
    pub listable: bool,
    /// Whether objects can be deleted.
    pub deletable: bool,
    /// Whether objects have a `status` subresource.
    pub has_status: bool,
    /// Whether this is the version the server prefers for the kind.
    pub preferred: bool,
}

impl ApiKind {
    /// The core kind `Namespace`, which every cluster serves.
    pub fn namespace() -> Self {
        Self {
            group: String::new(),
            version: "v1".into(),
            kind: "Namespace".into(),
            plural: "namespaces".into(),
            namespaced: false,
            listable: true,
            deletable: true,
            has_status: true,
            preferred: true,
        }
    }

    /// A namespaced kind of the core group whose plural is regular, such as `Secret`, and which every cluster serves.
    pub fn core(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            ..Self::namespace()
        }
    }

    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The URL path of one object, or (without a name) of the collection. A namespace is ignored for cluster-scoped kinds.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        // Writing to a string cannot fail.
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            let _ignored = write!(path, "/namespaces/{}", encode(namespace));
        }
        let _ignored = write!(path, "/{}", self.plural);
        if let Some(name) = name {
            let _ignored = write!(path, "/{}", encode(name));
        }
        path
    }
}

/// All kinds of a cluster at one moment.
#[derive(Debug, Default)]
pub struct Discovery {
    kinds: Vec<Arc<ApiKind>>,
    by_kind: HashMap<String, Vec<usize>>,
    /// Group versions whose kinds could not be learned because the server behind them does not answer.
    unavailable: Vec<String>,
}

impl Discovery {
    fn new(kinds: Vec<ApiKind>, unavailable: Vec<String>) -> Self {
        let mut by_kind: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, kind) in kinds.iter().enumerate() {
            by_kind.entry(kind.kind.clone()).or_default().push(index);
        }
        Self { kinds: kinds.into_iter().map(Arc::new).collect(), by_kind, unavailable }
    }

    /// A discovery of exactly these kinds, for tests and planning without a cluster.
    pub fn of(kinds: impl IntoIterator<Item = ApiKind>) -> Self {
        Self::new(kinds.into_iter().collect(), Vec::new())
    }

    fn named<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Arc<ApiKind>> {
        let indexes = self.by_kind.get(kind).into_iter().flatten();
        indexes.map(|index| &self.kinds[*index])
    }

    /// The kind of exactly this group and version.
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ApiKind>> {
        self.named(kind).find(|found| found.group == group && found.version == version)
    }

    /// The kind that `reference` names.
    pub fn of_reference(&self, reference: &ObjectRef) -> Option<&Arc<ApiKind>> {
        self.find(&reference.group, &reference.version, &reference.kind)
    }

    /// The kind in the server's preferred version.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&Arc<ApiKind>> {
        self.named(kind).find(|found| found.group == group && found.preferred)
    }

    /// Whether objects of a kind live in namespaces, whatever the version; `None` for an unknown kind.
    pub fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.named(kind).find(|found| found.group == group).map(|found| found.namespaced)
    }

    /// The reference with the namespace that its kind's scope asks for: `default` when it names none, none when the kind is
    /// cluster-scoped. References of unknown kinds come back as they are.
    pub fn complete(&self, mut reference: ObjectRef) -> ObjectRef {
        match self.is_namespaced(&reference.group, &reference.kind) {
            Some(true) if reference.namespace.is_none() => {
                reference.namespace = Some(DEFAULT_NAMESPACE.to_owned());
            }
            Some(false) => reference.namespace = None,
            _ => {}
        }
        reference
    }

    /// All kinds in all versions.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ApiKind>> {
        self.kinds.iter()
    }

    /// Kinds in preferred versions of this group and kind, each left out meaning any.
    pub fn matching<'a>(
        &'a self,
        group: Option<&'a str>,
        kind: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<ApiKind>> {
        self.kinds.iter().filter(move |found| {
            found.preferred
                && group.is_none_or(|group| group == found.group)
                && kind.is_none_or(|kind| kind == found.kind)
        })
    }

    /// Kinds in preferred versions whose objects can be listed and deleted: those among which owned objects are found.
    /// Events, of which there are many, are nobody's.
    pub fn ownable(&self) -> impl Iterator<Item = &Arc<ApiKind>> {
        self.kinds.iter().filter(|kind| {
            kind.preferred && kind.listable && kind.deletable && kind.plural != "events"
        })
    }

    /// Group versions whose server does not answer, so that their objects cannot be seen now.
    pub fn unavailable(&self) -> &[String] {
        &self.unavailable
    }
}

#[derive(Default)]
pub(super) struct DiscoveryCache {
    entry: RwLock<Option<Entry>>,
    /// Lets one request at a time refresh; a guard that is dropped half-way leaves the old entry.
    refreshing: Mutex<()>,
}

#[derive(Clone)]
struct Entry {
    discovery: Arc<Discovery>,
    etags: [Option<String>; 2],
    fetched: Instant,
}

impl DiscoveryCache {
    fn entry(&self) -> Option<Entry> {
        self.entry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn store(&self, entry: Entry) {
        *self.entry.write().unwrap_or_else(PoisonError::into_inner) = Some(entry);
    }
}

impl Cluster {
    /// The kinds of the cluster, from the handle's cache while it is young.
    ///
    /// # Errors
    /// The outcome that kept the list from being read.
    pub async fn kinds(&self) -> Result<Arc<Discovery>, ApiOutcome> {
        match self.0.kinds.entry() {
            Some(entry) if entry.fetched.elapsed() < self.options().discovery_age => {
                Ok(entry.discovery)
            }
            _ => self.refresh_kinds().await,
        }
    }

    /// Asks for the kinds again, at most about three times a second; an unchanged answer costs next to nothing.
    ///
    /// # Errors
    /// The outcome that kept the list from being read.
    pub async fn refresh_kinds(&self) -> Result<Arc<Discovery>, ApiOutcome> {
        let asked = Instant::now();
        let _turn = self.0.kinds.refreshing.lock().await;
        let old = self.0.kinds.entry();
        if let Some(entry) = &old
            && entry.fetched + REFRESH_GAP > asked
        {
            return Ok(entry.discovery.clone());
        }
        let entry = self.discover(old).await?;
        let discovery = entry.discovery.clone();
        self.0.kinds.store(entry);
        Ok(discovery)
    }

    async fn discover(&self, old: Option<Entry>) -> Result<Entry, ApiOutcome> {
        let etags = old.as_ref().map_or([None, None], |entry| entry.etags.clone());
        let fetched = Instant::now();
        let [core_tag, group_tag] = etags;
        let (core, groups) = tokio::try_join!(
            self.discovery_page("/api", core_tag),
            self.discovery_page("/apis", group_tag)
        )?;
        let (core, groups) = match (core, groups, old) {
            (Page::Unchanged, Page::Unchanged, Some(old)) => return Ok(Entry { fetched, ..old }),
            // One side changed: the other has to be read again to be put together.
            (Page::Unchanged, groups, _) => (self.discovery_page("/api", None).await?, groups),
            (core, Page::Unchanged, _) => (core, self.discovery_page("/apis", None).await?),
            (core, groups, _) => (core, groups),
        };
        let entry = |discovery, etags| Entry { discovery: Arc::new(discovery), etags, fetched };
        match (core, groups) {
            (Page::Aggregated(core, core_tag), Page::Aggregated(groups, group_tag)) => {
                let (mut kinds, mut unavailable) = parse::aggregated(&core);
                let (more, more_unavailable) = parse::aggregated(&groups);
                kinds.extend(more);
                unavailable.extend(more_unavailable);
                Ok(entry(Discovery::new(kinds, unavailable), [core_tag, group_tag]))
            }
            (_, Page::Plain(groups)) => {
                Ok(entry(self.discover_by_group(&groups).await?, [None, None]))
            }
            _ => Err(ApiOutcome::Unexpected("discovery answers differ in form".into())),
        }
    }

    async fn discovery_page(&self, path: &str, etag: Option<String>) -> Result<Page, ApiOutcome> {
        let mut sent = 0;
        loop {
            let call =
                Call { accept: AGGREGATED, etag: etag.clone(), ..Call::get(path.to_owned()) };
            sent += 1;
            let outcome = match self.exchange(call).await {
                Ok(raw) => match Page::read(raw) {
                    Ok(page) => return Ok(page),
                    Err(outcome) => outcome,
                },
                Err(outcome) => outcome,
            };
            match self.options().retry.pause(sent, &outcome, 0) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(outcome),
            }
        }
    }

    /// The way before aggregated discovery: one request per group version.
    async fn discover_by_group(&self, groups: &Value) -> Result<Discovery, ApiOutcome> {
        let versions = parse::group_versions(groups);
        let pages: Vec<_> = stream::iter(versions)
            .map(|(group, version)| async move {
                let path = match group.as_str() {
                    "" => format!("/api/{version}"),
                    group => format!("/apis/{group}/{version}"),
                };
                let answer = self.get_path(path).await.outcome;
                (group, version, answer)
            })
            .buffered(8)
            .collect()
            .await;
        let mut kinds = Vec::new();
        let mut unavailable = Vec::new();
        for (group, version, outcome) in pages {
            match outcome {
                ApiOutcome::Done(list) => {
                    kinds.extend(parse::resources(&group, &version, &list, &kinds));
                }
                outcome if group.is_empty() => return Err(outcome),
                _ => unavailable.push(format!("{group}/{version}")),
            }
        }
        Ok(Discovery::new(kinds, unavailable))
    }
}

/// One of the two discovery documents.
enum Page {
    Unchanged,
    Aggregated(Value, Option<String>),
    Plain(Value),
}

impl Page {
    fn read(raw: super::request::Raw) -> Result<Self, ApiOutcome> {
        if raw.status == 304 {
            return Ok(Self::Unchanged);
        }
        let etag = raw.headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(str::to_owned);
        let value = raw.into_value()?;
        match value["kind"].as_str() {
            Some("APIGroupDiscoveryList") => Ok(Self::Aggregated(value, etag)),
            _ => Ok(Self::Plain(value)),
        }
    }
}
