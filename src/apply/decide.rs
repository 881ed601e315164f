//! Server-side apply is a conversation; this is the one place that knows what to say next.

use std::time::Duration;

use crate::cluster::{ApiOutcome, FieldConflict, RetryPolicy};

/// What the user wants done about errors.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
pub struct Policy {
    /// Only ask what would happen.
    pub dry_run: bool,
    /// Overwrite fields that others own.
    pub force_apply: bool,
    /// Replace an object that cannot be applied.
    pub replace_on_error: bool,
    /// Delete and apply anew an object that cannot be replaced.
    pub force_replace_on_error: bool,
    /// How transient failures are repeated.
    pub retry: RetryPolicy,
}

/// How far another object of this run is, on which this one depends: its namespace or the definition of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The run contains no such object, or only later ones.
    None,
    /// It has not been applied yet.
    Pending,
    /// It was applied.
    Done,
    /// It could not be applied.
    Failed,
}

/// What is known about the object at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Whether it is in the cluster.
    pub live: bool,
    /// Whether it must not be deleted.
    pub keep: bool,
    /// Its namespace.
    pub namespace: Provider,
    /// The definition of its kind.
    pub kind: Provider,
}

/// A request about the object.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Apply it, leaving conflicts to be told.
    Apply,
    /// Apply it and take over every field.
    ApplyForced,
    /// Apply, with force, what [`Step::Resolve`] left of it.
    ApplyResolved,
    /// In a dry run, apply it under another name, in a namespace that exists.
    ApplyStandIn,
    /// Replace it as a whole at the live object's version.
    Replace,
    /// Delete it and wait until it is gone.
    Delete,
    /// Apply it after it was deleted.
    ApplyAnew,
    /// Read the live object, to learn what it is like now.
    Read,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Send this request.
    Send(Request),
    /// Pause, then send this request.
    Pause(Duration, Request),
    /// Ask for the kinds of the cluster again after a pause, then send this request.
    RefreshKinds(Duration, Request),
    /// Wait until the object's namespace has been tried, then send this request.
    AwaitNamespace(Request),
    /// Wait until the definition of the object's kind has been tried, then send this request.
    AwaitKind(Request),
    /// Decide the conflicting fields with the live object, then send [`Request::ApplyResolved`].
    Resolve(Vec<FieldConflict>),
    /// The object is applied.
    Done,
    /// In a dry run: take the object as applied as it is.
    StandIn {
        /// What could not be checked.
        warning: String,
    },
    /// The object is not applied.
    Fail {
        /// Why.
        message: String,
    },
}

/// How far the conversation is. The last request is part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    request: Request,
    sent: u32,
    /// How often the kind or the namespace was missing although it should be there.
    missing: u32,
    reread: u32,
    /// Conflicts to be resolved once the live object was read again.
    conflicts: Vec<FieldConflict>,
    /// The first refusal, which a later one must not hide.
    refusal: Option<String>,
    seed: u64,
    /// Whether the API server could not be reached, so that there is no use in trying other objects.
    pub unreachable: bool,
    /// Remarks for the user that came up on the way.
    pub warnings: Vec<String>,
}

/// How often a kind or namespace that this run created is looked for again.
const MISSING_TRIES: u32 = 20;
/// The pause between.
const MISSING_PAUSE: Duration = Duration::from_millis(500);
/// How often the live object is read again because it changed under our hands.
const REREADS: u32 = 5;

impl State {
    /// The beginning: `first` is what to send first, `seed` spreads retries.
    pub fn new(first: Request, seed: u64) -> Self {
        Self {
            request: first,
            sent: 0,
            missing: 0,
            reread: 0,
            conflicts: Vec::new(),
            refusal: None,
            seed,
            unreachable: false,
            warnings: Vec::new(),
        }
    }

    fn send(&mut self, request: Request) -> Step {
        self.request = request.clone();
        self.sent = 0;
        Step::Send(request)
    }

    fn fail(&self, message: &str) -> Step {
        let message = match &self.refusal {
            Some(first) if first != message => format!("{message} (first: {first})"),
            _ => message.to_owned(),
        };
        Step::Fail { message }
    }
}

/// The next step after the last request came out as `outcome`. Rules, in order:
///
/// 1. It worked: done; after a deletion the object is applied anew; after a read the conversation goes on.
/// 2. Transient failures are repeated as the policy's retry rule says.
/// 3. A kind or namespace that this run creates is waited for; in a dry run a stand-in takes its place.
/// 4. Conflicts are forced when the policy says so, else resolved field by field with the live object.
/// 5. What the API server finds invalid is replaced, and then deleted and applied anew, as far as the policy allows.
///    Missing rights and denials are not: deleting would not get past them.
pub fn next(state: &mut State, outcome: &ApiOutcome, known: Known, policy: &Policy) -> Step {
    state.sent += 1;
    if let Some(pause) = policy.retry.pause(state.sent, outcome, state.seed) {
        return Step::Pause(pause, state.request.clone());
    }
    let message = outcome.message().unwrap_or_default();
    state.unreachable = matches!(outcome, ApiOutcome::Unreachable(_));
    if outcome.is_transient() && state.sent > 1 {
        return state.fail(&format!("{message} (tried {} times)", state.sent));
    }
    if *outcome == ApiOutcome::Interrupted {
        return state.fail(message);
    }
    match state.request {
        Request::Apply => after_apply(state, outcome, known, policy),
        Request::ApplyForced | Request::ApplyResolved => match outcome {
            ApiOutcome::Done(_) => Step::Done,
            _ => recreate(state, outcome, known, policy),
        },
        Request::ApplyStandIn => match outcome {
            ApiOutcome::Done(_) => Step::Done,
            ApiOutcome::NoSuchKind(_) => missing_kind(state, message, known.kind, policy),
            outcome if outcome.is_refused() => Step::StandIn {
                warning: format!(
                    "its namespace does not exist yet, and it could not be tried in another one: {message}"
                ),
            },
            _ => state.fail(message),
        },
        Request::Replace => after_replace(state, outcome, known, policy),
        Request::Delete => match outcome {
            // It was not really deleted, so only another name can be tried.
            ApiOutcome::Done(_) | ApiOutcome::NotFound(_) if policy.dry_run => {
                state.send(Request::ApplyStandIn)
            }
            ApiOutcome::Done(_) | ApiOutcome::NotFound(_) => state.send(Request::ApplyAnew),
            _ => state.fail(message),
        },
        Request::ApplyAnew => match outcome {
            ApiOutcome::Done(_) => Step::Done,
            _ => state.fail(message),
        },
        Request::Read => after_read(state, outcome),
    }
}

/// The next step when the managed fields of the live object do not match the conflicts: it is read again, a few times.
pub(super) fn after_unknown_field(state: &mut State, message: &str) -> Step {
    if state.reread >= REREADS {
        return state.fail(message);
    }
    state.reread += 1;
    state.send(Request::Read)
}

fn after_apply(state: &mut State, outcome: &ApiOutcome, known: Known, policy: &Policy) -> Step {
    let message = outcome.message().unwrap_or_default();
    match outcome {
        ApiOutcome::Done(_) => Step::Done,
        ApiOutcome::NoSuchKind(_) => missing_kind(state, message, known.kind, policy),
        ApiOutcome::NoSuchNamespace(_) => {
            missing_namespace(state, message, known.namespace, policy)
        }
        ApiOutcome::Conflict { .. } if policy.force_apply => state.send(Request::ApplyForced),
        ApiOutcome::Conflict { fields, .. } => {
            state.refusal = Some(message.to_owned());
            state.conflicts.clone_from(fields);
            if known.live {
                state.request = Request::ApplyResolved;
                state.sent = 0;
                Step::Resolve(fields.clone())
            } else {
                // Somebody created it since the live side was read.
                state.reread += 1;
                state.send(Request::Read)
            }
        }
        outcome
            if known.live
                && is_replaceable(outcome)
                && (policy.replace_on_error || policy.force_replace_on_error) =>
        {
            state.refusal = Some(message.to_owned());
            state.warnings.push(format!("cannot be applied and is replaced: {message}"));
            state.send(Request::Replace)
        }
        ApiOutcome::Invalid { immutable: true, .. } if !policy.force_replace_on_error => state
            .fail(&format!(
                "{message}; replacing it on errors by force would delete it and apply it anew"
            )),
        _ => state.fail(message),
    }
}

fn missing_kind(state: &mut State, message: &str, kind: Provider, policy: &Policy) -> Step {
    state.missing += 1;
    state.sent = 0;
    let again = state.request.clone();
    match kind {
        Provider::Pending if state.missing <= MISSING_TRIES => Step::AwaitKind(again),
        Provider::Done if policy.dry_run => Step::StandIn {
            warning: "the definition of its kind is created in the same run, so that it cannot be checked in a dry run".into(),
        },
        Provider::Done if state.missing <= MISSING_TRIES => {
            Step::RefreshKinds(MISSING_PAUSE, again)
        }
        Provider::None if state.missing == 1 => Step::RefreshKinds(Duration::ZERO, again),
        Provider::Failed => {
            state.fail(&format!("{message}: the definition of its kind could not be applied"))
        }
        _ => state.fail(message),
    }
}

fn missing_namespace(
    state: &mut State,
    message: &str,
    namespace: Provider,
    policy: &Policy,
) -> Step {
    state.missing += 1;
    state.sent = 0;
    match namespace {
        Provider::None => state.fail(&format!(
            "{message}: the namespace is not part of the deployment, or only of a later item"
        )),
        Provider::Failed => state.fail(&format!("{message}: the namespace could not be applied")),
        _ if policy.dry_run => state.send(Request::ApplyStandIn),
        Provider::Pending if state.missing <= MISSING_TRIES => Step::AwaitNamespace(Request::Apply),
        Provider::Done if state.missing <= MISSING_TRIES => {
            Step::Pause(MISSING_PAUSE, Request::Apply)
        }
        _ => state.fail(message),
    }
}

fn after_replace(state: &mut State, outcome: &ApiOutcome, known: Known, policy: &Policy) -> Step {
    match outcome {
        ApiOutcome::Done(_) => Step::Done,
        ApiOutcome::Outdated(_) if state.reread < REREADS => {
            state.reread += 1;
            state.send(Request::Read)
        }
        ApiOutcome::NotFound(_) => state.send(Request::ApplyAnew),
        _ => recreate(state, outcome, known, policy),
    }
}

/// After the live object was read again: back to what needed it.
fn after_read(state: &mut State, outcome: &ApiOutcome) -> Step {
    match outcome {
        ApiOutcome::Done(_) if state.conflicts.is_empty() => state.send(Request::Replace),
        ApiOutcome::Done(_) => {
            state.request = Request::ApplyResolved;
            state.sent = 0;
            Step::Resolve(state.conflicts.clone())
        }
        ApiOutcome::NotFound(_) => {
            state.conflicts.clear();
            state.send(Request::ApplyAnew)
        }
        _ => state.fail(outcome.message().unwrap_or_default()),
    }
}

fn recreate(state: &mut State, outcome: &ApiOutcome, known: Known, policy: &Policy) -> Step {
    let message = outcome.message().unwrap_or_default();
    if !policy.force_replace_on_error || !is_replaceable(outcome) {
        return state.fail(message);
    }
    if known.keep {
        return state.fail(&format!(
            "{message}: it is not deleted and applied anew because it is marked to be kept"
        ));
    }
    state.refusal = Some(message.to_owned());
    state.warnings.push(format!("cannot be changed and is deleted and applied anew: {message}"));
    state.send(Request::Delete)
}

/// Whether another way of writing the object may succeed.
fn is_replaceable(outcome: &ApiOutcome) -> bool {
    matches!(
        outcome,
        ApiOutcome::Invalid { .. }
            | ApiOutcome::BadRequest(_)
            | ApiOutcome::Conflict { .. }
            | ApiOutcome::Outdated(_)
            | ApiOutcome::Unexpected(_)
    )
}
