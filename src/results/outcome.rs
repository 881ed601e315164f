use crate::object::ObjectRef;

use super::CommandResult;

/// What was to be done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Apply it.
    Apply,
    /// Apply it as a hook.
    Hook,
    /// Delete it at deployment: `deleteObjects`, `kluctl.io/delete`, or a hook's delete policy.
    Delete,
    /// Wait until it is ready.
    Wait,
    /// Delete it because it is no longer wanted.
    Prune,
}

/// How far that got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutcomeState {
    /// It is done.
    Done,
    /// It was tried and did not work.
    Failed {
        /// Why.
        message: String,
    },
    /// The API server accepted it, and it is not complete yet: a deletion that nobody waited for.
    Accepted {
        /// What it still takes.
        message: String,
    },
    /// It was not tried.
    NotAttempted {
        /// Why.
        reason: String,
    },
}

/// A planned object and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectOutcome {
    /// The object.
    pub reference: ObjectRef,
    /// What was to be done.
    pub operation: Operation,
    /// How far that got.
    pub state: OutcomeState,
}

impl ObjectOutcome {
    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        self.state == OutcomeState::Done
    }

    /// Why it is not done.
    pub fn problem(&self) -> Option<&str> {
        match &self.state {
            OutcomeState::Done => None,
            OutcomeState::Failed { message } | OutcomeState::Accepted { message } => Some(message),
            OutcomeState::NotAttempted { reason } => Some(reason),
        }
    }
}

impl CommandResult {
    /// Planned objects that failed or were not attempted, in the order of the plan, for per-object failures in a status.
    pub fn failures(&self) -> impl Iterator<Item = &ObjectOutcome> {
        self.outcomes.iter().filter(|outcome| {
            matches!(outcome.state, OutcomeState::Failed { .. } | OutcomeState::NotAttempted { .. })
        })
    }

    /// Objects that should have been pruned and are (or may be) still there. The next run tries again, as they still carry
    /// the discriminator.
    pub fn survivors(&self) -> impl Iterator<Item = &ObjectOutcome> {
        let pruned = self.outcomes.iter().filter(|outcome| outcome.operation == Operation::Prune);
        pruned.filter(|outcome| !outcome.is_done())
    }

    /// Whether the command succeeded completely: no errors, nothing left undone, not interrupted.
    pub fn is_success(&self) -> bool {
        self.errors.is_empty() && !self.interrupted && self.failures().next().is_none()
    }
}
