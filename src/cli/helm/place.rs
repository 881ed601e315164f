//! Pulled charts beside a project: replaced as a whole, and removed when nothing uses them.

#![expect(clippy::disallowed_methods, reason = "these commands change files of the user's project")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;

use super::releases::Release;
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    helm::{Origin, PULLED_DIR, Version},
    schema::GitRef,
    tree::{self, SourceTree},
    yaml,
};

/// A chart to be pulled: where it goes below the directory of pulled charts, and where it comes from.
pub(in crate::cli) type Wanted<'a> = BTreeMap<String, (&'a Origin, &'a Version)>;

/// The charts that releases need beside the project.
///
/// # Errors
/// When a name would lead out of the directory.
pub(in crate::cli) fn wanted(releases: &[Release]) -> Result<Wanted<'_>, Diagnostic> {
    let kept = releases.iter().filter(|release| !release.chart.skip_pre_pull);
    kept.map(|release| {
        let dir = match &release.version {
            // By the commit, as two of them may be in use.
            Version::Git(Some(reference)) if reference.commit.is_some() => {
                let commit = reference.commit.as_deref().unwrap_or_default();
                release.origin.pulled_dir().map(|dir| format!("{dir}/{commit}"))
            }
            version => release.origin.pulled_version_dir(version),
        };
        let dir = dir.map_err(|error| error.describe())?;
        Ok((dir, (&release.origin, &release.version)))
    })
    .collect()
}

/// The directories of versions that no release needs any more, of charts that are still in use.
pub(in crate::cli) fn unused(
    root: &Path,
    releases: &[Release],
) -> Result<Vec<PathBuf>, Diagnostic> {
    let wanted = wanted(releases)?;
    let mut parents = BTreeSet::new();
    for release in releases {
        let dir = release.origin.pulled_dir().map_err(|error| error.describe())?;
        match release.origin {
            Origin::Git { .. } => parents.insert(format!("{dir}/refs/tags")),
            _ => parents.insert(dir),
        };
    }
    let mut found = Vec::new();
    for parent in parents {
        let Ok(entries) = fs::read_dir(root.join(PULLED_DIR).join(&parent)) else { continue };
        for entry in entries.flatten() {
            let name = format!("{parent}/{}", entry.file_name().to_string_lossy());
            // Others are parents of further charts.
            let is_chart =
                ["Chart.yaml", "Chart.yml"].iter().any(|file| entry.path().join(file).is_file());
            if is_chart && !wanted.contains_key(&name) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a directory.
pub(in crate::cli) fn remove(dir: &Path) -> Result<(), Diagnostic> {
    fs::remove_dir_all(dir).map_err(|error| failed(dir, "removed", &error))
}

/// Whether the chart is there.
pub(in crate::cli) fn is_there(root: &Path, dir: &str) -> bool {
    let dir = root.join(PULLED_DIR).join(dir);
    ["Chart.yaml", "Chart.yml"].iter().any(|name| dir.join(name).is_file())
}

/// Puts the files of a tree in place of a pulled chart: the old one stays whole until the new one is.
pub(in crate::cli) fn replace(
    root: &Path,
    dir: &str,
    files: &dyn SourceTree,
    sub_dir: &str,
    note: Option<&str>,
) -> Result<(), Diagnostic> {
    let base = root.join(PULLED_DIR);
    let target = base.join(dir);
    let on_disk = |error: io::Error| failed(&target, "written", &error);
    fs::create_dir_all(&base).map_err(on_disk)?;
    let temporary = tempfile::Builder::new().prefix(".pull-").tempdir_in(&base).map_err(on_disk)?;
    let new = temporary.path().join("new");
    fs::create_dir(&new).map_err(on_disk)?;
    let paths = tree::walk_files(files, sub_dir)
        .map_err(|error| Diagnostic::new(Class::Project, error.to_string()))?;
    for path in paths {
        let below = path.strip_prefix(sub_dir).unwrap_or(&path).trim_start_matches('/');
        if below.split('/').any(|part| part == ".git") {
            continue;
        }
        let content = files
            .read(&path)
            .map_err(|error| Diagnostic::new(Class::Project, error.to_string()))?;
        let file = new.join(below);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(on_disk)?;
        }
        fs::write(&file, &content).map_err(on_disk)?;
    }
    if let Some(note) = note {
        fs::write(new.join(".git-info.yaml"), note).map_err(on_disk)?;
    }
    swap(&temporary, &new, &target).map_err(on_disk)
}

fn swap(temporary: &TempDir, new: &Path, target: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let old = temporary.path().join("old");
    let had_old = match fs::rename(target, &old) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let placed = fs::rename(new, target);
    if placed.is_err() && had_old {
        fs::rename(&old, target)?;
    }
    placed
}

/// What Kluctl notes beside a chart from Git.
pub(in crate::cli) fn git_note(reference: Option<&GitRef>, commit: &str) -> String {
    let reference = reference.map_or_else(|| json!({}), |reference| json!(reference));
    yaml::emit(&json!({"checkedOutRef": reference, "checkedOutCommit": commit}))
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Class::Access, format!("{} cannot be {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::MemoryTree;

    #[test]
    fn a_chart_is_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let old = MemoryTree::from_texts([("c/Chart.yaml", "old"), ("c/gone.yaml", "")]);
        let new = MemoryTree::from_texts([
            ("c/Chart.yaml", "new"),
            ("c/x/y.yaml", "y"),
            ("c/.git/x", ""),
        ]);
        replace(root.path(), "https_h/c/1.0.0", &old, "c", None).unwrap();
        replace(root.path(), "https_h/c/1.0.0", &new, "c", Some("note")).unwrap();
        let dir = root.path().join(PULLED_DIR).join("https_h/c/1.0.0");
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
        assert_eq!(read("Chart.yaml").as_deref(), Some("new"));
        assert_eq!(read("x/y.yaml").as_deref(), Some("y"));
        assert_eq!(read(".git-info.yaml").as_deref(), Some("note"));
        assert_eq!((read("gone.yaml"), read(".git/x")), (None, None));
        let left = fs::read_dir(root.path().join(PULLED_DIR)).unwrap().count();
        assert_eq!(left, 1, "temporary directories are gone");
    }

    #[test]
    fn a_chart_that_cannot_be_read_leaves_the_old_one() {
        let root = tempfile::tempdir().unwrap();
        let old = MemoryTree::from_texts([("Chart.yaml", "old")]);
        replace(root.path(), "a/1", &old, "", None).unwrap();
        assert!(replace(root.path(), "a/1", &old, "missing", None).is_err());
        assert!(is_there(root.path(), "a/1") && !is_there(root.path(), "a"));
    }
}
