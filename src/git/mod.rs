//! Git repositories, read only: a reference becomes a commit, a commit becomes a file tree.
//!
//! [`Cache`] keeps one object store per repository on disk, shared by everybody. Each call contacts the server with the
//! caller's own credentials, so that the cache never shows anybody what the server would refuse; a commit is downloaded once,
//! without its history, and read straight from the object store ([`GitTree`]) without a checkout.
//!
//! Transports are our own: HTTP over the client of [`crate::net`] (CA bundles, basic and bearer authentication, also without
//! TLS), SSH in process with keys in memory and strict host keys. No `git` program is needed.

pub mod auth;
mod cache;
mod fetch;
mod history;
mod http;
mod known_hosts;
mod mirror;
mod operation;
mod origin;
mod reference;
mod remote;
mod ssh;
mod tree;
mod url;
mod work_tree;

pub use auth::{Auth, Login, Rules};
pub use cache::{Cache, CacheOptions, GitCheckout};
pub use origin::Origin;
pub use reference::{Reference, Resolved};
pub use tree::GitTree;
pub use url::{GitUrl, RepoKey, Scheme, UrlError};
pub use work_tree::WorkTree;

use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    net::NetError,
};

/// Why a repository could not be read. No message holds a password, key or token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// The address is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A branch or tag that the repository does not have.
    #[error("unknown {reference} of {url}")]
    UnknownReference {
        /// The repository.
        url: String,
        /// For example `branch "prdo"`.
        reference: String,
        /// The name in it that is nearest, if one is near.
        closest: Option<String>,
        /// How many branches and tags there are, and the first of them.
        existing: String,
    },
    /// A commit that is no full hash.
    #[error("{text:?} is no commit of {url}, expected 40 hexadecimal digits")]
    CommitForm {
        /// The repository.
        url: String,
        /// The text.
        text: String,
    },
    /// A commit that the server does not have, or does not give.
    #[error("{url} has no commit {commit}{}", .message.as_ref().map(|m| format!(": {m}")).unwrap_or_default())]
    UnknownCommit {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// The server's words.
        message: Option<String>,
    },
    /// A reference to something else than a commit.
    #[error("{reference} of {url} leads to a {kind}, not to a commit")]
    NoCommit {
        /// The repository.
        url: String,
        /// The reference.
        reference: String,
        /// What it leads to.
        kind: String,
    },
    /// A repository without commits.
    #[error("{url} is empty")]
    Empty {
        /// The repository.
        url: String,
    },
    /// The server refuses access.
    #[error("{url}: access denied: {message} ({tried})")]
    Denied {
        /// The repository.
        url: String,
        /// The server's words or status.
        message: String,
        /// Which credentials were tried, and which passed over.
        tried: String,
    },
    /// There is no such repository, or not for us.
    #[error("{url}: repository not found, or not visible with these credentials ({tried})")]
    NotFound {
        /// The repository.
        url: String,
        /// Which credentials were tried, and which passed over.
        tried: String,
    },
    /// The server's SSH host key is not trusted.
    #[error("{url}: host key verification failed: {reason}; the server shows {offered}")]
    HostKey {
        /// The repository.
        url: String,
        /// Why it is not trusted.
        reason: String,
        /// Type and fingerprint.
        offered: String,
    },
    /// The SSH private key cannot be used.
    #[error("{url}: the SSH key cannot be used: {message} ({tried})")]
    Key {
        /// The repository.
        url: String,
        /// What is wrong with it.
        message: String,
        /// Which credentials were tried.
        tried: String,
    },
    /// Connection errors and server errors that outlasted the retries.
    #[error("{url}: not reachable after {attempts} attempts: {message}")]
    Unavailable {
        /// The repository.
        url: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        message: String,
    },
    /// The server answers something that is not understood, or refuses.
    #[error("{url}: {message}")]
    Protocol {
        /// The repository.
        url: String,
        /// What happened.
        message: String,
    },
    /// A redirect to another host, or TLS material that cannot be used.
    #[error("{url}")]
    Net {
        /// The repository.
        url: String,
        /// What happened.
        #[source]
        source: NetError,
    },
    /// More bytes than allowed.
    #[error("{url}: the commit needs more than {limit} bytes of download")]
    TooLarge {
        /// The repository.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The time for the whole operation is over.
    #[error("{url}: not done within {seconds} s")]
    Deadline {
        /// The repository.
        url: String,
        /// The time allowed.
        seconds: u64,
    },
    /// The cache directory cannot be used.
    #[error("Git cache {path}: {message}")]
    Cache {
        /// The path concerned.
        path: String,
        /// The system's message.
        message: String,
    },
    /// The caller's token was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Describe for GitError {
    fn describe(&self) -> Diagnostic {
        let class = match self {
            Self::Url(_)
            | Self::UnknownReference { .. }
            | Self::CommitForm { .. }
            | Self::UnknownCommit { .. }
            | Self::NoCommit { .. }
            | Self::Empty { .. }
            | Self::TooLarge { .. } => Class::Project,
            Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::HostKey { .. }
            | Self::Key { .. }
            | Self::Net { .. } => Class::Access,
            Self::Unavailable { .. }
            | Self::Protocol { .. }
            | Self::Deadline { .. }
            | Self::Cache { .. } => Class::Transient,
            Self::Cancelled => Class::Cancelled,
        };
        let diagnostic = Diagnostic::new(class, self.to_string());
        match self {
            Self::UnknownReference { closest, existing, .. } => {
                let diagnostic = match closest {
                    Some(closest) => diagnostic.with_hint(format!("did you mean `{closest}`?")),
                    None => diagnostic,
                };
                diagnostic.with_hint(existing.clone())
            }
            Self::HostKey { .. } => {
                diagnostic.with_hint("compare the fingerprint and add the key to known_hosts")
            }
            Self::Net { source, .. } => diagnostic.with_cause(source),
            _ => diagnostic,
        }
    }
}

#[cfg(test)]
mod tests;
