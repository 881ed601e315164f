//! The files of a chart, read from a source tree.

use std::sync::Arc;

use serde_json::Value;

use super::HelmError;
use crate::{
    tree::{self, EntryKind, SourceTree},
    yaml::{self, Schema},
};

/// Helm itself refuses charts beyond 100 MiB.
const MAX_BYTES: usize = 100 << 20;
const MAX_FILES: usize = 20_000;
/// How deep directories may be nested; links can make endless ones.
const MAX_DEPTH: usize = 32;

/// What a `Chart.yaml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the chart.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether its authors advise against it.
    pub deprecated: bool,
    /// `application`, `library`, or empty for the former.
    pub kind: String,
}

/// A chart in memory. Clones share the content.
#[derive(Debug, Clone)]
pub struct ChartFiles {
    /// What its `Chart.yaml` says.
    pub metadata: Metadata,
    /// Path below the chart's directory, and content; sorted by path.
    pub files: Arc<[(String, Arc<[u8]>)]>,
    /// Hash over paths and contents.
    pub digest: [u8; 32],
    /// The directory in its source, to tell the user.
    pub dir: String,
}

impl Metadata {
    /// Reads the `Chart.yaml` (or `Chart.yml`) in a directory of a tree.
    ///
    /// # Errors
    /// [`HelmError::NoChart`] when there is none, [`HelmError::Metadata`] when it lacks name or version.
    pub fn read(tree: &dyn SourceTree, dir: &str) -> Result<Self, HelmError> {
        let paths = ["Chart.yaml", "Chart.yml"].map(|name| tree::join(dir, name));
        let path = paths.into_iter().flatten().find(|path| tree.is_file(path));
        let Some(path) = path else {
            return Err(HelmError::NoChart { path: dir.to_owned() });
        };
        Self::parse(&path, &tree.read(&path)?)
    }

    /// Reads the text of a `Chart.yaml`; `path` is named in errors.
    ///
    /// # Errors
    /// [`HelmError::Metadata`] when it is no YAML, or lacks name or version.
    pub fn parse(path: &str, text: &[u8]) -> Result<Self, HelmError> {
        let invalid = |problem: String| HelmError::Metadata { path: path.to_owned(), problem };
        let document = yaml::parse_document(path, text, Schema::Config)
            .map_err(|error| invalid(error.problem().to_string()))?;
        let text = |field: &str| match &document.value[field] {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Null => Ok(String::new()),
            _ => Err(invalid(format!("{field} is not a text"))),
        };
        let required = |field: &str| match text(field)? {
            text if text.is_empty() => Err(invalid(format!("{field} is missing"))),
            text => Ok(text),
        };
        Ok(Self {
            name: required("name")?,
            version: required("version")?,
            deprecated: document.value["deprecated"] == Value::Bool(true),
            kind: text("type")?,
        })
    }
}

impl ChartFiles {
    /// Reads all files below a directory. Blocking.
    ///
    /// # Errors
    /// When there is no chart, it cannot be installed, or it is larger than Helm allows.
    pub fn read(tree: &dyn SourceTree, dir: &str) -> Result<Self, HelmError> {
        let metadata = Metadata::read(tree, dir)?;
        if !matches!(metadata.kind.as_str(), "" | "application") {
            let (chart, kind) = (metadata.name, metadata.kind);
            return Err(HelmError::NotInstallable { chart, kind });
        }
        let mut reading = Reading { chart: &metadata.name, files: Vec::new(), bytes: 0 };
        reading.walk(tree, dir, "", 0)?;
        let mut files = reading.files;
        files.sort();
        let mut hasher = blake3::Hasher::new();
        for (path, content) in &files {
            for part in [path.as_bytes(), content] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        let digest = *hasher.finalize().as_bytes();
        Ok(Self { metadata, files: files.into(), digest, dir: dir.to_owned() })
    }
}

struct Reading<'a> {
    chart: &'a str,
    files: Vec<(String, Arc<[u8]>)>,
    bytes: usize,
}

impl Reading<'_> {
    fn walk(
        &mut self,
        tree: &dyn SourceTree,
        dir: &str,
        below: &str,
        depth: usize,
    ) -> Result<(), HelmError> {
        let chart = self.chart;
        let too_large = |limit| HelmError::TooLarge { chart: chart.to_owned(), limit };
        if depth > MAX_DEPTH {
            return Err(too_large("32 levels of directories"));
        }
        for entry in tree.list(&tree::join(dir, below)?)? {
            if entry.name == ".git" {
                continue;
            }
            let path =
                if below.is_empty() { entry.name } else { format!("{below}/{}", entry.name) };
            match entry.kind {
                EntryKind::Directory => self.walk(tree, dir, &path, depth + 1)?,
                EntryKind::File => {
                    let content = tree.read(&tree::join(dir, &path)?)?;
                    self.bytes += content.len();
                    self.files.push((path, content));
                    if self.bytes > MAX_BYTES {
                        return Err(too_large("100 MiB of files"));
                    }
                    if self.files.len() > MAX_FILES {
                        return Err(too_large("20000 files"));
                    }
                }
            }
        }
        Ok(())
    }
}
