//! Patches: strategic merge and JSON 6902, through `patches` and its two predecessors.

mod directives;
pub(crate) mod json6902;
mod lists;
#[expect(
    clippy::module_inception,
    reason = "one file per kustomization field, named like the field"
)]
pub(crate) mod patches;
pub(crate) mod patches_json6902;
pub(crate) mod patches_strategic_merge;
pub(crate) mod strategic_merge;

use std::sync::Arc;

use serde_json::Value;

use super::{
    error::{KustomizeError, Place, Result},
    files::{self, Files, Purpose},
    id::Id,
    kustomization::PatchOptions,
    resmap::ResMap,
    resource::Resource,
    schema::Schema,
    styles::Styles,
};
use crate::{
    diagnostic::{Class, Diagnostic},
    yaml::{self, Schema as YamlSchema},
};

/// What patches are read and applied with.
pub(crate) struct Patching<'a> {
    pub files: Files<'a>,
    /// Directory that paths are relative to.
    pub dir: &'a str,
    pub schema: &'a Schema,
}

/// The content of a patch and where it is from.
struct Text {
    /// File, or field of a file, for messages.
    source: String,
    bytes: Arc<[u8]>,
}

/// A patch that was read.
enum Parsed {
    /// Strategic merge patches; none when the text is empty.
    Merge(Vec<Resource>),
    /// JSON 6902 operations.
    Operations(json6902::Operations),
}

impl Patching<'_> {
    /// Reads a patch from a file.
    fn file(&self, path: &str, place: &Place) -> Result<Text> {
        let (source, bytes) = self.files.read(self.dir, path, place)?;
        Ok(Text { source, bytes })
    }

    /// Reads text as whatever kind of patch it is: a list is JSON 6902, a mapping is a strategic merge.
    fn parse(&self, text: &Text) -> Result<Parsed> {
        let documents = yaml::parse_documents(&text.source, &text.bytes, YamlSchema::Manifest)?;
        match documents.first() {
            Some(first) if first.value.is_array() => {
                self.parse_operations(text).map(Parsed::Operations)
            }
            _ => files::from_documents(
                &text.source,
                &text.bytes,
                documents,
                Purpose::Patches,
                self.schema,
            )
            .map(Parsed::Merge),
        }
    }

    /// Reads text as JSON 6902 operations, whose values follow YAML 1.1.
    #[expect(clippy::unused_self, reason = "as its siblings")]
    fn parse_operations(&self, text: &Text) -> Result<json6902::Operations> {
        let document = yaml::parse_document(&text.source, &text.bytes, YamlSchema::Config)?;
        json6902::Operations::decode(&text.source, &document)
    }

    /// Reads text as strategic merge patches.
    fn parse_merge(&self, text: &Text) -> Result<Vec<Resource>> {
        files::parse(&text.source, &text.bytes, Purpose::Patches, self.schema)
    }
}

/// Text written in place, named after its field.
fn inline(text: &str, place: &Place) -> Text {
    let source = format!("{} ({})", place.at.file, place.field);
    Text { source, bytes: Arc::from(text.as_bytes()) }
}

/// Lays a strategic merge patch over an object. Name, kind and namespace stay, unless the options allow a change of the
/// first two. An object that the patch deletes is left empty.
fn merge_into(
    target: &mut Resource,
    patch: &Resource,
    options: &PatchOptions,
    schema: &Schema,
) -> Result<()> {
    if options.allow_name_change || options.allow_kind_change {
        target.remember_id();
    }
    let (name, kind, api_version, namespace) = (
        target.name().to_owned(),
        target.kind().to_owned(),
        target.api_version().to_owned(),
        target.namespace().to_owned(),
    );
    let shape = schema.kind(&api_version, &kind);
    let styles = Pair {
        target: Styles::new(target.source.clone()),
        patch: Styles::new(patch.source.clone()),
    };
    let kept = strategic_merge::merge(&mut target.value, &patch.value, shape, &styles)
        .map_err(|problem| refuse(target, patch, &problem))?;
    if !kept {
        target.value = Value::Null;
        return Ok(());
    }
    let patched_kind = patch.kind().to_owned();
    target.value["apiVersion"] = api_version.into();
    target.value["kind"] =
        if options.allow_kind_change { patched_kind.into() } else { kind.into() };
    if !options.allow_name_change {
        target.set_name(&name);
    }
    target.set_namespace(&namespace);
    target.update_scope(schema);
    Ok(())
}

/// How the two sides of a merge were written.
pub(crate) struct Pair {
    pub target: Styles,
    pub patch: Styles,
}

/// What prevents a patch, at which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub field: String,
    pub message: String,
    pub expected: Option<String>,
    pub hint: Option<String>,
}

fn refuse(target: &Resource, patch: &Resource, problem: &Problem) -> KustomizeError {
    let mut diagnostic = Diagnostic::new(Class::Project, problem.message.clone())
        .with_location(patch.at.clone())
        .with_object(target.id().to_string());
    if !problem.field.is_empty() {
        diagnostic = diagnostic.with_field(problem.field.clone());
    }
    if let Some(expected) = &problem.expected {
        diagnostic = diagnostic.with_expected(expected.clone());
    }
    if let Some(hint) = &problem.hint {
        diagnostic = diagnostic.with_hint(hint.clone());
    }
    KustomizeError::Transform(Box::new(diagnostic))
}

/// The object that a patch without a target selector names.
///
/// # Errors
/// When there is none, or several; the message lists what there is.
fn target_of(map: &ResMap, patch: &Resource) -> Result<usize> {
    let id = patch.original_id();
    match map.find_by_any_id(&id).as_slice() {
        [at] => Ok(*at),
        [] => Err(no_target(map, patch, &id)),
        several => {
            let objects: Vec<String> = several
                .iter()
                .filter_map(|at| map.as_slice().get(*at))
                .map(|resource| resource.id().to_string())
                .collect();
            let message = format!("the patch for {} matches several objects", described(&id));
            Err(patch_error(patch, message, &format!("these: {}", objects.join(", "))))
        }
    }
}

fn described(id: &Id) -> String {
    let mut text = format!("{} {}", id.gvk.kind, id.name);
    if !id.is_cluster_scoped() && id.effective_namespace != "default" {
        text = format!("{text} in namespace {}", id.effective_namespace);
    }
    text
}

fn no_target(map: &ResMap, patch: &Resource, id: &Id) -> KustomizeError {
    let message = format!("the patch for {} matches no object", described(id));
    let ids = |filter: &dyn Fn(&Id) -> bool| -> Vec<String> {
        let ids = map.iter().map(Resource::original_id).filter(|own| filter(own));
        ids.map(|own| own.to_string()).collect()
    };
    let other_version: Vec<String> = map
        .iter()
        .filter(|own| own.kind() == id.gvk.kind && own.original_id().name == id.name)
        .filter(|own| own.api_version() != patch.api_version())
        .map(|own| own.api_version().to_owned())
        .collect();
    if !other_version.is_empty() {
        let hint = format!(
            "{} {} has apiVersion {}, the patch says \"{}\"",
            id.gvk.kind,
            id.name,
            other_version.join(", "),
            patch.api_version()
        );
        return patch_error(patch, message, &hint);
    }
    let same_name = ids(&|own| own.name == id.name && own.gvk.kind == id.gvk.kind);
    let same_kind = ids(&|own| own.gvk.kind == id.gvk.kind);
    let everything = ids(&|_| true);
    let hint = if !same_name.is_empty() {
        format!("there is: {}; the patch must name the namespace", same_name.join(", "))
    } else if !same_kind.is_empty() {
        format!("there is: {}", listed(&same_kind))
    } else if everything.is_empty() {
        "there are no objects to patch".to_owned()
    } else {
        format!("there is no {}; there is: {}", id.gvk.kind, listed(&everything))
    };
    patch_error(patch, message, &hint)
}

/// The first names of a list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.get(..SHOWN).unwrap_or(names).join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}

fn patch_error(patch: &Resource, message: String, hint: &str) -> KustomizeError {
    KustomizeError::Transform(Box::new(
        Diagnostic::new(Class::Project, message).with_location(patch.at.clone()).with_hint(hint),
    ))
}

#[cfg(test)]
mod tests;
