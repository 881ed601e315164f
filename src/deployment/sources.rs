use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{FutureExt, future::BoxFuture};

use crate::{
    diagnostic::Diagnostic,
    schema::GitRef,
    secret::redact_url,
    tree::SourceTree,
    vars::{GitCheckout, GitSource, GitTips},
};

/// A Git repository that a deployment includes or has variables from, and the revision that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRepository {
    /// URL without credentials.
    pub url: String,
    /// The reference asked for; `None` for the default branch.
    pub reference: Option<GitRef>,
    /// The commit it led to.
    pub commit: String,
    /// Directories included from it, in order of use.
    pub sub_dirs: Vec<String>,
}

/// URL and reference as written.
pub(super) type RepositoryKey = (String, Option<GitRef>);

/// The Git repositories of one run: each revision is asked for once, and what was used is noted.
pub(super) struct Repositories {
    source: Arc<dyn GitSource>,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    checkouts: HashMap<RepositoryKey, GitCheckout>,
    /// In order of first use.
    resolved: Vec<(RepositoryKey, ResolvedRepository)>,
}

impl Repositories {
    pub(super) fn new(source: Arc<dyn GitSource>) -> Self {
        Self { source, used: Mutex::default() }
    }

    /// What was used so far, in order of first use.
    pub(super) fn resolved(&self) -> Vec<ResolvedRepository> {
        self.used().resolved.iter().map(|(_, repository)| repository.clone()).collect()
    }

    /// Notes that a directory of a repository, which was checked out, is included.
    pub(super) fn note_directory(
        &self,
        url: &str,
        reference: Option<&GitRef>,
        sub_dir: Option<&str>,
    ) {
        let key = (url.to_owned(), reference.cloned());
        let sub_dir = sub_dir.unwrap_or_default();
        let mut used = self.used();
        let found = used.resolved.iter_mut().find(|(known, _)| *known == key);
        if let Some((_, repository)) = found
            && !repository.sub_dirs.iter().any(|known| known == sub_dir)
        {
            repository.sub_dirs.push(sub_dir.to_owned());
        }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GitSource for Repositories {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        async move {
            let key = (url.to_owned(), reference.cloned());
            if let Some(known) = self.used().checkouts.get(&key) {
                return Ok(known.clone());
            }
            let checkout = self.source.checkout(url, reference).await?;
            let repository = ResolvedRepository {
                url: redact_url(url),
                reference: reference.cloned(),
                commit: checkout.commit.clone(),
                sub_dirs: Vec::new(),
            };
            let mut used = self.used();
            if used.checkouts.insert(key.clone(), checkout.clone()).is_none() {
                used.resolved.push((key, repository));
            }
            Ok(checkout)
        }
        .boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        self.source.tips(url)
    }
}

/// A tree of files that a deployment is made of: the project's own source, or an included repository.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) tree: Arc<dyn SourceTree>,
    /// How its files are named to the user: nothing for the project's own source.
    pub(crate) label: Option<Arc<str>>,
}

impl Source {
    pub(crate) fn root(tree: Arc<dyn SourceTree>) -> Self {
        Self { tree, label: None }
    }

    pub(crate) fn git(tree: Arc<dyn SourceTree>, url: &str, reference: Option<&GitRef>) -> Self {
        let url = redact_url(url);
        let label = match reference {
            Some(reference) => format!("{url}@{reference}"),
            None => url,
        };
        Self { tree, label: Some(label.into()) }
    }

    /// A path as the user is told: relative to the project's source, or led by the repository.
    pub(crate) fn shown(&self, path: &str) -> String {
        match &self.label {
            Some(label) => format!("{label}//{path}"),
            None if path.is_empty() => ".".to_owned(),
            None => path.to_owned(),
        }
    }
}
