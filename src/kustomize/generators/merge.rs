//! How generated objects meet those that are there.

use serde_json::{Map, Value};

use super::{base64_lines, insert_config};
use crate::{
    diagnostic::{Class, Diagnostic},
    kustomize::{
        error::{KustomizeError, Result},
        id::scalar_text,
        resmap::ResMap,
        resource::{Behavior, Resource},
    },
};

/// Adds a generated object, or puts it over the one of the same present or former identity.
///
/// # Errors
/// When the object to merge with or to replace does not exist, or the one to create does.
pub(crate) fn absorb(map: &mut ResMap, mut generated: Resource) -> Result<()> {
    let id = generated.id();
    let refuse = |message: String, hint: &str| {
        let diagnostic = Diagnostic::new(Class::Project, message)
            .with_location(generated.at.clone())
            .with_object(id.to_string())
            .with_hint(hint);
        KustomizeError::Duplicate(Box::new(diagnostic))
    };
    let found = map.find_by_any_id(&id);
    let at = match (found.as_slice(), generated.behavior) {
        ([], Behavior::Create) => return map.append(generated),
        ([], Behavior::Merge | Behavior::Replace) => {
            let message = format!("there is no {} {} to change", id.gvk.kind, id.name);
            return Err(refuse(message, "use `behavior: create`, or check name and namespace"));
        }
        ([_], Behavior::Create) => {
            let message = format!("{} {} exists already", id.gvk.kind, id.name);
            return Err(refuse(message, "use `behavior: merge` or `behavior: replace`"));
        }
        ([at], Behavior::Merge | Behavior::Replace) => *at,
        _ => {
            let message = format!("several objects are, or were, {} {}", id.gvk.kind, id.name);
            return Err(refuse(message, "give the generator a namespace"));
        }
    };
    if let Some(old) = map.as_slice().get(at) {
        inherit(&mut generated, old);
        if generated.behavior == Behavior::Merge {
            merge_data(&mut generated, old);
            generated.origin = old.origin.clone().or(generated.origin);
        }
        generated.behavior = old.behavior;
    }
    map.replace(at, generated);
    Ok(())
}

/// Takes over the identity, its history, and labels and annotations that are not set anew.
fn inherit(generated: &mut Resource, old: &Resource) {
    for field in ["labels", "annotations"] {
        let mut merged = texts(old.metadata_map(field));
        merged.extend(texts(generated.metadata_map(field)));
        let metadata = generated.metadata_mut();
        if merged.is_empty() {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), merged.into());
        }
    }
    generated.set_name(old.name());
    generated.set_namespace(old.namespace());
    generated.former.clone_from(&old.former);
    generated.prefixes.clone_from(&old.prefixes);
    generated.suffixes.clone_from(&old.suffixes);
    generated.vars.clone_from(&old.vars);
    generated.transformations.clone_from(&old.transformations);
    generated.needs_hash &= old.needs_hash;
    generated.generated = old.generated;
}

fn merge_data(generated: &mut Resource, old: &Resource) {
    let map = |resource: &Resource, field: &str| {
        texts(resource.value.get(field).and_then(Value::as_object))
    };
    let mut data = map(old, "data");
    if generated.kind() == "Secret" {
        // As the API server stores it.
        let plain = map(old, "stringData");
        data.extend(plain.into_iter().map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            (key, base64_lines(text.as_bytes()).into())
        }));
    }
    data.extend(map(generated, "data"));
    let mut binary = map(old, "binaryData");
    binary.extend(map(generated, "binaryData"));
    let Some(object) = generated.value.as_object_mut() else { return };
    object.remove("data");
    object.remove("binaryData");
    for (key, value) in data {
        let text = value.as_str().unwrap_or_default();
        insert_config(object, key, text.as_bytes().to_vec());
    }
    if !binary.is_empty() {
        object.insert("binaryData".to_owned(), binary.into());
    }
}

/// The scalars of a mapping as texts.
fn texts(map: Option<&Map<String, Value>>) -> Map<String, Value> {
    let entries = map.into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), scalar_text(value).unwrap_or_default().into()))
        .collect()
}
