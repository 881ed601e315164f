use crate::{
    deployment::{ItemError, LoadError},
    diagnostic::{Class, Describe, Diagnostic},
    project::ProjectError,
    secret::SecretTexts,
};

/// Why a run could not be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// `.kluctl.yaml`, its arguments or the target.
    #[error("the project cannot be used")]
    Project(#[from] ProjectError),
    /// `deployment.yaml`, includes or variables.
    #[error("the deployment project cannot be loaded")]
    Load(Vec<LoadError>),
    /// Items that cannot be rendered or built; all that were found in the same stage.
    #[error("{} of the deployment cannot be built", count(.0))]
    Items(Vec<ItemError>),
    /// The run was interrupted.
    #[error("the run was interrupted")]
    Cancelled,
    /// A defect of this program.
    #[error("internal error: {message}")]
    Internal {
        /// What is known about it.
        message: String,
    },
}

fn count(errors: &[ItemError]) -> String {
    let mut items: Vec<&str> = errors.iter().map(|error| error.item.as_str()).collect();
    items.dedup();
    match items.as_slice() {
        [item] => format!("item {item}"),
        items => format!("{} items", items.len()),
    }
}

impl EngineError {
    /// All problems, most useful first; never empty.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::Project(error) => error.diagnostics(),
            Self::Load(errors) => errors.iter().map(Describe::describe).collect(),
            Self::Items(errors) => errors.iter().map(Describe::describe).collect(),
            Self::Cancelled => vec![Diagnostic::new(Class::Cancelled, self.to_string())],
            Self::Internal { .. } => vec![Diagnostic::new(Class::Internal, self.to_string())],
        }
    }
}

impl EngineError {
    /// As [`EngineError::diagnostics`], without anything that sensitive variables hold.
    pub fn masked_diagnostics(&self, secrets: &SecretTexts) -> Vec<Diagnostic> {
        self.diagnostics().into_iter().map(|problem| secrets.mask_diagnostic(problem)).collect()
    }
}

impl Describe for EngineError {
    /// The first problem; a hint tells how many more there are.
    fn describe(&self) -> Diagnostic {
        let mut all = self.diagnostics();
        let more = all.len().saturating_sub(1);
        let Some(first) = (!all.is_empty()).then(|| all.swap_remove(0)) else {
            return Diagnostic::new(Class::Internal, self.to_string());
        };
        match more {
            0 => first,
            1 => first.with_hint("there is one more problem"),
            _ => first.with_hint(format!("there are {more} more problems")),
        }
    }
}
