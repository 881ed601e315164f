#![expect(
    clippy::disallowed_methods,
    reason = "this module owns the access to files of a source tree"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Entry, EntryKind, SourceTree, TreeError};

/// A directory on disk. Links are followed as long as they stay below the root.
#[derive(Debug, Clone)]
pub struct DiskTree {
    root: PathBuf,
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
        Ok(Self { root })
    }

    /// The root, as an absolute path without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The real path behind `path`, checked to be below the root.
    fn resolve(&self, path: &str) -> Result<PathBuf, TreeError> {
        let joined = self.root.join(super::join("", path)?);
        let real = joined.canonicalize().map_err(|source| io_error(path, &source))?;
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

fn kind_of(path: &Path) -> io::Result<EntryKind> {
    let metadata = fs::metadata(path)?;
    Ok(if metadata.is_dir() { EntryKind::Directory } else { EntryKind::File })
}

impl SourceTree for DiskTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let real = self.resolve(path)?;
        if real.is_dir() {
            return Err(TreeError::WrongKind { path: path.to_owned(), expected: "file" });
        }
        fs::read(&real).map(Arc::from).map_err(|source| io_error(path, &source))
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        match self.resolve(path) {
            Ok(real) => kind_of(&real).map(Some).map_err(|source| io_error(path, &source)),
            Err(TreeError::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn real_path(&self, path: &str) -> Result<String, TreeError> {
        let real = self.resolve(path)?;
        let below = real.strip_prefix(&self.root).unwrap_or(&real);
        let message = || "has a name that is no UTF-8".to_owned();
        let text = below.to_str().map(str::to_owned);
        text.ok_or_else(|| TreeError::Io { path: path.to_owned(), message: message() })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let real = self.resolve(path)?;
        if !real.is_dir() {
            return Err(TreeError::WrongKind { path: path.to_owned(), expected: "directory" });
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(&real).map_err(|source| io_error(path, &source))? {
            let entry = entry.map_err(|source| io_error(path, &source))?;
            // Names that are not UTF-8 cannot be referred to from YAML; dangling links lead nowhere.
            if let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), kind_of(&entry.path()))
            {
                entries.push(Entry { name, kind });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
