//! `systemEnvVars`: a tree whose leaves are names of environment variables.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    diagnostic::FieldPath,
    object::type_name,
    vars::VarsError,
    yaml::{self, Schema},
};

/// The same tree with values in place of names. Values are read as YAML; variables that are missing and may be are left out.
pub(in crate::vars) fn read(
    names: &Value,
    environment: &BTreeMap<String, String>,
    ignore_missing: bool,
) -> Result<Map<String, Value>, VarsError> {
    let reader = Reader { environment, ignore_missing };
    match reader.tree(names, &FieldPath::root())? {
        Some(Value::Object(variables)) => Ok(variables),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(_) => Err(VarsError::NotAMapping {
            what: "systemEnvVars".to_owned(),
            found: type_name(names),
            target_path_helps: false,
        }),
    }
}

struct Reader<'a> {
    environment: &'a BTreeMap<String, String>,
    ignore_missing: bool,
}

impl Reader<'_> {
    fn tree(&self, names: &Value, path: &FieldPath) -> Result<Option<Value>, VarsError> {
        match names {
            Value::Object(entries) => {
                let mut values = Map::new();
                for (key, names) in entries {
                    if let Some(value) = self.tree(names, &path.child(key.as_str()))? {
                        values.insert(key.clone(), value);
                    }
                }
                // A branch of which nothing is set leaves no trace.
                let is_gone = values.is_empty() && !path.0.is_empty();
                Ok((!is_gone).then_some(Value::Object(values)))
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let values = items.map(|(index, names)| self.tree(names, &path.child(index)));
                let values = values.collect::<Result<Vec<_>, _>>()?;
                Ok(Some(values.into_iter().flatten().collect()))
            }
            Value::String(leaf) => self.leaf(leaf, path),
            other => {
                Err(VarsError::EnvironmentName { field: path.clone(), found: type_name(other) })
            }
        }
    }

    fn leaf(&self, leaf: &str, path: &FieldPath) -> Result<Option<Value>, VarsError> {
        let (name, default) = match leaf.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (leaf, None),
        };
        let text = match (self.environment.get(name), default) {
            (Some(value), _) => value.as_str(),
            // An empty default means an empty string, whereas an empty variable is null, as in any YAML.
            (None, Some("")) => return Ok(Some(Value::String(String::new()))),
            (None, Some(default)) => default,
            (None, None) if self.ignore_missing => return Ok(None),
            (None, None) => {
                return Err(VarsError::EnvironmentMissing {
                    name: name.to_owned(),
                    field: path.clone(),
                });
            }
        };
        match yaml::parse_document(name, text.as_bytes(), Schema::Config) {
            Ok(document) => Ok(Some(document.value)),
            Err(_) => {
                Err(VarsError::EnvironmentValue { name: name.to_owned(), field: path.clone() })
            }
        }
    }
}
