//! `replacements`: copies a field of one object into fields of others.

mod path;
mod structured;
mod text_edit;

pub(crate) use path::FieldLookup;

use serde_json::Value;

use super::{
    decode::{Decode, Located, Node, decoded},
    error::{KustomizeError, Place, Result},
    id::{Gvk, Id, effective_namespace, scalar_text},
    resmap::ResMap,
    resource::Resource,
    selector::Selector,
};
use crate::{
    diagnostic::{Class, Diagnostic},
    kustomize::files::Files,
    object::type_name,
    yaml::{self, Schema as YamlSchema},
};
use path::FieldPattern;

const DEFAULT_PATH: &str = "metadata.name";

decoded! {
    /// An entry of `replacements`: written in place, or the path of a file.
    pub(crate) struct ReplacementField {
        path: Option<Located<String>> = "path",
        source: Option<Located<Source>> = "source",
        source_value: Option<String> = "sourceValue",
        targets: Option<Vec<Located<Target>>> = "targets",
    }
}

decoded! {
    /// The field to read.
    pub(crate) struct Source {
        group: String = "group",
        version: String = "version",
        kind: String = "kind",
        name: String = "name",
        namespace: String = "namespace",
        field_path: String = "fieldPath",
        options: Options = "options",
    }
}

decoded! {
    /// The fields to write.
    pub(crate) struct Target {
        select: Option<Located<Selector>> = "select",
        reject: Vec<Selector> = "reject",
        field_paths: Vec<Located<String>> = "fieldPaths",
        options: Options = "options",
    }
}

decoded! {
    /// Which part of a field is meant.
    pub(crate) struct Options {
        delimiter: String = "delimiter",
        index: i64 = "index",
        #[expect(dead_code, reason = "reserved by kustomize, without effect")]
        encoding: String = "encoding",
        create: bool = "create",
    }
}

/// Resolves entries that name files. A file holds one replacement or a list of them.
pub(crate) fn load(
    files: Files<'_>,
    dir: &str,
    entries: &[Located<ReplacementField>],
) -> Result<Vec<Located<ReplacementField>>> {
    let mut list = Vec::new();
    for entry in entries {
        let ReplacementField { path, source, targets, .. } = &entry.value;
        let Some(Located { value: path, place }) = path else {
            list.push(entry.clone());
            continue;
        };
        if source.is_some() || targets.is_some() {
            return Err(entry.place.refuse("`path` excludes `source` and `targets`"));
        }
        let (file, text) = files.read(dir, path, place)?;
        let document = yaml::parse_document(&file, &text, YamlSchema::Config)?;
        let node = Node::root(&file, &document);
        match &document.value {
            Value::Array(_) => list.extend(Vec::decode(&node)?),
            Value::Object(_) => list.push(Located::decode(&node)?),
            _ => return Err(node.expected("a replacement, or a list of them")),
        }
    }
    Ok(list)
}

/// Applies replacements in order.
///
/// # Errors
/// When a source is missing or ambiguous, or a target lacks the field and may not create it.
pub(crate) fn apply(map: &mut ResMap, list: &[Located<ReplacementField>]) -> Result<()> {
    for Located { value: replacement, place } in list {
        let ReplacementField { source, source_value, targets, .. } = replacement;
        let Some(targets) = targets else {
            return Err(place.refuse("a replacement needs `source` and `targets`"));
        };
        let value = match (source, source_value) {
            (Some(source), None) => read_source(map, source)?,
            (None, Some(text)) => Value::String(text.clone()),
            (Some(_), Some(_)) => {
                return Err(place.refuse("`source` and `sourceValue` exclude each other"));
            }
            (None, None) => return Err(place.refuse("a replacement needs `source` and `targets`")),
        };
        for target in targets {
            write_target(map, target, &value)?;
        }
    }
    Ok(())
}

fn read_source(map: &ResMap, source: &Located<Source>) -> Result<Value> {
    let Located { value: source, place } = source;
    let wanted = Gvk {
        group: source.group.clone(),
        version: source.version.clone(),
        kind: source.kind.clone(),
    };
    let namespace = effective_namespace(&source.namespace, false);
    let fits = |id: &Id| {
        (source.name.is_empty() || source.name == id.name)
            && (source.namespace.is_empty() || namespace == id.effective_namespace)
            && id.gvk.is_selected_by(&wanted)
    };
    let selected: Vec<&Resource> = map
        .iter()
        .filter(|resource| resource.former_ids().chain([resource.id()]).any(|id| fits(&id)))
        .collect();
    let resource = match selected.as_slice() {
        [one] => *one,
        [] => {
            let there: Vec<String> = map.iter().map(|r| r.original_id().to_string()).collect();
            let problem = place.problem("no object is selected");
            let hint = format!("there is: {}", there.join(", "));
            return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(hint))));
        }
        several => {
            let ids: Vec<String> = several.iter().map(|r| r.id().to_string()).collect();
            let problem =
                place.problem(format!("several objects are selected: {}", ids.join(", ")));
            return Err(KustomizeError::Kustomization(Box::new(
                problem.with_hint("give kind, name and namespace of one"),
            )));
        }
    };
    let path = if source.field_path.is_empty() { DEFAULT_PATH } else { &source.field_path };
    let place = place.child("fieldPath");
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    let found = FieldLookup::parse(path).get(&resource.value).filter(|value| !is_empty(value));
    let found =
        found.ok_or_else(|| place.refuse(format!("{} has no field {path}", resource.id())))?;
    refine(found, &source.options, &place)
}

/// The part of the source that the options name.
fn refine(value: &Value, options: &Options, place: &Place) -> Result<Value> {
    if options.delimiter.is_empty() {
        return Ok(value.clone());
    }
    let text = scalar_text(value).ok_or_else(|| {
        place.refuse(format!("`delimiter` needs a text, found {}", type_name(value)))
    })?;
    let parts: Vec<&str> = text.split(options.delimiter.as_str()).collect();
    let part = usize::try_from(options.index).ok().and_then(|index| parts.get(index));
    part.map(|part| Value::String((*part).to_owned())).ok_or_else(|| {
        let message = format!("there is no part {} among {}", options.index, parts.len());
        place.refuse(message)
    })
}

fn write_target(map: &mut ResMap, target: &Located<Target>, value: &Value) -> Result<()> {
    let Located { value: target, place } = target;
    let Some(select) = &target.select else {
        return Err(place.refuse("`select` is needed"));
    };
    let default = [Located { value: DEFAULT_PATH.to_owned(), place: place.clone() }];
    let paths =
        if target.field_paths.is_empty() { &default } else { target.field_paths.as_slice() };
    let patterns = paths
        .iter()
        .map(|path| {
            let pattern = FieldPattern::parse(&path.value);
            pattern.map(|pattern| (pattern, path)).map_err(|message| path.place.refuse(message))
        })
        .collect::<Result<Vec<_>>>()?;
    for resource in map.iter_mut() {
        if !is_target(target, &select.value, resource) {
            continue;
        }
        for (pattern, path) in &patterns {
            pattern.write(&mut resource.value, value, &target.options).map_err(|message| {
                let diagnostic = Diagnostic::new(Class::Project, message)
                    .with_location(path.place.at.clone())
                    .with_object(resource.id().to_string())
                    .with_field(path.value.clone());
                let missing = !target.options.create;
                KustomizeError::Transform(Box::new(if missing {
                    diagnostic.with_hint("`options.create: true` creates missing fields")
                } else {
                    diagnostic
                }))
            })?;
        }
    }
    Ok(())
}

fn is_target(target: &Target, select: &Selector, resource: &Resource) -> bool {
    // Namespaces as written: replacements do not take an absent one for `default`.
    let present = (resource.gvk(), resource.name().to_owned(), resource.namespace().to_owned());
    let former = resource.former_ids().map(|id| (id.gvk, id.name, id.effective_namespace));
    let ids: Vec<(Gvk, String, String)> = std::iter::once(present).chain(former).collect();
    let fits = |selector: &Selector| {
        ids.iter().any(|(gvk, name, namespace)| {
            selector.gvk_fits(gvk) && selector.name_fits(name) && selector.namespace_fits(namespace)
        })
    };
    let rejected = target.reject.iter().any(|reject| {
        reject.asks_for_metadata() && reject.metadata_fits(resource)
            || !reject.is_by_metadata_only() && fits(reject)
    });
    !rejected && select.metadata_fits(resource) && fits(select)
}

#[cfg(test)]
mod tests;
