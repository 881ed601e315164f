//! Where a work tree comes from: the remote, the branch, the commit, and whether something is not committed.

#![expect(clippy::disallowed_methods, reason = "looks at the files of a work tree")]

use std::{collections::HashSet, fs, path::Path};

use gix::{Repository, index::Entry, open::Options};
use ignore::WalkBuilder;

use super::{GitUrl, WorkTree};

/// What is known about the repository around a work tree. Everything that cannot be read is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Address of the remote `origin`.
    pub url: Option<GitUrl>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The commit that is checked out, in hexadecimal digits.
    pub commit: Option<String>,
    /// Whether anything differs from the commit: staged or not, or untracked and not ignored.
    pub is_dirty: bool,
}

impl WorkTree {
    /// Looks at the repository of a work tree. Files whose size and time are those of the index are not read.
    pub fn origin(root: &Path) -> Origin {
        let Ok(repository) = gix::open_opts(root, Options::isolated()) else {
            return Origin::default();
        };
        let remote = repository.find_remote("origin").ok();
        let url = remote.and_then(|remote| {
            let url = remote.url(gix::remote::Direction::Fetch)?.to_bstring().to_string();
            GitUrl::parse(&url).ok()
        });
        let branch = repository.head_name().ok().flatten();
        let branch = branch.map(|name| name.shorten().to_string());
        let commit = repository.head_id().ok().map(|id| id.to_string());
        Origin { url, branch, commit, is_dirty: is_dirty(&repository, root).unwrap_or(false) }
    }
}

/// Whether the work tree differs from its commit; `None` when that cannot be told.
fn is_dirty(repository: &Repository, root: &Path) -> Option<bool> {
    let index = repository.index_or_empty().ok()?;
    let committed = match repository.head_tree_id() {
        Ok(tree) => repository.index_from_tree(&tree).ok()?,
        // Nothing is committed yet.
        Err(_) => return Some(!index.entries().is_empty() || has_untracked(root, &HashSet::new())),
    };
    let facts = |entry: &Entry| (entry.id, entry.mode);
    let (old, new) = (committed.entries(), index.entries());
    let is_same = old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| facts(old) == facts(new) && old.path(&committed) == new.path(&index));
    if !is_same {
        return Some(true);
    }
    let mut tracked = HashSet::with_capacity(new.len());
    for entry in new {
        let path = entry.path(&index).to_string();
        if is_changed(entry, &root.join(&path)) {
            return Some(true);
        }
        tracked.insert(path);
    }
    Some(has_untracked(root, &tracked))
}

/// Whether a tracked file is not what the index says.
fn is_changed(entry: &Entry, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    if entry.mode.is_submodule() {
        return false;
    }
    let Ok(metadata) = fs::symlink_metadata(path) else { return true };
    let is_known = u64::from(entry.stat.size) == metadata.len()
        && i64::from(entry.stat.mtime.secs) == metadata.mtime()
        && i64::from(entry.stat.mtime.nsecs) == metadata.mtime_nsec();
    if is_known {
        return false;
    }
    let content = if metadata.is_symlink() {
        use std::os::unix::ffi::OsStringExt;
        fs::read_link(path).map(|target| target.into_os_string().into_vec())
    } else {
        fs::read(path)
    };
    let Ok(content) = content else { return true };
    let id = gix::objs::compute_hash(entry.id.kind(), gix::objs::Kind::Blob, &content);
    id.map_or(true, |id| id != entry.id)
}

fn has_untracked(root: &Path, tracked: &HashSet<String>) -> bool {
    let files = WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .ignore(false)
        .git_global(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut files = files.flatten().filter(|entry| !entry.file_type().is_some_and(|t| t.is_dir()));
    files.any(|entry| {
        let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
        path.is_some_and(|path| !tracked.contains(path))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_work_tree_tells_where_it_comes_from_and_whether_it_is_dirty() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let git = |arguments: &[&str]| {
            let status = Command::new("git")
                .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
                .args(arguments)
                .current_dir(root)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(status.status.success(), "{arguments:?}: {status:?}");
            String::from_utf8(status.stdout).unwrap()
        };
        assert_eq!(WorkTree::origin(root), Origin::default());
        git(&["init", "-q", "-b", "main"]);
        git(&["remote", "add", "origin", "https://me:secret@git.example.com/team/My_App.git"]);
        fs::write(root.join(".gitignore"), "ignored/\n").unwrap();
        fs::write(root.join("a"), "one").unwrap();
        assert!(WorkTree::origin(root).is_dirty, "untracked files before the first commit");
        git(&["add", "."]);
        assert!(WorkTree::origin(root).is_dirty, "staged files before the first commit");
        git(&["commit", "-qm", "one"]);
        let origin = WorkTree::origin(root);
        assert_eq!(origin.url.unwrap().without_user(), "https://git.example.com/team/My_App.git");
        assert_eq!(origin.branch.as_deref(), Some("main"));
        assert_eq!(origin.commit.as_deref(), Some(git(&["rev-parse", "HEAD"]).trim()));
        assert!(!origin.is_dirty);

        let is_dirty = || WorkTree::origin(root).is_dirty;
        fs::create_dir(root.join("ignored")).unwrap();
        fs::write(root.join("ignored/x"), "").unwrap();
        assert!(!is_dirty(), "an ignored file");
        fs::write(root.join("new"), "").unwrap();
        assert!(is_dirty(), "an untracked file");
        fs::remove_file(root.join("new")).unwrap();
        fs::write(root.join("a"), "two").unwrap();
        assert!(is_dirty(), "a changed file");
        git(&["add", "a"]);
        assert!(is_dirty(), "a staged file");
        git(&["commit", "-qm", "two"]);
        assert!(!is_dirty(), "after the commit");
        // The same content with a new time.
        fs::write(root.join("a"), "two").unwrap();
        assert!(!is_dirty(), "a touched file");
        fs::remove_file(root.join("a")).unwrap();
        assert!(is_dirty(), "a removed file");
        git(&["checkout", "-q", "--", "."]);
        git(&["checkout", "-q", "--detach"]);
        assert_eq!(WorkTree::origin(root).branch, None);
    }
}
