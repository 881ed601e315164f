//! Prunes a deployment: deletes what it no longer wants.

use tokio_util::sync::CancellationToken;

use super::session::{Session, interruption, references, remarks, unreadable};
use crate::{
    cluster::{Clock, LiveState, ObserveRequest},
    deployment::{DesiredState, Inclusion},
    diff::obfuscate_result,
    observer::Stage,
    prune::{self, PruneOptions, PrunePlan, PruneReport, PruneRun, Wanted},
    results::{Collected, CommandResult, DeploymentError, collect},
};

/// Deletes the objects that carry the discriminator, pass the inclusion filters of `desired`, and are not in it (anything
/// protected stays, see [`crate::prune::plan`]). A desired state exists only after a complete render, so a failed render
/// cannot prune. Always returns a result; kinds that could not be listed are errors, as orphans may be among them; survivors are in [`CommandResult::survivors`]. Without a discriminator nothing is
/// deleted and the result says so.
pub async fn prune(
    session: &Session<'_>,
    desired: &DesiredState,
    options: &PruneOptions,
) -> CommandResult {
    let target = Removal {
        command: "prune",
        discriminator: desired.discriminator.as_deref(),
        inclusion: &desired.inclusion,
        desired: Some(desired),
    };
    remove(session, &target, options).await
}

/// Which objects a command deletes.
pub(super) struct Removal<'a> {
    pub(super) command: &'static str,
    pub(super) discriminator: Option<&'a str>,
    pub(super) inclusion: &'a Inclusion,
    /// What stays.
    pub(super) desired: Option<&'a DesiredState>,
}

/// Deletes by discriminator what is not desired.
pub(super) async fn remove(
    session: &Session<'_>,
    target: &Removal<'_>,
    options: &PruneOptions,
) -> CommandResult {
    let work = async |cancel: CancellationToken| execute(session, target, options, &cancel).await;
    let (mut result, timed_out) = session.limited(work).await;
    if result.interrupted {
        result.errors.push(interruption(session.timeout, timed_out));
    }
    result
}

async fn execute(
    session: &Session<'_>,
    target: &Removal<'_>,
    options: &PruneOptions,
    cancel: &CancellationToken,
) -> CommandResult {
    let clock = Clock::starting_at(session.info.started);
    let discriminator = target.discriminator.filter(|text| !text.is_empty());
    let mut result = session
        .command_result(target.command, target.inclusion, discriminator, &clock, cancel)
        .await;
    result.command.dry_run = options.dry_run;
    if let Some(desired) = target.desired {
        result.rendered_objects_hash.clone_from(&desired.objects_hash);
    }
    if let Some(discriminator) = discriminator {
        match observed(session, target, options, discriminator, cancel).await {
            Ok((live, plan)) => {
                result.errors.extend(remarks(&live.errors));
                result.warnings.extend(remarks(&live.warnings));
                // What cannot be seen now may have to go as well, so it has to be looked for again.
                result.errors.extend(remarks(&live.unlisted));
                result.has_unlisted = !live.unlisted.is_empty();
                let stage = if target.desired.is_some() { Stage::Prune } else { Stage::Delete };
                let pruned =
                    prune_planned(session, stage, discriminator, &plan, options, cancel).await;
                note(&mut result, target, &live, &plan, pruned);
            }
            Err(error) => result.errors.push(error),
        }
        result.interrupted = cancel.is_cancelled();
    } else {
        let message = format!("{} is refused: {}", target.command, prune::NoDiscriminator);
        result.errors.push(DeploymentError::new(None, message));
    }
    obfuscate_result(&mut result);
    result.finish(clock.now());
    result
}

async fn observed(
    session: &Session<'_>,
    target: &Removal<'_>,
    options: &PruneOptions,
    discriminator: &str,
    cancel: &CancellationToken,
) -> Result<(LiveState, PrunePlan), DeploymentError> {
    let wanted = match target.desired {
        Some(desired) => references(session.cluster, desired).await,
        None => Vec::new(),
    };
    let request = ObserveRequest {
        discriminator: Some(discriminator),
        references: &wanted,
        namespaces: &options.namespaces,
        ..ObserveRequest::default()
    };
    let live = session.observe(&request, cancel).await.map_err(|outcome| unreadable(&outcome))?;
    let kinds = session.cluster.kinds().await.map_err(|outcome| unreadable(&outcome))?;
    let wanted = match target.desired {
        Some(desired) => Wanted::of(desired, &kinds),
        None => Wanted::nothing(),
    };
    let plan = prune::plan(&live, &wanted, Some(discriminator), target.inclusion);
    let plan = plan.map_err(|error| DeploymentError::new(None, error.to_string()))?;
    Ok((live, plan))
}

/// Executes a plan between the events of its stage.
pub(super) async fn prune_planned(
    session: &Session<'_>,
    stage: Stage,
    discriminator: &str,
    plan: &PrunePlan,
    options: &PruneOptions,
    cancel: &CancellationToken,
) -> PruneReport {
    let run = PruneRun {
        cluster: session.cluster,
        discriminator,
        options,
        observer: session.observer,
        cancel,
    };
    let never = CancellationToken::new();
    let report = session.stage(stage, &never, prune::run(run, plan)).await;
    report.unwrap_or_default()
}

fn note(
    result: &mut CommandResult,
    target: &Removal<'_>,
    live: &LiveState,
    plan: &PrunePlan,
    pruned: PruneReport,
) {
    for kept in &plan.kept {
        let message = format!("not deleted: {}", kept.reason);
        result.warnings.push(DeploymentError::new(Some(kept.reference.clone()), message));
    }
    result.outcomes = pruned.outcomes;
    result.errors.extend(pruned.errors);
    result.warnings.extend(pruned.warnings);
    let desired = target.desired.into_iter();
    result.objects = collect(Collected {
        rendered: desired.flat_map(DesiredState::objects).collect(),
        live: Some(live),
        orphans: plan.deletions.iter().map(|deletion| deletion.reference.clone()).collect(),
        deleted: pruned.deleted,
        ..Collected::default()
    });
}
