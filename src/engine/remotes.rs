//! Remote resources of kustomizations, from the Git repositories and the web servers that a front lets a run talk to.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::Handle;

use crate::{
    deployment::ResolvedRepository,
    diagnostic::{Class, Diagnostic},
    kustomize::{RemoteFile, Remotes, Repository},
    schema::{GitRef, HttpRequest},
    secret::redact_url,
    tree::SourceTree,
    vars::{GitSource, HttpSource},
    yaml::closest,
};

/// Gets remote resources, each of them once. Its methods wait, and are called on threads that may.
pub struct RemoteResources {
    git: Arc<dyn GitSource>,
    http: Arc<dyn HttpSource>,
    runtime: Handle,
    known: Mutex<Known>,
}

/// Address and reference.
type Key = (String, Option<String>);

#[derive(Default)]
struct Known {
    /// The files, and the position in `resolved`.
    repositories: HashMap<Key, (Arc<dyn SourceTree>, usize)>,
    /// In order of first use.
    resolved: Vec<ResolvedRepository>,
    files: HashMap<String, RemoteFile>,
}

impl RemoteResources {
    /// Resources from these sources, with `runtime` to wait on.
    pub fn new(git: Arc<dyn GitSource>, http: Arc<dyn HttpSource>, runtime: Handle) -> Self {
        Self { git, http, runtime, known: Mutex::default() }
    }

    /// The repositories that were used, in order of first use.
    pub fn repositories(&self) -> Vec<ResolvedRepository> {
        self.known().resolved.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What kind of reference is meant. As Git does it, a tag comes before a branch of the same name.
    async fn reference(&self, repository: &Repository) -> Result<Option<GitRef>, Diagnostic> {
        let Some(name) = repository.reference.as_deref() else { return Ok(None) };
        let tag = |name: &str| GitRef { tag: Some(name.to_owned()), ..GitRef::default() };
        let branch = |name: &str| GitRef { branch: Some(name.to_owned()), ..GitRef::default() };
        if name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Some(GitRef { commit: Some(name.to_owned()), ..GitRef::default() }));
        }
        if let Some(name) = name.strip_prefix("refs/tags/") {
            return Ok(Some(tag(name)));
        }
        if let Some(name) = name.strip_prefix("refs/heads/") {
            return Ok(Some(branch(name)));
        }
        let tips = self.git.tips(&repository.url).await?.all;
        let has = |space: &str| tips.iter().any(|tip| tip.name == format!("{space}{name}"));
        if has("refs/tags/") {
            return Ok(Some(tag(name)));
        }
        // A directory that stands in for the repository has no references of its own.
        if has("refs/heads/") || tips.iter().all(|tip| tip.commit.is_empty()) {
            return Ok(Some(branch(name)));
        }
        let url = redact_url(&repository.url);
        let diagnostic =
            Diagnostic::new(Class::Project, format!("{url} has no branch or tag {name:?}"));
        let names = tips.iter().filter_map(|tip| tip.name.splitn(3, '/').nth(2));
        Err(match closest(name, names) {
            Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
            None => diagnostic,
        })
    }

    async fn checkout(&self, repository: &Repository) -> Result<(), Diagnostic> {
        let reference = self.reference(repository).await?;
        let checkout = self.git.checkout(&repository.url, reference.as_ref()).await?;
        let resolved = ResolvedRepository {
            url: redact_url(&repository.url),
            reference,
            commit: checkout.commit,
            sub_dirs: Vec::new(),
        };
        let mut known = self.known();
        let position = known.resolved.len();
        if let Entry::Vacant(entry) = known.repositories.entry(key(repository)) {
            entry.insert((checkout.tree, position));
            known.resolved.push(resolved);
        }
        Ok(())
    }

    /// The files of a repository that was checked out, of which a directory is used.
    fn checked_out(&self, repository: &Repository) -> Option<Arc<dyn SourceTree>> {
        let mut known = self.known();
        let (tree, position) = known.repositories.get(&key(repository))?.clone();
        let used = known.resolved.get_mut(position)?;
        if !used.sub_dirs.contains(&repository.dir) {
            used.sub_dirs.push(repository.dir.clone());
        }
        Some(tree)
    }
}

fn key(repository: &Repository) -> Key {
    (repository.url.clone(), repository.reference.clone())
}

impl Remotes for RemoteResources {
    fn repository(&self, repository: &Repository) -> Result<Arc<dyn SourceTree>, Diagnostic> {
        if let Some(tree) = self.checked_out(repository) {
            return Ok(tree);
        }
        self.runtime.block_on(self.checkout(repository))?;
        self.checked_out(repository).ok_or_else(|| {
            Diagnostic::new(Class::Internal, "a repository was forgotten while it was in use")
        })
    }

    fn file(&self, url: &str) -> Result<RemoteFile, Diagnostic> {
        if let Some(file) = self.known().files.get(url) {
            return Ok(file.clone());
        }
        let request = HttpRequest {
            url: url.to_owned(),
            method: None,
            body: None,
            headers: BTreeMap::new(),
            json_path: None,
        };
        let answer = self.runtime.block_on(self.http.send(&request))?;
        let file = match answer.status {
            200..=299 => RemoteFile::Content(answer.body),
            status => RemoteFile::Status(status),
        };
        self.known().files.insert(url.to_owned(), file.clone());
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
