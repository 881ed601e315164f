//! Which change wakes which deployment. The index holds a few words per deployment, not the objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::api::{
    self, Artifact, DEPLOY_REQUESTED_AT, FORCE_AT, FluxSource, NamespacedName, REQUESTED_AT,
    SourceKind,
};

/// A Flux source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SourceKey {
    /// Kind.
    pub kind: SourceKind,
    /// Namespace and name.
    pub name: NamespacedName,
}

/// What the index knows about a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Generation of the spec.
    pub generation: i64,
    /// Values of the annotations that ask for something, in fixed order.
    pub requests: [Option<String>; 3],
    /// Whether deletion has been asked for.
    pub is_deleting: bool,
    /// Whether reconciliation is suspended.
    pub is_suspended: bool,
    /// The source, unless the deployment clones by itself.
    pub source: Option<SourceKey>,
    /// Secrets of its own that it refers to.
    pub secrets: BTreeSet<NamespacedName>,
    /// Other deployments of the same kind that it depends on.
    pub dependencies: Vec<NamespacedName>,
    /// What others that depend on it look at.
    pub readiness: Readiness,
}

/// The part of a deployment's state that its dependents look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// Whether Ready is True for the current generation.
    pub is_ready: bool,
    /// `status.lastAppliedRevision`.
    pub revision: Option<String>,
}

impl Entry {
    /// Reads what is needed from an object as stored, however malformed the rest is.
    pub(crate) fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let namespace = text(&metadata["namespace"]).unwrap_or_default();
        let spec = &object["spec"];
        let status = &object["status"];
        let generation = metadata["generation"].as_i64().unwrap_or_default();
        let annotation = |key: &str| text(&metadata["annotations"][key]);
        let own = |name: &Value| text(name).map(|name| NamespacedName::new(&namespace, name));

        let credentials = ["git", "oci", "helm"]
            .into_iter()
            .flat_map(|kind| items(&spec["credentials"][kind]))
            .chain(items(&spec["helmCredentials"]))
            .map(|entry| &entry["secretRef"]["name"]);
        let secrets = [
            &spec["kubeConfig"]["secretRef"]["name"],
            &spec["source"]["secretRef"]["name"],
            &spec["decryption"]["secretRef"]["name"],
        ];
        let dependencies =
            items(&spec["dependsOn"]).filter(|entry| is_own_kind(entry)).filter_map(|entry| {
                let namespace = text(&entry["namespace"]).unwrap_or_else(|| namespace.clone());
                Some(NamespacedName::new(namespace, text(&entry["name"])?))
            });
        let is_ready = items(&status["conditions"])
            .any(|c| c["type"] == api::READY && c["status"] == "True")
            && status["observedGeneration"].as_i64() == Some(generation);
        Self {
            generation,
            requests: [REQUESTED_AT, DEPLOY_REQUESTED_AT, FORCE_AT].map(annotation),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
            is_suspended: spec["suspend"].as_bool().unwrap_or_default(),
            source: source_key(&spec["sourceRef"], &namespace),
            secrets: secrets.into_iter().chain(credentials).filter_map(own).collect(),
            dependencies: dependencies.collect(),
            readiness: Readiness { is_ready, revision: text(&status["lastAppliedRevision"]) },
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a `dependsOn` entry names a deployment of this group.
fn is_own_kind(entry: &Value) -> bool {
    let kind = entry["kind"].as_str().unwrap_or(api::KIND);
    let group = entry["apiVersion"].as_str().unwrap_or(api::API_VERSION);
    kind == api::KIND && group.split('/').next() == Some(api::GROUP)
}

fn source_key(reference: &Value, namespace: &str) -> Option<SourceKey> {
    let kind = reference["kind"].as_str()?;
    let kind = SourceKind::ALL.into_iter().find(|known| known.name() == kind)?;
    let namespace = text(&reference["namespace"]).unwrap_or_else(|| namespace.to_owned());
    Some(SourceKey { kind, name: NamespacedName::new(namespace, text(&reference["name"])?) })
}

/// What a change of a source can mean for those who use it. Conditions are left out on purpose: between two patches of one
/// run they speak of another revision than the artifact is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SourceState {
    /// Revision, digest and address of the artifact. The address alone changes when source-controller moves.
    artifact: Option<(String, Option<String>, String)>,
    /// Secret with the credentials of the repository.
    secret: Option<NamespacedName>,
}

/// Deployments, and who refers to what.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<NamespacedName, Entry>,
    by_source: HashMap<SourceKey, BTreeSet<NamespacedName>>,
    by_secret: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
    by_dependency: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
    /// Deployments by the Secrets that their variables are read from.
    by_reading: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
    /// Sources in use, as last seen.
    sources: HashMap<SourceKey, SourceState>,
    /// Resource versions of Secrets in use, as last seen.
    secrets: HashMap<NamespacedName, String>,
}

impl Index {
    /// Takes notice of a deployment. Returns the deployments to reconcile: itself when it is new, its spec or requests
    /// changed or its deletion began; and those that depend on it when its readiness changed.
    pub(crate) fn observe(&mut self, key: &NamespacedName, entry: Entry) -> Vec<NamespacedName> {
        let old = self.entries.get(key);
        let wakes_itself = old.is_none_or(|old| {
            old.generation != entry.generation
                || old.requests != entry.requests
                || old.is_deleting != entry.is_deleting
        });
        let wakes_others = old.is_some_and(|old| old.readiness != entry.readiness);
        // It may have closed a circle, or opened one.
        let wakes_all_behind = old.is_some_and(|old| old.dependencies != entry.dependencies);
        if old.is_none_or(|old| {
            old.source != entry.source
                || old.secrets != entry.secrets
                || old.dependencies != entry.dependencies
        }) {
            self.unlink(key);
            self.link(key, &entry);
        }
        self.entries.insert(key.clone(), entry);
        let mut woken = Vec::new();
        if wakes_itself {
            woken.push(key.clone());
        }
        if wakes_all_behind {
            woken.extend(self.all_behind(key));
        } else if wakes_others {
            woken.extend(self.by_dependency.get(key).into_iter().flatten().cloned());
        }
        woken
    }

    /// All deployments that depend on `key`, directly or through others.
    fn all_behind(&self, key: &NamespacedName) -> BTreeSet<NamespacedName> {
        let mut found = BTreeSet::new();
        let mut pending = vec![key];
        while let Some(key) = pending.pop() {
            for dependent in self.by_dependency.get(key).into_iter().flatten() {
                if found.insert(dependent.clone()) {
                    pending.push(dependent);
                }
            }
        }
        found.remove(key);
        found
    }

    /// Takes notice of a Secret that a deployment's variables are about to be read from.
    pub(crate) fn reads(&mut self, key: &NamespacedName, secret: &NamespacedName) {
        if self.entries.contains_key(key) {
            self.by_reading.entry(secret.clone()).or_default().insert(key.clone());
        }
    }

    /// Drops the Secrets that a deployment's variables are not read from any more.
    pub(crate) fn reads_only(&mut self, key: &NamespacedName, secrets: &BTreeSet<NamespacedName>) {
        let is_read = |secret: &NamespacedName| secrets.contains(secret);
        let old = self
            .by_reading
            .iter()
            .filter(|(secret, users)| !is_read(secret) && users.contains(key));
        let old: Vec<_> = old.map(|(secret, _)| secret.clone()).collect();
        for secret in old {
            if drop_user(&mut self.by_reading, &secret, key)
                && !self.by_secret.contains_key(&secret)
            {
                self.secrets.remove(&secret);
            }
        }
    }

    /// Forgets a deployment that is gone. Returns those that depend on it.
    pub(crate) fn remove(&mut self, key: &NamespacedName) -> Vec<NamespacedName> {
        self.reads_only(key, &BTreeSet::new());
        self.unlink(key);
        self.entries.remove(key);
        self.by_dependency.get(key).into_iter().flatten().cloned().collect()
    }

    /// Takes notice of a source, `None` when it was deleted. Returns the deployments to reconcile: those that use it, when
    /// its artifact is another one (or is served elsewhere).
    pub(crate) fn observe_source(
        &mut self,
        key: &SourceKey,
        source: Option<&FluxSource>,
    ) -> Vec<NamespacedName> {
        let Some(users) = self.by_source.get(key) else { return Vec::new() };
        let state = source.map(|source| SourceState {
            artifact: source.status.artifact.as_ref().map(identity),
            secret: source
                .spec
                .secret_ref
                .as_ref()
                .map(|secret| NamespacedName::new(&key.name.namespace, &secret.name)),
        });
        // What is deleted may have been there before anybody used it.
        if state.is_some() && self.sources.get(key) == state.as_ref() {
            return Vec::new();
        }
        match state {
            Some(state) => self.sources.insert(key.clone(), state),
            None => self.sources.remove(key),
        };
        self.awake(users)
    }

    /// Takes notice of a Secret, `None` when it was deleted. Returns the deployments to reconcile: those that refer to it,
    /// whose source does, or whose variables come from it, when it changed.
    pub(crate) fn observe_secret(
        &mut self,
        key: &NamespacedName,
        resource_version: Option<&str>,
    ) -> Vec<NamespacedName> {
        let direct = self.by_secret.get(key).into_iter().flatten();
        let by_source = self
            .sources
            .iter()
            .filter(|(_, state)| state.secret.as_ref() == Some(key))
            .filter_map(|(source, _)| self.by_source.get(source))
            .flatten();
        let by_reading = self.by_reading.get(key).into_iter().flatten();
        let users: BTreeSet<_> = direct.chain(by_source).chain(by_reading).cloned().collect();
        let known = self.secrets.get(key).map(String::as_str);
        // What is deleted may have been there before anybody referred to it.
        if users.is_empty() || (resource_version.is_some() && known == resource_version) {
            return Vec::new();
        }
        match resource_version {
            Some(version) => self.secrets.insert(key.clone(), version.to_owned()),
            None => self.secrets.remove(key),
        };
        self.awake(&users)
    }

    /// What is known about a deployment.
    pub(crate) fn get(&self, key: &NamespacedName) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All deployments.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &NamespacedName> {
        self.entries.keys()
    }

    /// Sources of a kind that are in use and were seen.
    pub(crate) fn sources_seen(&self, kind: SourceKind) -> impl Iterator<Item = &NamespacedName> {
        self.sources.keys().filter(move |key| key.kind == kind).map(|key| &key.name)
    }

    /// Secrets that are in use and were seen.
    pub(crate) fn secrets_seen(&self) -> impl Iterator<Item = &NamespacedName> {
        self.secrets.keys()
    }

    /// Of `users`, those that are not suspended.
    fn awake(&self, users: &BTreeSet<NamespacedName>) -> Vec<NamespacedName> {
        let is_awake =
            |key: &&NamespacedName| self.entries.get(*key).is_none_or(|e| !e.is_suspended);
        users.iter().filter(is_awake).cloned().collect()
    }

    fn link(&mut self, key: &NamespacedName, entry: &Entry) {
        if let Some(source) = &entry.source {
            self.by_source.entry(source.clone()).or_default().insert(key.clone());
        }
        for secret in &entry.secrets {
            self.by_secret.entry(secret.clone()).or_default().insert(key.clone());
        }
        for dependency in &entry.dependencies {
            self.by_dependency.entry(dependency.clone()).or_default().insert(key.clone());
        }
    }

    fn unlink(&mut self, key: &NamespacedName) {
        let Some(entry) = self.entries.get(key) else { return };
        if let Some(source) = &entry.source
            && drop_user(&mut self.by_source, source, key)
        {
            self.sources.remove(source);
        }
        for secret in &entry.secrets {
            if drop_user(&mut self.by_secret, secret, key) {
                self.secrets.remove(secret);
            }
        }
        for dependency in &entry.dependencies {
            drop_user(&mut self.by_dependency, dependency, key);
        }
    }
}

/// Removes one user of `what`; returns whether nobody is left.
fn drop_user<K: Eq + std::hash::Hash>(
    users: &mut HashMap<K, BTreeSet<NamespacedName>>,
    what: &K,
    user: &NamespacedName,
) -> bool {
    let Some(set) = users.get_mut(what) else { return false };
    set.remove(user);
    let is_empty = set.is_empty();
    if is_empty {
        users.remove(what);
    }
    is_empty
}

fn identity(artifact: &Artifact) -> (String, Option<String>, String) {
    (artifact.revision.clone(), artifact.digest(), artifact.url.clone())
}
