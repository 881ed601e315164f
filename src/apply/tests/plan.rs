use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    apply::{ApplyPlan, plan},
    cluster::{ApiKind, Discovery, LiveState},
    deployment::{DesiredItem, DesiredState},
    object::{Object, ObjectRef},
    schema::ObjectSelector,
};

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Arc<Object> {
    let mut tree = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    crate::object::merge(&mut tree, rest);
    Arc::new(Object::new(tree).unwrap())
}

fn config(name: &str, annotations: &Value) -> Arc<Object> {
    object(
        "v1",
        "ConfigMap",
        name,
        json!({"metadata": {"namespace": "a", "annotations": annotations}}),
    )
}

fn kind(group: &str, kind: &str, namespaced: bool) -> ApiKind {
    ApiKind {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
        ..ApiKind::namespace()
    }
}

fn kinds() -> Discovery {
    Discovery::of([
        kind("", "ConfigMap", true),
        kind("", "Pod", true),
        kind("batch", "Job", true),
        ApiKind::namespace(),
    ])
}

fn item(objects: Vec<Arc<Object>>) -> DesiredItem {
    DesiredItem { dir: "x".into(), objects, ..DesiredItem::default() }
}

fn planned(items: Vec<DesiredItem>, live: Vec<Arc<Object>>) -> ApplyPlan {
    let desired = DesiredState {
        items,
        discriminator: None,
        inclusion: crate::deployment::Inclusion::default(),
        objects_hash: String::new(),
        images: Vec::new(),
        warnings: Vec::new(),
    };
    plan(&desired, &LiveState::of(live), &kinds())
}

fn names<'a>(references: impl IntoIterator<Item = &'a ObjectRef>) -> Vec<String> {
    references.into_iter().map(ToString::to_string).collect()
}

#[test]
fn an_item_has_deletions_hooks_objects_and_waits() {
    let objects = vec![
        config("late", &json!({"kluctl.io/hook": "post-deploy", "kluctl.io/hook-weight": "5"})),
        config("main", &json!({"kluctl.io/wait-readiness": "true"})),
        config("gone", &json!({"kluctl.io/delete": "true"})),
        config("early", &json!({"kluctl.io/hook": "pre-deploy"})),
        config("first", &json!({"kluctl.io/hook": "post-deploy-initial"})),
        config("odd", &json!({"kluctl.io/hook": "whenever"})),
    ];
    let plan = planned(vec![item(objects.clone())], Vec::new());
    let first = &plan.items[0];
    assert_eq!(names(&first.deletes), ["a/ConfigMap/gone"]);
    assert_eq!(names(first.applies.iter().map(|object| &object.reference)), ["a/ConfigMap/main"]);
    assert_eq!(names(&first.waits), ["a/ConfigMap/main"]);
    let hooks = |hooks: &[crate::apply::PlannedHook]| {
        names(hooks.iter().map(|hook| &hook.target.reference))
    };
    assert_eq!(hooks(&first.pre_hooks), ["a/ConfigMap/early"]);
    assert_eq!(hooks(&first.post_hooks), ["a/ConfigMap/first", "a/ConfigMap/late"]);
    assert_eq!(first.remarks.len(), 1);
    assert!(first.remarks[0].is_error);

    // Any object of the item that exists makes it an upgrade.
    let upgrade = planned(vec![item(objects.clone())], vec![objects[1].clone()]);
    assert_eq!(hooks(&upgrade.items[0].post_hooks), ["a/ConfigMap/late"]);
    assert!(upgrade.items[0].applies[0].live.is_some());
}

#[test]
fn namespaces_and_definitions_go_first_and_the_rest_keeps_its_order() {
    let crd = object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.example.com",
        json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}}}),
    );
    let widget =
        |name| object("example.com/v1", "Widget", name, json!({"metadata": {"namespace": "n"}}));
    let namespace = object("v1", "Namespace", "n", json!({}));
    let later = item(vec![widget("z")]);
    let early = item(vec![widget("early")]);
    let all = item(vec![widget("b"), crd, widget("a"), namespace]);
    let plan = planned(vec![early, all, later], Vec::new());
    let order = plan.items[1].applies.iter().map(|object| &object.reference);
    assert_eq!(
        names(order),
        ["Namespace/n", "CustomResourceDefinition/widgets.example.com", "n/Widget/b", "n/Widget/a"]
    );
    assert_eq!(plan.providers, 2);
    let depends = |item: usize, at: usize| {
        let object = &plan.items[item].applies[at];
        (object.kind_from.is_some(), object.namespace_from.is_some())
    };
    assert_eq!(depends(0, 0), (false, false), "an earlier item cannot wait for a later one");
    assert_eq!(depends(1, 2), (true, true));
    assert_eq!(depends(2, 0), (true, true));
    assert_eq!(plan.items[1].applies[0].provides, plan.items[2].applies[0].namespace_from);
}

#[test]
fn selectors_match_kinds_by_group_and_kind() {
    let selector = |group: Option<&str>, kind: Option<&str>| ObjectSelector {
        group: group.map(Into::into),
        kind: kind.map(Into::into),
        name: "x".into(),
        namespace: Some("a".into()),
    };
    let mut item = item(Vec::new());
    item.delete_objects =
        vec![selector(Some("batch"), Some("Job")), selector(Some("nowhere"), None)];
    item.wait_readiness_objects = vec![selector(Some(""), None), selector(None, Some("Widget"))];
    let plan = planned(vec![item], Vec::new());
    assert_eq!(names(&plan.items[0].deletes), ["a/Job/x"]);
    assert_eq!(plan.items[0].late_deletes.len(), 1);
    assert_eq!(names(&plan.items[0].waits), ["a/ConfigMap/x", "a/Pod/x", "Namespace/x"]);
    assert_eq!(plan.items[0].late_waits.len(), 1);
    assert!(!plan.is_empty());
}

#[test]
fn namespaces_follow_the_scope_of_the_kind() {
    let bare = object("v1", "ConfigMap", "bare", json!({}));
    let scoped = object("v1", "Namespace", "n", json!({"metadata": {"namespace": "odd"}}));
    let plan = planned(vec![item(vec![bare, scoped])], Vec::new());
    let order = plan.items[0].applies.iter().map(|object| &object.reference);
    assert_eq!(names(order), ["Namespace/n", "default/ConfigMap/bare"]);
}

#[test]
fn nothing_to_do_is_an_empty_plan() {
    assert!(
        planned(vec![DesiredItem { barrier: true, ..DesiredItem::default() }], Vec::new())
            .is_empty()
    );
}
