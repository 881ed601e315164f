//! What applying a desired state takes, before anything is sent.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    cluster::{Discovery, LiveKey, LiveState},
    deployment::{DesiredItem, DesiredState},
    hooks::{Hook, Stage, hook_of, select},
    object::{Object, ObjectRef, annotations, order::apply_rank},
    schema::ObjectSelector,
};

/// The plan of a run: one entry per item, in order.
#[derive(Debug, Default)]
pub struct ApplyPlan {
    /// Items in the order in which they start.
    pub items: Vec<ItemPlan>,
    /// Number of namespaces and definitions of kinds in this run, which others may depend on.
    pub providers: usize,
}

/// The plan of one item, in the order in which its parts run.
#[derive(Debug, Default)]
pub struct ItemPlan {
    /// Directory of the item, or what it does when it has none.
    pub name: String,
    /// Objects to delete first.
    pub deletes: Vec<ObjectRef>,
    /// Entries of `deleteObjects` whose kinds are not known yet.
    pub late_deletes: Vec<ObjectSelector>,
    /// Hooks before the objects.
    pub pre_hooks: Vec<PlannedHook>,
    /// Objects to apply, one after the other.
    pub applies: Vec<PlannedObject>,
    /// Objects to wait for.
    pub waits: Vec<ObjectRef>,
    /// Entries of `waitReadinessObjects` whose kinds are not known yet.
    pub late_waits: Vec<ObjectSelector>,
    /// Hooks after the objects.
    pub post_hooks: Vec<PlannedHook>,
    /// Whether all items so far must finish before the next one starts.
    pub barrier: bool,
    /// Shown when the barrier is reached.
    pub message: Option<String>,
    /// What is wrong with the item's hooks.
    pub remarks: Vec<PlanRemark>,
}

/// Something to report about a planned object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRemark {
    /// The object.
    pub reference: ObjectRef,
    /// What to know.
    pub message: String,
    /// Whether it is an error.
    pub is_error: bool,
}

/// One object to apply.
#[derive(Debug, Clone)]
pub struct PlannedObject {
    /// As rendered.
    pub object: Arc<Object>,
    /// Its reference, with the namespace that its kind asks for.
    pub reference: ObjectRef,
    /// As found in the cluster.
    pub live: Option<Arc<Object>>,
    /// Which provider creates its namespace.
    pub namespace_from: Option<usize>,
    /// Which provider defines its kind.
    pub kind_from: Option<usize>,
    /// Which provider it is itself.
    pub provides: Option<usize>,
}

impl PlannedObject {
    /// Whether it must not be deleted.
    pub fn is_kept(&self) -> bool {
        annotations::is_skip_delete(&self.object)
            || self.live.as_deref().is_some_and(annotations::is_skip_delete)
    }
}

/// One hook to run.
#[derive(Debug, Clone)]
pub struct PlannedHook {
    /// The object.
    pub target: PlannedObject,
    /// How it acts.
    pub hook: Hook,
}

impl ApplyPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.items.iter().all(|item| {
            item.deletes.is_empty()
                && item.late_deletes.is_empty()
                && item.pre_hooks.is_empty()
                && item.applies.is_empty()
                && item.waits.is_empty()
                && item.late_waits.is_empty()
                && item.post_hooks.is_empty()
        })
    }
}

/// Plans a run (kluctl 2.28).
///
/// Objects of an item keep their order, except that namespaces and definitions of kinds go first. Hooks are chosen by
/// whether any object of the item exists already.
pub fn plan(desired: &DesiredState, live: &LiveState, kinds: &Discovery) -> ApplyPlan {
    let providers = Providers::of(desired);
    let planner = Planner { live, kinds, providers };
    let items = desired.items.iter().enumerate().map(|(index, item)| planner.item(index, item));
    ApplyPlan { items: items.collect(), providers: planner.providers.count }
}

/// The object a selector names in every kind it matches; empty when no kind matches.
pub fn selected(selector: &ObjectSelector, kinds: &Discovery) -> Vec<ObjectRef> {
    let matching = kinds.matching(selector.group.as_deref(), selector.kind.as_deref());
    let references = matching.map(|kind| {
        let namespace = selector.namespace.as_deref();
        kinds.complete(ObjectRef::new(&kind.api_version(), &kind.kind, namespace, &selector.name))
    });
    references.collect()
}

/// Who creates which namespace and defines which kind.
#[derive(Default)]
struct Providers {
    namespaces: HashMap<String, (usize, usize)>,
    kinds: HashMap<(String, String), (usize, usize)>,
    count: usize,
}

impl Providers {
    fn of(desired: &DesiredState) -> Self {
        let mut found = Self::default();
        for (index, item) in desired.items.iter().enumerate() {
            // Hooks are no providers: objects before them would wait for what comes later.
            let is_applied = |object: &&Arc<Object>| {
                !annotations::is_delete(object) && hook_of(object).0.is_none()
            };
            for object in item.objects.iter().filter(is_applied) {
                let slot = (index, found.count);
                // What is there twice counts where it comes first.
                let kept = if is_namespace(object) {
                    *found.namespaces.entry(object.name().to_owned()).or_insert(slot)
                } else if let Some(kind) = defined_kind(object) {
                    *found.kinds.entry(kind).or_insert(slot)
                } else {
                    continue;
                };
                found.count += usize::from(kept == slot);
            }
        }
        found
    }

    /// The provider of an object's namespace, when it is applied by `last_item` at the latest.
    fn namespace_of(&self, reference: &ObjectRef, last_item: Option<usize>) -> Option<usize> {
        early_enough(self.namespaces.get(reference.namespace.as_deref()?), last_item)
    }

    fn kind_of(&self, reference: &ObjectRef, last_item: Option<usize>) -> Option<usize> {
        let key = (reference.group.clone(), reference.kind.clone());
        early_enough(self.kinds.get(&key), last_item)
    }

    /// The slot of an object that is a provider.
    fn slot_of(&self, object: &Object) -> Option<usize> {
        let found = if is_namespace(object) {
            self.namespaces.get(object.name())
        } else {
            self.kinds.get(&defined_kind(object)?)
        };
        found.map(|(_, slot)| *slot)
    }
}

fn is_namespace(object: &Object) -> bool {
    object.kind() == "Namespace" && object.api_version() == "v1"
}

/// Group and kind that a definition defines.
fn defined_kind(object: &Object) -> Option<(String, String)> {
    let is_definition = object.kind() == "CustomResourceDefinition"
        && object.api_version().starts_with("apiextensions.k8s.io/");
    let spec = &object.value()["spec"];
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    is_definition.then(|| Some((text(&spec["group"])?, text(&spec["names"]["kind"])?))).flatten()
}

/// Items start in order, so one may wait for an earlier one but never for a later one.
fn early_enough(found: Option<&(usize, usize)>, last_item: Option<usize>) -> Option<usize> {
    let (item, slot) = found?;
    last_item.is_some_and(|last| *item <= last).then_some(*slot)
}

struct Planner<'a> {
    live: &'a LiveState,
    kinds: &'a Discovery,
    providers: Providers,
}

impl Planner<'_> {
    fn item(&self, index: usize, item: &DesiredItem) -> ItemPlan {
        let mut plan = ItemPlan {
            name: name_of(item),
            barrier: item.barrier,
            message: item.message.clone(),
            ..ItemPlan::default()
        };
        let references: Vec<_> =
            item.objects.iter().map(|object| self.kinds.complete(object.reference())).collect();
        (plan.deletes, plan.late_deletes) = self.select_all(&item.delete_objects);
        let marked = item.objects.iter().zip(&references);
        let marked = marked.filter(|(object, _)| annotations::is_delete(object));
        plan.deletes.extend(marked.map(|(_, reference)| reference.clone()));
        (plan.waits, plan.late_waits) = self.select_all(&item.wait_readiness_objects);

        let doomed: HashSet<LiveKey> = plan.deletes.iter().map(LiveKey::from).collect();
        let hooks = hooks(item, &references, &mut plan.remarks);
        let hook_positions: HashSet<usize> = hooks.iter().map(|(position, _)| *position).collect();
        let mut normal: Vec<usize> = (0..item.objects.len())
            .filter(|position| {
                !hook_positions.contains(position)
                    && !doomed.contains(&LiveKey::from(&references[*position]))
            })
            .collect();
        normal.sort_by_key(|position| {
            let reference = &references[*position];
            apply_rank(&reference.group, &reference.kind)
        });
        let object = |position: usize, last: Option<usize>| {
            self.object(&item.objects[position], &references[position], last)
        };
        let waited = normal.iter().filter(|position| {
            item.wait_readiness || annotations::is_wait_readiness(&item.objects[**position])
        });
        plan.waits.extend(waited.map(|position| references[*position].clone()));
        dedup(&mut plan.deletes);
        dedup(&mut plan.waits);
        plan.applies = normal.iter().map(|position| object(*position, Some(index))).collect();
        let initial = references.iter().all(|reference| self.live.get(reference).is_none());
        let hooks_at = |stage, last| {
            let selected = select(&hooks, stage, initial).into_iter();
            let planned = selected
                .map(|(position, hook)| PlannedHook { target: object(position, last), hook });
            planned.collect()
        };
        plan.pre_hooks = hooks_at(Stage::Pre, index.checked_sub(1));
        plan.post_hooks = hooks_at(Stage::Post, Some(index));
        plan
    }

    fn object(
        &self,
        object: &Arc<Object>,
        reference: &ObjectRef,
        last_item: Option<usize>,
    ) -> PlannedObject {
        let provides = self.providers.slot_of(object);
        PlannedObject {
            namespace_from: self.providers.namespace_of(reference, last_item),
            kind_from: self.providers.kind_of(reference, last_item),
            provides,
            live: self.live.get(reference).cloned(),
            reference: reference.clone(),
            object: object.clone(),
        }
    }

    /// The objects that selectors name, and the selectors that match no kind.
    fn select_all(&self, selectors: &[ObjectSelector]) -> (Vec<ObjectRef>, Vec<ObjectSelector>) {
        let (mut references, mut late) = (Vec::new(), Vec::new());
        for selector in selectors {
            let found = selected(selector, self.kinds);
            if found.is_empty() {
                late.push(selector.clone());
            }
            references.extend(found);
        }
        (references, late)
    }
}

fn name_of(item: &DesiredItem) -> String {
    let name = match item.dir.as_str() {
        "" if !item.delete_objects.is_empty() => "<delete>",
        "" if !item.wait_readiness_objects.is_empty() => "<wait>",
        "" => "<barrier>",
        dir => dir,
    };
    name.to_owned()
}

/// The hooks of an item with their positions, and what is wrong with them.
fn hooks(
    item: &DesiredItem,
    references: &[ObjectRef],
    remarks: &mut Vec<PlanRemark>,
) -> Vec<(usize, Hook)> {
    let mut hooks = Vec::new();
    for (position, object) in item.objects.iter().enumerate() {
        let (hook, problems) = hook_of(object);
        hooks.extend(hook.map(|hook| (position, hook)));
        remarks.extend(problems.into_iter().map(|problem| PlanRemark {
            reference: references[position].clone(),
            message: problem.message,
            is_error: problem.is_error,
        }));
    }
    hooks
}

fn dedup(references: &mut Vec<ObjectRef>) {
    let mut seen = HashSet::new();
    references.retain(|reference| seen.insert(LiveKey::from(reference)));
}
