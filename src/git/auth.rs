//! Which credentials go to which server. Pure: the Secrets' contents are handed in, a choice comes out.
//!
//! Two rules make it safe: the Secret of a Flux source is used only for its own scheme, host and port, and nothing is ever
//! sent to a host that no rule names. Every candidate that was passed over is remembered with the reason, so that a refused
//! login can say what was tried.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::url::{GitUrl, Scheme};
use crate::{net::Identity, secret::Secret};

/// The content of a Secret with Git credentials, as Flux and Kluctl write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSecret {
    /// `Secret namespace/name`, for messages.
    pub origin: String,
    username: Option<String>,
    password: Option<Secret<String>>,
    bearer_token: Option<Secret<String>>,
    identity: Option<Secret<String>>,
    host_keys: Option<HostTrust>,
    ca_bundle: Option<Vec<u8>>,
    client_identity: Option<Identity>,
    is_github_app: bool,
}

impl GitSecret {
    /// Reads the keys `username`, `password`, `bearerToken`, `identity`, `known_hosts`, `ca.crt` (or `caFile`), `tls.crt` with
    /// `tls.key` (or `certFile` with `keyFile`). Other keys, and empty values, do not count.
    ///
    /// # Errors
    /// [`AuthError::NotText`] names a key whose value should be text and is not.
    pub fn from_data(
        origin: impl Into<String>,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, AuthError> {
        let origin = origin.into();
        let bytes = |keys: &[&str]| {
            keys.iter().find_map(|key| data.get(*key)).filter(|value| !value.is_empty()).cloned()
        };
        let text = |key: &str| -> Result<Option<String>, AuthError> {
            bytes(&[key])
                .map(String::from_utf8)
                .transpose()
                .map_err(|_| AuthError::NotText { origin: origin.clone(), key: key.to_owned() })
        };
        let secret = |key: &str| text(key).map(|value| value.map(Secret::new));
        let certificate = bytes(&["tls.crt", "certFile"]);
        let key = bytes(&["tls.key", "keyFile"]);
        Ok(Self {
            username: text("username")?,
            password: secret("password")?,
            bearer_token: secret("bearerToken")?,
            identity: secret("identity")?,
            host_keys: text("known_hosts")?.map(HostTrust::Known),
            ca_bundle: bytes(&["ca.crt", "caFile"]),
            client_identity: certificate
                .zip(key)
                .map(|(certificate, key)| Identity { certificate, key: Secret::new(key) }),
            is_github_app: data.contains_key("githubAppID"),
            origin,
        })
    }

    /// The same credentials with other host keys, for all that has none.
    #[must_use]
    pub fn or_trust(mut self, host_keys: HostTrust) -> Self {
        self.host_keys.get_or_insert(host_keys);
        self
    }
}

/// One entry of a list of credentials.
#[derive(Debug, Clone)]
pub enum Rule {
    /// The `secretRef` of a Flux source, for the scheme, host and port of its URL alone.
    Source {
        /// The source's URL.
        url: GitUrl,
        /// The Secret's content.
        secret: GitSecret,
    },
    /// An entry of `spec.credentials.git`.
    Explicit {
        /// The host it is for.
        host: HostRule,
        /// The paths it is for; `None` for all.
        path: Option<PathGlob>,
        /// The Secret's content.
        secret: GitSecret,
    },
    /// A line of a credential store, for its scheme, host and port. If both name a user, it has to be the same.
    Stored {
        /// The store, for messages.
        origin: String,
        /// The line.
        url: GitUrl,
    },
    /// Keys of a person, for all SSH servers whose host key is known. The URL has to name the user.
    Keys {
        /// Where they come from, for messages.
        origin: String,
        /// The keys, in the order they are tried.
        keys: Vec<SshKey>,
        /// Which servers are trusted.
        host_keys: HostTrust,
    },
}

/// The host of an explicit entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// `*`, or left out: any host, but with SSH only, because the host key proves whom one talks to before anything is sent
    /// that could be used elsewhere.
    AnySsh,
    /// This host, with the port unless it is the scheme's default. Lower-case.
    Host(String),
}

impl HostRule {
    /// Reads the field `host`.
    pub fn parse(host: &str) -> Self {
        match host.trim() {
            "" | "*" => Self::AnySsh,
            host => Self::Host(host.to_lowercase()),
        }
    }
}

/// The path of an explicit entry: a glob in which `*` stays within a part of the path and `**` does not. Case does not count.
#[derive(Debug, Clone)]
pub struct PathGlob {
    pattern: String,
    matcher: GlobMatcher,
}

impl PathGlob {
    /// Compiles the field `path`. A leading `/` and a trailing `.git` are left out, as in the paths it is compared to.
    ///
    /// # Errors
    /// [`AuthError::Glob`].
    pub fn parse(pattern: &str) -> Result<Self, AuthError> {
        let bare = pattern.trim_matches('/');
        let bare = bare.strip_suffix(".git").unwrap_or(bare);
        let matcher = GlobBuilder::new(&bare.to_lowercase())
            .literal_separator(true)
            .build()
            .map_err(|error| AuthError::Glob {
                pattern: pattern.to_owned(),
                message: error.kind().to_string(),
            })?
            .compile_matcher();
        Ok(Self { pattern: pattern.to_owned(), matcher })
    }
}

/// Why credentials cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Binary data where text is needed.
    #[error("{origin}: the value of {key:?} is not text")]
    NotText {
        /// The Secret.
        origin: String,
        /// Its key.
        key: String,
    },
    /// A path pattern that is none.
    #[error("path {pattern:?} is no glob: {message}")]
    Glob {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        message: String,
    },
}

/// What proves who is asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Login {
    /// Nothing: public repositories.
    #[default]
    Anonymous,
    /// HTTP basic authentication.
    Basic {
        /// User name.
        user: String,
        /// Password or token.
        password: Secret<String>,
    },
    /// An HTTP bearer token.
    Bearer {
        /// The token.
        token: Secret<String>,
    },
    /// SSH keys.
    Ssh {
        /// User name.
        user: String,
        /// The keys, in the order they are tried.
        keys: Vec<SshKey>,
        /// Which servers are trusted.
        host_keys: HostTrust,
    },
}

/// A private key, or where some are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SshKey {
    /// The key itself.
    Private {
        /// Where it comes from, for messages.
        origin: String,
        /// The key, in OpenSSH or PEM form.
        identity: Secret<String>,
        /// Its passphrase.
        passphrase: Option<Secret<String>>,
    },
    /// All keys of the agent that listens on this socket.
    Agent(PathBuf),
}

/// Which SSH servers are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostTrust {
    /// Those with the keys listed, in the form of OpenSSH's `known_hosts`.
    Known(String),
    /// All. Whoever sits in between can then hand out other files.
    Any,
}

/// Everything that one connection needs beside the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Auth {
    /// Who is asking.
    pub login: Login,
    /// Certificates (PEM) trusted beside the system's.
    pub ca_bundle: Option<Vec<u8>>,
    /// TLS client certificate.
    pub client_identity: Option<Identity>,
    /// What was chosen and what was passed over, for messages.
    pub trail: Trail,
}

/// How the choice came about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Trail {
    /// Where the credentials come from and as whom, for example `Secret a/b (user "bot")`; `None` for anonymous access.
    pub used: Option<String>,
    /// Each candidate that was not used, with the reason.
    pub skipped: Vec<String>,
}

impl fmt::Display for Trail {
    /// For example: `tried Secret a/b (user "bot"); not used: Secret a/c: is for host x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.used {
            Some(used) => write!(f, "tried {used}")?,
            None => f.write_str("tried without credentials")?,
        }
        if !self.skipped.is_empty() {
            write!(f, "; not used: {}", self.skipped.join(", "))?;
        }
        Ok(())
    }
}

/// Credentials in the order they are looked through.
#[derive(Debug, Clone, Default)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// The credentials for a URL: the first rule that fits, else user and password of the URL itself, else none. A rule that
    /// has certificates only adds them to the others.
    pub fn choose(&self, url: &GitUrl) -> Auth {
        let mut skipped = Vec::new();
        let mut chosen: Option<Auth> = None;
        let mut certificates: Option<Auth> = None;
        for rule in &self.0 {
            match rule.apply(url) {
                Ok(auth) if auth.login == Login::Anonymous => {
                    certificates.get_or_insert(auth);
                }
                Ok(auth) => {
                    chosen.get_or_insert(auth);
                }
                Err(_) if chosen.is_some() => {}
                Err(reason) => skipped.push(format!("{}: {reason}", rule.origin())),
            }
        }
        let mut auth = match (chosen, certificates) {
            (Some(mut auth), Some(more)) if !auth.has_certificates() => {
                auth.ca_bundle = more.ca_bundle;
                auth.client_identity = more.client_identity;
                auth
            }
            (Some(auth), _) => auth,
            (None, certificates) => {
                let mut auth = certificates.unwrap_or_default();
                auth.login = of_url(url);
                if auth.login != Login::Anonymous {
                    auth.trail.used.get_or_insert_with(|| "the user in the URL".to_owned());
                }
                auth
            }
        };
        auth.trail.skipped = skipped;
        auth
    }
}

impl Auth {
    fn has_certificates(&self) -> bool {
        self.ca_bundle.is_some() || self.client_identity.is_some()
    }
}

/// User and password of the URL itself.
fn of_url(url: &GitUrl) -> Login {
    match (url.scheme(), url.user(), url.password()) {
        (Scheme::Http | Scheme::Https, user, Some(password)) => {
            Login::Basic { user: user.unwrap_or_default().to_owned(), password: password.clone() }
        }
        // A token in the place of the user name.
        (Scheme::Http | Scheme::Https, Some(user), None) => {
            Login::Basic { user: user.to_owned(), password: Secret::new(String::new()) }
        }
        _ => Login::Anonymous,
    }
}

impl Rule {
    fn origin(&self) -> &str {
        match self {
            Self::Source { secret, .. } | Self::Explicit { secret, .. } => &secret.origin,
            Self::Stored { origin, .. } | Self::Keys { origin, .. } => origin,
        }
    }

    /// The credentials, or why this rule is not for the URL.
    fn apply(&self, url: &GitUrl) -> Result<Auth, String> {
        match self {
            Self::Source { url: own, secret } => {
                check_origin(own, url)?;
                secret.login(url, true)
            }
            Self::Explicit { host, path, secret } => {
                match host {
                    HostRule::AnySsh if url.scheme() != Scheme::Ssh => {
                        return Err("is for any host, which counts for SSH only".to_owned());
                    }
                    HostRule::Host(host) if !is_host(host, url) => {
                        return Err(format!("is for host {host}"));
                    }
                    HostRule::AnySsh | HostRule::Host(_) => {}
                }
                if let Some(glob) =
                    path.as_ref().filter(|glob| !glob.matcher.is_match(url.key().path))
                {
                    return Err(format!("is for path {}", glob.pattern));
                }
                check_user(secret.username.as_deref().filter(|user| *user != "*"), url)?;
                secret.login(url, false)
            }
            Self::Stored { origin, url: own } => {
                check_origin(own, url)?;
                check_user(own.user(), url)?;
                let shown = own.user().unwrap_or_default();
                let used = Some(format!("{origin} (user {shown:?})"));
                let trail = Trail { used, skipped: Vec::new() };
                Ok(Auth { login: of_url(own), trail, ..Auth::default() })
            }
            Self::Keys { origin, keys, host_keys } => {
                if url.scheme() != Scheme::Ssh {
                    return Err("are for SSH only".to_owned());
                }
                let user = url.user().ok_or("need a URL that names the user, as in git@host")?;
                let login = Login::Ssh {
                    user: user.to_owned(),
                    keys: keys.clone(),
                    host_keys: host_keys.clone(),
                };
                let used = Some(format!("{origin} (user {user:?})"));
                let trail = Trail { used, skipped: Vec::new() };
                Ok(Auth { login, trail, ..Auth::default() })
            }
        }
    }
}

fn check_origin(own: &GitUrl, url: &GitUrl) -> Result<(), String> {
    if own.same_origin(url) {
        return Ok(());
    }
    Err(format!("is for {}://{} only", own.scheme().name(), own.host_and_port()))
}

fn check_user(own: Option<&str>, url: &GitUrl) -> Result<(), String> {
    match (own, url.user()) {
        (Some(own), Some(asked)) if own != asked => Err(format!("is for user {own:?}")),
        _ => Ok(()),
    }
}

/// Whether a host as written in a rule is the URL's. A rule may name the default port, too.
fn is_host(rule: &str, url: &GitUrl) -> bool {
    rule == url.host_and_port() || rule == format!("{}:{}", url.host(), url.port())
}

impl GitSecret {
    /// `of_source` follows Flux in the details in which it differs from Kluctl's lists.
    fn login(&self, url: &GitUrl, of_source: bool) -> Result<Auth, String> {
        let (login, shown) = match url.scheme() {
            Scheme::Ssh => self.ssh_login(url, of_source)?,
            Scheme::Http | Scheme::Https => self.http_login(url, of_source)?,
        };
        let is_ssh = url.scheme() == Scheme::Ssh;
        Ok(Auth {
            login,
            ca_bundle: self.ca_bundle.clone().filter(|_| !is_ssh),
            client_identity: self.client_identity.clone().filter(|_| !is_ssh),
            trail: Trail { used: Some(format!("{}{shown}", self.origin)), skipped: Vec::new() },
        })
    }

    fn http_login(&self, url: &GitUrl, of_source: bool) -> Result<(Login, String), String> {
        if let Some(token) = &self.bearer_token {
            return Ok((Login::Bearer { token: token.clone() }, " (bearer token)".to_owned()));
        }
        let own_user = self.username.clone().filter(|user| of_source || user != "*");
        if let Some(password) = &self.password {
            let from_url = url.user().filter(|_| !of_source).map(str::to_owned);
            let user = own_user.or(from_url);
            let user = user.ok_or("has a password but no username")?;
            let shown = format!(" (user {user:?})");
            return Ok((Login::Basic { user, password: password.clone() }, shown));
        }
        if self.is_github_app {
            return Err("holds a GitHub App, which is not supported yet".to_owned());
        }
        if self.ca_bundle.is_some() || self.client_identity.is_some() {
            // Certificates alone are fine; the URL may still carry user and password.
            return Ok((of_url(url), " (certificates)".to_owned()));
        }
        Err("has no password and no bearerToken".to_owned())
    }

    fn ssh_login(&self, url: &GitUrl, of_source: bool) -> Result<(Login, String), String> {
        let identity = self.identity.clone().ok_or("has no identity, which SSH needs")?;
        let host_keys = self.host_keys.clone().ok_or("has no known_hosts, which SSH needs")?;
        let own_user = self.username.clone().filter(|user| !of_source && user != "*");
        let user = url.user().map(str::to_owned).or(own_user).unwrap_or_else(|| "git".to_owned());
        let shown = format!(" (user {user:?}, SSH key)");
        let (origin, passphrase) = (self.origin.clone(), self.password.clone());
        let keys = vec![SshKey::Private { origin, identity, passphrase }];
        Ok((Login::Ssh { user, keys, host_keys }, shown))
    }
}
