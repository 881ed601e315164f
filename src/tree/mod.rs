//! Read-only file trees: a Flux artifact, a clone, a working directory, a render.
//!
//! Paths are `/`-separated and relative to the tree's root, without `.`, `..` or empty parts; the root is `""`.
//! [`join`] makes such paths from what users write and refuses those that leave the tree.

mod disk;
mod memory;
mod overlay;

pub use disk::DiskTree;
pub use memory::MemoryTree;
pub use overlay::OverlayTree;

use std::sync::Arc;

/// What a path leads to, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name alone, without the directory.
    pub name: String,
    /// What it is, links followed.
    pub kind: EntryKind,
}

/// Why a file or directory could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Nothing at this path.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// The path in the tree.
        path: String,
    },
    /// A directory was read as a file, or a file listed as a directory.
    #[error("{path}: is not a {expected}")]
    WrongKind {
        /// The path in the tree.
        path: String,
        /// `file` or `directory`.
        expected: &'static str,
    },
    /// The path leaves the tree, by `..` or through a link.
    #[error("{path}: leads outside of the source root")]
    Escapes {
        /// The path as written.
        path: String,
    },
    /// The operating system refused.
    #[error("{path}: {message}")]
    Io {
        /// The path in the tree.
        path: String,
        /// The system's message.
        message: String,
    },
}

/// A read-only file tree. All calls are synchronous; implementations keep every access inside their root.
pub trait SourceTree: Send + Sync {
    /// The content of a file.
    ///
    /// # Errors
    /// When there is no such file, it is a directory, or it cannot be read.
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError>;

    /// What is at `path`; `Ok(None)` when nothing is.
    ///
    /// # Errors
    /// When the path leaves the tree through a link, or the system refuses.
    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError>;

    /// The entries of a directory, sorted by name.
    ///
    /// # Errors
    /// When there is no such directory, or it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError>;

    /// The path of a file or directory without links; the same path for trees that have none.
    ///
    /// # Errors
    /// When nothing is there, or the path leaves the tree through a link.
    fn real_path(&self, path: &str) -> Result<String, TreeError> {
        Ok(path.to_owned())
    }

    /// The full name of the newest commit that changed a file; `Ok(None)` when the tree knows no history.
    ///
    /// # Errors
    /// When no commit has the file, or the history cannot be read.
    fn latest_commit(&self, path: &str) -> Result<Option<String>, TreeError> {
        let _ = path;
        Ok(None)
    }

    /// Whether `path` is a file. Errors count as "no".
    fn is_file(&self, path: &str) -> bool {
        matches!(self.kind(path), Ok(Some(EntryKind::File)))
    }

    /// Whether `path` is a directory. Errors count as "no".
    fn is_dir(&self, path: &str) -> bool {
        matches!(self.kind(path), Ok(Some(EntryKind::Directory)))
    }
}

/// Joins what a user wrote to a directory of a tree. A leading `/` means the same as `./`, as in kluctl.
///
/// # Errors
/// [`TreeError::Escapes`] when `..` leads above the root.
pub fn join(base: &str, path: &str) -> Result<String, TreeError> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(TreeError::Escapes { path: path.to_owned() });
                }
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

/// The directory part of a path; `""` for names at the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// All files at or below `dir`, as paths in the tree, sorted.
///
/// # Errors
/// As [`SourceTree::list`].
pub fn walk_files(tree: &dyn SourceTree, dir: &str) -> Result<Vec<String>, TreeError> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in tree.list(&dir)? {
            let path = if dir.is_empty() { entry.name } else { format!("{dir}/{}", entry.name) };
            match entry.kind {
                EntryKind::File => found.push(path),
                EntryKind::Directory => pending.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
