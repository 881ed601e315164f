//! Paths find what is there and change nothing else; a diff is empty exactly when nothing differs.
//!
//! The input is YAML: two documents to compare, and one whose texts are paths.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pure::{
    diff::{IgnoreRules, compare, diff},
    object::{JsonPath, Object, delete_at, get_at, set_at},
    yaml::{Schema, parse_documents},
};
use serde_json::{Value, json};

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| texts(item, found)),
        _ => {}
    }
}

fn check_path(path: &str, root: &Value) {
    let Ok(path) = JsonPath::parse(path) else { return };
    let found = path.locate(root);
    if let Some(one) = path.as_field_path().filter(|path| !path.0.is_empty()) {
        assert_eq!(found.len(), usize::from(get_at(root, &one).is_some()), "{one}");
    }
    for path in found.iter().take(20) {
        let before = get_at(root, path).expect("what was located is there");
        let mut changed = root.clone();
        assert_eq!(delete_at(&mut changed, path).as_ref(), Some(before), "{path}");
        let mut changed = root.clone();
        assert!(set_at(&mut changed, path, json!("new")), "{path}");
        assert_eq!(get_at(&changed, path), Some(&json!("new")), "{path}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(documents) = parse_documents("input.yaml", bytes, Schema::Manifest) else { return };
    let values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    let [before, after, rest @ ..] = values.as_slice() else { return };
    let changes = compare(before, after);
    assert_eq!(changes.is_empty(), before == after, "{changes:?}");
    assert_eq!(changes.len(), compare(after, before).len(), "{changes:?}");
    if let (Ok(before), Ok(after)) = (Object::new(before.clone()), Object::new(after.clone())) {
        diff(&before, &after, &after, &IgnoreRules::default()).ok();
    }
    let mut paths = Vec::new();
    rest.iter().for_each(|value| texts(value, &mut paths));
    for path in paths.into_iter().take(20) {
        check_path(path, before);
    }
});
