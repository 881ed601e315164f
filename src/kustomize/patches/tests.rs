use serde_json::{Value, json};

use super::*;
use crate::kustomize::{schema::Schema, styles::Styles};

/// Merges a patch into the specification of a Deployment's pods.
fn merge_pod(target: Value, patch: Value) -> Result<Value, Problem> {
    let wrap = |pod: Value| json!({"spec": {"template": {"spec": pod}}});
    let merged = merge_deployment(wrap(target), &wrap(patch))?;
    Ok(merged["spec"]["template"]["spec"].clone())
}

fn merge_deployment(mut target: Value, patch: &Value) -> Result<Value, Problem> {
    let schema = Schema::builtin();
    let styles = Pair { target: Styles::new(None), patch: Styles::new(None) };
    let kept =
        strategic_merge::merge(&mut target, patch, schema.kind("apps/v1", "Deployment"), &styles)?;
    Ok(if kept { target } else { Value::Null })
}

#[test]
fn mappings_merge_and_null_deletes() {
    let target = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": null});
    let patch = json!({"a": null, "b": {"c": 4}, "f": {"g": null, "h": 5}});
    assert_eq!(
        merge_pod(target, patch).unwrap(),
        json!({"b": {"c": 4, "d": 3}, "e": null, "f": {"h": 5}})
    );
}

#[test]
fn items_of_the_patch_come_first_with_one_key() {
    let target = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]});
    let patch = json!({"containers": [{"name": "new"}, {"name": "c", "image": "2"}]});
    assert_eq!(
        merge_pod(target, patch).unwrap()["containers"],
        json!([{"name": "new"}, {"name": "c", "image": "2"}, {"name": "a", "image": "1"}, {"name": "b"}])
    );
}

#[test]
fn only_new_items_come_first_with_several_keys() {
    let ports = |ports: Value| json!({"containers": [{"name": "a", "ports": ports}]});
    let target = ports(
        json!([{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1, "protocol": "UDP"}]),
    );
    let patch = ports(json!([
        {"containerPort": 1, "protocol": "UDP", "name": "u"},
        {"containerPort": 2, "protocol": "TCP"},
    ]));
    assert_eq!(
        merge_pod(target, patch).unwrap()["containers"][0]["ports"],
        json!([
            {"containerPort": 2, "protocol": "TCP"},
            {"containerPort": 1, "protocol": "TCP"},
            {"containerPort": 1, "protocol": "UDP", "name": "u"},
        ])
    );
}

#[test]
fn directives_delete_and_replace() {
    let target = json!({
        "containers": [{"name": "a"}, {"name": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}],
        "affinity": {"x": 1},
        "securityContext": {"runAsUser": 1, "fsGroup": 2},
    });
    let patch = json!({
        "containers": [{"name": "a", "$patch": "delete"}],
        "volumes": [{"$patch": "replace"}, {"name": "z"}],
        "affinity": {"$patch": "delete"},
        "securityContext": {"$patch": "replace", "fsGroup": 3},
    });
    assert_eq!(
        merge_pod(target, patch).unwrap(),
        json!({"containers": [{"name": "b"}], "volumes": [{"name": "z"}], "securityContext": {"fsGroup": 3}})
    );
    let whole = merge_deployment(json!({"spec": {}}), &json!({"$patch": "delete"})).unwrap();
    assert_eq!(whole, Value::Null);
}

#[test]
fn directives_about_other_fields_follow_the_specification() {
    let target = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"strategy": {"type": "R", "rollingUpdate": {}}}});
    let patch = json!({
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]},
        "spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
    });
    assert_eq!(
        merge_deployment(target, &patch).unwrap(),
        json!({"metadata": {"finalizers": ["b"]}, "spec": {"strategy": {"type": "Recreate"}}})
    );
    let target = json!({"containers": [{"name": "a"}, {"name": "x"}, {"name": "b"}]});
    let patch = json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "i"}]});
    let merged = merge_pod(target, patch).unwrap();
    assert_eq!(
        merged["containers"],
        json!([{"name": "b"}, {"name": "x"}, {"name": "a", "image": "i"}])
    );
    assert!(merged.get("$setElementOrder/containers").is_none());
}

#[test]
fn lists_without_keys_are_replaced() {
    let target =
        json!({"tolerations": [{"key": "a"}], "containers": [{"name": "a", "args": ["x"]}]});
    let patch = json!({"tolerations": [{"key": "b", "x": null}], "containers": [{"name": "a", "args": []}]});
    assert_eq!(
        merge_pod(target, patch).unwrap(),
        json!({"tolerations": [{"key": "b", "x": null}], "containers": [{"name": "a", "args": []}]})
    );
}

#[test]
fn a_key_that_one_side_leaves_out_fits() {
    let ports = |ports: Value| json!({"containers": [{"name": "a", "ports": ports}]});
    let merged = merge_pod(
        ports(json!([{"containerPort": 1, "protocol": "TCP"}])),
        ports(json!([{"containerPort": 1, "name": "p"}])),
    );
    assert_eq!(
        merged.unwrap()["containers"][0]["ports"],
        json!([{"containerPort": 1, "protocol": "TCP", "name": "p"}])
    );
}

#[test]
fn numbers_in_place_of_quoted_texts_become_texts() {
    let env = |value: Value| json!({"containers": [{"name": "a", "env": [{"name": "E", "value": value}]}]});
    let merged = merge_pod(env(json!("1")), env(json!(2))).unwrap();
    assert_eq!(merged["containers"][0]["env"][0]["value"], "2");
    let merged = merge_pod(env(json!("http")), env(json!(8080))).unwrap();
    assert_eq!(merged["containers"][0]["env"][0]["value"], 8080);
}

#[test]
fn items_without_key_are_added_where_no_others_are() {
    let patch = json!({"containers": [{"image": "x"}]});
    assert_eq!(merge_pod(json!({}), patch.clone()).unwrap(), patch);
}

#[test]
fn misfits_name_their_field() {
    for (target, patch, field, message) in [
        (
            json!({"containers": {}}),
            json!({"containers": []}),
            "spec.template.spec.containers",
            "the patch has a list",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"image": "x"}]}),
            "spec.template.spec.containers",
            "an item of the patch has no `name`",
        ),
        (
            json!({}),
            json!({"containers": ["x"]}),
            "spec.template.spec.containers",
            "an item of the patch is a string",
        ),
        (
            json!({"affinity": {}}),
            json!({"affinity": {"$patch": "explode"}}),
            "spec.template.spec.affinity[\"$patch\"]",
            "unknown directive \"explode\"",
        ),
    ] {
        let problem = merge_pod(target, patch).unwrap_err();
        assert_eq!((problem.field.as_str(), problem.message.as_str()), (field, message));
    }
}
