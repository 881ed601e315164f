//! Which credentials go to which server. Pure.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use reqwest::Url;

use crate::{net::Identity, secret::Secret};

/// How a repository or registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Where it comes from, for messages.
    pub origin: String,
    /// User name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<Secret<String>>,
    /// Token that a registry's authorization server exchanges for another one.
    pub identity_token: Option<Secret<String>>,
    /// Token that is sent as it is.
    pub token: Option<Secret<String>>,
    /// Client certificate.
    pub identity: Option<Identity>,
    /// Certificates (PEM) to trust beside the system's.
    pub ca_bundle: Option<Vec<u8>>,
    /// Whether the server's certificate is not checked.
    pub skips_tls_checks: bool,
    /// Whether a registry is spoken to without TLS.
    pub plain_http: bool,
    /// Whether credentials also go to other hosts that an index leads to.
    pub passes_everywhere: bool,
}

impl Access {
    /// Whether there is anything to log in with.
    pub fn has_login(&self) -> bool {
        self.user.is_some() || self.token.is_some() || self.identity_token.is_some()
    }
}

/// Credentials for a host, and if there is a pattern, for some paths of it.
#[derive(Clone)]
pub struct AccessRule {
    host: String,
    path: Option<GlobMatcher>,
    access: Access,
}

impl fmt::Debug for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_ref().map(|path| path.glob().glob());
        f.debug_struct("AccessRule")
            .field("host", &self.host)
            .field("path", &path)
            .finish_non_exhaustive()
    }
}

/// Rules in the order in which they are looked through.
#[derive(Debug, Clone, Default)]
pub struct AccessRules(pub Vec<AccessRule>);

impl AccessRule {
    /// A rule for `host[:port]` and a pattern on the path without leading slash: `*` within one part, `**` across.
    ///
    /// # Errors
    /// When the pattern is none; the message says why.
    pub fn new(host: &str, path: Option<&str>, access: Access) -> Result<Self, String> {
        let matcher = |pattern: &str| {
            let glob =
                GlobBuilder::new(pattern.trim_start_matches('/')).literal_separator(true).build();
            glob.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
        };
        let path = path.filter(|path| !path.is_empty()).map(matcher).transpose()?;
        Ok(Self { host: host.to_lowercase(), path, access })
    }

    fn fits(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let is_host = match url.port() {
            // A port that is not the scheme's own has to be named.
            Some(_) => Some(&self.host) == with_port.as_ref(),
            None => self.host == host || Some(&self.host) == with_port.as_ref(),
        };
        let path = url.path().trim_start_matches('/');
        let is_path =
            |glob: &GlobMatcher| glob.is_match(path) || glob.is_match(path.trim_end_matches('/'));
        is_host && self.path.as_ref().is_none_or(is_path)
    }
}

impl AccessRules {
    /// The access of the first rule that fits, else user and password of the URL itself, else an anonymous one.
    pub fn choose(&self, url: &Url) -> Access {
        if let Some(rule) = self.0.iter().find(|rule| rule.fits(url)) {
            return rule.access.clone();
        }
        if url.username().is_empty() {
            return Access::default();
        }
        Access {
            origin: "the URL".to_owned(),
            user: Some(url.username().to_owned()),
            password: url.password().map(|password| Secret::new(password.to_owned())),
            ..Access::default()
        }
    }
}
