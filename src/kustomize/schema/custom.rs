//! Reads an OpenAPI v2 document of the user.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Container, Field, Types};

/// The types of a document, and the kinds that are cluster-scoped.
pub(super) fn read(document: &Value) -> (Types, HashSet<String>) {
    let mut schema = Types::default();
    let definitions = document.get("definitions").and_then(Value::as_object);
    for (name, definition) in definitions.into_iter().flatten() {
        add_type(&mut schema, name, definition);
        let gvks = definition.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        for gvk in gvks.into_iter().flatten() {
            schema.kinds.insert(kind_name(gvk), name.clone());
        }
    }
    (schema, read_scopes(document))
}

fn read_scopes(document: &Value) -> HashSet<String> {
    let mut cluster_scoped = HashSet::new();
    let paths = document.get("paths").and_then(Value::as_object);
    let mut namespaced = Vec::new();
    for (path, operations) in paths.into_iter().flatten() {
        let Some(gvk) = operations.pointer("/get/x-kubernetes-group-version-kind") else {
            continue;
        };
        if path.contains("namespaces/{namespace}") {
            namespaced.push(kind_name(gvk));
        } else {
            cluster_scoped.insert(kind_name(gvk));
        }
    }
    for kind in namespaced {
        cluster_scoped.remove(&kind);
    }
    cluster_scoped
}

fn kind_name(gvk: &Value) -> String {
    let text = |key: &str| gvk.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("group");
    let slash = if group.is_empty() { "" } else { "/" };
    format!("{group}{slash}{} {}", text("version"), text("kind"))
}

/// Adds a type and those of its fields that are defined in place, which get a name of their own.
fn add_type(schema: &mut Types, name: &str, definition: &Value) {
    let mut fields = HashMap::new();
    let properties = definition.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if let Some(field) = read_field(schema, &format!("{name}/{key}"), property) {
            fields.insert(key.clone(), field);
        }
    }
    schema.types.insert(name.to_owned(), fields);
}

fn read_field(schema: &mut Types, name: &str, property: &Value) -> Option<Field> {
    if property.get("type").and_then(Value::as_str) == Some("array") {
        let items = property.get("items").and_then(|items| type_of(schema, name, items));
        return Some(Field::Container(Container {
            merge: merge_keys(property),
            items,
            values: None,
        }));
    }
    let values = property.get("additionalProperties").filter(|values| values.is_object());
    if let Some(values) = values {
        let values = type_of(schema, name, values);
        return Some(Field::Container(Container { values, ..Container::default() }));
    }
    type_of(schema, name, property).map(Field::Type)
}

/// The name of the type that a schema stands for; a schema with fields of its own is added under `name`.
fn type_of(schema: &mut Types, name: &str, definition: &Value) -> Option<String> {
    if let Some(reference) = definition.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().map(str::to_owned);
    }
    if definition
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|p: &Map<_, _>| !p.is_empty())
    {
        add_type(schema, name, definition);
        return Some(name.to_owned());
    }
    None
}

fn merge_keys(property: &Value) -> Option<Vec<String>> {
    let strategy = property.get("x-kubernetes-patch-strategy").and_then(Value::as_str)?;
    if !strategy.split(',').any(|word| word == "merge") {
        return None;
    }
    let listed = property.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let single = property.get("x-kubernetes-patch-merge-key").into_iter();
    let keys: Vec<&Value> = listed.map_or_else(|| single.collect(), |keys| keys.iter().collect());
    Some(keys.into_iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
