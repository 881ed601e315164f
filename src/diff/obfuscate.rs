//! Masks the values of Secrets in everything that is shown or stored.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    object::{Object, ObjectRef},
    results::{Change, CommandResult},
};

const MASK: &str = "*****";
const SHOWN: &str = "***** (obfuscated)";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn is_secret(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

/// The object with the values of a Secret masked; any other object is returned as it is, without a copy.
pub fn obfuscate_object(object: &Arc<Object>) -> Arc<Object> {
    if object.kind() != "Secret" || object.api_version().contains('/') {
        return object.clone();
    }
    let mut masked = Object::clone(object);
    let tree = masked.value_mut();
    mask_values(tree.get_mut("data"), &STANDARD.encode(MASK));
    mask_values(tree.get_mut("stringData"), MASK);
    if let Some(text) =
        tree.pointer_mut("/metadata/annotations").and_then(|a| a.get_mut(LAST_APPLIED))
    {
        // It repeats the whole object, values included.
        *text = MASK.into();
    }
    Arc::new(masked)
}

fn mask_values(slot: Option<&mut Value>, mask: &str) {
    match slot {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => map.values_mut().for_each(|value| *value = mask.into()),
        Some(other) => *other = mask.into(),
    }
}

/// Masks the changes of an object's `data` and `stringData`, when it is a Secret.
pub fn obfuscate_changes(reference: &ObjectRef, changes: &mut [Change]) {
    if !is_secret(&reference.group, &reference.kind) {
        return;
    }
    for change in changes {
        let head = change.json_path.split(['.', '[']).next().unwrap_or_default();
        if !matches!(head, "data" | "stringData") && !change.json_path.contains(LAST_APPLIED) {
            continue;
        }
        for value in [&mut change.old_value, &mut change.new_value] {
            *value = value.take().map(mask_deeply);
        }
        change.unified_diff = mask_diff(change);
    }
}

fn mask_deeply(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, mask_deeply(value))).collect()
        }
        Value::Array(list) => list.into_iter().map(mask_deeply).collect(),
        _ => MASK.into(),
    }
}

/// The diff of masked values. Keys are no secrets and stay.
fn mask_diff(change: &Change) -> String {
    let shown = |prefix: &str, value: &Option<Value>| match value {
        None => Vec::new(),
        Some(Value::Object(map)) => {
            map.keys().map(|key| format!("{prefix}{key}: {SHOWN}")).collect()
        }
        Some(_) => vec![format!("{prefix}{SHOWN}")],
    };
    let mut lines = shown("-", &change.old_value);
    lines.extend(shown("+", &change.new_value));
    lines.join("\n")
}

/// A message about `object` without the values of a Secret, which the API server quotes in some of its errors.
pub fn mask_text(object: &Object, text: &str) -> String {
    if object.kind() != "Secret" {
        return text.to_owned();
    }
    let mut values: Vec<String> = Vec::new();
    for key in ["data", "stringData"] {
        collect_texts(&object.value()[key], &mut values);
    }
    // Longer ones first, so that a value which contains another one is not left in part.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let values = values.iter().filter(|value| value.len() > 2);
    values.fold(text.to_owned(), |text, value| text.replace(value.as_str(), MASK))
}

/// Adds all texts below `value` as they are, as the API server quotes them, and decoded.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            texts.push(value.to_string());
            map.values().for_each(|value| collect_texts(value, texts));
        }
        Value::Array(items) => {
            texts.push(value.to_string());
            for item in items {
                collect_texts(item, texts);
            }
        }
        Value::String(text) => {
            if let Ok(decoded) = STANDARD.decode(text)
                && let Ok(decoded) = String::from_utf8(decoded)
            {
                texts.push(decoded);
            }
            let quoted = value.to_string();
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            texts.extend(inner.map(str::to_owned));
            texts.push(text.clone());
        }
        Value::Null => {}
        scalar => texts.push(scalar.to_string()),
    }
}

/// Masks all Secrets of a result.
pub fn obfuscate_result(result: &mut CommandResult) {
    for object in &mut result.objects {
        for tree in [&mut object.rendered, &mut object.remote, &mut object.applied] {
            *tree = tree.as_ref().map(obfuscate_object);
        }
        obfuscate_changes(&object.base.reference, &mut object.base.changes);
    }
}
