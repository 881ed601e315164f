//! JSON Schemas of the files, for editors and reviews. Generated from the types that the files are read into.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::{DeploymentFile, HelmChartFile, LibraryFile, ProjectFile};

/// The JSON Schema of one kind of file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSchema {
    /// A short name: `project`, `deployment`, `helm-chart` or `library`.
    pub name: &'static str,
    /// The files it is for, as projects name them.
    pub file: &'static str,
    /// The schema.
    pub schema: Value,
}

impl FileSchema {
    /// The name of the file that holds the schema.
    pub fn file_name(&self) -> String {
        format!("{}.schema.json", self.name)
    }

    /// The text of that file.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.schema)
    }
}

/// The JSON Schemas of all files that make up a Kluctl project.
///
/// They accept what is accepted when a file is read: numbers and booleans stand for texts, and null for what is not given. Of
/// files that are templates they describe what the rendered text may be.
pub fn json_schemas() -> Vec<FileSchema> {
    vec![
        file::<ProjectFile>("project", ".kluctl.yaml"),
        file::<DeploymentFile>("deployment", "deployment.yaml"),
        file::<HelmChartFile>("helm-chart", "helm-chart.yaml"),
        file::<LibraryFile>("library", ".kluctl-library.yaml"),
    ]
}

fn file<T: JsonSchema>(name: &'static str, file: &'static str) -> FileSchema {
    let settings = SchemaSettings::draft07();
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema["title"] = json!(format!("Kluctl {file}"));
    FileSchema { name, file, schema }
}

/// Says what the reader accepts beyond the types, and drops defaults that say nothing.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_text = |value: &Value| value == "string";
            let kinds = match map.get("type") {
                Some(one) if is_text(one) => vec!["string", "number", "boolean"],
                Some(Value::Array(several)) if several.iter().any(is_text) => {
                    vec!["string", "number", "boolean", "null"]
                }
                _ => Vec::new(),
            };
            if !kinds.is_empty() && !map.contains_key("enum") && !map.contains_key("const") {
                map.insert("type".to_owned(), json!(kinds));
            }
            let says_nothing = |value: &Value| match value {
                Value::Null | Value::Bool(false) => true,
                Value::String(text) => text.is_empty(),
                Value::Array(items) => items.is_empty(),
                Value::Object(entries) => entries.is_empty(),
                _ => false,
            };
            // A property may itself be called `default`, as that of an argument is; its schema is no empty value.
            map.retain(|key, value| key != "default" || !says_nothing(value));
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// One of these fields, and no other of them.
pub(super) fn exactly_one_of(fields: &[&str]) -> Value {
    fields.iter().map(|field| json!({"required": [field]})).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `make crds` runs this test with `UPDATE_CRDS=1`, which writes the files in place of comparing them.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "reads and writes the generated files of the source tree"
    )]
    fn every_json_schema_is_current() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
        for file in json_schemas() {
            let path = dir.join(file.file_name());
            if std::env::var_os("UPDATE_CRDS").is_some() {
                std::fs::create_dir_all(&dir).unwrap();
                std::fs::write(&path, file.text()).unwrap();
            }
            let current = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(current == file.text(), "{} is out of date; run `make crds`", path.display());
        }
    }

    /// The schema of a field, following references.
    fn property<'a>(schema: &'a Value, of: &'a Value, name: &str) -> &'a Value {
        let property = &of["properties"][name];
        let reference = property["items"]["$ref"].as_str().or(property["$ref"].as_str());
        match reference {
            Some(reference) => &schema["definitions"][reference.rsplit('/').next().unwrap()],
            None => property,
        }
    }

    #[test]
    fn schemas_say_what_the_reader_accepts() {
        let schemas = json_schemas();
        let deployment = &schemas[1].schema;
        assert_eq!(deployment["additionalProperties"], false);
        let item = property(deployment, deployment, "deployments");
        assert_eq!(item["properties"]["barrier"]["type"], "boolean");
        let tags = &item["properties"]["tags"]["items"]["type"];
        assert_eq!(*tags, json!(["string", "number", "boolean"]));
        // Fields of results are no fields of projects.
        assert_eq!(item["properties"]["renderedObjects"], Value::Null);
        let vars = property(deployment, deployment, "vars");
        assert_eq!(vars["oneOf"].as_array().unwrap().len(), 13);
        let project = &schemas[0].schema;
        let arg = property(project, project, "args");
        assert_eq!(arg["required"], json!(["name"]));
        assert!(!arg["properties"]["default"].is_null());
        for file in &schemas {
            assert!(file.schema["description"].is_string(), "{}", file.name);
        }
    }
}
