//! Remote resources: how kustomizations write them, and where a build gets them from.

use std::{fmt, sync::Arc};

use super::{
    LoadRestrictor,
    error::{KustomizeError, Place, Result},
    files::Files,
};
use crate::{diagnostic::Diagnostic, secret::redact_url, tree::SourceTree};

/// Where a build gets remote resources from. Implementations bound time and size, and get each one once however often it is
/// asked for.
pub trait Remotes: Send + Sync {
    /// The files of a Git repository.
    ///
    /// # Errors
    /// When the repository or the reference does not exist or may not be read, as data for the user, without credentials.
    fn repository(
        &self,
        repository: &Repository,
    ) -> std::result::Result<Arc<dyn SourceTree>, Diagnostic>;

    /// What an `http://` or `https://` URL leads to.
    ///
    /// # Errors
    /// When there is no answer or too large a one, as data for the user, without credentials.
    fn file(&self, url: &str) -> std::result::Result<RemoteFile, Diagnostic>;
}

/// The answer of a web server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteFile {
    /// A file.
    Content(Vec<u8>),
    /// The status instead.
    Status(u16),
}

/// A directory of a Git repository, as a kustomization names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The address that Git is asked for.
    pub url: String,
    /// A branch, a tag, a full reference name or a commit; `None` for the default branch.
    pub reference: Option<String>,
    /// The directory, `""` for the root.
    pub dir: String,
    /// Whether the address tells a repository from a file: by `.git`, `_git/`, `//` or a reference.
    is_explicit: bool,
}

const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

impl Repository {
    /// Reads an address in one of kustomize's forms: a URL or `user@host:path`, with the directory behind `//`, `.git` or the
    /// second part of the path, and `?ref=` or `?version=` behind it. `None` for anything else, such as paths of files.
    pub fn parse(address: &str) -> Option<Self> {
        if address.starts_with('/') {
            return None;
        }
        let (address, query) = address.split_once('?').unwrap_or((address, ""));
        let reference = reference_of(query);
        let (host, path) = split_host(strip_prefix_ignoring_case(address, "git::"))?;
        let (repository, dir, is_marked) = split_path(path, host.starts_with("file://"))?;
        let dir = crate::tree::join("", dir).ok()?;
        if repository.is_empty() {
            return None;
        }
        Some(Self {
            url: format!("{host}{repository}"),
            is_explicit: is_marked || reference.is_some(),
            reference,
            dir,
        })
    }

    /// Whether the address is that of a repository for sure, not of a file on a web server.
    pub(crate) fn is_explicit(&self) -> bool {
        self.is_explicit
    }

    /// Whether both are of one repository at one reference.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.url == other.url && self.reference == other.reference
    }

    /// A path in the repository, for messages.
    pub(crate) fn shown(&self, path: &str) -> String {
        let url = redact_url(&self.url);
        match &self.reference {
            Some(reference) => format!("{url}@{reference}//{path}"),
            None => format!("{url}//{path}"),
        }
    }
}

/// Host, with all that belongs to it, and path.
fn split_host(address: &str) -> Option<(String, &str)> {
    let scheme = SCHEMES.into_iter().find(|scheme| starts_with_ignoring_case(address, scheme));
    let rest = address.get(scheme.map_or(0, str::len)..)?;
    let (user, rest) = split_user(rest);
    let is_github =
        ["github.com/", "github.com:"].iter().any(|host| starts_with_ignoring_case(rest, host));
    let is_scp = scheme.is_none() && (!user.is_empty() || is_github);
    if scheme.is_none() && !is_scp {
        return None;
    }
    if scheme == Some("file://") {
        return Some((format!("file://{user}"), rest));
    }
    let slash = rest.find('/');
    let colon = rest.find(':').filter(|colon| is_scp && *colon > 0);
    let separator = match (slash, colon) {
        (Some(slash), Some(colon)) => slash.min(colon),
        (Some(at), None) | (None, Some(at)) => at,
        (None, None) => return None,
    };
    let (host, path) = rest.split_at(separator + 1);
    if !is_github {
        return Some((format!("{}{user}{host}", scheme.unwrap_or_default()), path));
    }
    // These are always asked for in the same two forms.
    let over_ssh = scheme == Some("ssh://") || !user.is_empty();
    let user = if user.is_empty() { "git@" } else { user };
    let host = if over_ssh { format!("{user}github.com:") } else { "https://github.com/".into() };
    Some((host, path))
}

/// The leading `user@`, and the rest.
fn split_user(address: &str) -> (&str, &str) {
    let Some((user, _)) = address.split_once('@') else { return ("", address) };
    let is_user = user.starts_with(|c: char| c.is_ascii_alphabetic())
        && user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_user { address.split_at(user.len() + 1) } else { ("", address) }
}

/// Path of the repository, path in it, and whether something marks the border.
fn split_path(path: &str, is_local: bool) -> Option<(&str, &str, bool)> {
    const AZURE: &str = "_git/";
    const SUFFIX: &str = ".git";
    if let Some(at) = path.find(AZURE) {
        let name = at + AZURE.len();
        let end = path[name..].find('/').map_or(path.len(), |slash| name + slash);
        return Some((&path[..end], path.get(end + 1..).unwrap_or_default(), true));
    }
    if let Some((repository, dir)) = path.split_once("//") {
        return Some((repository, dir, true));
    }
    if let Some(at) = path.find(SUFFIX) {
        let (repository, dir) = path.split_at(at + SUFFIX.len());
        return Some((repository, dir, true));
    }
    if is_local {
        return Some((path, "", true));
    }
    let (owner, rest) = path.split_once('/')?;
    let name = rest.find('/').unwrap_or(rest.len());
    let end = owner.len() + 1 + name;
    Some((&path[..end], path.get(end + 1..).unwrap_or_default(), false))
}

/// `ref` of a query, else `version`. Other parameters have no effect.
fn reference_of(query: &str) -> Option<String> {
    let parameters: Vec<(String, String)> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let first = |wanted: &str| {
        let value = parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        value.filter(|value| !value.is_empty()).cloned()
    };
    first("ref").or_else(|| first("version"))
}

/// A part of a query without its `%` escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| tail.get(..2)).flatten().and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match (byte, escaped) {
            (_, Some(escaped)) => {
                bytes.push(escaped);
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'+', None) => {
                bytes.push(b' ');
                rest = tail;
            }
            (byte, None) => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> &'a str {
    if starts_with_ignoring_case(text, prefix) { &text[prefix.len()..] } else { text }
}

/// A repository with its files.
#[derive(Clone)]
pub(crate) struct Checkout {
    pub repository: Repository,
    tree: Arc<dyn SourceTree>,
}

impl fmt::Debug for Checkout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checkout").field(&self.repository).finish()
    }
}

impl Checkout {
    /// Gets a repository that a kustomization names.
    pub(crate) fn fetch(repository: Repository, files: Files<'_>, place: &Place) -> Result<Self> {
        let remotes = allowed(files, &repository.shown(&repository.dir), place)?;
        let tree = remotes.repository(&repository).map_err(|problem| at(problem, place))?;
        Ok(Self { repository, tree })
    }

    /// The files, of which a kustomization may name those in or below its directory.
    pub(crate) fn files<'a>(&'a self, build: Files<'a>) -> Files<'a> {
        Files {
            tree: &*self.tree,
            load_restrictor: LoadRestrictor::RootOnly,
            absolute_paths: false,
            repository: Some(&self.repository),
            ..build
        }
    }
}

/// Whether a path is the address of something on a web server.
pub(crate) fn is_http(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

/// Downloads a file that a kustomization names.
pub(crate) fn download(url: &str, files: Files<'_>, place: &Place) -> Result<Arc<[u8]>> {
    match allowed(files, url, place)?.file(url).map_err(|problem| at(problem, place))? {
        RemoteFile::Content(content) => Ok(content.into()),
        RemoteFile::Status(status) => Err(KustomizeError::Status {
            place: Box::new(place.clone()),
            url: redact_url(url),
            status,
        }),
    }
}

fn allowed<'a>(files: Files<'a>, url: &str, place: &Place) -> Result<&'a dyn Remotes> {
    files.remotes.ok_or_else(|| {
        let problem =
            place.problem(format!("remote resources are not allowed: {}", redact_url(url)));
        KustomizeError::Kustomization(Box::new(
            problem.with_hint("copy the files, or include the repository with a `git` item"),
        ))
    })
}

/// A problem of a remote resource at the place that names it.
fn at(mut problem: Diagnostic, place: &Place) -> KustomizeError {
    problem.at = Some(place.at.clone());
    problem.field = Some(place.field.clone());
    KustomizeError::Kustomization(Box::new(problem))
}

#[cfg(test)]
mod tests;
