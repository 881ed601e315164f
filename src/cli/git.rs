//! Git includes on the command line: a cache in the user's cache directory, and credentials from `KLUCTL_GIT_*` variables.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::environment::{Environment, read_file};
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    engine::GitIncludes,
    git::{
        Cache, CacheOptions, Rules,
        auth::{GitSecret, HostRule, PathGlob, Rule},
    },
    schema::GitRef,
    vars::{GitCheckout, GitSource, GitTips},
};

/// Git includes for a command. The cache is opened when the first one is met.
pub(super) struct CommandLineGit {
    cache_dir: PathBuf,
    options: CacheOptions,
    rules: Rules,
    cancel: CancellationToken,
    includes: std::sync::OnceLock<Arc<GitIncludes>>,
}

impl CommandLineGit {
    /// The user's cache and credentials.
    ///
    /// # Errors
    /// When a variable names a file that cannot be read, or a pattern that is none.
    pub(super) fn new(
        environment: &Environment,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        let cache_dir = environment.cache_dir().join("git");
        let rules = rules(environment)?;
        let options = CacheOptions { proxies: environment.proxies()?, ..CacheOptions::default() };
        Ok(Self { cache_dir, options, rules, cancel, includes: std::sync::OnceLock::new() })
    }

    fn includes(&self) -> Result<Arc<GitIncludes>, Diagnostic> {
        if let Some(includes) = self.includes.get() {
            return Ok(includes.clone());
        }
        let cache =
            Cache::open(&self.cache_dir, self.options.clone()).map_err(|error| error.describe())?;
        let (rules, cancel) = (self.rules.clone(), self.cancel.clone());
        let made = Arc::new(GitIncludes { cache, rules, cancel });
        Ok(self.includes.get_or_init(|| made).clone())
    }
}

impl GitSource for CommandLineGit {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        async move { self.includes()?.checkout(url, reference).await }.boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        async move { self.includes()?.tips(url).await }.boxed()
    }
}

/// A set of credentials: `KLUCTL_GIT_<NAME>` or `KLUCTL_GIT_<n>_<NAME>`.
type Set<'a> = BTreeMap<&'a str, &'a str>;

/// The sets of credentials, the one without a number first.
fn sets(environment: &Environment) -> BTreeMap<Option<u32>, Set<'_>> {
    let mut sets: BTreeMap<Option<u32>, Set<'_>> = BTreeMap::new();
    for (variable, value) in &environment.variables {
        let Some(rest) = variable.strip_prefix("KLUCTL_GIT_") else { continue };
        let (number, name) = match rest.split_once('_') {
            Some((number, name)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                (number.parse().ok(), name)
            }
            _ => (None, rest),
        };
        sets.entry(number).or_default().insert(name, value);
    }
    sets
}

fn rules(environment: &Environment) -> Result<Rules, Diagnostic> {
    let known_hosts = environment
        .get("SSH_KNOWN_HOSTS")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(environment.get("HOME")?).join(".ssh/known_hosts")));
    let known_hosts = known_hosts.and_then(|path| read_file(&path).ok()).unwrap_or_default();
    let mut rules = Vec::new();
    for (number, set) in sets(environment) {
        let Some(host) = set.get("HOST") else { continue };
        let name = number.map_or_else(String::new, |number| format!("{number}_"));
        let origin = format!("KLUCTL_GIT_{name}*");
        let mut data = BTreeMap::from([("known_hosts".to_owned(), known_hosts.clone())]);
        for (variable, key) in [("USERNAME", "username"), ("PASSWORD", "password")] {
            if let Some(value) = set.get(variable) {
                data.insert(key.to_owned(), value.as_bytes().to_vec());
            }
        }
        for (variable, key) in [("SSH_KEY", "identity"), ("CA_BUNDLE", "ca.crt")] {
            if let Some(path) = set.get(variable) {
                data.insert(key.to_owned(), read_file(&environment.path(Path::new(path)))?);
            }
        }
        let invalid = |error: crate::git::auth::AuthError| {
            Diagnostic::new(Class::Access, format!("{origin}: {error}"))
        };
        let path = set.get("PATH").map(|path| PathGlob::parse(path)).transpose();
        let path = path.map_err(&invalid)?;
        let secret = GitSecret::from_data(origin.clone(), &data).map_err(&invalid)?;
        rules.push(Rule::Explicit { host: HostRule::parse(host), path, secret });
    }
    Ok(Rules(rules))
}
