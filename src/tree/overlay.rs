use std::sync::Arc;

use super::{Entry, EntryKind, MemoryTree, SourceTree, TreeError};

/// A tree in memory on top of another one; the upper tree's files win.
#[derive(Clone)]
pub struct OverlayTree {
    /// Files that win.
    pub upper: MemoryTree,
    /// Files seen where the upper tree has none.
    pub lower: Arc<dyn SourceTree>,
}

impl SourceTree for OverlayTree {
    fn latest_commit(&self, path: &str) -> Result<Option<String>, TreeError> {
        match self.upper.kind(path)? {
            Some(_) => Ok(None),
            None => self.lower.latest_commit(path),
        }
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        match self.upper.kind(path)? {
            Some(EntryKind::File) => self.upper.read(path),
            _ => self.lower.read(path),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        match self.upper.kind(path)? {
            Some(kind) => Ok(Some(kind)),
            None => self.lower.kind(path),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let upper = if self.upper.is_dir(path) { self.upper.list(path)? } else { Vec::new() };
        let mut entries = match self.lower.kind(path)? {
            Some(EntryKind::Directory) => self.lower.list(path)?,
            _ if self.upper.is_dir(path) => Vec::new(),
            _ => return self.lower.list(path),
        };
        entries.retain(|entry| upper.iter().all(|other| other.name != entry.name));
        entries.extend(upper);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
