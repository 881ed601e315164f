//! What is told of a run, and in which words.

use std::time::Duration;

use super::Run;
use crate::{
    api::{GoDuration, KluctlDeploymentStatus, READY, reason},
    controller::{
        outcome::{CommandOutcome, Done, Facts},
        schedule::Requeue,
    },
};

/// How serious an event is; notification-controller's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    /// A normal course of things.
    Info,
    /// Something failed.
    Error,
}

/// What tells repeats of one event from a new one with the same text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Token {
    /// Every occurrence is news.
    Always,
    /// Repeats are the same news while this value stays.
    Episode(String),
}

/// An event about the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// How serious.
    pub severity: Severity,
    /// Reason, as in conditions.
    pub reason: &'static str,
    /// Text.
    pub message: String,
    /// Whether the event tells the outcome of the revision to Git providers.
    pub finishes: bool,
    /// What tells it from repeats.
    pub token: Token,
}

pub(super) fn finished(run: Run, next: Requeue) -> Event {
    let took =
        GoDuration(Duration::from_millis(u64::try_from(run.took.as_millis()).unwrap_or(u64::MAX)));
    let next = match next {
        Requeue::After(delay) | Requeue::Backoff(delay) => {
            format!(", next run in {}", GoDuration(Duration::from_secs(delay.as_secs())))
        }
        Requeue::OnChange => String::new(),
    };
    Event {
        severity: Severity::Info,
        reason: reason::RECONCILIATION_SUCCEEDED,
        message: format!("Reconciliation finished in {took}{next}"),
        finishes: true,
        token: Token::Always,
    }
}

/// `deploy succeeded. 3 new objects. …`, the reference's grammar.
pub(super) fn command_event(command: &str, outcome: &CommandOutcome) -> Event {
    let status = &outcome.status;
    let counts = [
        (status.new_objects, "new objects"),
        (status.changed_objects, "changed objects"),
        (status.hook_objects, "hooks run"),
        (status.deleted_objects, "deleted objects"),
        (status.orphan_objects, "orphan objects"),
        (status.warnings, "warnings"),
    ];
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let counts = counts.map(|(number, what)| format!(" {number} {what}."));
    let counts: String = counts.collect();
    let message = format!("{command} succeeded.{counts}{}", listed_warnings(&outcome.warnings));
    Event {
        severity: Severity::Info,
        reason: reason::RECONCILIATION_SUCCEEDED,
        message,
        finishes: false,
        token: Token::Always,
    }
}

/// What the project's author should know of a revision that is rendered, though nothing is deployed for it.
pub(super) fn warnings_event(facts: &Facts) -> Option<Event> {
    if facts.warnings.is_empty() {
        return None;
    }
    let number = facts.warnings.len();
    Some(Event {
        severity: Severity::Info,
        reason: reason::RECONCILIATION_SUCCEEDED,
        message: format!("rendered. {number} warnings.{}", listed_warnings(&facts.warnings)),
        finishes: false,
        token: Token::Always,
    })
}

/// The first few warnings, each in a line of its own.
fn listed_warnings(warnings: &[String]) -> String {
    warnings.iter().take(5).flat_map(|warning| ["\nwarning: ", warning]).collect()
}

/// Repeats of a failure are one piece of news as long as Ready has not been True in between.
pub(super) fn episode(status: &KluctlDeploymentStatus) -> Token {
    let since = status.condition(READY).map(|ready| ready.last_transition_time.0.to_string());
    Token::Episode(since.unwrap_or_default())
}

/// What is told once of objects that stay behind: how a former target's state differs from what was told before.
pub(super) fn left_behind(
    before: &KluctlDeploymentStatus,
    done: &Done,
) -> impl Iterator<Item = Event> {
    let known: Vec<_> = before.former_targets.iter().map(|former| &former.message).collect();
    let former = done.former.iter().flatten().map(|former| &former.message);
    let news: Vec<_> = former.filter(|message| !known.contains(message)).cloned().collect();
    news.into_iter().chain(done.notes.clone()).map(|message| Event {
        severity: Severity::Error,
        reason: reason::OBJECTS_LEFT_BEHIND,
        message,
        finishes: false,
        token: Token::Always,
    })
}
