//! Which API servers a deployment may talk to, by context name.
//!
//! The rules are those that the custom resource documents: what the controller is given (its own access, or the
//! current context of a kubeconfig) is called `default`; the kubeconfig's other contexts keep their names beside it;
//! `renameContexts` are applied in order; a target's context is looked up in the result.

mod error;
mod selected;

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube::config::Kubeconfig;

use crate::yaml::{self, Schema};

pub use error::KubeconfigError;
use selected::{check, reduce};

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
