//! What validation says about one object.

use crate::{
    hooks::hook_of,
    object::{Object, annotations},
    readiness::{Facts, Readiness, assess},
};

/// What was found about one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// What is missing or not ready.
    pub errors: Vec<String>,
    /// What to know.
    pub warnings: Vec<String>,
    /// Annotations `validate-result.kluctl.io/…` of the live object, with their values.
    pub results: Vec<(String, String)>,
}

impl Finding {
    fn error(message: impl Into<String>) -> Self {
        Self { errors: vec![message.into()], ..Self::default() }
    }
}

/// Judges a rendered object by its live counterpart. What is marked for deletion must not be there; hooks that are deleted
/// when they succeed, or never run, are not expected; everything else must be there and ready.
pub fn judge(desired: &Object, live: Option<&Object>, facts: &Facts) -> Finding {
    if annotations::is_delete(desired) {
        return match live {
            Some(_) => Finding::error("is marked for deletion but still exists"),
            None => Finding::default(),
        };
    }
    if let (Some(hook), _) = hook_of(desired)
        && (!hook.is_persistent() || hook.is_never_run())
    {
        return Finding::default();
    }
    let Some(live) = live else { return Finding::error("object not found") };
    if annotations::is_validate_ignore(live) {
        return Finding::default();
    }
    let assessment = assess(live, facts);
    let errors = match assessment.readiness {
        Readiness::Ready => Vec::new(),
        Readiness::Progressing { reason } | Readiness::Failed { reason } => vec![reason],
    };
    let results = live
        .annotations()
        .into_iter()
        .filter(|(key, _)| key.starts_with(annotations::VALIDATE_RESULT_PREFIX));
    Finding {
        errors,
        warnings: assessment.warnings,
        results: results.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    }
}
