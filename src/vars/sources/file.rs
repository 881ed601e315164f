//! `file`: a file of the project, rendered and read as YAML.

use serde_json::{Map, Value};

use super::text::Text;
use crate::{
    diagnostic::{FieldPath, Position},
    object::type_name,
    schema::VarsSource,
    vars::{Context, Templates, VarsError, is_encrypted, load::Loaded},
    yaml::{self, Schema},
};

/// Reads the file. A missing one that may be missing gives an empty mapping.
pub(in crate::vars) fn read(
    path: &str,
    entry: &VarsSource,
    templates: &Templates,
    context: &Context,
) -> Result<Loaded, VarsError> {
    let Some(found) = templates.find(path) else {
        templates.check_inside(path)?;
        if entry.ignore_missing {
            return Ok(Loaded::mapping(Map::new()));
        }
        let (path, field) = (path.to_owned(), FieldPath::root().child("file"));
        let searched = templates.dirs().to_vec();
        return Err(VarsError::FileNotFound { path, searched, field });
    };
    let content = templates.tree().read(&found)?;
    let text = std::str::from_utf8(&content).map_err(|error| {
        let at = Position::of_byte(&content, error.valid_up_to());
        VarsError::NotText { path: found.clone(), at }
    })?;
    if entry.sensitive == Some(true) {
        return read_sensitive(found, text, entry, templates, context);
    }
    let unrendered = || Box::new(templates.file(&found, text, text));
    let rendered = templates
        .render(&found, text, context)
        .map_err(|source| VarsError::FileTemplate { file: unrendered(), source })?;
    if is_encrypted(&found, rendered.as_bytes()) {
        return Err(VarsError::Encrypted { path: found });
    }
    let file = || Box::new(templates.file(&found, text, &rendered));
    let value = parse(&found, &rendered, entry.multidoc)
        .map_err(|source| VarsError::FileYaml { file: file(), source })?;
    if !entry.multidoc && !value.is_object() {
        let found_type = type_name(&value);
        return Err(VarsError::NotAMapping {
            what: found,
            found: found_type,
            target_path_helps: false,
        });
    }
    Ok(Loaded { value, what: found })
}

/// The same without a word about the content in messages.
fn read_sensitive(
    path: String,
    text: &str,
    entry: &VarsSource,
    templates: &Templates,
    context: &Context,
) -> Result<Loaded, VarsError> {
    let what = format!("vars file {path}");
    let text = Text { content: text.to_owned(), what, is_sensitive: true };
    let text = text.render(&path, templates, context)?;
    if is_encrypted(&path, text.content.as_bytes()) {
        return Err(VarsError::Encrypted { path });
    }
    let value = if entry.multidoc { text.parse(true)? } else { super::mapping(&text)? };
    Ok(Loaded { value, what: path })
}

/// The first document as a mapping (an empty one when there is none), or the list of all documents.
fn parse(path: &str, text: &str, multidoc: bool) -> Result<Value, yaml::YamlError> {
    if multidoc {
        let documents = yaml::parse_documents(path, text.as_bytes(), Schema::Config)?;
        return Ok(documents.into_iter().map(|document| document.value).collect());
    }
    let document = yaml::parse_document(path, text.as_bytes(), Schema::Config)?;
    Ok(match document.value {
        Value::Null => Value::Object(Map::new()),
        value => value,
    })
}
