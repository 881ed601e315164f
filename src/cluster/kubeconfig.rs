//! Which API servers a deployment may talk to, by context name.
//!
//! The rules are those that the custom resource documents: what the controller is given (its own access, or the
//! current context of a kubeconfig) is called `default`; the kubeconfig's other contexts keep their names beside it;
//! `renameContexts` are applied in order; a target's context is looked up in the result.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube::config::{AuthInfo, Cluster, Kubeconfig};

use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    yaml::{self, Schema},
};

/// The name of what the controller was given.
pub const DEFAULT_CONTEXT: &str = "default";

/// What a kubeconfig from a Secret may do beyond naming a server and credentials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Guards {
    /// Run programs on this machine to get credentials (`exec`).
    pub allow_exec: bool,
    /// Read files of this machine (`tokenFile`, `certificate-authority`, `client-certificate`, `client-key`).
    pub allow_files: bool,
    /// Talk to servers without checking their certificate, or without TLS at all.
    pub allow_insecure_tls: bool,
}

impl Guards {
    /// Everything allowed: for a kubeconfig that the user who runs the program owns.
    pub const NONE: Self = Self { allow_exec: true, allow_files: true, allow_insecure_tls: true };
}

/// One step of `renameContexts`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rename {
    /// An existing context.
    pub old: String,
    /// Its new name.
    pub new: String,
}

/// Where to connect to and as whom, before impersonation.
#[derive(Clone)]
pub enum Access {
    /// What the program itself was started with: the pod's service account, or `--kubeconfig`.
    Own,
    /// A context of a kubeconfig, found to be complete and allowed.
    Kubeconfig {
        /// Reduced to this context, its cluster and its user; all three are called `default`.
        config: Arc<Kubeconfig>,
        /// The context's name in the kubeconfig.
        context: String,
    },
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("Own"),
            // A kubeconfig holds secrets in fields that its own type shows.
            Self::Kubeconfig { context, .. } => {
                f.debug_struct("Kubeconfig").field("context", context).finish_non_exhaustive()
            }
        }
    }
}

/// The contexts a deployment can choose from.
#[derive(Clone)]
pub struct Contexts {
    /// `None` for the program's own access.
    config: Option<Arc<Kubeconfig>>,
    guards: Guards,
    /// Name → the context's name in the kubeconfig.
    names: BTreeMap<String, Origin>,
    current: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Own,
    Context(String),
    /// `default` is what the controller calls the current context, and what the kubeconfig calls another one.
    Ambiguous {
        current: String,
    },
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contexts")
            .field("names", &self.names())
            .field("current", &self.current)
            .field("guards", &self.guards)
            .finish_non_exhaustive()
    }
}

/// Why there is no access. Messages name contexts, users and fields, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The Secret has no such key.
    #[error("the kubeconfig Secret has no key {wanted}")]
    NoKey {
        /// The keys looked for, quoted.
        wanted: String,
        /// The keys there are.
        existing: Vec<String>,
    },
    /// No YAML, or fields of the wrong kind.
    #[error("the kubeconfig is not readable{place}")]
    Syntax {
        /// Line, column or field, each led by a colon and a space; values are left out.
        place: String,
    },
    /// There is nothing to choose from.
    #[error("the kubeconfig has no contexts")]
    Empty,
    /// `current-context` is missing and cannot be guessed.
    #[error("the kubeconfig has no current-context")]
    NoCurrent {
        /// The contexts there are.
        existing: Vec<String>,
    },
    /// A name that is not there.
    #[error("context {name:?} does not exist")]
    UnknownContext {
        /// The name asked for.
        name: String,
        /// The contexts there are.
        existing: Vec<String>,
    },
    /// `default` could mean two contexts.
    #[error(
        "context \"default\" is ambiguous: the kubeconfig's current context is {current:?}, and another of its contexts is called \"default\""
    )]
    AmbiguousDefault {
        /// The current context.
        current: String,
    },
    /// Two contexts of the same name.
    #[error("the kubeconfig has more than one {what} called {name:?}")]
    Duplicate {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// `oldContext` is not there.
    #[error("spec.renameContexts[{index}]: oldContext {name:?} does not exist")]
    RenameUnknown {
        /// Which entry, from 0.
        index: usize,
        /// The old name.
        name: String,
        /// The contexts there are at this point.
        existing: Vec<String>,
    },
    /// `newContext` is there already.
    #[error("spec.renameContexts[{index}]: newContext {name:?} exists already")]
    RenameTaken {
        /// Which entry, from 0.
        index: usize,
        /// The new name.
        name: String,
        /// The contexts there are at this point.
        existing: Vec<String>,
    },
    /// A context that names a cluster or user that is not there.
    #[error(
        "context {context:?} of the kubeconfig names the {what} {name:?}, which does not exist"
    )]
    Dangling {
        /// The context.
        context: String,
        /// `cluster` or `user`.
        what: &'static str,
        /// The missing name.
        name: String,
    },
    /// Something that the guards forbid.
    #[error("context {context:?} of the kubeconfig is refused: {reason}")]
    Refused {
        /// The context.
        context: String,
        /// What it would do.
        reason: String,
        /// How to allow it or do without.
        hint: &'static str,
    },
}

impl Describe for KubeconfigError {
    fn describe(&self) -> Diagnostic {
        let diagnostic = Diagnostic::new(Class::Access, self.to_string());
        match self {
            Self::UnknownContext { name, existing }
            | Self::RenameUnknown { name, existing, .. } => {
                let diagnostic = match yaml::closest(name, existing.iter().map(String::as_str)) {
                    Some(close) => diagnostic.with_hint(format!("did you mean `{close}`?")),
                    None => diagnostic,
                };
                diagnostic.with_hint(listing("contexts", existing))
            }
            Self::RenameTaken { existing, .. } | Self::NoCurrent { existing } => {
                diagnostic.with_hint(listing("contexts", existing))
            }
            Self::NoKey { existing, .. } => diagnostic.with_hint(listing("keys", existing)),
            Self::AmbiguousDefault { .. } => diagnostic.with_hint(
                "use the context's own name, or rename one of the two in the kubeconfig",
            ),
            Self::Refused { hint, .. } => diagnostic.with_hint(*hint),
            _ => diagnostic,
        }
    }
}

fn listing(what: &str, existing: &[String]) -> String {
    match existing {
        [] => format!("there are no {what}"),
        existing => format!("existing {what}: {}", existing.join(", ")),
    }
}

/// The key of a Secret that holds the kubeconfig: the one given, else `value`, else `value.yaml`.
///
/// # Errors
/// [`KubeconfigError::NoKey`] lists the keys there are.
pub fn secret_key<'a>(
    keys: impl IntoIterator<Item = &'a str>,
    given: Option<&'a str>,
) -> Result<&'a str, KubeconfigError> {
    let keys: Vec<&str> = keys.into_iter().collect();
    let wanted = given.map_or_else(|| vec!["value", "value.yaml"], |key| vec![key]);
    wanted.iter().find(|key| keys.contains(key)).copied().ok_or_else(|| KubeconfigError::NoKey {
        wanted: wanted.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" or "),
        existing: keys.iter().map(|key| (*key).to_owned()).collect(),
    })
}

impl Contexts {
    /// The program's own access, as `default`.
    pub fn own() -> Self {
        Self {
            config: None,
            guards: Guards::default(),
            names: BTreeMap::from([(DEFAULT_CONTEXT.to_owned(), Origin::Own)]),
            current: DEFAULT_CONTEXT.to_owned(),
        }
    }

    /// The contexts of a kubeconfig. The current one is called `default`; it and the others also keep their names.
    ///
    /// Without a `current-context`, the only context there is counts as the current one. `guards` are applied to the context
    /// that is selected, so that contexts nobody uses do no harm.
    ///
    /// # Errors
    /// When the text is no kubeconfig, or no context can be the current one.
    pub fn from_kubeconfig(text: &[u8], guards: Guards) -> Result<Self, KubeconfigError> {
        Self::from_loaded(parse(text)?, guards)
    }

    /// As [`Contexts::from_kubeconfig`], for a kubeconfig that was read and merged already.
    ///
    /// # Errors
    /// When no context can be the current one.
    pub fn from_loaded(config: Kubeconfig, guards: Guards) -> Result<Self, KubeconfigError> {
        let contexts = unique("context", config.contexts.iter().map(|context| &context.name))?;
        unique("cluster", config.clusters.iter().map(|cluster| &cluster.name))?;
        unique("user", config.auth_infos.iter().map(|user| &user.name))?;
        let wanted = config.current_context.clone().filter(|name| !name.is_empty());
        let current = match (wanted, &contexts[..]) {
            (_, []) => return Err(KubeconfigError::Empty),
            (Some(name), all) if all.contains(&name) => name,
            (Some(name), _) => {
                return Err(KubeconfigError::UnknownContext { name, existing: contexts });
            }
            (None, [only]) => only.clone(),
            (None, _) => return Err(KubeconfigError::NoCurrent { existing: contexts }),
        };
        let mut names: BTreeMap<String, Origin> =
            contexts.into_iter().map(|name| (name.clone(), Origin::Context(name))).collect();
        let default = if current != DEFAULT_CONTEXT && names.contains_key(DEFAULT_CONTEXT) {
            Origin::Ambiguous { current: current.clone() }
        } else {
            Origin::Context(current.clone())
        };
        let is_ambiguous = matches!(default, Origin::Ambiguous { .. });
        names.insert(DEFAULT_CONTEXT.to_owned(), default);
        let current = if is_ambiguous { current } else { DEFAULT_CONTEXT.to_owned() };
        Ok(Self { config: Some(Arc::new(config)), guards, names, current })
    }

    /// All context names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// The context used when a target names none.
    pub fn current(&self) -> &str {
        &self.current
    }

    /// Applies `renameContexts` in order; the current context follows.
    ///
    /// A new name that the same context carries already is accepted: renaming `default` to the kubeconfig's own name for it
    /// changes nothing for anybody.
    ///
    /// # Errors
    /// When an old name is missing or a new one taken; names the entry and lists what exists.
    pub fn rename(&mut self, renames: &[Rename]) -> Result<(), KubeconfigError> {
        for (index, rename) in renames.iter().enumerate() {
            let Some(origin) = self.names.get(&rename.old).cloned() else {
                let existing = self.names();
                return Err(KubeconfigError::RenameUnknown {
                    index,
                    name: rename.old.clone(),
                    existing,
                });
            };
            if let Origin::Ambiguous { current } = origin {
                return Err(KubeconfigError::AmbiguousDefault { current });
            }
            if self.names.get(&rename.new).is_some_and(|taken| *taken != origin) {
                let existing = self.names();
                return Err(KubeconfigError::RenameTaken {
                    index,
                    name: rename.new.clone(),
                    existing,
                });
            }
            self.names.remove(&rename.old);
            self.names.insert(rename.new.clone(), origin);
            if self.current == rename.old {
                self.current.clone_from(&rename.new);
            }
        }
        Ok(())
    }

    /// The access behind a context; `None` stands for the current one.
    ///
    /// # Errors
    /// When there is no such context, it is incomplete, or the guards refuse it.
    pub fn select(&self, name: Option<&str>) -> Result<Access, KubeconfigError> {
        let name = name.unwrap_or(&self.current);
        match (self.names.get(name), &self.config) {
            (Some(Origin::Own), _) => Ok(Access::Own),
            (Some(Origin::Context(context)), Some(config)) => {
                let config = reduce(config, context)?;
                check(&config, context, self.guards)?;
                Ok(Access::Kubeconfig { config: Arc::new(config), context: context.clone() })
            }
            (Some(Origin::Ambiguous { current }), _) => {
                Err(KubeconfigError::AmbiguousDefault { current: current.clone() })
            }
            (None, _) | (Some(Origin::Context(_)), None) => Err(KubeconfigError::UnknownContext {
                name: name.to_owned(),
                existing: self.names(),
            }),
        }
    }
}

fn parse(text: &[u8]) -> Result<Kubeconfig, KubeconfigError> {
    // The errors' own words may quote values.
    let unreadable = |error: yaml::YamlError| {
        let position =
            error.position().map(|at| format!(": line {}, column {}", at.line, at.column));
        let field = error.field().map(|field| format!(": {field}"));
        KubeconfigError::Syntax {
            place: format!("{}{}", position.unwrap_or_default(), field.unwrap_or_default()),
        }
    };
    let document = yaml::parse_document("kubeconfig", text, Schema::Config).map_err(unreadable)?;
    if document.value.is_null() {
        return Err(KubeconfigError::Empty);
    }
    yaml::from_document("kubeconfig", &document).map_err(unreadable)
}

fn unique<'a>(
    what: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<Vec<String>, KubeconfigError> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if seen.contains(name) {
            return Err(KubeconfigError::Duplicate { what, name: name.clone() });
        }
        seen.push(name.clone());
    }
    Ok(seen)
}

/// A kubeconfig with this context alone, under the name `default`.
fn reduce(config: &Kubeconfig, name: &str) -> Result<Kubeconfig, KubeconfigError> {
    let dangling = |what, missing: &str| KubeconfigError::Dangling {
        context: name.to_owned(),
        what,
        name: missing.to_owned(),
    };
    let mut context = config
        .contexts
        .iter()
        .find(|context| context.name == name)
        .cloned()
        .ok_or_else(|| dangling("context", name))?;
    let inner = context.context.as_mut().ok_or_else(|| dangling("cluster", ""))?;
    let mut cluster = config
        .clusters
        .iter()
        .find(|cluster| cluster.name == inner.cluster && cluster.cluster.is_some())
        .cloned()
        .ok_or_else(|| dangling("cluster", &inner.cluster))?;
    let user_name = inner.user.clone().filter(|user| !user.is_empty());
    let user = match user_name {
        None => None,
        Some(user) => Some(
            config
                .auth_infos
                .iter()
                .find(|info| info.name == user)
                .cloned()
                .ok_or_else(|| dangling("user", &user))?,
        ),
    };
    DEFAULT_CONTEXT.clone_into(&mut context.name);
    DEFAULT_CONTEXT.clone_into(&mut cluster.name);
    DEFAULT_CONTEXT.clone_into(&mut inner.cluster);
    inner.user = user.as_ref().map(|_| DEFAULT_CONTEXT.to_owned());
    Ok(Kubeconfig {
        clusters: vec![cluster],
        contexts: vec![context],
        auth_infos: user
            .map(|mut user| {
                DEFAULT_CONTEXT.clone_into(&mut user.name);
                user
            })
            .into_iter()
            .collect(),
        current_context: Some(DEFAULT_CONTEXT.to_owned()),
        ..Kubeconfig::default()
    })
}

fn check(config: &Kubeconfig, context: &str, guards: Guards) -> Result<(), KubeconfigError> {
    let refused = |reason: String, hint| {
        Err(KubeconfigError::Refused { context: context.to_owned(), reason, hint })
    };
    let clusters = config.clusters.iter().filter_map(|named| named.cluster.as_ref());
    for cluster in clusters {
        if cluster.server.as_deref().unwrap_or_default().is_empty() {
            return refused(
                "its cluster has no server".to_owned(),
                "set clusters[].cluster.server",
            );
        }
        if let Some(reason) = insecure(cluster).filter(|_| !guards.allow_insecure_tls) {
            return refused(
                reason.to_owned(),
                "set certificate-authority-data, or start the controller with --insecure-kubeconfig-tls",
            );
        }
    }
    for user in config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        if let Some(exec) = user.exec.as_ref().filter(|_| !guards.allow_exec) {
            let command = exec.command.as_deref().unwrap_or_default();
            return refused(
                format!("it runs the program {command:?} to get credentials"),
                "use a token or a client certificate, or start the controller with --insecure-kubeconfig-exec",
            );
        }
        if let Some(provider) = &user.auth_provider {
            return refused(
                format!("it uses the auth-provider {:?}, which is not supported", provider.name),
                "use a token or a client certificate",
            );
        }
    }
    if let Some((field, hint)) = file_reference(config).filter(|_| !guards.allow_files) {
        return refused(format!("{field} refers to a file on the controller's disk"), hint);
    }
    Ok(())
}

fn insecure(cluster: &Cluster) -> Option<&'static str> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Some("insecure-skip-tls-verify is set");
    }
    let server = cluster.server.as_deref().unwrap_or_default().to_ascii_lowercase();
    (!server.starts_with("https://")).then_some("its server is not an https:// address")
}

/// The first field that names a file, and what to use instead.
fn file_reference(config: &Kubeconfig) -> Option<(&'static str, &'static str)> {
    let is_set = |field: &Option<String>| field.as_ref().is_some_and(|value| !value.is_empty());
    let of_cluster = |cluster: &Cluster| {
        // Inline data wins over the file, which then is not read.
        (is_set(&cluster.certificate_authority) && !is_set(&cluster.certificate_authority_data))
            .then_some(("certificate-authority", "use certificate-authority-data, or start the controller with --insecure-kubeconfig-exec"))
    };
    let of_user = |user: &AuthInfo| {
        if is_set(&user.token_file) {
            Some((
                "tokenFile",
                "use token, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else if is_set(&user.client_certificate) && !is_set(&user.client_certificate_data) {
            Some((
                "client-certificate",
                "use client-certificate-data, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else if is_set(&user.client_key) && user.client_key_data.is_none() {
            Some((
                "client-key",
                "use client-key-data, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else {
            None
        }
    };
    let clusters = config.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let users = config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    clusters.filter_map(of_cluster).chain(users.filter_map(of_user)).next()
}
