use std::collections::{BTreeMap, HashSet};

use super::{
    error::KustomizeError,
    id::{Gvk, effective_namespace, is_no_namespace},
    schema::Schema,
};
use crate::{
    diagnostic::{Class, Diagnostic},
    object::Object,
};

/// The names that `kustomize build` gives to files of one object each, in the order of the objects:
/// `<group>_<version>_<kind>_<name>.yaml`, behind `<namespace>_` when the objects are in several namespaces.
///
/// # Errors
/// When two objects would share a file, or a name leads out of the directory.
pub fn file_names(objects: &[Object]) -> Result<Vec<String>, KustomizeError> {
    let schema = Schema::builtin();
    let namespace = |object: &Object| {
        let cluster_scoped = schema.is_cluster_scoped(object.api_version(), object.kind());
        effective_namespace(object.namespace().unwrap_or_default(), cluster_scoped).to_owned()
    };
    let namespaces: Vec<String> = objects.iter().map(namespace).collect();
    let distinct: HashSet<&String> =
        namespaces.iter().filter(|namespace| !is_no_namespace(namespace)).collect();
    let mut taken = BTreeMap::new();
    let mut names = Vec::with_capacity(objects.len());
    for (object, namespace) in objects.iter().zip(&namespaces) {
        let Gvk { group, version, kind } = Gvk::new(object.api_version(), object.kind());
        let mut parts = vec![group.as_str(), &version, &kind, object.name()];
        if distinct.len() > 1 && !is_no_namespace(namespace) {
            parts.insert(0, namespace);
        }
        parts.retain(|part| !part.is_empty());
        let name = parts.join("_").to_lowercase() + ".yaml";
        let problem = if name.contains('/') {
            Some(format!("{name} is no name for a file"))
        } else {
            taken.insert(name.clone(), object.reference()).map(|other| {
                format!("would be written to {name}, which is the file of {other} already")
            })
        };
        if let Some(message) = problem {
            let diagnostic = Diagnostic::new(Class::Project, message);
            return Err(KustomizeError::Manifest(Box::new(
                diagnostic
                    .with_object(object.reference().to_string())
                    .with_hint("write all objects to one file instead"),
            )));
        }
        names.push(name);
    }
    Ok(names)
}
