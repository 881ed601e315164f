use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    cluster::LiveState,
    deployment::Inclusion,
    object::{Object, ObjectRef},
};

fn config(name: &str, metadata: Value) -> Arc<Object> {
    let mut tree = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"},
        "data": {"x": "1"}});
    crate::object::merge(&mut tree["metadata"], metadata);
    Arc::new(Object::new(tree).unwrap())
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", Some("a"), name)
}

fn applied(object: &Arc<Object>, hook: bool, new: bool) -> AppliedObject {
    AppliedObject { object: object.clone(), hook, new }
}

fn result(objects: Vec<ResultObject>) -> CommandResult {
    let info = RunInfo { id: "1".into(), target_name: "prod".into(), ..RunInfo::default() };
    let now = "2026-01-02T03:04:05.6Z".parse().unwrap();
    let mut result = CommandResult::started("deploy", &info, &Inclusion::default(), now);
    result.objects = objects;
    result.errors = vec![DeploymentError::new(Some(reference("bad")), "no"); 2];
    result.warnings = vec![DeploymentError::new(None, "hm")];
    result.finish(now);
    result
}

#[test]
fn everything_about_an_object_is_put_together() {
    let (kept, new, hook, gone, orphan, foreign) = (
        config("kept", json!({})),
        config("new", json!({})),
        config("hook", json!({})),
        config("gone", json!({})),
        config("orphan", json!({})),
        config("foreign", json!({})),
    );
    let live = LiveState::of([&kept, &gone, &orphan, &foreign].map(Clone::clone));
    let change = Change {
        kind: ChangeKind::Update,
        json_path: "data.x".into(),
        old_value: Some(json!("0")),
        new_value: Some(json!("1")),
        unified_diff: "-0\n+1".into(),
    };
    let objects = collect(Collected {
        rendered: vec![&kept, &new, &hook],
        live: Some(&live),
        applied: vec![
            applied(&kept, false, false),
            applied(&new, false, true),
            applied(&hook, true, false),
        ],
        changes: vec![(reference("kept"), vec![change])],
        orphans: vec![reference("orphan"), reference("gone")],
        deleted: vec![reference("gone")],
    });
    let shown: Vec<_> = objects
        .iter()
        .map(|object| {
            let base = &object.base;
            let flags = [
                (base.new, "new"),
                (base.orphan, "orphan"),
                (base.deleted, "deleted"),
                (base.hook, "hook"),
                (!base.changes.is_empty(), "changed"),
            ];
            let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name);
            (base.reference.name.as_str(), flags.collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("gone", vec!["deleted"]),
            ("hook", vec!["hook"]),
            ("kept", vec!["changed"]),
            ("new", vec!["new"]),
            ("orphan", vec!["orphan"]),
        ]
    );
    let summary = result(objects).summary();
    assert_eq!(
        (summary.rendered_objects, summary.remote_objects, summary.applied_objects),
        (3, 3, 3)
    );
    assert_eq!((summary.new_objects, summary.changed_objects, summary.total_changes), (1, 1, 1));
    assert_eq!((summary.orphan_objects, summary.deleted_objects), (1, 1));
}

#[test]
fn objects_with_a_name_for_diffs_share_an_entry() {
    let named = |name: &str, created: &str| {
        config(
            name,
            json!({"creationTimestamp": created, "annotations": {"kluctl.io/diff-name": "job"}}),
        )
    };
    let (old, older) =
        (named("job-1", "2026-01-02T00:00:00Z"), named("job-0", "2026-01-01T00:00:00Z"));
    let new = named("job-2", "2026-01-03T00:00:00Z");
    let live = LiveState::of([older, old.clone()]);
    let objects = collect(Collected {
        rendered: vec![&new],
        live: Some(&live),
        applied: vec![applied(&new, false, true)],
        ..Collected::default()
    });
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0].base.reference.name, "job");
    assert_eq!(objects[0].remote.as_deref(), Some(&*old));
}

#[test]
fn the_wire_format_is_the_references() {
    let object = config("x", json!({}));
    let objects = collect(Collected {
        rendered: vec![&object],
        applied: vec![applied(&object, false, true)],
        ..Collected::default()
    });
    let result = result(objects);
    let wire = serde_json::to_value(&result).unwrap();
    let tree = object.value().clone();
    let configmap = json!({"version": "v1", "kind": "ConfigMap", "name": "x", "namespace": "a"});
    let expected = json!({
        "id": "1", "reconcileId": "", "projectKey": {"repoKey": ""}, "targetKey": {"clusterId": ""}, "target": null,
        "command": {"initiator": "CommandLine", "startTime": "2026-01-02T03:04:05Z", "endTime": "2026-01-02T03:04:05Z",
            "command": "deploy"},
        "gitInfo": {"url": null, "ref": null, "subDir": "", "commit": "", "dirty": false},
        "clusterInfo": {"clusterId": ""},
        "objects": [{"ref": configmap, "new": true, "rendered": tree, "applied": tree}],
        "errors": [{"ref": {"version": "v1", "kind": "ConfigMap", "name": "bad", "namespace": "a"}, "message": "no"}],
        "warnings": [{"ref": {"kind": "", "name": ""}, "message": "hm"}],
    });
    assert_eq!(wire, expected);
    let back: CommandResult = serde_json::from_value(wire).unwrap();
    assert_eq!(back, result);
    let summary = serde_json::to_value(result.summary()).unwrap();
    assert_eq!(summary["commandInfo"]["command"], "deploy");
    assert_eq!(summary["newObjects"], 1);
}

#[test]
fn reduced_results_keep_identity_labels_and_annotations() {
    let object = config("x", json!({"labels": {"l": "1"}, "annotations": {}, "uid": "u"}));
    let objects = collect(Collected { rendered: vec![&object], ..Collected::default() });
    let reduced = result(objects).reduced();
    assert_eq!(
        reduced.objects[0].rendered.as_ref().unwrap().value(),
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a", "labels": {"l": "1"}}})
    );
}

#[test]
fn failures_and_survivors_are_told_apart() {
    let outcome = |operation, state| ObjectOutcome { reference: reference("x"), operation, state };
    let mut result = result(Vec::new());
    result.errors.clear();
    assert!(result.is_success());
    result.outcomes = vec![
        outcome(Operation::Apply, OutcomeState::Done),
        outcome(Operation::Prune, OutcomeState::Accepted { message: "going".into() }),
    ];
    assert!(result.is_success(), "accepted deletions are no failures");
    assert_eq!(result.survivors().count(), 1);
    result.outcomes.extend([
        outcome(Operation::Apply, OutcomeState::NotAttempted { reason: "cut".into() }),
        outcome(Operation::Prune, OutcomeState::Failed { message: "no".into() }),
    ]);
    assert!(!result.is_success());
    let problems: Vec<_> = result.failures().filter_map(ObjectOutcome::problem).collect();
    assert_eq!(problems, ["cut", "no"]);
    assert_eq!(result.survivors().count(), 2);
}

#[test]
fn validation_is_ready_only_without_errors() {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut validated = ValidateResult::started(&RunInfo::default(), now);
    validated.finish(now);
    assert!(validated.ready);
    validated.errors.push(DeploymentError::new(None, "no"));
    validated.finish(now);
    assert!(!validated.ready);
    assert_eq!(validated.summary().errors, 1);
}
