//! Which commit changed a file last. The same answer as `git log -1 -- FILE`.

use gix::{
    ObjectId,
    objs::{CommitRefIter, Find, Kind, TreeRefIter, tree::EntryMode},
};

use super::remote::describe;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The commit to start from does not have the file.
    NoSuchFile,
    /// The history ends before the answer is found.
    CutOff,
    /// An object is missing or damaged.
    Damaged(String),
}

/// Walks from `commit` into the past, always to a parent that has the same file, until there is none.
pub(super) fn latest_commit(
    objects: &dyn Find,
    commit: ObjectId,
    path: &str,
) -> Result<ObjectId, Unknown> {
    let mut objects = Objects { find: objects, buffer: Vec::new() };
    let mut commit = commit;
    let (tree, mut parents) = objects.commit(commit)?.ok_or_else(|| missing(commit))?;
    let file = objects.entry(tree, path)?.ok_or(Unknown::NoSuchFile)?;
    loop {
        let mut same = None;
        for parent in parents {
            // A shallow clone names parents that it does not have.
            let (tree, grandparents) = objects.commit(parent)?.ok_or(Unknown::CutOff)?;
            if objects.entry(tree, path)? == Some(file) {
                same = Some((parent, grandparents));
                break;
            }
        }
        match same {
            Some(next) => (commit, parents) = next,
            None => return Ok(commit),
        }
    }
}

struct Objects<'a> {
    find: &'a dyn Find,
    buffer: Vec<u8>,
}

impl Objects<'_> {
    fn load(&mut self, id: ObjectId) -> Result<Option<(Kind, &[u8])>, Unknown> {
        let found = self.find.try_find(&id, &mut self.buffer);
        let found = found.map_err(|error| Unknown::Damaged(describe(&error)))?;
        Ok(found.map(|data| (data.kind, data.data)))
    }

    /// A commit's root tree and parents; `None` when the commit is not there.
    fn commit(&mut self, id: ObjectId) -> Result<Option<(ObjectId, Vec<ObjectId>)>, Unknown> {
        let Some((Kind::Commit, content)) = self.load(id)? else { return Ok(None) };
        let mut iter = CommitRefIter::from_bytes(content, gix::hash::Kind::Sha1);
        let tree = iter.tree_id().map_err(|_| damaged(id))?;
        Ok(Some((tree, iter.parent_ids().collect())))
    }

    /// Mode and content of the file at `path` below a root tree.
    fn entry(
        &mut self,
        root: ObjectId,
        path: &str,
    ) -> Result<Option<(EntryMode, ObjectId)>, Unknown> {
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        let mut tree = root;
        while let Some(part) = parts.next() {
            let (_, content) = self.load(tree)?.ok_or_else(|| missing(tree))?;
            let mut entries = TreeRefIter::from_bytes(content, gix::hash::Kind::Sha1);
            let found = entries.find_map(|entry| match entry {
                Ok(entry) if entry.filename == part => Some(Ok((entry.mode, entry.oid.to_owned()))),
                Ok(_) => None,
                Err(_) => Some(Err(damaged(tree))),
            });
            match found.transpose()? {
                Some(entry) if parts.peek().is_none() => return Ok(Some(entry)),
                Some((mode, id)) if mode.is_tree() => tree = id,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn missing(id: ObjectId) -> Unknown {
    Unknown::Damaged(format!("object {id} is missing"))
}

fn damaged(id: ObjectId) -> Unknown {
    Unknown::Damaged(format!("object {id} is damaged"))
}
