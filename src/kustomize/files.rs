//! Reading manifests: files to resources.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;

use super::{
    LoadRestrictor,
    error::{KustomizeError, Place, Result, shown_dir},
    id::scalar_text,
    remote::{self, Remotes, Repository},
    resource::Resource,
    schema::Schema,
    styles::{Source, plain_word},
};
use crate::{
    diagnostic::{Class, Diagnostic, FieldPath, Position, SourceLocation},
    object::type_name,
    secret::redact_url,
    tree::{SourceTree, TreeError, join},
    yaml::{self, Document, Schema as YamlSchema},
};

/// The files of a build, and which of them a kustomization may read.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a> {
    pub tree: &'a dyn SourceTree,
    pub load_restrictor: LoadRestrictor,
    /// Whether files may be named by absolute paths.
    pub absolute_paths: bool,
    /// Where remote resources come from; `None` refuses them.
    pub remotes: Option<&'a dyn Remotes>,
    /// The repository that the tree is of, where that is not the one that is built.
    pub repository: Option<&'a Repository>,
}

impl Files<'_> {
    /// The path in the tree of what a kustomization in `dir` names.
    fn resolve(dir: &str, path: &str, place: &Place) -> Result<String> {
        if path.contains("://") || path.starts_with("git@") || path.starts_with("git::") {
            let message = format!("{} is no address of a repository", redact_url(path));
            let problem = place.problem(message);
            return Err(KustomizeError::Kustomization(Box::new(
                problem.with_expected("https://host/owner/name//directory?ref=v1, or the like"),
            )));
        }
        let base = if path.starts_with('/') { "" } else { dir };
        join(base, path).map_err(|source| read_error(place, source))
    }

    fn refuse_absolute(path: &str, place: &Place) -> Result<()> {
        if !path.starts_with('/') {
            return Ok(());
        }
        let problem = place.problem(format!("absolute path {path}"));
        let problem = problem.with_expected("a path relative to the kustomization");
        Err(KustomizeError::Kustomization(Box::new(problem)))
    }

    /// A path in the tree as it is told to the user.
    pub(crate) fn shown(self, path: String) -> String {
        match self.repository {
            Some(repository) => repository.shown(&path),
            None => path,
        }
    }

    /// Reads a file that a kustomization in `dir` names. Returns how it is called in messages, too.
    pub(crate) fn read(self, dir: &str, path: &str, place: &Place) -> Result<(String, Arc<[u8]>)> {
        if remote::is_http(path) {
            return Ok((redact_url(path), remote::download(path, self, place)?));
        }
        if !self.absolute_paths {
            Self::refuse_absolute(path, place)?;
        }
        let file = Self::resolve(dir, path, place)?;
        let text = self.tree.read(&file).map_err(|source| read_error(place, source))?;
        if self.load_restrictor == LoadRestrictor::RootOnly {
            let real = self.tree.real_path(&file).map_err(|source| read_error(place, source))?;
            if !is_at_or_below(&real, dir) {
                let problem = place.problem(format!("{path} is outside of {}", shown_dir(dir)));
                return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(
                    "move it, make it a kustomization of its own, or allow it with \
                     --load-restrictor LoadRestrictionsNone",
                ))));
            }
        }
        Ok((self.shown(file), text))
    }

    /// The directory that a kustomization in `dir` names, links followed.
    pub(crate) fn resolve_dir(self, dir: &str, path: &str, place: &Place) -> Result<String> {
        Self::refuse_absolute(path, place)?;
        let dir = Self::resolve(dir, path, place)?;
        match self.tree.real_path(&dir) {
            Err(TreeError::NotFound { .. }) => Ok(dir),
            other => other.map_err(|source| read_error(place, source)),
        }
    }
}

/// Whether a path is `dir` or below it.
pub(crate) fn is_at_or_below(path: &str, dir: &str) -> bool {
    dir.is_empty()
        || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn read_error(place: &Place, source: TreeError) -> KustomizeError {
    KustomizeError::Read { place: Box::new(place.clone()), source }
}

/// What documents are read for, which decides what they must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Objects of the build; `List` kinds are replaced by their items.
    Resources,
    /// Strategic merge patches.
    Patches,
}

/// The objects of a multi-document file. `file` is only named in messages.
pub(crate) fn parse(
    file: &str,
    text: &Arc<[u8]>,
    purpose: Purpose,
    schema: &Schema,
) -> Result<Vec<Resource>> {
    let documents = yaml::parse_documents(file, text, YamlSchema::Manifest)?;
    from_documents(file, text, documents, purpose, schema)
}

/// The objects of documents that were parsed from `text`.
pub(crate) fn from_documents(
    file: &str,
    text: &Arc<[u8]>,
    documents: Vec<Document>,
    purpose: Purpose,
    schema: &Schema,
) -> Result<Vec<Resource>> {
    let mut pending = VecDeque::new();
    for (index, mut document) in documents.into_iter().enumerate() {
        keep_annotation_texts(&mut document, text, purpose);
        // The mapping starts where its first key does, which is at the start of a line.
        let start = document.positions.of(&FieldPath::root());
        let position = start.map(|start| Position { column: 1, ..start });
        let at = SourceLocation { file: file.to_owned(), position };
        pending.push_back((document.value, at, index));
    }
    let mut found = Vec::with_capacity(pending.len());
    while let Some((mut value, at, index)) = pending.pop_front() {
        if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) {
            continue;
        }
        // The items of a list come after what else the file holds, as in kustomize.
        if let Some(items) = take_items(&mut value, &at)? {
            pending.extend(items.into_iter().map(|item| (item, at.clone(), index)));
            continue;
        }
        check(&value, &at, purpose)?;
        let mut resource = Resource::new(value, at, schema);
        resource.source = Some(Source::new(text.clone(), index));
        found.push(resource);
    }
    Ok(found)
}

/// The items of a `List`, `ConfigMapList` and so on; `None` for other objects.
fn take_items(value: &mut Value, at: &SourceLocation) -> Result<Option<Vec<Value>>> {
    if !value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
        return Ok(None);
    }
    match value.get_mut("items").map(Value::take) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(Vec::new())),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => {
            let message = format!("found {}", type_name(&other));
            Err(refuse(at, "items", message, Some("a list of objects")))
        }
    }
}

fn check(value: &Value, at: &SourceLocation, purpose: Purpose) -> Result<()> {
    if !value.is_object() {
        let message = format!("found {}", type_name(value));
        return Err(refuse(at, "", message, Some("a Kubernetes object (a mapping)")));
    }
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let required: &[(&str, &str)] = match purpose {
        Purpose::Resources => {
            &[("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")]
        }
        Purpose::Patches => &[("kind", "/kind"), ("metadata.name", "/metadata/name")],
    };
    for (field, path) in required {
        if text(path).is_empty() {
            let found = value.pointer(path).unwrap_or(&Value::Null);
            let kind = text("/kind");
            let message = if found.is_null() {
                format!("missing in {}", if kind.is_empty() { "this object" } else { kind })
            } else {
                format!("found {}", type_name(found))
            };
            return Err(refuse(at, field, message, Some("a non-empty string")));
        }
    }
    Ok(())
}

fn refuse(
    at: &SourceLocation,
    field: &str,
    message: String,
    expected: Option<&str>,
) -> KustomizeError {
    let mut diagnostic = Diagnostic::new(Class::Project, message).with_location(at.clone());
    if !field.is_empty() {
        diagnostic = diagnostic.with_field(field);
    }
    if let Some(expected) = expected {
        diagnostic = diagnostic.with_expected(expected);
    }
    KustomizeError::Manifest(Box::new(diagnostic))
}

/// Annotations are text, whatever YAML makes of them: `1.10` stays `1.10` and `0644` stays `0644`. In patches `null` keeps
/// its meaning, which is to delete.
fn keep_annotation_texts(document: &mut Document, text: &[u8], purpose: Purpose) {
    let path: FieldPath = ["metadata", "annotations"].into_iter().collect();
    let annotations = document.value.pointer_mut("/metadata/annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else { return };
    for (key, value) in annotations {
        if value.is_string() || value.is_null() && purpose == Purpose::Patches {
            continue;
        }
        let position = document.positions.of_value(&path.child(key.as_str()));
        let written =
            position.and_then(|position| plain_scalar(text, position.line, position.column));
        let normal = scalar_text(value).unwrap_or_default();
        *value = Value::String(match written {
            Some(written) if value.is_null() && written.eq_ignore_ascii_case("null") => written,
            Some(written) if value.is_number() || value.is_boolean() => written,
            _ => normal,
        });
    }
}

/// The plain scalar that starts at a place of a text.
fn plain_scalar(text: &[u8], line: usize, column: usize) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let (start, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    plain_word(line.get(start..)?).map(str::to_owned)
}
