//! Stand-ins of a dry run: what would exist by now, had this been real, is tried under another name.

use std::hash::Hasher;

use serde_json::Value;

use crate::{
    cluster::DEFAULT_NAMESPACE,
    object::{Object, ObjectRef},
};

/// An object under another name, and the way back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StandIn {
    /// What is sent instead.
    pub(super) body: Value,
    name: String,
}

impl StandIn {
    /// The object under a name of its own, in its namespace or (when that does not exist yet) in `default`.
    pub(super) fn new(body: &Value, reference: &ObjectRef, namespace_exists: bool) -> Self {
        let name = stand_in_name(reference);
        let mut body = body.clone();
        body["metadata"]["name"] = name.clone().into();
        if !namespace_exists && reference.namespace.is_some() {
            body["metadata"]["namespace"] = DEFAULT_NAMESPACE.into();
        }
        Self { body, name }
    }

    /// The API server's answer with the object's own name and namespace in place.
    pub(super) fn undo(&self, mut answer: Value, reference: &ObjectRef) -> Option<Object> {
        rename(&mut answer, &self.name, &reference.name);
        if let Some(namespace) = &reference.namespace {
            answer["metadata"]["namespace"] = namespace.clone().into();
        }
        Object::new(answer).ok()
    }
}

/// A name that is valid for any kind, not in use, and the same in every dry run.
fn stand_in_name(reference: &ObjectRef) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(reference.to_string().as_bytes());
    let hash = hasher.finish();
    let head: String = reference.name.chars().take(50).collect();
    format!("{}-{:08x}", head.trim_end_matches(['-', '.']), hash & 0xffff_ffff)
}

/// Replaces a name wherever it stands, in keys and in values.
fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        Value::Array(list) => list.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(map) => {
            map.values_mut().for_each(|item| rename(item, from, to));
            if map.keys().any(|key| key.contains(from)) {
                let renamed = std::mem::take(map).into_iter();
                map.extend(renamed.map(|(key, item)| (key.replace(from, to), item)));
            }
        }
        _ => {}
    }
}
