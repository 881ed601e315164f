//! From how a reconciliation ended to conditions, status, events and the next run.
//!
//! Conditions follow Flux and kstatus: Ready is always there; Reconciling is there (and True) while work is under way or
//! will be repeated; Stalled is there (and True) when only a change by a person helps. `observedGeneration` moves only when
//! Ready is True or the object is Stalled, so that waiting tools neither give up early nor wait in vain.

mod events;

pub(crate) use events::{Event, Severity, Token};

use std::time::Duration;

use jiff::Timestamp;

use self::events::{command_event, episode, finished, left_behind, warnings_event};
use super::{
    conditions::{Stamp, remove, shorten, shorten_to},
    decide::{self, last_deployment},
    outcome::{Done, Ending, Facts, Failure, Outlook, count},
    record::{is_same_cluster, raw_target, record_target},
    requests::Requests,
    schedule::{self, Requeue},
};
use crate::api::{
    ClaimState, Condition, ConditionStatus, GoDuration, KluctlDeploymentSpec,
    KluctlDeploymentStatus, MAX_LISTED_FAILURES, OWNERSHIP_CONFLICT, ObjectFailure, READY,
    RECONCILING, STALLED, ValidateStatus, reason,
};

/// The object before the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before<'a> {
    /// Generation of the spec.
    pub generation: i64,
    /// The spec; `None` when it could not be read.
    pub spec: Option<&'a KluctlDeploymentSpec>,
    /// The status.
    pub status: &'a KluctlDeploymentStatus,
    /// Open requests.
    pub requests: &'a Requests,
    /// Other objects that claim the same target.
    pub rivals: &'a [String],
}

/// The run, besides its ending.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "a dry run is called so")]
pub(crate) struct Run {
    /// When it ended.
    pub now: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Whether changes were only pretended.
    pub dry_run: bool,
    /// Pause of runs that wait for other objects.
    pub waiting: Duration,
    /// Factor around 1 for the next interval.
    pub jitter: f64,
}

/// What follows from a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// The whole new status.
    pub status: KluctlDeploymentStatus,
    /// Events, oldest first.
    pub events: Vec<Event>,
    /// The next run.
    pub next: Requeue,
}

/// Draws the conclusions of a run.
pub(crate) fn summarize(before: Before<'_>, facts: &Facts, ending: &Ending, run: Run) -> Summary {
    let mut status = before.status.clone();
    status.conditions.retain(|condition| condition.condition_type != "Healthy");
    status.ready_for_migration = true;
    status.former_targets.iter_mut().for_each(|former| former.pruning = false);
    handle_requests(&mut status, before.requests, ending);
    if facts.revision.is_some() {
        status.last_attempted_revision.clone_from(&facts.revision);
        status.last_attempted_digest.clone_from(&facts.digest);
    }
    set_rivals(&mut status, before, run);
    match ending {
        Ending::Failed(failure) => summarize_failure(status, before, failure, run),
        Ending::Done(done) => summarize_done(status, before, facts, done, run),
    }
}

/// Takes over the tokens of requests that this run answered.
fn handle_requests(status: &mut KluctlDeploymentStatus, requests: &Requests, ending: &Ending) {
    let interrupted =
        matches!(ending, Ending::Failed(failure) if failure.outlook == Outlook::Interrupted);
    if interrupted {
        return;
    }
    if requests.reconcile.is_some() {
        status.last_handled_reconcile_at.clone_from(&requests.reconcile);
    }
    // A force is spent by the run that saw it, as with Flux. A deployment stays asked for until one took place.
    if requests.force_seen.is_some() {
        status.last_handled_force_at.clone_from(&requests.force_seen);
    }
    let deployed = matches!(ending, Ending::Done(Done { deploy: Some(_), .. }));
    if deployed && requests.deploy.is_some() {
        status.last_handled_deploy_at.clone_from(&requests.deploy);
    }
}

fn set_rivals(status: &mut KluctlDeploymentStatus, before: Before<'_>, run: Run) {
    status.rivals = before.rivals.to_vec();
    if before.rivals.is_empty() {
        remove(status, OWNERSHIP_CONFLICT);
        return;
    }
    let stamp = Stamp { generation: before.generation, now: run.now };
    let message = format!(
        "the same discriminator on the same cluster is also managed by {}",
        before.rivals.join(", ")
    );
    stamp.set(
        status,
        OWNERSHIP_CONFLICT,
        ConditionStatus::True,
        reason::OWNERSHIP_CONFLICT,
        &message,
    );
}

fn summarize_failure(
    mut status: KluctlDeploymentStatus,
    before: Before<'_>,
    failure: &Failure,
    run: Run,
) -> Summary {
    let next = schedule::after_failure(failure, before.spec, run.waiting);
    let stamp = Stamp { generation: before.generation, now: run.now };
    if failure.outlook == Outlook::Interrupted {
        if failure.reason == reason::DEPLOY_FAILED {
            // Something may have been applied: what Ready said before need not be true any more.
            let message = "Interrupted; the reconciliation is going to be repeated";
            set_progressing(stamp, &mut status, message, message);
        }
        return Summary { status, events: Vec::new(), next };
    }
    let is_repeat = status.condition(READY).is_some_and(|ready| {
        ready.reason == failure.reason && ready.message == shorten(&failure.message)
    });
    let ready = match failure.outlook {
        Outlook::Pending => ConditionStatus::Unknown,
        _ => ConditionStatus::False,
    };
    stamp.set(&mut status, READY, ready, failure.reason, &failure.message);
    if failure.outlook == Outlook::Stalled {
        stamp.set(&mut status, STALLED, ConditionStatus::True, failure.reason, &failure.message);
        remove(&mut status, RECONCILING);
        status.observed_generation = before.generation;
    } else {
        set_retrying(stamp, &mut status, &failure.message);
    }
    let waits = matches!(failure.outlook, Outlook::Pending | Outlook::Waiting);
    let events = if is_repeat && (waits || failure.outlook == Outlook::Backoff) {
        Vec::new()
    } else {
        vec![Event {
            severity: if waits { Severity::Info } else { Severity::Error },
            reason: failure.reason,
            message: failure.message.clone(),
            finishes: false,
            token: episode(&status),
        }]
    };
    Summary { status, events, next }
}

fn summarize_done(
    mut status: KluctlDeploymentStatus,
    before: Before<'_>,
    facts: &Facts,
    done: &Done,
    run: Run,
) -> Summary {
    let Some(spec) = before.spec else {
        return Summary { status, events: Vec::new(), next: Requeue::OnChange };
    };
    take_over(&mut status, spec, facts, done, run);
    let verdict = verdict(&status, spec, facts, run);
    let was_ready = before.status.condition(READY).is_some_and(Condition::is_true);
    let stamp = Stamp { generation: before.generation, now: run.now };
    let ready = before.status.condition(READY);
    let was_new = ready.is_none_or(|ready| ready.observed_generation != Some(before.generation));
    match &verdict {
        Verdict::Ready(message) => {
            let message = &with_former(&with_rivals(message, before.rivals), &status);
            stamp.set(
                &mut status,
                READY,
                ConditionStatus::True,
                reason::RECONCILIATION_SUCCEEDED,
                message,
            );
            remove(&mut status, RECONCILING);
            status.observed_generation = before.generation;
        }
        Verdict::Progressing(message) => set_progressing(stamp, &mut status, message, message),
        Verdict::NotReady(reason, message) => {
            stamp.set(&mut status, READY, ConditionStatus::False, reason, message);
            set_retrying(stamp, &mut status, message);
        }
    }
    remove(&mut status, STALLED);
    let is_here = run.dry_run || is_same_cluster(status.cluster_id.as_deref(), facts.cluster_id());
    let here = facts.objects_hash.as_deref().filter(|_| is_here);
    let next = schedule::after_run(run.now, spec, &status, here, run.dry_run, run.jitter);

    let mut events = Vec::new();
    events.extend(done.deploy.as_ref().filter(|outcome| outcome.status.succeeded()).map(
        |outcome| command_event(if outcome.status.dry_run { "dry run" } else { "deploy" }, outcome),
    ));
    events.extend(
        done.prune
            .as_ref()
            .filter(|outcome| outcome.status.succeeded() && outcome.status.deleted_objects > 0)
            .map(|outcome| command_event("prune", outcome)),
    );
    events.extend(left_behind(before.status, done));
    let is_new_revision = before.status.last_attempted_digest != status.last_attempted_digest;
    if done.deploy.is_none() && (was_new || is_new_revision) {
        // A deployment would have told of them.
        events.extend(warnings_event(facts));
    }
    match &verdict {
        Verdict::Ready(_) => {
            let is_news = !was_ready
                || was_new
                || done.deploy.is_some()
                || done.changed_something()
                || before.requests.reconcile.is_some()
                || before.status.last_attempted_revision != status.last_attempted_revision;
            if is_news {
                events.push(finished(run, next));
            }
        }
        // Told once it is ready, or fails.
        Verdict::Progressing(_) => {}
        Verdict::NotReady(reason, message) => {
            let is_repeat = ready
                .is_some_and(|ready| ready.reason == *reason && ready.message == shorten(message));
            let is_news = *done != Done::default() || was_new || !is_repeat;
            if is_news {
                events.push(Event {
                    severity: Severity::Error,
                    reason,
                    message: message.clone(),
                    finishes: false,
                    token: episode(&status),
                });
            }
        }
    }
    Summary { status, events, next }
}

/// Writes the results of this run over those of earlier ones.
fn take_over(
    status: &mut KluctlDeploymentStatus,
    spec: &KluctlDeploymentSpec,
    facts: &Facts,
    done: &Done,
    run: Run,
) {
    status.dependent_repositories.clone_from(&facts.repositories);
    if let Some(deploy) = &done.deploy {
        if !run.dry_run {
            // Has been written before the deployment already, and told of.
            let _told = record_target(status, facts);
        } else if status.discriminator.is_none() && status.cluster_id.is_none() {
            // A dry run of something else must not hide where the objects are.
            status.raw_target = Some(raw_target(facts));
        }
        if done.is_swept && !run.dry_run {
            status.footprint.clone_from(&facts.footprint);
        }
        status.last_deploy_result = Some(deploy.status.clone());
    }
    if let Some(former) = &done.former {
        status.former_targets.clone_from(former);
    }
    if let Some(prune) = &done.prune {
        status.last_prune_result = Some(prune.status.clone());
        status.survivors = limited(&prune.survivors);
    }
    if !spec.prune {
        status.last_prune_result = None;
        status.survivors.clear();
    }
    match (&done.validate, spec.validate) {
        (_, false) => status.last_validate_result = None,
        (Some(validate), true) => {
            let last = status.last_validate_result.take().filter(|_| done.deploy.is_none());
            let known = last.and_then(|last| last.progressing_since);
            let since = validate.status.progressing_since.clone();
            status.last_validate_result = Some(ValidateStatus {
                progressing_since: since.map(|since| known.unwrap_or(since)),
                ..validate.status.clone()
            });
        }
        (None, true) => {}
    }
    // What failed is kept until the stage that found it has run again.
    if *done != Done::default() {
        let commands =
            [&done.deploy, &done.prune].into_iter().flatten().map(|outcome| &outcome.failed);
        let last = status.last_validate_result.as_ref();
        let is_over = !last.is_some_and(|last| decide::is_progressing(spec, last, run.now));
        let failed: Vec<_> = commands
            .chain(done.validate.as_ref().filter(|_| is_over).map(|outcome| &outcome.failed))
            .flatten()
            .cloned()
            .collect();
        status.failed_objects_count = count(failed.len());
        status.failed_objects = limited(&failed);
    }
    let deployed = last_deployment(status, run.dry_run)
        .filter(|last| last.succeeded() && last.objects_hash == facts.objects_hash);
    if deployed.is_some() && !run.dry_run {
        status.last_applied_revision.clone_from(&facts.revision);
        status.last_applied_origin_revision.clone_from(&facts.origin_revision);
    }
}

/// What Ready says of an owner whose target others want, too: it goes on, and they are refused.
fn with_rivals(message: &str, rivals: &[String]) -> String {
    if rivals.is_empty() {
        return message.to_owned();
    }
    format!("{message}; its target is also claimed by {}, which is refused", rivals.join(", "))
}

/// What Ready says besides when objects of former targets are left.
fn with_former(message: &str, status: &KluctlDeploymentStatus) -> String {
    if status.former_targets.is_empty() {
        return message.to_owned();
    }
    format!("{message}; objects of former targets are left behind, see status.formerTargets")
}

enum Verdict {
    Ready(String),
    /// Nothing failed, and what is not ready is on its way.
    Progressing(String),
    NotReady(&'static str, String),
}

/// Whether the last results, of this run or earlier ones, are what the spec asks for.
fn verdict(
    status: &KluctlDeploymentStatus,
    spec: &KluctlDeploymentSpec,
    facts: &Facts,
    run: Run,
) -> Verdict {
    let dry_run = run.dry_run;
    let deploy = last_deployment(status, dry_run);
    if let Some(failed) = deploy.filter(|last| !last.succeeded()) {
        let text = failed.error.clone().unwrap_or_else(|| format!("{} errors", failed.errors));
        return Verdict::NotReady(reason::DEPLOY_FAILED, format!("deploy failed: {text}"));
    }
    if spec.prune && decide::prune_failed(status) {
        let last = status.last_prune_result.as_ref();
        let text = last
            .and_then(|last| last.error.clone())
            .unwrap_or_else(|| format!("{} objects still exist", status.survivors.len()));
        return Verdict::NotReady(reason::PRUNE_FAILED, format!("prune failed: {text}"));
    }
    let validate = status.last_validate_result.as_ref().filter(|_| spec.validate && !dry_run);
    if let Some(failed) = validate.filter(|last| !last.ready) {
        let text = failed.error.clone().unwrap_or_else(|| format!("{} errors", failed.errors));
        if decide::is_progressing(spec, failed, run.now) {
            return Verdict::Progressing(format!("Waiting until all objects are ready: {text}"));
        }
        let text = match failed.progressing_since {
            Some(_) => {
                format!("not ready within spec.timeout ({}): {text}", GoDuration(spec.timeout()))
            }
            None => text,
        };
        return Verdict::NotReady(reason::VALIDATE_FAILED, format!("validate failed: {text}"));
    }
    let revision = facts.revision.as_deref().unwrap_or("unknown");
    Verdict::Ready(if dry_run {
        format!("Dry run of revision: {revision}")
    } else if deploy.is_none_or(|last| last.objects_hash == facts.objects_hash) {
        format!("Applied revision: {revision}")
    } else {
        let applied = status.last_applied_revision.as_deref().unwrap_or("unknown");
        format!(
            "Applied revision: {applied}; revision {revision} differs and is not deployed because deployOnChanges is false"
        )
    })
}

/// The status while the run goes on: Reconciling says what happens, and Ready is open.
pub(crate) fn progress(
    before: Before<'_>,
    facts: &Facts,
    message: &str,
    now: Timestamp,
) -> KluctlDeploymentStatus {
    let mut status = before.status.clone();
    if facts.revision.is_some() {
        status.last_attempted_revision.clone_from(&facts.revision);
        status.last_attempted_digest.clone_from(&facts.digest);
    }
    let stamp = Stamp { generation: before.generation, now };
    set_progressing(stamp, &mut status, "Reconciliation in progress", message);
    status
}

/// The status of a suspended object: only the answer to a request changes (Flux does the same), and what a run that was killed
/// left behind, so that it stands in nobody's way: a request for a target, and the flags of a prune.
pub(crate) fn suspended(
    status: &KluctlDeploymentStatus,
    requests: &Requests,
) -> KluctlDeploymentStatus {
    let mut status = status.clone();
    if requests.reconcile.is_some() {
        status.last_handled_reconcile_at.clone_from(&requests.reconcile);
    }
    if requests.force_seen.is_some() {
        status.last_handled_force_at.clone_from(&requests.force_seen);
    }
    status.claim = status.claim.filter(|claim| claim.state != ClaimState::Requested);
    status.former_targets.iter_mut().for_each(|former| former.pruning = false);
    status
}

/// Ready is open, as `ready` says; Reconciling says what is under way.
fn set_progressing(
    stamp: Stamp,
    status: &mut KluctlDeploymentStatus,
    ready: &str,
    reconciling: &str,
) {
    stamp.set(status, READY, ConditionStatus::Unknown, reason::PROGRESSING, ready);
    stamp.set(status, RECONCILING, ConditionStatus::True, reason::PROGRESSING, reconciling);
    remove(status, STALLED);
}

fn set_retrying(stamp: Stamp, status: &mut KluctlDeploymentStatus, message: &str) {
    stamp.set(status, RECONCILING, ConditionStatus::True, reason::PROGRESSING_WITH_RETRY, message);
    remove(status, STALLED);
}

fn limited(failures: &[ObjectFailure]) -> Vec<ObjectFailure> {
    let listed = failures.iter().take(MAX_LISTED_FAILURES);
    listed.map(|f| ObjectFailure { message: shorten_to(&f.message, 1_000), ..f.clone() }).collect()
}
