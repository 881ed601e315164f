//! kustomize: from a directory with a kustomization to objects.
//!
//! [`build`] does what `kustomize build` does, on a [`SourceTree`] and without running anything: no Helm charts, no plug-ins
//! other than kustomize's own, and remote resources only from the [`Remotes`] that the caller gives. Objects come in order of accumulation unless `sortOptions` says otherwise.
//! Field by field it follows kustomize v5; `docs/compatibility.md` lists where it does better.
//!
//! One file per field of a kustomization: [`generators`], [`transformers`], [`patches`], [`replacements`], [`vars`]. What
//! holds them together: `accumulate` (the recursion), `resmap` (the objects and their identities), `names` (references to
//! renamed objects), `config` (which fields are affected), `schema` (how lists merge).

mod accumulate;
mod config;
mod decode;
mod error;
mod file_names;
mod files;
mod generators;
mod id;
mod kustomization;
mod label_selector;
mod names;
mod options;
mod origin;
mod patches;
mod pattern;
mod plugins;
mod remote;
mod replacements;
mod resmap;
mod resource;
mod schema;
mod selector;
mod styles;
mod transformers;
mod vars;
mod walk;

pub use error::{KustomizeError, Place};
pub use file_names::file_names;
pub use options::{LoadRestrictor, Options, Reorder};
pub use remote::{RemoteFile, Remotes, Repository};

use serde_json::Value;

use self::{
    accumulate::{Accumulator, Build},
    config::TransformerConfig,
    files::Files,
    id::scalar_text,
    kustomization::Loaded,
    origin::{MANAGED_BY_LABEL, ORIGIN_ANNOTATIONS, Origin, Origins, TRANSFORMER_ANNOTATIONS},
    resource::Resource,
    transformers::sort_options,
};
use crate::{
    diagnostic::{Class, Diagnostic},
    object::Object,
    tree::SourceTree,
};

/// Objects with this annotation, unless it is `false`, take part in the build and are left out of its result.
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

/// What `buildMetadata: [managedByLabel]` says: the version of kustomize that is followed.
const MANAGED_BY: &str = "kustomize-v5.8.2";

/// Builds the kustomization of a directory: its objects, in order of accumulation.
///
/// `dir` is a path as [`crate::tree::join`] returns it. Files anywhere in the tree may be referred to.
///
/// # Errors
/// When a kustomization or a file it names is missing or malformed, a patch or another transformation does not fit its
/// object, two objects have the same identity, or something is asked for that this build refuses to do.
pub fn build(tree: &dyn SourceTree, dir: &str) -> Result<Vec<Object>, KustomizeError> {
    build_with(tree, dir, Options::default(), None)
}

/// As [`build`], with options that a command line gives, and with remote resources if they are allowed.
///
/// # Errors
/// As [`build`], and when a file is named that the options do not allow to read, or a remote resource cannot be had.
pub fn build_with(
    tree: &dyn SourceTree,
    dir: &str,
    options: Options,
    remotes: Option<&dyn Remotes>,
) -> Result<Vec<Object>, KustomizeError> {
    let files = Files {
        tree,
        load_restrictor: options.load_restrictor,
        absolute_paths: options.absolute_paths,
        remotes,
        repository: None,
    };
    let loaded = kustomization::load(files, dir, None)?;
    let origins = Origins::new(&loaded.kustomization.build_metadata)?;
    let Accumulator { mut map, config, vars } = Build::new(files, origins).run(&loaded)?;
    let config = config.unwrap_or_else(TransformerConfig::defaults);
    generators::hash::apply(&mut map);
    names::update_references(&mut map, &config)?;
    vars.resolve(&mut map, &config.var_references)?;
    map.retain(|resource| resource.annotation(LOCAL_CONFIG).is_none_or(|text| text == "false"));
    // Transformers that set any field may have set names and namespaces, too.
    map.check_unique()?;
    match &loaded.kustomization.sort_options {
        Some(options) => sort_options::apply(&mut map, options)?,
        None if options.reorder == Reorder::Legacy => sort_options::apply_legacy(&mut map),
        None => {}
    }
    map.into_vec().into_iter().map(|resource| finish(resource, &loaded, options)).collect()
}

/// Puts the build's metadata on an object and hands it out.
fn finish(
    mut resource: Resource,
    loaded: &Loaded,
    options: Options,
) -> Result<Object, KustomizeError> {
    if options.managed_by_label || loaded.records(MANAGED_BY_LABEL) {
        let labels = resource::map_at(&mut resource.value["metadata"], "labels");
        labels.insert("app.kubernetes.io/managed-by".to_owned(), MANAGED_BY.into());
    }
    if let Some(origin) = resource.origin.take().filter(|_| loaded.records(ORIGIN_ANNOTATIONS)) {
        resource.set_annotation("config.kubernetes.io/origin", &origin.to_annotation());
    }
    if !resource.transformations.is_empty() && loaded.records(TRANSFORMER_ANNOTATIONS) {
        let text = Origin::list_to_annotation(&resource.transformations);
        resource.set_annotation("alpha.config.kubernetes.io/transformations", &text);
    }
    tidy_annotations(&mut resource);
    let at = resource.at;
    Object::new(resource.value).map_err(|error| {
        let diagnostic = Diagnostic::new(Class::Project, error.to_string()).with_location(at);
        KustomizeError::Manifest(Box::new(diagnostic))
    })
}

/// Annotations of this kind are kustomize's notes to itself.
const INTERNAL_ANNOTATIONS: &str = "internal.config.kubernetes.io/";

/// Annotations are texts, and no annotations are no field.
fn tidy_annotations(resource: &mut Resource) {
    let metadata = resource.metadata_mut();
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return };
    annotations.retain(|key, _| !key.starts_with(INTERNAL_ANNOTATIONS));
    if annotations.is_empty() {
        metadata.remove("annotations");
        return;
    }
    for value in annotations.values_mut().filter(|value| !value.is_string()) {
        *value = scalar_text(value).unwrap_or_default().into();
    }
}

#[cfg(test)]
mod tests;
