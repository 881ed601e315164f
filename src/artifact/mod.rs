//! Flux artifacts: from `status.artifact` of a source object to a verified file tree.
//!
//! An [`Artifact`] is identified by its digest. [`Store::fetch`] downloads it (once, however many ask at the same time),
//! compares the digest before anything is used, unpacks it within bounds and hands out a tree that stays on disk as long as
//! somebody holds it. The rules are those of Flux's own consumers: a digest mismatch is transient, 404 means that the
//! storage lost the file, connection errors and 5xx are tried again.

mod digest;
mod fetch;
mod locate;
mod store;

pub use digest::{Algorithm, Digest, DigestError};
pub use fetch::FetchOptions;
pub use locate::locate;
pub use store::{ArtifactTree, Store, StoreLimits};

use std::fmt;

use crate::{
    archive::ArchiveError,
    diagnostic::{Class, Describe, Diagnostic},
    net::NetError,
    secret::redact_url,
};

/// What a source object's `status.artifact` says.
#[derive(Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Where the source's storage serves it. Shown only in redacted form.
    pub url: String,
    /// Identity and checksum of the file as served.
    pub digest: Digest,
    /// The source's revision, for example `main@sha1:…`; only for messages.
    pub revision: String,
    /// Size of the file in bytes, when the source says so.
    pub size: Option<u64>,
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifact")
            .field("url", &redact_url(&self.url))
            .field("digest", &self.digest)
            .field("revision", &self.revision)
            .field("size", &self.size)
            .finish()
    }
}

/// Why an artifact could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// The URL in the status is none.
    #[error("the artifact's URL {url:?} cannot be used: {message}")]
    Url {
        /// The URL, redacted.
        url: String,
        /// What is wrong.
        message: String,
    },
    /// 404: garbage collected, or the storage started empty. The source will store it again.
    #[error("{url}: 404, the source's storage no longer has this artifact")]
    StorageGone {
        /// The URL, redacted.
        url: String,
    },
    /// The storage answered with a status that retries do not change.
    #[error("{url}: the source's storage answered {status}")]
    Refused {
        /// The URL, redacted.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// Connection errors and server errors that outlasted the retries.
    #[error("{url}: not downloaded after {attempts} attempts: {message}")]
    Unavailable {
        /// The URL, redacted.
        url: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        message: String,
    },
    /// The time for the whole download is over.
    #[error("{url}: not downloaded within {seconds} s, {received} bytes arrived")]
    Deadline {
        /// The URL, redacted.
        url: String,
        /// The time allowed.
        seconds: u64,
        /// Bytes received in the last attempt.
        received: u64,
    },
    /// A redirect to another host, or a TLS setting that cannot be used.
    #[error("{url}")]
    Net {
        /// The URL, redacted.
        url: String,
        /// What happened.
        #[source]
        source: NetError,
    },
    /// More bytes than allowed.
    #[error("{url}: the artifact has more than {limit} bytes")]
    TooLarge {
        /// The URL, redacted.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// More bytes than announced. Transient, for the same reason as [`ArtifactError::DigestMismatch`].
    #[error("{url}: the file is longer than the {announced} bytes that the source announces")]
    LongerThanAnnounced {
        /// The URL, redacted.
        url: String,
        /// The size in the status, in bytes.
        announced: u64,
    },
    /// Other bytes than announced. Transient: the source may be between replacing the file and updating its status.
    #[error("{url}: the digest is {actual}, expected {expected} ({received} bytes)")]
    DigestMismatch {
        /// The URL, redacted.
        url: String,
        /// The digest in the status.
        expected: Digest,
        /// The digest of what arrived.
        actual: Digest,
        /// Bytes received.
        received: u64,
    },
    /// The verified file cannot be unpacked.
    #[error("artifact {digest}")]
    Archive {
        /// Which artifact.
        digest: Digest,
        /// What is wrong with it.
        #[source]
        source: ArchiveError,
    },
    /// The cache directory cannot be used.
    #[error("artifact cache {path}: {message}")]
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

impl ArtifactError {
    /// Whether the same download may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self.class(), Class::Transient | Class::Waiting)
    }

    fn class(&self) -> Class {
        match self {
            Self::StorageGone { .. } | Self::Url { .. } => Class::Waiting,
            Self::Unavailable { .. }
            | Self::Deadline { .. }
            | Self::DigestMismatch { .. }
            | Self::LongerThanAnnounced { .. }
            | Self::Cache { .. }
            | Self::Archive { source: ArchiveError::Io { .. }, .. } => Class::Transient,
            Self::Archive { source: ArchiveError::Cancelled, .. } | Self::Cancelled => {
                Class::Cancelled
            }
            Self::Archive { .. } | Self::TooLarge { .. } => Class::Project,
            Self::Refused { .. } | Self::Net { .. } => Class::Access,
        }
    }
}

impl Describe for ArtifactError {
    fn describe(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(self.class(), self.to_string());
        let diagnostic = match std::error::Error::source(self) {
            Some(source) => diagnostic.with_cause(source),
            None => diagnostic,
        };
        match self {
            Self::StorageGone { .. } => diagnostic
                .with_hint("a source that is suspended or failing does not store it again by itself"),
            Self::Archive { source: ArchiveError::NotGzip { .. }, .. } => diagnostic.with_hint(
                "with layerSelector.operation `copy` the layer must itself be a tar.gz; `extract` packs it anew",
            ),
            Self::DigestMismatch { .. } | Self::LongerThanAnnounced { .. } => {
                diagnostic.with_hint("the source is read again, it may just have been updated")
            }
            _ => diagnostic,
        }
    }
}

#[cfg(test)]
mod tests;
