//! Repository addresses: what users write, what servers are asked, and what makes two addresses the same repository.

use std::fmt;

use crate::secret::{Secret, redact_url};

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// SSH, also in the form `user@host:path`.
    Ssh,
}

impl Scheme {
    /// The name in front of `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ssh => "ssh",
        }
    }

    /// The port used when a URL names none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ssh => 22,
        }
    }
}

/// The address of a Git repository. `Display` and `Debug` show no password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GitUrl {
    scheme: Scheme,
    user: Option<String>,
    password: Option<Secret<String>>,
    host: String,
    port: Option<u16>,
    /// As the server is asked for it; with SSH, a path without leading slash is relative to the login directory.
    path: String,
}

/// What two addresses of the same repository have in common: lower-case `host[:port]/path`, without `.git` and without a
/// default port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoKey {
    /// Host, with the port if it is not the scheme's default.
    pub host: String,
    /// Path without leading and trailing slashes and without `.git`.
    pub path: String,
}

impl fmt::Display for RepoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

/// Why a text is no repository address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} is no Git URL: {reason}")]
pub struct UrlError {
    /// The text, redacted.
    pub url: String,
    /// What is wrong, and what is accepted.
    pub reason: String,
}

impl GitUrl {
    /// Reads `http://`, `https://` and `ssh://` URLs, and `user@host:path`.
    ///
    /// # Errors
    /// For anything else: local paths, `file://` and `git://` are refused, as are URLs with a query.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let fail = |reason: &str| UrlError { url: redact_url(text), reason: reason.to_owned() };
        if text.contains(|c: char| c.is_control() || c == ' ') {
            return Err(fail("it contains spaces or control characters"));
        }
        match text.split_once("://") {
            Some(("file", _)) => Err(fail("file:// is refused, use http, https or ssh")),
            Some((scheme @ ("http" | "https" | "ssh"), _)) => {
                let scheme = match scheme {
                    "http" => Scheme::Http,
                    "https" => Scheme::Https,
                    _ => Scheme::Ssh,
                };
                Self::parse_url(text, scheme)
            }
            Some((scheme, _)) => {
                Err(fail(&format!("unknown scheme {scheme:?}, expected http, https or ssh")))
            }
            None => Self::parse_scp(text).ok_or_else(|| {
                fail("expected an http://, https:// or ssh:// URL, or user@host:path")
            }),
        }
    }

    fn parse_url(text: &str, scheme: Scheme) -> Result<Self, UrlError> {
        let fail = |reason: &str| UrlError { url: redact_url(text), reason: reason.to_owned() };
        // The URL crate knows nothing of ssh; its rules for http fit both.
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let parsed = reqwest::Url::parse(&format!("http://{rest}"))
            .map_err(|error| fail(&error.to_string()))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(fail("a query or fragment has no meaning for Git"));
        }
        let host = parsed.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| fail("there is no host"))?.trim_end_matches('.').to_owned();
        // Port 80 is what the parser takes for the default and drops.
        let explicit_80 =
            rest.split('/').next().is_some_and(|authority| authority.ends_with(":80"));
        let port = parsed.port().or(explicit_80.then_some(80));
        let path = if scheme == Scheme::Ssh {
            let path = rest.find('/').map_or("", |slash| &rest[slash..]);
            // `/~user` is how a login directory is written in a URL.
            if path.starts_with("/~") { path[1..].to_owned() } else { path.to_owned() }
        } else {
            parsed.path().to_owned()
        };
        if path.trim_matches('/').is_empty() {
            return Err(fail("there is no path"));
        }
        Ok(Self {
            scheme,
            user: Some(decode(parsed.username())).filter(|user| !user.is_empty()),
            password: parsed.password().map(|password| Secret::new(decode(password))),
            host,
            port: port.filter(|port| *port != scheme.default_port()),
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    fn parse_scp(text: &str) -> Option<Self> {
        let (authority, path) = text.split_once(':')?;
        let (user, host) = authority.split_once('@')?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if user.is_empty() || host.is_empty() || !host.chars().all(is_host) {
            return None;
        }
        let path = path.trim_end_matches('/');
        // The program at the other end would take it for an option.
        let is_path = !path.trim_matches('/').is_empty() && !path.starts_with('-');
        is_path.then(|| Self {
            scheme: Scheme::Ssh,
            user: Some(user.to_owned()),
            password: None,
            host: host.to_ascii_lowercase(),
            port: None,
            path: path.to_owned(),
        })
    }

    /// How the repository is reached.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, lower-case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or_else(|| self.scheme.default_port())
    }

    /// The host, with the port if it is not the default.
    pub fn host_and_port(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// The user in the URL.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password in the URL.
    pub fn password(&self) -> Option<&Secret<String>> {
        self.password.as_ref()
    }

    /// The same address with this user and password.
    #[must_use]
    pub fn with_login(&self, user: String, password: Secret<String>) -> Self {
        Self { user: Some(user), password: Some(password), ..self.clone() }
    }

    /// The path that the server is asked for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether scheme, host and port are the same.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port() == other.port()
    }

    /// What identifies the repository, however it is reached.
    pub fn key(&self) -> RepoKey {
        let path = self.path.trim_matches('/').to_lowercase();
        RepoKey {
            host: self.host_and_port(),
            path: path.strip_suffix(".git").unwrap_or(&path).to_owned(),
        }
    }

    /// The URL without user and password.
    pub fn without_user(&self) -> String {
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        format!("{}://{}{slash}{}", self.scheme.name(), self.host_and_port(), self.path)
    }
}

impl fmt::Display for GitUrl {
    /// A URL whose password, or lone token, is `***`. The user of an SSH URL is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        write!(f, "{}://", self.scheme.name())?;
        match &self.user {
            Some(user) if self.scheme == Scheme::Ssh && self.password.is_none() => {
                write!(f, "{user}@")?;
            }
            Some(_) => f.write_str("***@")?,
            None => {}
        }
        write!(f, "{}{slash}{}", self.host_and_port(), self.path)
    }
}

impl fmt::Debug for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GitUrl({self})")
    }
}

/// Undoes percent-encoding; what is not valid stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}
