//! Git on the command line: a cache in the user's cache directory, local directories that stand in for repositories, and the
//! credentials that the user has for Git anyway (kluctl 2.28, `lib/git/auth`): flags, `KLUCTL_GIT_*` variables, credential stores,
//! SSH keys; last git's helpers.

mod helper;
mod rules;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use futures::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use self::helper::CredentialHelper;
use super::{
    environment::Environment,
    flags::{GitFlags, ProjectFlags},
    overrides::Overrides,
};
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    engine::GitIncludes,
    git::{Cache, CacheOptions, GitUrl, Login, Rules, Scheme, WorkTree, auth::Rule},
    schema::GitRef,
    tree::SourceTree,
    vars::{GitCheckout, GitSource, GitTip, GitTips},
};

/// Git repositories for a command. The cache is opened when the first one is met.
pub(super) struct CommandLineGit {
    cache_dir: PathBuf,
    options: CacheOptions,
    rules: Rules,
    overrides: Overrides,
    helper: CredentialHelper,
    cancel: CancellationToken,
    cache: OnceLock<Cache>,
}

impl CommandLineGit {
    /// The user's cache and credentials.
    ///
    /// # Errors
    /// When a flag or variable names a file that cannot be read, or a pattern that is none.
    pub(super) fn new(
        flags: &GitFlags,
        project: &ProjectFlags,
        environment: &Environment,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        let (single, groups) = (&project.local_git_override, &project.local_git_group_override);
        let overrides = Overrides::parse("git", single, groups, environment)?;
        Self::with_credentials(flags, overrides, environment, cancel)
    }

    /// As [`CommandLineGit::new`], for commands that have no project.
    ///
    /// # Errors
    /// As [`CommandLineGit::new`].
    pub(super) fn with_credentials(
        flags: &GitFlags,
        overrides: Overrides,
        environment: &Environment,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        Ok(Self {
            cache_dir: environment.cache_dir().join("git"),
            options: CacheOptions { proxies: environment.proxies()?, ..CacheOptions::default() },
            rules: rules::rules(environment, flags)?,
            overrides,
            helper: CredentialHelper { working_dir: environment.working_dir.clone() },
            cancel,
            cache: OnceLock::new(),
        })
    }

    /// The directory that stands in for a repository.
    fn local(&self, url: &str) -> Result<Option<Arc<dyn SourceTree>>, Diagnostic> {
        let Ok(url) = GitUrl::parse(url) else { return Ok(None) };
        let Some(dir) = self.overrides.find(&url.key())? else { return Ok(None) };
        let tree = WorkTree::new(&dir)
            .map_err(|error| Diagnostic::new(Class::Project, error.to_string()))?;
        Ok(Some(Arc::new(tree)))
    }

    /// The repositories, with one more rule if there is one.
    fn repositories(&self, more: Option<Rule>) -> Result<GitIncludes, Diagnostic> {
        let cache = if let Some(cache) = self.cache.get() {
            cache
        } else {
            let cache = Cache::open(&self.cache_dir, self.options.clone());
            let cache = cache.map_err(|error| error.describe())?;
            self.cache.get_or_init(|| cache)
        };
        let mut rules = self.rules.clone();
        rules.0.extend(more);
        Ok(GitIncludes { cache: cache.clone(), rules, cancel: self.cancel.clone() })
    }

    /// The repositories with what git's helpers know about a server that refused an anonymous visitor; `None` when there is
    /// nothing more to try. As git does, they are asked only then.
    async fn after_refusal(&self, url: &str, refusal: &Diagnostic) -> Option<GitIncludes> {
        let url = GitUrl::parse(url).ok().filter(|url| url.scheme() != Scheme::Ssh)?;
        if refusal.class != Class::Access || self.rules.choose(&url).login != Login::Anonymous {
            return None;
        }
        let found = self.helper.ask(&url).await?;
        self.repositories(Some(found)).ok()
    }
}

impl GitSource for CommandLineGit {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        async move {
            if let Some(tree) = self.local(url)? {
                return Ok(GitCheckout { tree, commit: String::new() });
            }
            match self.repositories(None)?.checkout(url, reference).await {
                Err(refusal) => match self.after_refusal(url, &refusal).await {
                    Some(repositories) => repositories.checkout(url, reference).await,
                    None => Err(refusal),
                },
                found => found,
            }
        }
        .boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        async move {
            if self.local(url)?.is_some() {
                // A directory has one state, which stands for whatever is asked for.
                let tip = GitTip { name: "refs/heads/local".to_owned(), commit: String::new() };
                return Ok(GitTips { default: Some(tip.name.clone()), all: vec![tip] });
            }
            match self.repositories(None)?.tips(url).await {
                Err(refusal) => match self.after_refusal(url, &refusal).await {
                    Some(repositories) => repositories.tips(url).await,
                    None => Err(refusal),
                },
                found => found,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
