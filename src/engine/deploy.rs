//! Deploys a desired state.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{
    DeployOptions, KnownVersions,
    changes::changes_of,
    prune::prune_planned,
    session::{Session, interruption, references, remarks, unreadable},
};
use crate::{
    apply::{ApplyOptions, ApplyReport, ApplyRun, Policy, plan, run},
    cluster::{Clock, Discovery, LiveState, ObserveRequest},
    deployment::DesiredState,
    diff::obfuscate_result,
    observer::Stage,
    prune::{self, PruneOptions, PrunePlan, Wanted},
    results::{
        Collected, CommandResult, DeploymentError, ObjectOutcome, Operation, OutcomeState, collect,
    },
};

/// The longest time that pruning within a deployment waits for one object to go.
const PRUNE_WAIT: Duration = Duration::from_mins(1);

/// Applies everything that is desired, compares it with what was there before, finds orphans, and prunes them if asked to.
///
/// Always returns a result: what went wrong is in its errors, and every planned object is in its outcomes as done, failed
/// or not attempted. Pruning without a discriminator is refused as an error of the result, and nothing is pruned when the
/// live side could not be read, an object could not be applied, or the run was cut short. Secrets are masked.
pub async fn deploy(
    session: &Session<'_>,
    desired: &DesiredState,
    options: &DeployOptions,
) -> CommandResult {
    let work = async |cancel: CancellationToken| {
        execute(session, desired, options, &Mode::deploy(options), &cancel).await
    };
    finished(session, session.limited(work).await)
}

pub(super) fn finished(
    session: &Session<'_>,
    (mut result, timed_out): (CommandResult, bool),
) -> CommandResult {
    if result.interrupted {
        result.errors.push(interruption(session.timeout, timed_out));
    }
    result
}

/// Where deploying and diffing differ.
pub(super) struct Mode {
    command: &'static str,
    dry_run: bool,
    prune: bool,
    known: KnownVersions,
}

impl Mode {
    fn deploy(options: &DeployOptions) -> Self {
        let (dry_run, prune) = (options.dry_run, options.prune);
        Self { command: "deploy", dry_run, prune, known: KnownVersions::new() }
    }

    pub(super) fn diff(known: KnownVersions) -> Self {
        Self { command: "diff", dry_run: true, prune: false, known }
    }
}

pub(super) async fn execute(
    session: &Session<'_>,
    desired: &DesiredState,
    options: &DeployOptions,
    mode: &Mode,
    cancel: &CancellationToken,
) -> CommandResult {
    let clock = Clock::starting_at(session.info.started);
    let discriminator = desired.discriminator.as_deref().filter(|text| !text.is_empty());
    let mut result = session
        .command_result(mode.command, &desired.inclusion, discriminator, &clock, cancel)
        .await;
    note_options(&mut result, desired, options, mode);
    note_discriminator(&mut result, discriminator, mode);

    let wanted = references(session.cluster, desired).await;
    let request = ObserveRequest {
        discriminator,
        references: &wanted,
        footprint: Some(&options.footprint),
        with_namespaces: mode.dry_run,
        ..ObserveRequest::default()
    };
    let live = session.observe(&request, cancel).await;
    let observed = match (live, session.cluster.kinds().await) {
        (Ok(live), Ok(kinds)) => Ok((live, kinds)),
        (Err(outcome), _) | (_, Err(outcome)) => Err(outcome),
    };
    let (live, kinds) = match observed {
        Ok(observed) => observed,
        Err(outcome) => {
            result.interrupted = cancel.is_cancelled();
            result.errors.push(unreadable(&outcome));
            result.outcomes = not_attempted(desired, "the cluster could not be read");
            result.finish(clock.now());
            return result;
        }
    };
    result.errors.extend(remarks(&live.errors));
    result.warnings.extend(remarks(&live.warnings));
    result.warnings.extend(remarks(&live.forbidden));
    result.has_unlisted = !(live.unlisted.is_empty() && live.forbidden.is_empty());
    // Only pruning depends on having seen everything.
    let unlisted = remarks(&live.unlisted);
    if mode.prune {
        result.errors.extend(unlisted);
    } else {
        result.warnings.extend(unlisted);
    }

    let plan = plan(desired, &live, &kinds);
    let settings = apply_options(options, mode);
    let context = ApplyRun {
        cluster: session.cluster,
        desired,
        live: &live,
        plan: &plan,
        options: &settings,
        observer: session.observer,
        clock,
        cancel,
    };
    let report = applied(session, context).await;
    conclude(
        session,
        Conclusion { desired, options, mode, live, kinds: &kinds, report, cancel, clock },
        result,
    )
    .await
}

/// Applies between the events of the stage. The stage itself is never cut: it ends by itself on cancellation, with a report.
async fn applied(session: &Session<'_>, context: ApplyRun<'_>) -> ApplyReport {
    let never = CancellationToken::new();
    session.stage(Stage::Apply, &never, run(context)).await.unwrap_or_default()
}

/// What is left to do after applying.
struct Conclusion<'a> {
    desired: &'a DesiredState,
    options: &'a DeployOptions,
    mode: &'a Mode,
    live: LiveState,
    kinds: &'a Discovery,
    report: ApplyReport,
    cancel: &'a CancellationToken,
    clock: Clock,
}

async fn conclude(
    session: &Session<'_>,
    it: Conclusion<'_>,
    mut result: CommandResult,
) -> CommandResult {
    let Conclusion { desired, live, report, cancel, .. } = it;
    result.outcomes = report.outcomes;
    result.errors.extend(report.errors);
    result.warnings.extend(report.warnings);
    let compared = changes_of(desired, &live, &report.applied, it.options.diff);
    result.errors.extend(compared.errors);

    let discriminator = desired.discriminator.as_deref();
    let wanted = Wanted::of(desired, it.kinds);
    let orphans = prune::plan(&live, &wanted, discriminator, &desired.inclusion);
    let orphans = orphans.unwrap_or_default();
    let mut deleted = report.deleted;
    if it.mode.prune && discriminator.is_some_and(|text| !text.is_empty()) {
        let reason = if cancel.is_cancelled() {
            Some("the run ended before")
        } else if !is_applied(&result) {
            // What is no longer wanted may be all that still works.
            Some("not everything could be applied")
        } else {
            None
        };
        if let Some(reason) = reason {
            result.outcomes.extend(unpruned(&orphans, reason));
        } else {
            let options = PruneOptions {
                dry_run: it.mode.dry_run,
                wait: (!it.options.no_wait).then(|| it.options.readiness_timeout.min(PRUNE_WAIT)),
                ..PruneOptions::default()
            };
            let discriminator = discriminator.unwrap_or_default();
            let stage = Stage::Prune;
            let pruned =
                prune_planned(session, stage, discriminator, &orphans, &options, cancel).await;
            result.outcomes.extend(pruned.outcomes);
            result.errors.extend(pruned.errors);
            result.warnings.extend(pruned.warnings);
            deleted.extend(pruned.deleted);
        }
    }
    result.objects = collect(Collected {
        rendered: desired.objects().collect(),
        live: Some(&live),
        applied: report.applied,
        changes: compared.changes,
        orphans: orphans.deletions.into_iter().map(|deletion| deletion.reference).collect(),
        deleted,
    });
    result.interrupted = cancel.is_cancelled();
    if !session.info.show_secrets {
        obfuscate_result(&mut result);
    }
    result.finish(it.clock.now());
    result
}

fn note_options(
    result: &mut CommandResult,
    desired: &DesiredState,
    options: &DeployOptions,
    mode: &Mode,
) {
    let command = &mut result.command;
    command.dry_run = mode.dry_run && mode.command == "deploy";
    command.no_wait = options.no_wait;
    command.force_apply = options.force_apply;
    command.replace_on_error = options.replace_on_error;
    command.force_replace_on_error = options.force_replace_on_error;
    command.abort_on_error = options.abort_on_error;
    result.rendered_objects_hash.clone_from(&desired.objects_hash);
    result.seen_images = desired.images.iter().map(Into::into).collect();
    let warnings = desired.warnings.iter().map(|text| DeploymentError::new(None, text.clone()));
    result.warnings.extend(warnings);
}

fn note_discriminator(result: &mut CommandResult, discriminator: Option<&str>, mode: &Mode) {
    if discriminator.is_some() {
        return;
    }
    if mode.prune {
        let message = format!("pruning is refused: {}", prune::NoDiscriminator);
        result.errors.push(DeploymentError::new(None, message));
    } else {
        let message = "the target has no discriminator, so orphans are not found";
        result.warnings.push(DeploymentError::new(None, message));
    }
}

fn apply_options(options: &DeployOptions, mode: &Mode) -> ApplyOptions {
    ApplyOptions {
        policy: Policy {
            dry_run: mode.dry_run,
            force_apply: options.force_apply,
            replace_on_error: options.replace_on_error,
            force_replace_on_error: options.force_replace_on_error,
            ..Policy::default()
        },
        abort_on_error: options.abort_on_error,
        no_wait: options.no_wait,
        readiness_timeout: options.readiness_timeout,
        known_versions: mode.known.clone(),
        ..ApplyOptions::default()
    }
}

/// Every object of a desired state as not attempted.
fn not_attempted(desired: &DesiredState, reason: &str) -> Vec<ObjectOutcome> {
    let outcomes = desired.objects().map(|object| ObjectOutcome {
        reference: object.reference(),
        operation: Operation::Apply,
        state: OutcomeState::NotAttempted { reason: reason.to_owned() },
    });
    outcomes.collect()
}

fn unpruned(orphans: &PrunePlan, reason: &str) -> impl Iterator<Item = ObjectOutcome> {
    orphans.deletions.iter().map(move |deletion| ObjectOutcome {
        reference: deletion.reference.clone(),
        operation: Operation::Prune,
        state: OutcomeState::NotAttempted { reason: format!("not deleted because {reason}") },
    })
}

/// Whether every object and hook was applied.
fn is_applied(result: &CommandResult) -> bool {
    let applies =
        |outcome: &&ObjectOutcome| matches!(outcome.operation, Operation::Apply | Operation::Hook);
    result.outcomes.iter().filter(applies).all(ObjectOutcome::is_done)
}

#[cfg(test)]
mod tests;
