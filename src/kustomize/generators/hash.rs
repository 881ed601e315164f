//! The hash that generated names end in.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::kustomize::{resmap::ResMap, resource::Resource};

/// Appends the hash of its content to the name of each object that wants one.
pub(crate) fn apply(map: &mut ResMap) {
    for resource in map.iter_mut().filter(|resource| resource.needs_hash) {
        let name = format!("{}-{}", resource.name(), of(resource));
        resource.remember_id();
        resource.set_name(&name);
    }
}

/// Ten characters that depend on kind, type and data. What goes into the hash and how is fixed by kustomize; the
/// letters are chosen so that no words appear.
pub(super) fn of(resource: &Resource) -> String {
    let value = &resource.value;
    let field = |name: &str| match value.get(name) {
        None | Some(Value::Null) => json!(""),
        Some(found) => found.clone(),
    };
    let mut content = Map::new();
    let optional = match resource.kind() {
        "ConfigMap" => Some("binaryData"),
        "Secret" => {
            content.insert("type".into(), field("type"));
            Some("stringData")
        }
        _ => None,
    };
    if let Some(optional) = optional {
        content.insert("kind".into(), resource.kind().into());
        // kustomize means to put the name here but looks it up where it is not.
        content.insert("name".into(), "".into());
        content.insert("data".into(), field("data"));
        if let Some(found) = value.get(optional).filter(|found| found.is_object()) {
            content.insert(optional.into(), found.clone());
        }
    }
    let content = if optional.is_some() { Value::Object(content) } else { value.clone() };
    let digest = Sha256::digest(go_json(&content));
    let hex = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    hex.take(10).map(letter).collect()
}

fn letter(nibble: u8) -> char {
    match nibble {
        0 => 'g',
        1 => 'h',
        3 => 'k',
        10 => 'm',
        14 => 't',
        other => char::from_digit(u32::from(other), 16).unwrap_or('g'),
    }
}

/// JSON as Go writes it: sorted keys, and characters that mean something in HTML or JavaScript escaped.
fn go_json(value: &Value) -> String {
    escape_as_go(&value.to_string())
}

/// Escapes in JSON text what Go escapes beyond the need.
pub(crate) fn escape_as_go(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}
