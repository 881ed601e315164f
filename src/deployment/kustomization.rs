//! The kustomization of an item: read, completed or generated (kluctl 2.28).

use serde_json::{Value, json};

use super::{charts::ChartUse, item::Item, render::is_helm_chart_file};
use crate::{
    diagnostic::{Class, Describe, Diagnostic, SourceLocation},
    object::annotations::parse_bool,
    tree::{self, EntryKind, MemoryTree, SourceTree, TreeError},
    yaml::{self, Schema, YamlError},
};

/// Why an item has no usable kustomization.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KustomizationError {
    /// A file cannot be read.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// The kustomization is no YAML.
    #[error("{path} is not valid")]
    Yaml {
        /// The file.
        path: String,
        /// What the parser says.
        #[source]
        source: YamlError,
    },
    /// `recursive` collects files of its own accord and cannot respect a kustomization.
    #[error("`recursive: true` cannot be combined with {path}")]
    Recursive {
        /// The kustomization found.
        path: String,
    },
    /// kustomize knows this name, kluctl does not.
    #[error("{path} is not used by kluctl")]
    Name {
        /// The file found.
        path: String,
    },
}

impl Describe for KustomizationError {
    fn describe(&self) -> Diagnostic {
        let plain = || Diagnostic::new(Class::Project, self.to_string());
        match self {
            Self::Tree(_) => plain(),
            Self::Yaml { source, .. } => source.describe(),
            Self::Recursive { path } => plain()
                .with_location(SourceLocation::file(path))
                .with_hint("remove `recursive` or the kustomization"),
            Self::Name { path } => plain()
                .with_location(SourceLocation::file(path))
                .with_expected("kustomization.yaml or kustomization.yml"),
        }
    }
}

/// The kustomization of an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Kustomization {
    /// The file to write: path and text. `None` when the one that is there stays as it is.
    pub(super) written: Option<(String, String)>,
    /// There is nothing to build.
    pub(super) is_empty: bool,
    /// Annotation `kluctl.io/barrier`.
    pub(super) barrier: bool,
    /// Annotation `kluctl.io/wait-readiness`.
    pub(super) wait_readiness: bool,
}

/// Reads the kustomization among the item's rendered `files`, or generates one, and completes it with the namespace that the
/// project wants. The output of `charts` is among the files.
pub(super) fn prepare(
    item: &Item,
    dir: &str,
    files: &MemoryTree,
    charts: &[ChartUse],
) -> Result<Kustomization, KustomizationError> {
    let namespace = item.project.inherited.override_namespace.as_deref();
    let found = super::config_file::find(files, dir, "kustomization", ["yml", "yaml"])?;
    match found {
        Some(path) if item.config.recursive => Err(KustomizationError::Recursive { path }),
        Some(path) => complete(&path, files, namespace),
        None => generate(dir, files, charts, item.config.recursive, namespace),
    }
}

/// An existing kustomization, with the namespace added when it has none.
fn complete(
    path: &str,
    files: &MemoryTree,
    namespace: Option<&str>,
) -> Result<Kustomization, KustomizationError> {
    let text = files.read(path)?;
    let invalid = |source| KustomizationError::Yaml { path: path.to_owned(), source };
    let document = yaml::parse_document(path, &text, Schema::Config).map_err(invalid)?;
    let annotations = &document.value["metadata"]["annotations"];
    let is_set = |name: &str| annotations[name].as_str().and_then(parse_bool).unwrap_or(false);
    let written = match (namespace, &document.value) {
        (Some(namespace), Value::Object(fields)) if !fields.contains_key("namespace") => {
            Some((path.to_owned(), with_namespace(path, &text, &document.value, namespace)))
        }
        _ => None,
    };
    let (barrier, wait_readiness) =
        (is_set("kluctl.io/barrier"), is_set("kluctl.io/wait-readiness"));
    Ok(Kustomization { written, is_empty: false, barrier, wait_readiness })
}

/// The text with a namespace. The field is appended where that is possible, so that lines keep their numbers for messages.
fn with_namespace(path: &str, text: &[u8], value: &Value, namespace: &str) -> String {
    let mut wanted = value.clone();
    wanted["namespace"] = json!(namespace);
    let line = yaml::emit(&json!({"namespace": namespace}));
    if let Ok(text) = std::str::from_utf8(text) {
        let appended = format!("{}\n{line}", text.trim_end_matches('\n'));
        let parsed = yaml::parse_documents(path, appended.as_bytes(), Schema::Config);
        if let Ok([document]) = parsed.as_deref()
            && document.value == wanted
        {
            return appended;
        }
    }
    yaml::emit(&wanted)
}

/// A kustomization with the manifests of the directory as resources.
fn generate(
    dir: &str,
    files: &MemoryTree,
    charts: &[ChartUse],
    recursive: bool,
    namespace: Option<&str>,
) -> Result<Kustomization, KustomizationError> {
    let unused = tree::join(dir, "Kustomization")?;
    if files.is_file(&unused) {
        return Err(KustomizationError::Name { path: unused });
    }
    let mut names = Vec::new();
    collect(files, dir, "", recursive, charts, &mut names)?;
    let is_empty = names.is_empty();
    let mut value = json!({"resources": names});
    if let Some(namespace) = namespace {
        value["namespace"] = json!(namespace);
    }
    let path = tree::join(dir, "kustomization.yml")?;
    let written = Some((path, yaml::emit(&value)));
    Ok(Kustomization { written, is_empty, ..Kustomization::default() })
}

/// Adds the manifests of a directory, as paths relative to `dir`, by name; with `recursive` those of sub directories come where
/// their directory's name stands.
fn collect(
    files: &MemoryTree,
    dir: &str,
    below: &str,
    recursive: bool,
    charts: &[ChartUse],
    names: &mut Vec<String>,
) -> Result<(), KustomizationError> {
    for entry in files.list(&tree::join(dir, below)?)? {
        let name =
            if below.is_empty() { entry.name.clone() } else { format!("{below}/{}", entry.name) };
        match entry.kind {
            EntryKind::Directory if recursive => {
                collect(files, dir, &name, recursive, charts, names)?;
            }
            EntryKind::File
                if matches!(&*entry.name, "kustomization.yaml" | "kustomization.yml") =>
            {
                return Err(KustomizationError::Recursive { path: tree::join(dir, &name)? });
            }
            EntryKind::File if is_helm_chart_file(&entry.name) => {
                // Most outputs are found by themselves.
                let path = tree::join(dir, &name)?;
                let chart = charts.iter().find(|chart| chart.file == path);
                let output = chart.and_then(|chart| relative(&chart.output, dir));
                names.extend(output.filter(|output| !is_listed(output, below, recursive)));
            }
            EntryKind::File if is_manifest(&entry.name) => names.push(name),
            EntryKind::Directory | EntryKind::File => {}
        }
    }
    Ok(())
}

/// The part of a path below a directory.
fn relative(path: &str, dir: &str) -> Option<String> {
    let rest = path.strip_prefix(dir)?;
    Some(rest.trim_start_matches('/').to_owned())
}

/// Whether a file is found as a manifest beside the one in directory `below`.
fn is_listed(path: &str, below: &str, recursive: bool) -> bool {
    is_manifest(tree::file_name(path)) && (recursive || tree::parent(path) == below)
}

fn is_manifest(name: &str) -> bool {
    let name = name.to_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    matches!(extension, "yml" | "yaml") && !matches!(stem, "helm-values" | "helm-chart")
}
