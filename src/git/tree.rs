//! The files of a commit, read from the object store without a checkout.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gix::{
    ObjectId,
    objs::{Kind, TreeRefIter, tree::EntryKind as GitKind},
};

use super::{
    cache::History,
    history::{self, Unknown},
    mirror::Mirror,
};
use crate::tree::{Entry, EntryKind, SourceTree, TreeError};

/// Links followed on the way to one file.
const MAX_LINKS: usize = 40;

/// The files of one commit. Links are followed within the tree; submodules are empty directories. The objects stay on disk as
/// long as this value lives. Cheap to share between threads.
pub struct GitTree {
    mirror: Arc<Mirror>,
    root: ObjectId,
    max_file: u64,
    directories: Mutex<HashMap<ObjectId, Arc<Directory>>>,
    history: History,
    /// The mirror that has the history, once it was downloaded.
    past: OnceLock<Arc<Mirror>>,
}

type Directory = HashMap<String, (GitKind, ObjectId)>;

/// What a path leads to.
enum Node {
    Directory(Option<ObjectId>),
    File(ObjectId),
}

impl fmt::Debug for GitTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitTree").field("root", &self.root).finish_non_exhaustive()
    }
}

impl GitTree {
    /// `root` is the id of a tree object in the mirror; files of more than `max_file` bytes are not read.
    pub(super) fn new(
        mirror: Arc<Mirror>,
        root: ObjectId,
        max_file: u64,
        history: History,
    ) -> Self {
        let (directories, past) = (Mutex::default(), OnceLock::new());
        Self { mirror, root, max_file, directories, history, past }
    }

    /// Looks in what is there, and downloads the rest of the history if that does not suffice.
    fn find_latest(&self, path: &str) -> Result<ObjectId, String> {
        let look =
            |mirror: &Mirror| history::latest_commit(&mirror.objects(), self.history.commit, path);
        let found = match look(self.past.get().unwrap_or(&self.mirror)) {
            Err(Unknown::CutOff) if self.past.get().is_none() => {
                let mirror = self.history.fetch().map_err(|error| error.to_string())?;
                look(self.past.get_or_init(|| mirror))
            }
            found => found,
        };
        found.map_err(|unknown| match unknown {
            Unknown::NoSuchFile => "it is not in the commit".to_owned(),
            Unknown::CutOff => "the server does not give the whole history".to_owned(),
            Unknown::Damaged(message) => message,
        })
    }

    fn object(&self, id: ObjectId, kind: Kind, path: &str) -> Result<Vec<u8>, TreeError> {
        let failed = |message: String| TreeError::Io { path: path.to_owned(), message };
        match self.mirror.object(id) {
            Ok(Some((found, content))) if found == kind => Ok(content),
            Ok(Some((found, _))) => Err(failed(format!("object {id} is a {found}, not a {kind}"))),
            Ok(None) => Err(failed(format!("object {id} is missing from the Git cache"))),
            Err(error) => Err(failed(format!("object {id}: {}", super::remote::describe(&error)))),
        }
    }

    fn directory(&self, id: ObjectId, path: &str) -> Result<Arc<Directory>, TreeError> {
        let known = |directories: &HashMap<_, Arc<Directory>>| directories.get(&id).cloned();
        if let Some(directory) =
            known(&self.directories.lock().unwrap_or_else(PoisonError::into_inner))
        {
            return Ok(directory);
        }
        let content = self.object(id, Kind::Tree, path)?;
        let mut directory = Directory::new();
        for entry in TreeRefIter::from_bytes(&content, gix::hash::Kind::Sha1) {
            let entry = entry.map_err(|error| TreeError::Io {
                path: path.to_owned(),
                message: format!("tree {id} is damaged: {error}"),
            })?;
            // Names that are not UTF-8 cannot be referred to from YAML.
            if let Ok(name) = std::str::from_utf8(entry.filename) {
                directory.insert(name.to_owned(), (entry.mode.kind(), entry.oid.to_owned()));
            }
        }
        let directory = Arc::new(directory);
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(directories.entry(id).or_insert(directory).clone())
    }

    fn resolve(&self, path: &str) -> Result<Node, TreeError> {
        let missing = || TreeError::NotFound { path: path.to_owned() };
        let escapes = || TreeError::Escapes { path: path.to_owned() };
        let parts = |path: &str| path.split('/').rev().map(str::to_owned).collect::<Vec<_>>();
        let mut above = Vec::new();
        let mut here = self.root;
        let mut ahead = parts(path);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    here = above.pop().ok_or_else(escapes)?;
                    continue;
                }
                _ => {}
            }
            let (kind, id) = *self.directory(here, path)?.get(&part).ok_or_else(missing)?;
            let is_last = ahead.iter().all(|part| part.is_empty() || part == ".");
            match kind {
                GitKind::Tree => above.push(std::mem::replace(&mut here, id)),
                GitKind::Blob | GitKind::BlobExecutable if is_last => return Ok(Node::File(id)),
                GitKind::Commit if is_last => return Ok(Node::Directory(None)),
                GitKind::Blob | GitKind::BlobExecutable | GitKind::Commit => return Err(missing()),
                GitKind::Link => {
                    links += 1;
                    let target = String::from_utf8(self.object(id, Kind::Blob, path)?)
                        .map_err(|_| missing())?;
                    if links > MAX_LINKS {
                        return Err(missing());
                    }
                    if target.starts_with('/') {
                        return Err(escapes());
                    }
                    ahead.extend(parts(&target));
                }
            }
        }
        Ok(Node::Directory(Some(here)))
    }
}

impl SourceTree for GitTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let Node::File(id) = self.resolve(path)? else {
            return Err(TreeError::WrongKind { path: path.to_owned(), expected: "file" });
        };
        if let Ok(Some(size)) = self.mirror.size(id)
            && size > self.max_file
        {
            return Err(TreeError::Io {
                path: path.to_owned(),
                message: format!("has {size} bytes, at most {} are read", self.max_file),
            });
        }
        self.object(id, Kind::Blob, path).map(Arc::from)
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        match self.resolve(path) {
            Ok(Node::File(_)) => Ok(Some(EntryKind::File)),
            Ok(Node::Directory(_)) => Ok(Some(EntryKind::Directory)),
            Err(TreeError::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn latest_commit(&self, path: &str) -> Result<Option<String>, TreeError> {
        let failed = |message: String| TreeError::Io { path: path.to_owned(), message };
        self.find_latest(path).map(|commit| Some(commit.to_string())).map_err(failed)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let id = match self.resolve(path)? {
            Node::Directory(Some(id)) => id,
            Node::Directory(None) => return Ok(Vec::new()),
            Node::File(_) => {
                return Err(TreeError::WrongKind { path: path.to_owned(), expected: "directory" });
            }
        };
        let mut entries = Vec::new();
        for (name, (kind, _)) in self.directory(id, path)?.iter() {
            let kind = match kind {
                GitKind::Tree | GitKind::Commit => EntryKind::Directory,
                GitKind::Blob | GitKind::BlobExecutable => EntryKind::File,
                // Links that lead nowhere are left out; those that lead outside fail when they are read.
                GitKind::Link => match self.kind(&format!("{path}/{name}")) {
                    Ok(Some(kind)) => kind,
                    Ok(None) => continue,
                    Err(_) => EntryKind::File,
                },
            };
            entries.push(Entry { name: name.clone(), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}
