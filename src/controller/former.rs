//! What becomes of the objects of targets that were deployed to before the present one.

use super::{
    act::Acting,
    claims,
    metrics::Stage,
    outcome::{CommandOutcome, Done, Facts, Failure},
    ownership::Target,
    prepare::Rendered,
    record::{Fate, fate, searched, surviving, unpruned},
};
use crate::{
    api::FormerTarget,
    engine::{self, Leftovers},
    prune::PruneOptions,
    results::{CommandResult, DeploymentError},
};

/// Prunes, or counts and tells of, what former targets left behind. Comes after a deployment that succeeded: whatever it still
/// wants carries the present discriminator by now, so that only what is not wanted any more goes.
///
/// # Errors
/// When the run was interrupted from outside, or it cannot be known who else manages a former target.
pub(crate) async fn settle(
    run: &Acting<'_>,
    rendered: &Rendered,
    facts: &Facts,
    prunes: bool,
    done: &mut Done,
) -> Result<(), Failure> {
    if run.dry_run {
        return Ok(());
    }
    let mut kept = Vec::new();
    for former in run.former {
        let target = former.discriminator.clone().zip(facts.cluster.clone());
        let target = target.map(|(discriminator, cluster)| Target { cluster, discriminator });
        let rivals = match &target {
            Some(target) => claims::others(run.context, run.key, target).await?,
            None => Vec::new(),
        };
        let rivals: Vec<_> = rivals.iter().map(ToString::to_string).collect();
        let message = match (fate(former, facts.cluster_id(), prunes, &rivals), target) {
            (Fate::OutOfReach(message), _) => Some(message),
            (Fate::TakenOver(message), _) => {
                done.notes.push(message);
                None
            }
            (Fate::Prune, Some(target)) => {
                prune(run, rendered, facts, former, &target, done).await?
            }
            (Fate::Count, Some(target)) => count(run, rendered, facts, former, &target).await?,
            // Without a discriminator they are out of reach.
            (Fate::Prune | Fate::Count, None) => None,
        };
        kept.extend(message.map(|message| FormerTarget {
            message,
            pruning: false,
            ..former.clone()
        }));
    }
    done.former = Some(kept);
    Ok(())
}

/// Returns what to tell of objects that are still there.
async fn prune(
    run: &Acting<'_>,
    rendered: &Rendered,
    facts: &Facts,
    former: &FormerTarget,
    target: &Target,
    done: &mut Done,
) -> Result<Option<String>, Failure> {
    let discriminator = target.discriminator.as_str();
    let told = |why: &str| Some(surviving(discriminator, why));
    // Waiting while holding another turn could be for ever.
    let Some(_turn) = run.context.turns.try_take(target) else {
        let why = "another deployment is working on them; they are pruned when it has ended";
        absorb(&mut done.prune, failed(run, facts, why));
        return Ok(told(why));
    };
    let options = PruneOptions {
        dry_run: false,
        wait: run.deletion_wait(),
        footprint: searched(&former.footprint, &run.key.namespace),
    };
    let info = run.info(facts);
    let session = run.session(rendered, &info);
    let desired = &rendered.prepared.desired;
    let work = engine::prune_former(&session, desired, Some(discriminator), &options);
    let mut result: CommandResult = run.timed(Stage::Prune, Box::pin(work)).await;
    run.unless_interrupted(result.interrupted, &mut result.errors)?;
    let outcome = run.command_outcome(&result, facts).masked(&rendered.masked);
    let error = outcome.status.error.clone();
    absorb(&mut done.prune, outcome);
    if let Some(error) = error {
        return Ok(told(&error));
    }
    if result.has_unlisted {
        return Ok(told("not every kind may be listed"));
    }
    if desired.inclusion.is_empty() {
        return Ok(None);
    }
    let why = "they are outside of spec.includeTags and the other filters";
    let left = look(run, rendered, facts, former, target).await?;
    Ok(left.map_or(told(why), |left| (!left.objects.is_empty()).then(|| told(why)).flatten()))
}

/// Returns what to tell of objects that stay.
async fn count(
    run: &Acting<'_>,
    rendered: &Rendered,
    facts: &Facts,
    former: &FormerTarget,
    target: &Target,
) -> Result<Option<String>, Failure> {
    let discriminator = &target.discriminator;
    Ok(match look(run, rendered, facts, former, target).await? {
        Ok(left) => unpruned(discriminator, left.objects.len(), left.is_partial),
        Err(error) => Some(surviving(discriminator, &rendered.masked.mask(&error.message))),
    })
}

async fn look(
    run: &Acting<'_>,
    rendered: &Rendered,
    facts: &Facts,
    former: &FormerTarget,
    target: &Target,
) -> Result<Result<Leftovers, DeploymentError>, Failure> {
    let info = run.info(facts);
    let session = run.session(rendered, &info);
    let footprint = searched(&former.footprint, &run.key.namespace);
    let desired = &rendered.prepared.desired;
    let work = engine::leftovers(&session, desired, &target.discriminator, &footprint);
    let left = Box::pin(work).await;
    run.unless_interrupted(left.is_err(), &mut Vec::new())?;
    Ok(left)
}

/// A prune that did not come about.
fn failed(run: &Acting<'_>, facts: &Facts, why: &str) -> CommandOutcome {
    let mut outcome = run.nothing_to_prune(facts);
    outcome.status.errors = 1;
    outcome.status.error = Some(why.to_owned());
    outcome
}

/// Adds a prune to the one before.
fn absorb(into: &mut Option<CommandOutcome>, more: CommandOutcome) {
    let Some(into) = into else {
        *into = Some(more);
        return;
    };
    let (sum, status) = (&mut into.status, more.status);
    sum.time = status.time;
    sum.errors += status.errors;
    sum.warnings += status.warnings;
    sum.deleted_objects += status.deleted_objects;
    sum.orphan_objects += status.orphan_objects;
    sum.error = match (sum.error.take(), status.error) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    };
    into.failed.extend(more.failed);
    into.survivors.extend(more.survivors);
    into.warnings.extend(more.warnings);
}
