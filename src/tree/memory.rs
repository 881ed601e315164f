use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Entry, EntryKind, SourceTree, TreeError};

/// A tree held in memory: rendered files, and projects in tests.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: BTreeMap<String, Arc<[u8]>>,
    directories: BTreeSet<String>,
}

impl MemoryTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tree of text files.
    pub fn from_texts<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut tree = Self::new();
        for (path, text) in files {
            tree.insert(path, text.as_bytes());
        }
        tree
    }

    /// Adds or replaces a file; its directories come to be by themselves. `path` is in the form [`super::join`] returns.
    pub fn insert(&mut self, path: &str, content: impl Into<Arc<[u8]>>) {
        self.insert_directory(super::parent(path));
        self.files.insert(path.to_owned(), content.into());
    }

    /// Adds a directory and those above it.
    pub fn insert_directory(&mut self, path: &str) {
        let mut dir = path;
        while !dir.is_empty() && self.directories.insert(dir.to_owned()) {
            dir = super::parent(dir);
        }
    }

    /// All files, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Arc<[u8]>)> {
        self.files.iter().map(|(path, content)| (path.as_str(), content))
    }
}

impl SourceTree for MemoryTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        match self.files.get(path) {
            Some(content) => Ok(content.clone()),
            None if path.is_empty() || self.directories.contains(path) => {
                Err(TreeError::WrongKind { path: path.to_owned(), expected: "file" })
            }
            None => Err(TreeError::NotFound { path: path.to_owned() }),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        Ok(if self.files.contains_key(path) {
            Some(EntryKind::File)
        } else if path.is_empty() || self.directories.contains(path) {
            Some(EntryKind::Directory)
        } else {
            None
        })
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        match self.kind(path)? {
            Some(EntryKind::Directory) => {}
            Some(EntryKind::File) => {
                return Err(TreeError::WrongKind { path: path.to_owned(), expected: "directory" });
            }
            None => return Err(TreeError::NotFound { path: path.to_owned() }),
        }
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let child = |full: &str| {
            let name = full.strip_prefix(&prefix)?;
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        let below = |key: &String| key.starts_with(&prefix);
        let directories = self.directories.range(prefix.clone()..).take_while(|key| below(key));
        let files = self
            .files
            .range(prefix.clone()..)
            .take_while(|(key, _)| below(key))
            .map(|(key, _)| key);
        let mut entries: Vec<Entry> = directories
            .map(|key| (key, EntryKind::Directory))
            .chain(files.map(|key| (key, EntryKind::File)))
            .filter_map(|(key, kind)| Some(Entry { name: child(key)?, kind }))
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
