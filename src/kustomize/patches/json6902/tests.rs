use serde_json::json;

use super::*;
use crate::{diagnostic::SourceLocation, kustomize::schema::Schema};

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call sites")]
fn apply(spec: Value, operations: Value) -> Result<Value, String> {
    let value = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec});
    let mut resource = Resource::new(value, SourceLocation::file("x.yaml"), &Schema::builtin());
    let operations = Operations::decode("p.yaml", &operations.into()).map_err(|e| e.to_string())?;
    operations.apply(&mut resource).map_err(|error| error.to_string())?;
    Ok(resource.value["spec"].take())
}

#[test]
fn operations_change_mappings_and_lists() {
    let spec = json!({"a": 1, "l": ["x", "y"], "m~/": {"k": "v"}});
    for (operation, expected) in [
        (json!({"op": "add", "path": "/spec/l/-", "value": "z"}), json!({"l": ["x", "y", "z"]})),
        (json!({"op": "add", "path": "/spec/l/0", "value": "z"}), json!({"l": ["z", "x", "y"]})),
        (json!({"op": "add", "path": "/spec/l/-1", "value": "z"}), json!({"l": ["x", "y", "z"]})),
        (json!({"op": "remove", "path": "/spec/l/-1"}), json!({"l": ["x"]})),
        (json!({"op": "replace", "path": "/spec/l/1", "value": null}), json!({"l": ["x", null]})),
        (json!({"op": "replace", "path": "/spec/new", "value": 2}), json!({"new": 2})),
        (json!({"op": "move", "from": "/spec/a", "path": "/spec/b"}), json!({"a": null, "b": 1})),
        (json!({"op": "copy", "from": "/spec/l/0", "path": "/spec/b"}), json!({"b": "x"})),
        (json!({"op": "remove", "path": "/spec/m~0~1/k"}), json!({"m~/": {}})),
        (json!({"op": "test", "path": "/spec/a", "value": 1}), json!({})),
    ] {
        let changed = apply(spec.clone(), json!([operation])).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(changed.get(key).unwrap_or(&Value::Null), value, "{operation}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_place_and_object() {
    for (operation, expected) in [
        (
            json!({"op": "remove", "path": "/spec/b"}),
            "X/x: /spec/b: does not exist (there is: a, l)",
        ),
        (
            json!({"op": "add", "path": "/spec/b/c", "value": 1}),
            "X/x: /spec/b/c: /spec/b does not exist (add the parent first)",
        ),
        (
            json!({"op": "add", "path": "/spec/l/5", "value": 1}),
            "/spec/l/5: there is no item 5 in a list of 1",
        ),
        (
            json!({"op": "add", "path": "/spec/a/b", "value": 1}),
            "/spec/a/b: its parent is a number, expected a mapping or a list",
        ),
        (
            json!({"op": "test", "path": "/spec/a", "value": 2}),
            "/spec/a: the test found 1, expected 2",
        ),
        (
            json!({"op": "change", "path": "/spec/a"}),
            "$[0].op: unknown operation \"change\", expected add, replace",
        ),
        (json!({"op": "add", "path": "/spec/a"}), "$[0].value: missing"),
        (
            json!({"op": "remove", "path": "spec/a"}),
            "$[0].path: found \"spec/a\", expected a JSON pointer",
        ),
        (
            json!({"op": "remove", "paht": "/spec/a"}),
            "unknown field \"paht\" (did you mean `path`?)",
        ),
    ] {
        let message = apply(json!({"a": 1, "l": [1]}), json!([operation])).unwrap_err();
        assert!(message.starts_with("p.yaml: ") && message.contains(expected), "{message}");
    }
}
