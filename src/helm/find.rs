//! Looks for charts in a source tree.

use super::{HelmError, Metadata, Origin, PULLED_DIR, Version};
use crate::{
    schema::HelmChart,
    tree::{self, SourceTree, TreeError},
};

/// Where a chart is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In this directory of the source.
    Here(String),
    /// Not in the source: it is pulled when it is needed.
    Elsewhere(Origin, Version),
}

/// Looks for the chart of a `helm-chart.yaml` in directory `file_dir` of the item in `item_dir`: a local one, or its copy in
/// the nearest `.helm-charts` from the item's directory upward (kluctl 2.28).
///
/// # Errors
/// When a local chart is missing or outside of the source, or a copy is missing or has another version.
pub fn find(
    tree: &dyn SourceTree,
    item_dir: &str,
    file_dir: &str,
    chart: &HelmChart,
) -> Result<Found, HelmError> {
    let origin = Origin::of(chart)?;
    let version = Origin::version(chart);
    match &origin {
        Origin::Local { path } => local(tree, file_dir, path).map(Found::Here),
        _ if chart.skip_pre_pull => Ok(Found::Elsewhere(origin, version)),
        _ => pulled(tree, item_dir, &origin, &version).map(Found::Here),
    }
}

fn local(tree: &dyn SourceTree, file_dir: &str, path: &str) -> Result<String, HelmError> {
    let outside = || HelmError::Outside { path: path.to_owned() };
    if path.starts_with('/') {
        return Err(outside());
    }
    let dir = tree::join(file_dir, path).map_err(|_| outside())?;
    match Metadata::read(tree, &dir) {
        Ok(_) => Ok(dir),
        Err(HelmError::Tree(TreeError::Escapes { .. })) => Err(outside()),
        Err(error) => Err(error),
    }
}

fn pulled(
    tree: &dyn SourceTree,
    item_dir: &str,
    origin: &Origin,
    version: &Version,
) -> Result<String, HelmError> {
    let mut above = item_dir;
    let base = loop {
        let candidate = tree::join(above, PULLED_DIR)?;
        if tree.is_dir(&candidate) || above.is_empty() {
            break candidate;
        }
        above = tree::parent(above);
    };
    let dir = tree::join(&base, &origin.pulled_version_dir(version)?)?;
    let missing = |expected: String| HelmError::NotPulled {
        chart: origin.name(),
        version: version.to_string(),
        expected,
    };
    match version {
        Version::Chart(wanted) => match Metadata::read(tree, &dir) {
            Ok(metadata) if metadata.version == *wanted => Ok(dir),
            Ok(metadata) => Err(HelmError::OtherVersion {
                chart: origin.name(),
                path: dir,
                found: metadata.version,
                wanted: wanted.clone(),
            }),
            Err(HelmError::NoChart { .. }) => Err(missing(dir)),
            Err(error) => Err(error),
        },
        Version::Git(reference) => {
            if tree.is_dir(&dir) {
                return Ok(dir);
            }
            // Kluctl keeps whatever commit was asked for last under one name, with a note of which it is.
            let commit = reference.as_ref().and_then(|reference| reference.commit.as_deref());
            let shared = tree::join(&base, &format!("{}/HEAD", origin.pulled_dir()?))?;
            let note = tree.read(&tree::join(&shared, ".git-info.yaml")?).unwrap_or_default();
            match commit {
                Some(commit) if String::from_utf8_lossy(&note).contains(commit) => Ok(shared),
                _ => Err(missing(dir)),
            }
        }
    }
}
