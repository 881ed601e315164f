//! A Git work tree on disk.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gix::{ThreadSafeRepository, open::Options};

use super::history::{self, Unknown};
use crate::tree::{DiskTree, Entry, EntryKind, SourceTree, TreeError};

/// The files of a work tree as they are on disk, with the history of the commit that is checked out. A directory without a
/// repository is the same without history.
pub struct WorkTree {
    files: DiskTree,
    repository: OnceLock<Result<ThreadSafeRepository, String>>,
    known: Mutex<HashMap<String, Result<String, String>>>,
}

impl fmt::Debug for WorkTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkTree").field("files", &self.files).finish_non_exhaustive()
    }
}

impl WorkTree {
    /// The work tree whose top is this directory. The repository is opened when its history is asked for.
    ///
    /// # Errors
    /// When the directory is missing or cannot be entered.
    pub fn new(root: &Path) -> Result<Self, TreeError> {
        let files = DiskTree::new(root)?;
        Ok(Self { files, repository: OnceLock::new(), known: Mutex::default() })
    }

    fn repository(&self) -> Result<&ThreadSafeRepository, String> {
        let opened = self.repository.get_or_init(|| {
            // Nothing of the user's or the system's Git configuration matters for reading commits.
            gix::open_opts(self.files.root(), Options::isolated())
                .map(gix::Repository::into_sync)
                .map_err(|error| format!("the repository cannot be read: {error}"))
        });
        opened.as_ref().map_err(Clone::clone)
    }

    fn find_latest(&self, path: &str) -> Result<String, String> {
        let repository = self.repository()?.to_thread_local();
        let head = repository.head_id();
        let head = head.map_err(|error| format!("the repository has no commit: {error}"))?.detach();
        let found = history::latest_commit(&repository.objects, head, path);
        found.map(|commit| commit.to_string()).map_err(|unknown| match unknown {
            Unknown::NoSuchFile => "it is not in the commit that is checked out".to_owned(),
            Unknown::CutOff => {
                "the clone is shallow and ends before it; `git fetch --unshallow` gets the rest"
                    .to_owned()
            }
            Unknown::Damaged(message) => message,
        })
    }
}

impl SourceTree for WorkTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        self.files.read(path)
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        self.files.kind(path)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        self.files.list(path)
    }

    fn latest_commit(&self, path: &str) -> Result<Option<String>, TreeError> {
        if matches!(self.files.kind(".git"), Ok(None)) {
            return Ok(None);
        }
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(path).cloned();
        let found = known.unwrap_or_else(|| {
            let found = self.find_latest(path);
            lock().insert(path.to_owned(), found.clone());
            found
        });
        found.map(Some).map_err(|message| TreeError::Io { path: path.to_owned(), message })
    }
}
