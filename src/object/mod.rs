//! Kubernetes objects as JSON trees, without any client types.

pub mod annotations;
mod json_path;
mod merge;
pub mod order;
mod path;
mod reference;

pub use json_path::{JsonPath, JsonPathError};
pub use merge::merge;
pub use path::{delete_at, get_at, get_at_mut, set_at};
pub use reference::ObjectRef;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Why a value is not a Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Not a mapping at the top.
    #[error("expected a Kubernetes object (a mapping), found {found}")]
    NotAMapping {
        /// What stands there instead.
        found: &'static str,
    },
    /// A required field is missing, empty or of another type.
    #[error("{field}: expected a non-empty string, found {found}")]
    Field {
        /// The field, for example `metadata.name`.
        field: &'static str,
        /// What stands there instead.
        found: &'static str,
    },
}

/// The JSON type of a value, in the words used in messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// A Kubernetes object: a mapping with `apiVersion`, `kind` and `metadata.name` (or `metadata.generateName`).
#[derive(Debug, Clone, PartialEq)]
pub struct Object(Value);

impl Object {
    /// Checks the identifying fields and wraps the tree.
    ///
    /// # Errors
    /// When `value` is no mapping, or an identifying field is missing, empty or not a string.
    pub fn new(value: Value) -> Result<Self, ObjectError> {
        if !value.is_object() {
            return Err(ObjectError::NotAMapping { found: type_name(&value) });
        }
        let check = |field: &'static str, found: &Value| match found {
            Value::String(text) if !text.is_empty() => Ok(()),
            other => Err(ObjectError::Field { field, found: type_name(other) }),
        };
        check("apiVersion", &value["apiVersion"])?;
        check("kind", &value["kind"])?;
        if value["metadata"]["generateName"].as_str().is_none_or(str::is_empty) {
            check("metadata.name", &value["metadata"]["name"])?;
        }
        Ok(Self(value))
    }

    /// The tree.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The tree, for changes that leave the identifying fields in place.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    /// The tree, by value.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.0["apiVersion"].as_str().unwrap_or_default()
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    /// `metadata.name`, empty when only `generateName` is given.
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `metadata.namespace`, `None` when missing or empty.
    pub fn namespace(&self) -> Option<&str> {
        self.0["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty())
    }

    /// Sets or (with `None`) removes `metadata.namespace`.
    pub fn set_namespace(&mut self, namespace: Option<&str>) {
        let metadata = self.metadata_mut();
        match namespace {
            Some(namespace) => {
                metadata.insert("namespace".into(), namespace.into());
            }
            None => {
                metadata.remove("namespace");
            }
        }
    }

    /// Group, version, kind, namespace and name.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.api_version(), self.kind(), self.namespace(), self.name())
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["labels"][key].as_str()
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["annotations"][key].as_str()
    }

    /// All annotations with string values, by key.
    pub fn annotations(&self) -> BTreeMap<&str, &str> {
        string_map(&self.0["metadata"]["annotations"])
    }

    /// All labels with string values, by key.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        string_map(&self.0["metadata"]["labels"])
    }

    /// Sets a label, replacing a former value.
    pub fn set_label(&mut self, key: &str, value: &str) {
        insert_string(self.metadata_mut(), "labels", key, value);
    }

    /// Sets an annotation, replacing a former value.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        insert_string(self.metadata_mut(), "annotations", key, value);
    }

    /// Removes an annotation, and the whole map when it becomes empty. Returns whether it was there.
    pub fn remove_annotation(&mut self, key: &str) -> bool {
        let metadata = self.metadata_mut();
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        else {
            return false;
        };
        let removed = annotations.remove(key).is_some();
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        removed
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        child_map(&mut self.0, "metadata")
    }
}

fn string_map(value: &Value) -> BTreeMap<&str, &str> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

fn insert_string(metadata: &mut Map<String, Value>, map: &str, key: &str, value: &str) {
    let slot = metadata.entry(map).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot[key] = value.into();
}

/// The mapping below `key`, created (or put in place of another type) when needed.
fn child_map<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value[key].is_object() {
        value[key] = Value::Object(Map::new());
    }
    match &mut value[key] {
        Value::Object(map) => map,
        _ => unreachable!("just made a mapping"),
    }
}

#[cfg(test)]
mod tests;
