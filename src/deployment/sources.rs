use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{diagnostic::Diagnostic, schema::GitRef, secret::redact_url, tree::SourceTree};

/// One revision of a Git repository.
#[derive(Clone)]
pub struct GitCheckout {
    /// The files at that revision, without `.git`.
    pub tree: Arc<dyn SourceTree>,
    /// The commit, in hex.
    pub commit: String,
}

/// Where Git includes come from. Implementations bound time and size, retry, and fetch a revision once however often it is
/// asked for.
pub trait GitSource: Send + Sync {
    /// The files of `url` at `reference`, or of its default branch.
    ///
    /// # Errors
    /// When the repository or the reference does not exist or may not be read, as data for the user, without credentials.
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>>;
}

/// A Git repository that a deployment includes, and the revision that was used.
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
