//! What the watches do with what they see: each tells [`State`] as much as it needs, and keeps nothing.

use std::{collections::BTreeSet, sync::Arc};

use kube::{api::DynamicObject, core::PartialObjectMeta};
use serde_json::Value;

use crate::{
    api::{FluxSource, GROUP, NamespacedName, SourceKind},
    controller::{
        metrics::Metrics,
        ownership::Bid,
        state::State,
        triggers::{Entry, SourceKey},
    },
};

/// What a watch does with what it sees.
pub(super) trait Seen<K> {
    /// All keys that are known, to find out what went while nobody watched.
    fn known(&self) -> BTreeSet<NamespacedName>;
    /// An object was listed, added or changed.
    fn seen(&self, key: &NamespacedName, object: K);
    /// An object is gone.
    fn gone(&self, key: &NamespacedName);
}

/// The object's JSON tree.
fn tree(object: DynamicObject) -> Value {
    let metadata = serde_json::to_value(&object.metadata).unwrap_or_default();
    let mut tree = object.data;
    tree["metadata"] = metadata;
    tree
}

pub(super) struct Deployments {
    pub(super) state: Arc<State>,
    pub(super) metrics: Arc<Metrics>,
    /// Whether no other watch tells of claims.
    pub(super) tells_claims: bool,
}

impl Seen<DynamicObject> for Deployments {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.keys()
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        let object = tree(object);
        self.state.observe(key, Entry::read(&object));
        if self.tells_claims {
            self.state.observe_claim(key, Bid::read(&object));
        }
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.remove(key);
        if self.tells_claims {
            self.state.observe_claim(key, None);
        }
        self.metrics.forget(key);
    }
}

/// Claims of KluctlDeployments, whoever reconciles them.
pub(super) struct OwnClaims {
    pub(super) state: Arc<State>,
}

impl Seen<DynamicObject> for OwnClaims {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.claimants(GROUP)
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        self.state.observe_claim(key, Bid::read(&tree(object)));
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.observe_claim(key, None);
    }
}

pub(super) struct Sources {
    pub(super) state: Arc<State>,
    pub(super) kind: SourceKind,
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

pub(super) struct Secrets {
    pub(super) state: Arc<State>,
}

impl Seen<PartialObjectMeta<DynamicObject>> for Secrets {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.secrets_in_use()
    }

    fn seen(&self, key: &NamespacedName, object: PartialObjectMeta<DynamicObject>) {
        self.state.observe_secret(key, object.metadata.resource_version.as_deref());
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.observe_secret(key, None);
    }
}

pub(super) struct Foreign {
    pub(super) state: Arc<State>,
}

impl Seen<DynamicObject> for Foreign {
    fn known(&self) -> BTreeSet<NamespacedName> {
        self.state.foreign_keys()
    }

    fn seen(&self, key: &NamespacedName, object: DynamicObject) {
        self.state.observe_foreign(key, Bid::read_foreign(&tree(object)));
    }

    fn gone(&self, key: &NamespacedName) {
        self.state.remove_foreign(key);
    }
}
