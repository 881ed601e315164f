//! Which objects go, and which stay although nobody wants them.

use std::collections::{HashMap, HashSet};

use crate::{
    cluster::{Discovery, FIELD_MANAGER, LiveKey, LiveState},
    deployment::{DesiredState, Inclusion},
    object::{Object, ObjectRef, annotations, order::delete_rank},
};

/// Pruning and deleting need a discriminator: nothing else tells whose objects are whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the target has no discriminator, and without one nothing tells which objects belong to it"
)]
pub struct NoDiscriminator;

/// What is wanted in the cluster. It comes from a complete desired state, or is nothing at all.
#[derive(Debug, Default)]
pub struct Wanted {
    objects: HashSet<LiveKey>,
    namespaces: HashSet<String>,
}

impl Wanted {
    /// Nothing is wanted: the whole deployment goes.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The objects of a deployment.
    pub fn of(desired: &DesiredState, kinds: &Discovery) -> Self {
        let mut wanted = Self::default();
        for object in desired.objects() {
            let reference = kinds.complete(object.reference());
            wanted.objects.insert(LiveKey::from(&reference));
            if !annotations::is_delete(object) {
                wanted.namespaces.extend(reference.namespace);
            }
        }
        wanted
    }
}

/// An object that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedDeletion {
    /// The object.
    pub reference: ObjectRef,
    /// The UID it had when it was planned, so that nothing else of its name is deleted.
    pub uid: Option<String>,
}

/// An object that stays although it is not wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptObject {
    /// The object.
    pub reference: ObjectRef,
    /// Why it stays.
    pub reason: String,
}

/// What pruning would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// Deletions in the order in which they are made.
    pub deletions: Vec<PlannedDeletion>,
    /// Protected objects.
    pub kept: Vec<KeptObject>,
}

impl PrunePlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.deletions.is_empty()
    }
}

/// Owned − desired − protected, inside the inclusion filters.
///
/// Owned is what carries the discriminator, was applied by manager `kluctl` and has no owner (or is marked
/// `kluctl.io/force-managed`). Protected is what is marked to be kept, what `kluctl.io/skip-delete-if-tags` keeps while the
/// run is restricted by tags, and a namespace that still holds something that stays.
///
/// # Errors
/// Without a discriminator.
pub fn plan(
    live: &LiveState,
    wanted: &Wanted,
    discriminator: Option<&str>,
    inclusion: &Inclusion,
) -> Result<PrunePlan, NoDiscriminator> {
    let discriminator = discriminator.filter(|text| !text.is_empty()).ok_or(NoDiscriminator)?;
    let by_tags = !inclusion.include_tags.is_empty() || !inclusion.exclude_tags.is_empty();
    let mut plan = PrunePlan::default();
    // Per namespace, something in it that stays.
    let mut held: HashMap<String, String> = HashMap::new();
    let mut objects: Vec<_> = live
        .objects()
        .filter(|object| annotations::discriminator(object) == Some(discriminator))
        .map(|object| (object.reference(), object))
        .collect();
    objects.sort_by(|(a, _), (b, _)| sort_key(a).cmp(&sort_key(b)));
    for (reference, object) in objects {
        if !is_owned(object) {
            continue;
        }
        let is_meant = !wanted.objects.contains(&LiveKey::from(&reference))
            && inclusion.includes(&annotations::tags(object), annotations::item_dir(object));
        let stays = if is_meant { protection(object, by_tags).map(Some) } else { Some(None) };
        let Some(reason) = stays else {
            let uid = object.value()["metadata"]["uid"].as_str().map(str::to_owned);
            plan.deletions.push(PlannedDeletion { reference, uid });
            continue;
        };
        if let Some(namespace) = &reference.namespace {
            held.entry(namespace.clone()).or_insert_with(|| reference.to_string());
        }
        if let Some(reason) = reason {
            plan.kept.push(KeptObject { reference, reason: reason.to_owned() });
        }
    }
    keep_namespaces(&mut plan, wanted, &held);
    Ok(plan)
}

fn sort_key(reference: &ObjectRef) -> (u8, &str, &str, Option<&str>, &str) {
    let (group, kind, namespace, name) = reference.key();
    (delete_rank(group, kind), group, kind, namespace, name)
}

/// Why an unwanted object is not deleted.
fn protection(object: &Object, by_tags: bool) -> Option<&'static str> {
    if annotations::is_skip_delete(object) {
        Some("marked to be kept (kluctl.io/skip-delete or helm.sh/resource-policy)")
    } else if by_tags && annotations::is_skip_delete_if_tags(object) {
        Some("kept while the run is restricted by tags (kluctl.io/skip-delete-if-tags)")
    } else {
        None
    }
}

/// Whether a live object was applied by us and belongs to nobody else. Controllers copy labels to the objects they make, so
/// the discriminator alone does not tell.
fn is_owned(object: &Object) -> bool {
    if annotations::is_force_managed(object) {
        return true;
    }
    let list = |key: &str| object.value()["metadata"][key].as_array();
    let has_owner = list("ownerReferences").is_some_and(|owners| !owners.is_empty());
    let mut managers = list("managedFields").into_iter().flatten();
    !has_owner && managers.any(|entry| entry["manager"] == FIELD_MANAGER)
}

/// Deleting a namespace deletes what is in it, so one that holds something that stays has to stay, too.
fn keep_namespaces(plan: &mut PrunePlan, wanted: &Wanted, held: &HashMap<String, String>) {
    let kept = &mut plan.kept;
    plan.deletions.retain(|deletion| {
        let reference = &deletion.reference;
        if !reference.group.is_empty() || reference.kind != "Namespace" {
            return true;
        }
        let reason = match held.get(&reference.name) {
            Some(object) => format!("still holds {object}, which stays"),
            None if wanted.namespaces.contains(&reference.name) => {
                "the deployment has objects in it".to_owned()
            }
            None => return true,
        };
        kept.push(KeptObject { reference: reference.clone(), reason });
        false
    });
}
