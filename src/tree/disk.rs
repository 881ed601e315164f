#![expect(
    clippy::disallowed_methods,
    reason = "this module owns the access to files of a source tree"
)]

use std::{
    collections::HashMap,
    fs::{self, FileType, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use super::{Entry, EntryKind, SourceTree, TreeError, file_name, parent};

/// How many bytes a file may have.
const MAX_FILE: u64 = 128 << 20;

/// A directory on disk. Links are followed as long as they stay below the root.
///
/// Where the links of directories lead is looked up once: nobody else should change directories of the tree meanwhile.
#[derive(Debug, Clone)]
pub struct DiskTree {
    root: PathBuf,
    /// Real paths of directories.
    directories: Arc<RwLock<HashMap<String, PathBuf>>>,
}

impl DiskTree {
    /// A tree rooted at an existing directory.
    ///
    /// # Errors
    /// When the directory is missing or cannot be entered.
    pub fn new(root: &Path) -> Result<Self, TreeError> {
        let shown = root.display().to_string();
        let root = root.canonicalize().map_err(|source| io_error(&shown, &source))?;
        if !root.is_dir() {
            return Err(TreeError::WrongKind { path: shown, expected: "directory" });
        }
        Ok(Self { root, directories: Arc::default() })
    }

    /// The root, as an absolute path without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The real path behind `path`, checked to be below the root, and what is there.
    fn resolve(&self, path: &str) -> Result<(PathBuf, Metadata), TreeError> {
        let fail = |source| io_error(path, &source);
        let inside = super::join("", path)?;
        let place = match file_name(&inside) {
            "" => self.root.clone(),
            name => self.real_directory(path, parent(&inside))?.join(name),
        };
        let found = fs::symlink_metadata(&place).map_err(fail)?;
        if !found.is_symlink() {
            return Ok((place, found));
        }
        let real = self.checked(path, &place)?;
        let found = fs::symlink_metadata(&real).map_err(fail)?;
        Ok((real, found))
    }

    /// The real path of a directory; `path` is what is asked for, for messages.
    fn real_directory(&self, path: &str, dir: &str) -> Result<PathBuf, TreeError> {
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(real) = known.get(dir) {
            return Ok(real.clone());
        }
        drop(known);
        let real = self.checked(path, &self.root.join(dir))?;
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(dir.to_owned(), real.clone());
        Ok(real)
    }

    fn checked(&self, path: &str, place: &Path) -> Result<PathBuf, TreeError> {
        let real = place.canonicalize().map_err(|source| io_error(path, &source))?;
        if real.starts_with(&self.root) {
            Ok(real)
        } else {
            Err(TreeError::Escapes { path: path.to_owned() })
        }
    }
}

fn io_error(path: &str, source: &io::Error) -> TreeError {
    match source.kind() {
        // A file in the middle of the path means as much as no file at its end.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            TreeError::NotFound { path: path.to_owned() }
        }
        _ => TreeError::Io { path: path.to_owned(), message: source.to_string() },
    }
}

fn kind_of(found: FileType) -> EntryKind {
    if found.is_dir() { EntryKind::Directory } else { EntryKind::File }
}

impl SourceTree for DiskTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let (real, found) = self.resolve(path)?;
        if found.is_dir() {
            return Err(TreeError::WrongKind { path: path.to_owned(), expected: "file" });
        }
        let refuse = |message: String| Err(TreeError::Io { path: path.to_owned(), message });
        if !found.is_file() {
            return refuse("is a device, a pipe or a socket".to_owned());
        }
        if found.len() > MAX_FILE {
            return refuse(format!("is larger than {} MiB", MAX_FILE >> 20));
        }
        fs::read(&real).map(Arc::from).map_err(|source| io_error(path, &source))
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        match self.resolve(path) {
            Ok((_, found)) => Ok(Some(kind_of(found.file_type()))),
            Err(TreeError::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn real_path(&self, path: &str) -> Result<String, TreeError> {
        let (real, _) = self.resolve(path)?;
        let below = real.strip_prefix(&self.root).unwrap_or(&real);
        let message = || "has a name that is no UTF-8".to_owned();
        let text = below.to_str().map(str::to_owned);
        text.ok_or_else(|| TreeError::Io { path: path.to_owned(), message: message() })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let (real, found) = self.resolve(path)?;
        if !found.is_dir() {
            return Err(TreeError::WrongKind { path: path.to_owned(), expected: "directory" });
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(&real).map_err(|source| io_error(path, &source))? {
            let entry = entry.map_err(|source| io_error(path, &source))?;
            // Names that are not UTF-8 cannot be referred to from YAML; dangling links lead nowhere.
            let found = match entry.file_type() {
                Ok(link) if link.is_symlink() => {
                    fs::metadata(entry.path()).map(|it| it.file_type())
                }
                found => found,
            };
            if let (Ok(name), Ok(found)) = (entry.file_name().into_string(), found) {
                entries.push(Entry { name, kind: kind_of(found) });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
