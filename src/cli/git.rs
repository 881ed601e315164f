//! Git repositories on the command line: a cache in the user's cache directory, local directories that stand in for
//! repositories, and credentials from flags and from `KLUCTL_GIT_*` variables.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::{
    environment::{Environment, read_file},
    flags::{DeploymentFlags, GitFlags},
    overrides::Overrides,
};
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    engine::GitIncludes,
    git::{
        Cache, CacheOptions, GitUrl, Rules,
        auth::{GitSecret, HostRule, PathGlob, Rule},
    },
    schema::GitRef,
    tree::{DiskTree, SourceTree},
    vars::{GitCheckout, GitSource, GitTip, GitTips},
};

/// Git includes for a command. The cache is opened when the first one is met.
pub(super) struct CommandLineGit {
    cache_dir: PathBuf,
    options: CacheOptions,
    rules: Rules,
    overrides: Overrides,
    cancel: CancellationToken,
    includes: std::sync::OnceLock<Arc<GitIncludes>>,
}

impl CommandLineGit {
    /// The user's cache and credentials.
    ///
    /// # Errors
    /// When a flag or variable names a file that cannot be read, or a pattern that is none.
    pub(super) fn new(
        flags: &DeploymentFlags,
        environment: &Environment,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        let cache_dir = environment.cache_dir().join("git");
        let rules = rules(&flags.git, environment)?;
        let project = &flags.project;
        let (single, groups) = (&project.local_git_override, &project.local_git_group_override);
        let overrides = Overrides::parse("git", single, groups, environment)?;
        let options = CacheOptions { proxies: environment.proxies()?, ..CacheOptions::default() };
        Ok(Self {
            cache_dir,
            options,
            rules,
            overrides,
            cancel,
            includes: std::sync::OnceLock::new(),
        })
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

    /// The directory that stands in for a repository.
    fn local(&self, url: &str) -> Result<Option<Arc<dyn SourceTree>>, Diagnostic> {
        let Ok(url) = GitUrl::parse(url) else { return Ok(None) };
        let Some(dir) = self.overrides.find(&url.key())? else { return Ok(None) };
        let tree = DiskTree::new(&dir)
            .map_err(|error| Diagnostic::new(Class::Project, error.to_string()))?;
        Ok(Some(Arc::new(tree)))
    }
}

impl GitSource for CommandLineGit {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        async move {
            match self.local(url)? {
                Some(tree) => Ok(GitCheckout { tree, commit: String::new() }),
                None => self.includes()?.checkout(url, reference).await,
            }
        }
        .boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        async move {
            if self.local(url)?.is_none() {
                return self.includes()?.tips(url).await;
            }
            // A directory has one state, which stands for whatever is asked for.
            let tip = GitTip { name: "refs/heads/local".to_owned(), commit: String::new() };
            Ok(GitTips { default: Some(tip.name.clone()), all: vec![tip] })
        }
        .boxed()
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

/// The names of credentials in variables, in flags, and in the data of a Secret; whether the value names a file.
const CREDENTIALS: [(&str, &str, &str, bool); 5] = [
    ("USERNAME", "username", "username", false),
    ("PASSWORD", "password", "password", false),
    ("SSH_KEY", "ssh-key-file", "identity", true),
    ("SSH_KNOWN_HOSTS", "ssh-known-hosts-file", "known_hosts", true),
    ("CA_BUNDLE", "ca-file", "ca.crt", true),
];

/// The credentials of flags, then those of variables.
fn rules(flags: &GitFlags, environment: &Environment) -> Result<Rules, Diagnostic> {
    let known_hosts = environment
        .get("SSH_KNOWN_HOSTS")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(environment.get("HOME")?).join(".ssh/known_hosts")));
    let known_hosts = known_hosts.and_then(|path| read_file(&path).ok()).unwrap_or_default();
    let mut rules = Vec::new();
    for ((host, path), given) in flags.scopes()? {
        let values = CREDENTIALS
            .iter()
            .filter_map(|(_, flag, key, is_file)| Some((*key, *given.get(flag)?, *is_file)));
        let origin = format!("--git-* flags for {host}");
        rules.push(rule(origin, host, path, values, &known_hosts, environment)?);
    }
    for (number, set) in sets(environment) {
        let Some(host) = set.get("HOST") else { continue };
        let name = number.map_or_else(String::new, |number| format!("{number}_"));
        let values = CREDENTIALS
            .iter()
            .filter_map(|(variable, _, key, is_file)| Some((*key, *set.get(variable)?, *is_file)));
        let (origin, path) = (format!("KLUCTL_GIT_{name}*"), set.get("PATH").copied());
        rules.push(rule(origin, host, path, values, &known_hosts, environment)?);
    }
    Ok(Rules(rules))
}

fn rule<'a>(
    origin: String,
    host: &str,
    path: Option<&str>,
    values: impl Iterator<Item = (&'static str, &'a str, bool)>,
    known_hosts: &[u8],
    environment: &Environment,
) -> Result<Rule, Diagnostic> {
    let mut data = BTreeMap::from([("known_hosts".to_owned(), known_hosts.to_vec())]);
    for (key, value, is_file) in values {
        let value = match is_file {
            true => read_file(&environment.path(Path::new(value)))?,
            false => value.as_bytes().to_vec(),
        };
        data.insert(key.to_owned(), value);
    }
    let invalid = |error: crate::git::auth::AuthError| {
        Diagnostic::new(Class::Access, format!("{origin}: {error}"))
    };
    let path = path.map(PathGlob::parse).transpose().map_err(&invalid)?;
    let secret = GitSecret::from_data(origin.clone(), &data).map_err(&invalid)?;
    Ok(Rule::Explicit { host: HostRule::parse(host), path, secret })
}
