use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{KluctlDeployment, KluctlDeploymentSpec, KluctlDeploymentStatus};
use crate::diagnostic::{Class, Describe, Diagnostic};

/// Why a stored object cannot be read. It concerns this one object; others are not held up by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct DecodeError {
    /// Path of the first field that cannot be read, for example `spec.interval`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Describe for DecodeError {
    fn describe(&self) -> Diagnostic {
        Diagnostic::new(Class::Spec, self.message.clone()).with_field(self.field.clone())
    }
}

/// Reads a `flux.kluctl.io` KluctlDeployment of any release.
///
/// Unknown fields are ignored. Parts of the status that cannot be read are treated as missing: the controller owns them
/// and writes them anew.
///
/// # Errors
/// When the metadata or the spec cannot be read; the error names the field.
pub fn decode(value: &Value) -> Result<KluctlDeployment, DecodeError> {
    let metadata: ObjectMeta = decode_at("metadata", &value["metadata"])?;
    let spec: KluctlDeploymentSpec = decode_at("spec", &value["spec"])?;
    Ok(KluctlDeployment { metadata, spec, status: decode_status(value) })
}

/// Reads the status of an object, however malformed the rest of it is; `None` when it has none.
pub fn decode_status(value: &Value) -> Option<KluctlDeploymentStatus> {
    value.get("status").filter(|status| !status.is_null()).map(readable_status)
}

fn readable_status(value: &Value) -> KluctlDeploymentStatus {
    let read = |value: Value| serde_json::from_value::<KluctlDeploymentStatus>(value);
    if let Ok(status) = read(value.clone()) {
        return status;
    }
    let is_readable = |key: &str, value: &Value| {
        read(Value::Object(Map::from_iter([(key.to_owned(), value.clone())]))).is_ok()
    };
    let fields = value.as_object().into_iter().flatten();
    let readable = fields
        .filter(|(key, value)| is_readable(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    read(Value::Object(readable)).unwrap_or_default()
}

/// Reads one part of an object; on failure looks for the field that is to blame.
fn decode_at<T: DeserializeOwned>(path: &str, value: &Value) -> Result<T, DecodeError> {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value.clone() };
    let error = match serde_json::from_value::<T>(value.clone()) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    let mut blamed = DecodeError { field: path.to_owned(), message: error.to_string() };
    let mut value = value;
    // The field whose removal makes the message go away is the one that it was about.
    let keys: Vec<String> =
        value.as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect();
    for key in keys {
        let Some(removed) = value.as_object_mut().and_then(|map| map.remove(&key)) else {
            continue;
        };
        let after = serde_json::from_value::<T>(value.clone()).err().map(|error| error.to_string());
        if after.as_deref() != Some(blamed.message.as_str()) {
            blamed.field = format!("{path}.{key}");
            break;
        }
        value[&key] = removed;
    }
    Err(blamed)
}
