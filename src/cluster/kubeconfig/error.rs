use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    yaml,
};

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
