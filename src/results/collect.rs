//! Everything a run knows about objects, put together per object.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{BaseObject, Change, ResultObject};
use crate::{
    cluster::{LiveKey, LiveState},
    object::{Object, ObjectRef},
};

/// What a run knows about objects. Parts that do not apply stay empty.
#[derive(Debug, Default)]
pub struct Collected<'a> {
    /// Rendered objects.
    pub rendered: Vec<&'a Arc<Object>>,
    /// Live objects before the run.
    pub live: Option<&'a LiveState>,
    /// Objects as the API server returned them, with whether each is a hook and whether it is new.
    pub applied: Vec<AppliedObject>,
    /// Changes by object, the reference being that of the diff.
    pub changes: Vec<(ObjectRef, Vec<Change>)>,
    /// Objects that are no longer wanted.
    pub orphans: Vec<ObjectRef>,
    /// Objects that were deleted.
    pub deleted: Vec<ObjectRef>,
}

/// An object that was applied.
#[derive(Debug, Clone)]
pub struct AppliedObject {
    /// As returned.
    pub object: Arc<Object>,
    /// Whether it is a hook.
    pub hook: bool,
    /// Whether it was not there before.
    pub new: bool,
}

/// The reference under which an object appears in diffs: with the name of `kluctl.io/diff-name`, if set.
pub fn reference_for_diff(object: &Object) -> ObjectRef {
    let mut reference = object.reference();
    if let Some(name) = object.annotation("kluctl.io/diff-name") {
        name.clone_into(&mut reference.name);
    }
    reference
}

/// One entry per object concerned, sorted by group, version, kind, namespace and name. Objects that carry the discriminator
/// by accident (copied by a controller) and are neither wanted nor deleted are left out.
pub fn collect(parts: Collected<'_>) -> Vec<ResultObject> {
    let mut table = Table::default();
    for object in parts.rendered {
        table.entry(&reference_for_diff(object)).rendered = Some(object.clone());
    }
    let mut live_names = HashMap::new();
    for object in parts.live.into_iter().flat_map(LiveState::objects) {
        let reference = reference_for_diff(object);
        live_names.insert(LiveKey::from(&object.reference()), reference.clone());
        let entry = table.entry(&reference);
        if entry.remote.as_deref().is_none_or(|other| is_younger(object, other)) {
            entry.remote = Some(object.clone());
        }
    }
    for applied in parts.applied {
        let entry = table.entry(&reference_for_diff(&applied.object));
        entry.base.hook |= applied.hook;
        entry.base.new |= applied.new;
        entry.applied = Some(applied.object);
    }
    for (reference, changes) in parts.changes {
        let entry = table.entry(&reference);
        entry.base.new &= changes.is_empty();
        entry.base.changes = changes;
    }
    let mut deleted = HashSet::new();
    for reference in parts.deleted {
        let key = LiveKey::from(&reference);
        table.entry(live_names.get(&key).unwrap_or(&reference)).base.deleted = true;
        deleted.insert(key);
    }
    for reference in parts.orphans {
        let key = LiveKey::from(&reference);
        if !deleted.contains(&key) {
            table.entry(live_names.get(&key).unwrap_or(&reference)).base.orphan = true;
        }
    }
    table.into_objects()
}

/// Which of two live objects with one name for diffs is meant: the one created later, else the one with the greater name.
pub(crate) fn is_younger(object: &Object, other: &Object) -> bool {
    let created = |object: &Object| {
        let created = object.value()["metadata"]["creationTimestamp"].as_str();
        created.unwrap_or_default().to_owned()
    };
    (created(object), object.name()) > (created(other), other.name())
}

#[derive(Default)]
struct Table(BTreeMap<LiveKey, ResultObject>);

impl Table {
    fn entry(&mut self, reference: &ObjectRef) -> &mut ResultObject {
        self.0.entry(LiveKey::from(reference)).or_insert_with(|| ResultObject {
            base: BaseObject {
                reference: reference.clone(),
                changes: Vec::new(),
                new: false,
                orphan: false,
                deleted: false,
                hook: false,
            },
            rendered: None,
            remote: None,
            applied: None,
        })
    }

    fn into_objects(self) -> Vec<ResultObject> {
        let is_ours = |object: &ResultObject| {
            object.rendered.is_some()
                || object.applied.is_some()
                || object.base.deleted
                || object.base.orphan
        };
        let mut objects: Vec<_> = self.0.into_values().filter(is_ours).collect();
        objects.sort_by(|a, b| sort_key(&a.base.reference).cmp(&sort_key(&b.base.reference)));
        objects
    }
}

fn sort_key(reference: &ObjectRef) -> (&str, &str, &str, Option<&str>, &str) {
    let ObjectRef { group, version, kind, name, namespace } = reference;
    (group, version, kind, namespace.as_deref(), name)
}
