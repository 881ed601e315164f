//! HTTP as every remote protocol here uses it: one client factory, one retry rule, bounded bodies.
//!
//! The client trusts the system's certificates plus an optional bundle, speaks TLS through rustls with ring, decompresses
//! nothing by itself and never follows a redirect to another host.

mod client;
mod limits;
mod proxy;
mod reach;
mod retry;
mod verifier;

pub use client::{ClientOptions, Identity, Redirects, client};
pub use limits::{read_bounded, stream_bounded};
pub use proxy::Proxies;
pub use reach::Reach;
pub use retry::{Failure, RetryPolicy, jitter, retry_after, sleep};

/// Why an HTTP exchange did not bring what it should. Messages hold no credentials and no query strings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// A certificate, key or proxy address cannot be used.
    #[error("{what}: {message}")]
    Setup {
        /// The part that is wrong: `CA bundle`, `client certificate`, `proxy`.
        what: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// No connection, or it broke.
    #[error("{host}: {message}")]
    Connection {
        /// Host and port.
        host: String,
        /// The system's or TLS library's words.
        message: String,
    },
    /// Nothing arrived for too long.
    #[error("{host}: no answer within the time allowed")]
    Timeout {
        /// Host and port.
        host: String,
    },
    /// A redirect that is not followed.
    #[error("{host}: refused to follow a redirect: {message}")]
    Redirect {
        /// Host and port that answered with the redirect.
        host: String,
        /// Where it leads to, and the rule against it.
        message: String,
    },
    /// An address that the caller may not talk to.
    #[error(
        "{host} is this host, a link-local address or a cloud's metadata service, which may not be asked"
    )]
    OutOfReach {
        /// Host as the URL names it.
        host: String,
    },
    /// More bytes than allowed.
    #[error("{host}: the answer is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        host: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The caller's token was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl NetError {
    /// Sorts an error of the HTTP library; its URL is dropped, because it may hold credentials.
    pub(crate) fn from_reqwest(url: &reqwest::Url, error: reqwest::Error) -> Self {
        let host = host_of(url);
        if error.is_timeout() {
            return Self::Timeout { host };
        }
        if let Some(refused) = own_error(&error) {
            return refused;
        }
        let is_redirect = error.is_redirect();
        let message = innermost(&error.without_url());
        if is_redirect {
            Self::Redirect { host, message }
        } else {
            Self::Connection { host, message }
        }
    }

    /// The kind of failure for the retry rule.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Connection { .. } | Self::Timeout { .. } => Failure::Connection,
            Self::Setup { .. }
            | Self::Redirect { .. }
            | Self::OutOfReach { .. }
            | Self::TooLarge { .. }
            | Self::Cancelled => Failure::Final,
        }
    }
}

/// Host and, where the URL names one, port.
pub(crate) fn host_of(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or("unknown host");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The error of ours that the library wraps, if it is one.
fn own_error(error: &(dyn std::error::Error + 'static)) -> Option<NetError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<NetError>() {
            return Some(own.clone());
        }
        // An I/O error gives its content's source as its own.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(own) = inner.and_then(|inner| inner.downcast_ref::<NetError>()) {
            return Some(own.clone());
        }
        next = error.source();
    }
    None
}

/// The message of the last error in the chain: the one that names the cause.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    crate::secret::redact_text(&last.to_string())
}

#[cfg(test)]
mod tests;
