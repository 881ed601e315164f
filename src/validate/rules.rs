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
    /// Whether the object is on its way, so that the errors may go by themselves.
    pub is_progressing: bool,
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
        let Some(live) = live else { return Finding::default() };
        let still_there = Finding::error("is marked for deletion but still exists");
        return Finding { is_progressing: is_going(live), ..still_there };
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
    let (errors, is_progressing) = match assessment.readiness {
        Readiness::Ready => (Vec::new(), false),
        Readiness::Progressing { reason } => (vec![reason], true),
        Readiness::Failed { reason } => (vec![reason], false),
    };
    let results = live
        .annotations()
        .into_iter()
        .filter(|(key, _)| key.starts_with(annotations::VALIDATE_RESULT_PREFIX));
    Finding {
        errors,
        is_progressing,
        warnings: assessment.warnings,
        results: results.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    }
}

fn is_going(live: &Object) -> bool {
    !live.value()["metadata"]["deletionTimestamp"].is_null()
}
