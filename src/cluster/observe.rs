//! The live side of a deployment: everything that carries its discriminator, plus the objects it names.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use serde_json::Value;

use super::{ApiKind, ApiOutcome, Cluster, Discovery};
use crate::object::{Object, ObjectRef, annotations::DISCRIMINATOR_LABEL};

/// Kinds that a message names; more are counted.
const NAMED_KINDS: usize = 5;

/// What identifies an object whatever its version: group, kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LiveKey(Box<str>);

impl From<&ObjectRef> for LiveKey {
    fn from(reference: &ObjectRef) -> Self {
        let (group, kind, namespace, name) = reference.key();
        Self(format!("{group}\n{kind}\n{}\n{name}", namespace.unwrap_or_default()).into())
    }
}

/// Something to report beside the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The object or kind concerned, if any.
    pub reference: Option<ObjectRef>,
    /// What to know.
    pub message: String,
}

/// Where objects of a deployment may be, beside the namespaces and kinds that it mentions now. It matters to accounts that
/// may not list everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Namespaces to search when searching all of them is forbidden.
    pub namespaces: Vec<String>,
    /// Kinds, as [`kind_name`] writes them, whose listing is not to be forbidden silently.
    pub kinds: Vec<String>,
    /// Whether there may be objects in further namespaces, so that a search of these does not find everything.
    pub is_partial: bool,
}

/// `Kind.group`, or `Kind` for the core group.
pub fn kind_name(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// What to look for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObserveRequest<'a> {
    /// Find all objects with this discriminator.
    pub discriminator: Option<&'a str>,
    /// Find these objects, whatever their labels.
    pub references: &'a [ObjectRef],
    /// Search for the discriminator only among the kinds of `references`.
    pub only_used_kinds: bool,
    /// Where to search besides, when searching all namespaces is forbidden.
    pub footprint: Option<&'a Footprint>,
    /// Also find out which of the namespaces in `references` exist.
    pub with_namespaces: bool,
}

/// The live objects of a deployment at one moment.
#[derive(Debug, Default)]
pub struct LiveState {
    objects: HashMap<LiveKey, Arc<Object>>,
    namespaces: Option<HashSet<String>>,
    /// What could not be seen, and so may be missing here.
    pub warnings: Vec<Remark>,
    /// Kinds that could not be listed for another reason than missing rights: owned objects may exist unseen.
    pub unlisted: Vec<Remark>,
    /// Kinds of the deployment that the account may not list: owned objects may exist unseen.
    pub forbidden: Vec<Remark>,
    /// Objects that could not be read.
    pub errors: Vec<Remark>,
}

impl LiveState {
    /// A state that holds exactly these objects.
    pub fn of(objects: impl IntoIterator<Item = Arc<Object>>) -> Self {
        let keyed = objects.into_iter().map(|object| (LiveKey::from(&object.reference()), object));
        Self { objects: keyed.collect(), ..Self::default() }
    }

    /// The object that `reference` names, whatever the version.
    pub fn get(&self, reference: &ObjectRef) -> Option<&Arc<Object>> {
        self.objects.get(&LiveKey::from(reference))
    }

    /// All objects, in no particular order.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    /// Whether a namespace is known not to exist; `false` when it was not looked for.
    pub fn lacks_namespace(&self, name: &str) -> bool {
        self.namespaces.as_ref().is_some_and(|found| !found.contains(name))
    }

    /// Says which namespaces exist; all others are then known not to.
    #[must_use]
    pub fn with_namespaces(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.namespaces = Some(names.into_iter().collect());
        self
    }

    /// Adds objects as the API server returned them, which are complete.
    fn extend(&mut self, values: impl IntoIterator<Item = Value>) {
        for object in values.into_iter().flat_map(Object::new) {
            self.objects.insert(LiveKey::from(&object.reference()), Arc::new(object));
        }
    }
}

/// Reads the live side: lists every kind that can be owned, in parallel within the cluster's limits, then gets what is
/// named and was not found. Missing rights narrow the search and leave a warning; they do not end it.
///
/// # Errors
/// The outcome that kept the kinds of the cluster from being read.
pub async fn observe(
    cluster: &Cluster,
    request: &ObserveRequest<'_>,
) -> Result<LiveState, ApiOutcome> {
    let kinds = cluster.kinds().await?;
    let mut live = LiveState::default();
    if let Some(discriminator) = request.discriminator {
        list_owned(cluster, &kinds, request, discriminator, &mut live).await;
    }
    get_missing(cluster, &kinds, request, &mut live).await;
    if request.with_namespaces {
        live.namespaces = Some(existing_namespaces(cluster, request.references).await);
    }
    Ok(live)
}

/// The kinds to search, each in the version that the deployment uses, or else in the preferred one.
fn searched_kinds(kinds: &Discovery, request: &ObserveRequest<'_>) -> Vec<Arc<ApiKind>> {
    let mut used: HashMap<(&str, &str), &str> = HashMap::new();
    for reference in request.references {
        used.entry((&reference.group, &reference.kind)).or_insert(&reference.version);
    }
    let ownable = kinds.ownable().filter_map(|kind| {
        match used.get(&(kind.group.as_str(), kind.kind.as_str())) {
            Some(version) => {
                Some(kinds.find(&kind.group, version, &kind.kind).unwrap_or(kind).clone())
            }
            None if request.only_used_kinds => None,
            None => Some(kind.clone()),
        }
    });
    ownable.collect()
}

async fn list_owned(
    cluster: &Cluster,
    kinds: &Discovery,
    request: &ObserveRequest<'_>,
    discriminator: &str,
    live: &mut LiveState,
) {
    let selector = format!("{DISCRIMINATOR_LABEL}={discriminator}");
    let selector = selector.as_str();
    let searched = searched_kinds(kinds, request);
    let searched_count = searched.len();
    let lists = stream::iter(searched)
        .map(|kind| async move {
            let found = cluster.list(&kind, None, selector).await;
            (kind, found)
        })
        .buffer_unordered(cluster.options().max_requests);
    let lists: Vec<_> = lists.collect().await;
    let mut refused = Vec::new();
    for (kind, found) in lists {
        match found {
            Ok(items) => live.extend(items),
            Err(outcome) if outcome.is_absent() => {}
            Err(ApiOutcome::Forbidden(_)) => refused.push(kind),
            Err(outcome) => live.unlisted.push(unlisted(&kind, None, &outcome)),
        }
    }
    if !refused.is_empty() {
        refused.sort_by(|a, b| (&a.group, &a.plural).cmp(&(&b.group, &b.plural)));
        let is_all_refused = refused.len() == searched_count;
        list_in_namespaces(cluster, request, selector, &refused, is_all_refused, live).await;
    }
    // Only a warning: one broken extension of a cluster must not keep every deployment from pruning.
    if !kinds.unavailable().is_empty() {
        let versions = kinds.unavailable().join(", ");
        let message = format!(
            "objects of {versions} cannot be seen because the API server behind them does not answer, so orphans among \
             them are not found"
        );
        live.warnings.push(Remark { reference: None, message });
    }
    live.unlisted.sort_by(|a, b| a.message.cmp(&b.message));
}

fn unlisted(kind: &ApiKind, namespace: Option<&str>, outcome: &ApiOutcome) -> Remark {
    let problem = outcome.message().unwrap_or_default();
    let place = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
    Remark {
        reference: Some(ObjectRef::new(&kind.api_version(), &kind.kind, None, "")),
        message: format!("cannot list {}{place}: {problem}", kind.plural),
    }
}

/// Where listing in all namespaces is forbidden, the namespaces of the deployment are searched one by one.
async fn list_in_namespaces(
    cluster: &Cluster,
    request: &ObserveRequest<'_>,
    selector: &str,
    refused: &[Arc<ApiKind>],
    is_all_refused: bool,
    live: &mut LiveState,
) {
    let mut namespaces = used_namespaces(request.references);
    namespaces.extend(request.footprint.iter().flat_map(|place| place.namespaces.iter().cloned()));
    let pairs = refused
        .iter()
        .filter(|kind| kind.namespaced)
        .flat_map(|kind| namespaces.iter().map(move |namespace| (kind.clone(), namespace.clone())));
    let pairs: Vec<_> = pairs.collect();
    let found: Vec<_> = stream::iter(pairs)
        .map(|(kind, namespace)| async move {
            let items = cluster.list(&kind, Some(&namespace), selector).await;
            (kind, namespace, items)
        })
        .buffer_unordered(cluster.options().max_requests)
        .collect()
        .await;
    let mut unseen = Unseen::default();
    refused.iter().filter(|kind| !kind.namespaced).for_each(|kind| unseen.add(kind, None));
    let mut is_any_listed = !is_all_refused;
    for (kind, namespace, items) in found {
        match items {
            Ok(items) => {
                is_any_listed = true;
                live.extend(items);
            }
            Err(ApiOutcome::Forbidden(_)) => unseen.add(&kind, Some(&namespace)),
            Err(outcome) if outcome.is_absent() => {}
            Err(outcome) => live.unlisted.push(unlisted(&kind, Some(&namespace), &outcome)),
        }
    }
    unseen.tell(request, is_any_listed, live);
    let message = format!(
        "listing {} in all namespaces is forbidden, so objects were searched only in {}; those elsewhere are not found",
        shown_kinds(refused.iter().map(|kind| kind.plural.as_str())),
        shown_namespaces(&namespaces),
    );
    let remark = Remark { reference: None, message };
    let is_partial =
        namespaces.is_empty() || request.footprint.is_some_and(|place| place.is_partial);
    if is_partial && refused.iter().any(|kind| kind.namespaced) {
        live.unlisted.push(remark);
    } else {
        live.warnings.push(remark);
    }
}

/// Kinds that may not be listed even where the deployment is.
#[derive(Default)]
struct Unseen {
    /// Plural and namespaces by name of the kind.
    kinds: BTreeMap<String, (String, BTreeSet<String>)>,
}

impl Unseen {
    fn add(&mut self, kind: &ApiKind, namespace: Option<&str>) {
        let name = kind_name(&kind.group, &kind.kind);
        let (_, namespaces) =
            self.kinds.entry(name).or_insert_with(|| (kind.plural.clone(), BTreeSet::new()));
        namespaces.extend(namespace.map(str::to_owned));
    }

    /// Tells of the kinds that the deployment has objects of. Where that is not known: of all of them if nothing could be
    /// listed at all, for then nothing is known; and else of none, as an account is seldom given kinds that it does not use.
    fn tell(mut self, request: &ObserveRequest<'_>, is_any_listed: bool, live: &mut LiveState) {
        let mut known: HashSet<String> =
            request.footprint.iter().flat_map(|place| place.kinds.iter().cloned()).collect();
        known.extend(request.references.iter().map(|r| kind_name(&r.group, &r.kind)));
        if known.is_empty() && is_any_listed {
            return;
        }
        if !known.is_empty() {
            self.kinds.retain(|name, _| known.contains(name));
        }
        if self.kinds.is_empty() {
            return;
        }
        let namespaces: BTreeSet<String> =
            self.kinds.values().flat_map(|(_, namespaces)| namespaces.iter().cloned()).collect();
        let place = match namespaces.len() {
            0 => String::new(),
            _ => format!(" in {}", shown_namespaces(&namespaces)),
        };
        let kinds = shown_kinds(self.kinds.values().map(|(plural, _)| plural.as_str()));
        let message = format!(
            "listing {kinds}{place} is forbidden, so none of them is found or deleted; grant the account the verb list on them"
        );
        live.forbidden.push(Remark { reference: None, message });
    }
}

/// The first few of some kinds, and how many there are besides.
fn shown_kinds<'k>(plurals: impl Iterator<Item = &'k str>) -> String {
    let plurals: Vec<_> = plurals.collect();
    let names = plurals.iter().take(NAMED_KINDS).copied().collect::<Vec<_>>().join(", ");
    match plurals.len().saturating_sub(NAMED_KINDS) {
        0 => names,
        more => format!("{names} and {more} more kinds"),
    }
}

fn shown_namespaces(namespaces: &BTreeSet<String>) -> String {
    let names: Vec<_> = namespaces.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => "no namespace".to_owned(),
        [one] => format!("namespace {one}"),
        more => format!("namespaces {}", more.join(", ")),
    }
}

/// The namespaces that the deployment mentions, sorted.
fn used_namespaces(references: &[ObjectRef]) -> BTreeSet<String> {
    let used = references.iter().filter_map(|reference| {
        let is_namespace = reference.group.is_empty() && reference.kind == "Namespace";
        if is_namespace { Some(reference.name.clone()) } else { reference.namespace.clone() }
    });
    used.collect()
}

/// Gets the named objects that no list brought, or that a list brought in another version.
async fn get_missing(
    cluster: &Cluster,
    kinds: &Discovery,
    request: &ObserveRequest<'_>,
    live: &mut LiveState,
) {
    let mut seen = HashSet::new();
    let missing = request.references.iter().filter(|reference| {
        let found = live.get(reference);
        let same_version =
            found.is_some_and(|object| object.api_version() == reference.api_version());
        !same_version && !reference.name.is_empty() && seen.insert(LiveKey::from(*reference))
    });
    let missing = missing
        .filter_map(|reference| Some((reference.clone(), kinds.of_reference(reference)?.clone())));
    let missing: Vec<_> = missing.collect();
    let mut found: Vec<_> = stream::iter(missing)
        .map(|(reference, kind)| async move {
            let namespace = reference.namespace.as_deref();
            let outcome = cluster.get(&kind, namespace, &reference.name).await.outcome;
            (reference, outcome)
        })
        .buffer_unordered(cluster.options().max_requests)
        .collect()
        .await;
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (reference, outcome) in found {
        match outcome {
            ApiOutcome::Done(value) => live.extend([value]),
            outcome if outcome.is_absent() || outcome.is_refused() => {}
            outcome => live.errors.push(Remark {
                message: format!("cannot read: {}", outcome.message().unwrap_or_default()),
                reference: Some(reference),
            }),
        }
    }
}

/// Those of the mentioned namespaces that exist; one that cannot be read counts as existing.
async fn existing_namespaces(cluster: &Cluster, references: &[ObjectRef]) -> HashSet<String> {
    let kind = ApiKind::namespace();
    let kind = &kind;
    stream::iter(used_namespaces(references))
        .map(|name| async move {
            let outcome = cluster.get(kind, None, &name).await.outcome;
            (name, outcome)
        })
        .buffer_unordered(cluster.options().max_requests)
        .filter_map(|(name, outcome)| async move { (!outcome.is_absent()).then_some(name) })
        .collect()
        .await
}
