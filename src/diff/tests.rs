use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    results::ChangeKind::{self, Delete, Insert, Update},
    schema::{IgnoreRule, OneOrMany},
};

fn object(value: Value) -> Object {
    Object::new(value).unwrap()
}

/// Kind, path and unified diff of every change.
fn changes(before: &Value, after: &Value) -> Vec<(ChangeKind, String, String)> {
    let found = compare(before, after);
    found.into_iter().map(|change| (change.kind, change.json_path, change.unified_diff)).collect()
}

fn change(kind: ChangeKind, path: &str, diff: &str) -> (ChangeKind, String, String) {
    (kind, path.to_owned(), diff.to_owned())
}

#[test]
fn mappings_and_scalars() {
    let found = changes(
        &json!({"spec": {"aa": 1, "gone": {"x": 1}, "text": "a\nb\n", "none": null, "same": [1]}}),
        &json!({"spec": {"aa": "1", "came": [1, 2], "text": "a\nc\n", "none": "x", "same": [1]}}),
    );
    let expected = [
        change(Update, "spec.aa", "-1\n+1"),
        change(Insert, "spec.came", "+- 1\n+- 2"),
        change(Delete, "spec.gone", "-x: 1"),
        change(Update, "spec.none", "-<nil>\n+x"),
        change(Update, "spec.text", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lists_are_compared_by_name_or_by_position() {
    let named = |list: &[(&str, i64)]| -> Value {
        list.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    };
    let cases = [
        (json!([1, 2, 3]), json!([1, 3]), vec![change(Delete, "$[1]", "-2")]),
        (json!([1, 3]), json!([1, 2, 3]), vec![change(Insert, "$[1]", "+2")]),
        (
            json!(["a", "b"]),
            json!(["b", "a"]),
            vec![change(Update, "$[0]", "-a\n+b"), change(Update, "$[1]", "-b\n+a")],
        ),
        (
            named(&[("x", 1), ("y", 2)]),
            named(&[("y", 3), ("x", 1), ("z", 4)]),
            vec![
                change(Update, "$[0].value", "-2\n+3"),
                change(Insert, "$[2]", "+name: z\n+value: 4"),
            ],
        ),
    ];
    for (before, after, expected) in cases {
        assert_eq!(changes(&before, &after), expected);
    }
    let reordered = compare(&named(&[("x", 1), ("y", 2)]), &named(&[("y", 2), ("x", 1)]));
    assert_eq!(reordered.len(), 1, "a new order is one change: {reordered:?}");
}

#[test]
fn bookkeeping_is_no_change() {
    let before = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "1", "uid": "a", "generation": 1, "managedFields": []},
        "spec": {"replicas": 1.0, "template": {"spec": {"containers": [
            {"name": "web", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]}}},
        "status": {"replicas": 1},
    }));
    let after = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "2", "uid": "a", "generation": 2, "labels": {"tier": "x"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [
            {"name": "web", "env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}]}]}}},
    }));
    let found = diff(&before, &after, &after, &IgnoreRules::default()).unwrap();
    let paths: Vec<_> = found.iter().map(|change| change.json_path.as_str()).collect();
    assert_eq!(
        paths,
        ["metadata.labels.tier", r#"spec.template.spec.containers[0].env["B"].value"#]
    );
}

#[test]
fn rules_remove_fields() {
    let make = |value: i64, annotations: Value| {
        object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a",
            "annotations": annotations}, "spec": {"replicas": value, "list": [{"aa": value}, {"aa": 0}], "other": value}}),
        )
    };
    let paths = |rules: Value, annotations: Value| -> Vec<String> {
        let rules: Vec<IgnoreRule> = serde_json::from_value(rules).unwrap();
        let rules = IgnoreRules::new(&rules).unwrap();
        let (before, after) = (make(1, annotations.clone()), make(2, annotations));
        let found = diff(&before, &after, &after, &rules).unwrap();
        found.into_iter().map(|change| change.json_path).collect()
    };
    let all = ["spec.list[0].aa", "spec.other", "spec.replicas"];
    assert_eq!(paths(json!([]), json!({})), all);
    assert_eq!(
        paths(json!([{"fieldPath": ["spec.replicas", "spec.list[*].aa"]}]), json!({})),
        [all[1]]
    );
    assert_eq!(paths(json!([{"fieldPathRegex": "^spec"}]), json!({})), [""; 0]);
    assert_eq!(paths(json!([{"fieldPath": "spec", "kind": "Job"}]), json!({})), all);
    assert_eq!(paths(json!([{"fieldPath": "spec", "namespace": "b"}]), json!({})), all);
    assert_eq!(
        paths(json!([{"fieldPath": "spec", "group": "apps", "name": "web"}]), json!({})),
        [""; 0]
    );
    assert_eq!(
        paths(
            json!([]),
            json!({"kluctl.io/ignore-diff-field": "spec.other", "kluctl.io/ignore-diff-field-regex-1": "list"})
        ),
        [all[2]]
    );
    assert_eq!(paths(json!([]), json!({"kluctl.io/ignore-diff": "true"})), [""; 0]);
    let broken = IgnoreRule {
        field_path: None,
        field_path_regex: Some(OneOrMany::One("(".into())),
        group: None,
        kind: None,
        name: None,
        namespace: None,
    };
    let message = IgnoreRules::new(&[broken]).unwrap_err().to_string();
    assert!(message.starts_with(r#""(" is not a regular expression"#), "{message}");
}

#[test]
fn secrets_are_masked_everywhere() {
    let secret = |data: Value, text: Value| {
        object(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}, "data": data, "stringData": text}),
        )
    };
    let before = Arc::new(secret(json!({"a": "aHVudGVyMg=="}), json!({"b": "hunter2"})));
    let after = secret(json!({"a": "aHVudGVyMw==", "n": "aHVudGVyMw=="}), json!(null));
    let masked = obfuscate_object(&before);
    let shown = masked.value().to_string();
    assert!(!shown.contains("hunter") && !shown.contains("aHVudGVy"), "{shown}");
    assert_eq!(masked.value()["stringData"]["b"], "*****");

    let mut found = diff(&before, &after, &after, &IgnoreRules::default()).unwrap();
    assert_eq!(found.len(), 3);
    obfuscate_changes(&after.reference(), &mut found);
    let shown = serde_json::to_string(&found).unwrap();
    assert!(!shown.contains("hunter") && !shown.contains("aHVudGVy"), "{shown}");
    assert_eq!(found[0].unified_diff, "-***** (obfuscated)\n+***** (obfuscated)");

    let refused =
        "Secret \"s\" is invalid: data.b: Invalid value: \"hunter2\": aHVudGVyMg== is bad";
    assert_eq!(
        mask_text(&before, refused),
        "Secret \"s\" is invalid: data.b: Invalid value: \"*****\": ***** is bad"
    );
}

#[test]
fn values_of_any_form_are_masked_where_they_are_quoted() {
    let listed = object(json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"},
        "stringData": {"a": ["hunter2", {"deep": "a \"b\""}], "n": 4711}}));
    for (quoted, shown) in [
        ("[]interface {}{\"hunter2\"}", "[]interface {}{\"*****\"}"),
        ("invalid: \"a \\\"b\\\"\"", "invalid: \"*****\""),
        ("cannot unmarshal number 4711", "cannot unmarshal number *****"),
    ] {
        assert_eq!(mask_text(&listed, quoted), shown);
    }
}

#[test]
fn other_objects_are_shared_not_copied() {
    let map = Arc::new(object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}),
    ));
    assert!(Arc::ptr_eq(&map, &obfuscate_object(&map)));
}
