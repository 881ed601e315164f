//! One file per kind of source.

pub(super) mod cluster;
pub(super) mod cluster_object;
pub(super) mod environment;
pub(super) mod file;
pub(super) mod git;
pub(super) mod git_files;
pub(super) mod http;
pub(super) mod secrets;
mod text;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::VarsError;
use text::Text;

/// Labels as a selector writes them.
fn selector(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// The mapping that a text holds as YAML, an empty one when it is empty.
fn mapping(text: &Text) -> Result<Value, VarsError> {
    match text.parse(false)? {
        Value::Null => Ok(Value::Object(Map::new())),
        value @ Value::Object(_) => Ok(value),
        other => Err(VarsError::NotAMapping {
            what: text.what.clone(),
            found: crate::object::type_name(&other),
            target_path_helps: false,
        }),
    }
}
