//! Prunes a deployment: deletes what it no longer wants.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::session::{Session, interruption, references, remarks, unreadable};
use crate::{
    cluster::{Clock, Cluster, Footprint, LiveState, ObserveRequest, kind_name},
    deployment::{DesiredState, Inclusion},
    diff::obfuscate_result,
    object::ObjectRef,
    observer::Stage,
    prune::{self, PruneOptions, PrunePlan, PruneReport, PruneRun, Wanted},
    results::{Collected, CommandResult, DeploymentError, collect},
};

/// Deletes the objects that carry the discriminator, pass the inclusion filters of `desired`, and are not in it (anything
/// protected stays, see [`crate::prune::plan`]). A desired state exists only after a complete render, so a failed render
/// cannot prune. Always returns a result; kinds that could not be listed are errors, as orphans may be among them, and those
/// that the account may not list are warnings; survivors are in [`CommandResult::survivors`]. Without a discriminator nothing
/// is deleted and the result says so.
pub async fn prune(
    session: &Session<'_>,
    desired: &DesiredState,
    options: &PruneOptions,
) -> CommandResult {
    prune_former(session, desired, desired.discriminator.as_deref(), options).await
}

/// As [`prune`], of what carries a discriminator that the deployment had before.
pub async fn prune_former(
    session: &Session<'_>,
    desired: &DesiredState,
    discriminator: Option<&str>,
    options: &PruneOptions,
) -> CommandResult {
    let inclusion = &desired.inclusion;
    let target = Removal { command: "prune", discriminator, inclusion, desired: Some(desired) };
    remove(session, target, options).await
}

/// Objects of a discriminator that are not desired and would be deleted, if the inclusion filters let them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// The objects, in the order in which they would be deleted.
    pub objects: Vec<ObjectRef>,
    /// Whether there may be more that could not be seen.
    pub is_partial: bool,
}

/// Looks for what carries a discriminator and is not part of `desired`, and deletes nothing.
///
/// # Errors
/// When the cluster cannot be read.
pub async fn leftovers(
    session: &Session<'_>,
    desired: &DesiredState,
    discriminator: &str,
    footprint: &Footprint,
) -> Result<Leftovers, DeploymentError> {
    let everything = Inclusion::default();
    let target = Removal {
        command: "prune",
        discriminator: Some(discriminator),
        inclusion: &everything,
        desired: Some(desired),
    };
    let options = PruneOptions { footprint: footprint.clone(), ..PruneOptions::default() };
    let work = async |cancel: CancellationToken| {
        observed(session, &target, &options, discriminator, &cancel).await
    };
    let (found, _) = session.limited(work).await;
    let (live, plan) = found?;
    let is_partial = [&live.unlisted, &live.forbidden, &live.errors].iter().any(|r| !r.is_empty());
    let objects = plan.deletions.into_iter().map(|deletion| deletion.reference).collect();
    Ok(Leftovers { objects, is_partial })
}

/// The namespaces and kinds of a desired state.
pub async fn footprint(cluster: &Cluster, desired: &DesiredState) -> Footprint {
    let references = references(cluster, desired).await;
    let namespaces: BTreeSet<_> = references.iter().filter_map(|r| r.namespace.clone()).collect();
    let kinds: BTreeSet<_> = references.iter().map(|r| kind_name(&r.group, &r.kind)).collect();
    Footprint {
        namespaces: namespaces.into_iter().collect(),
        kinds: kinds.into_iter().collect(),
        is_partial: false,
    }
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
    target: Removal<'_>,
    options: &PruneOptions,
) -> CommandResult {
    let work = async |cancel: CancellationToken| {
        let planned = planned(session, target, options, &cancel).await;
        planned.execute(session, &cancel).await
    };
    finished(session, session.limited(work).await)
}

fn finished(
    session: &Session<'_>,
    (mut result, timed_out): (CommandResult, bool),
) -> CommandResult {
    if result.interrupted {
        result.errors.push(interruption(session.timeout, timed_out));
    }
    result
}

/// A deletion that is planned and has not begun, so that somebody can be asked about it. Objects that are replaced meanwhile
/// are not touched, as each is deleted by its UID.
pub struct PlannedRemoval<'a> {
    target: Removal<'a>,
    options: PruneOptions,
    clock: Clock,
    /// What is known so far.
    result: CommandResult,
    /// The live side and the plan, unless they could not be had.
    found: Option<(LiveState, PrunePlan)>,
}

/// Plans what [`prune`] does.
pub async fn plan_prune<'a>(
    session: &Session<'_>,
    desired: &'a DesiredState,
    options: &PruneOptions,
) -> PlannedRemoval<'a> {
    let discriminator = desired.discriminator.as_deref();
    let inclusion = &desired.inclusion;
    let target = Removal { command: "prune", discriminator, inclusion, desired: Some(desired) };
    planned(session, target, options, session.cancel).await
}

impl PlannedRemoval<'_> {
    /// The objects that would be deleted, in the order in which they would be.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        let plan = self.found.iter().flat_map(|(_, plan)| &plan.deletions);
        plan.map(|deletion| &deletion.reference)
    }

    /// Deletes the objects. Always returns a result.
    pub async fn run(self, session: &Session<'_>) -> CommandResult {
        let work = async |cancel: CancellationToken| self.execute(session, &cancel).await;
        finished(session, session.limited(work).await)
    }

    /// Deletes nothing: the result says that somebody refused.
    pub fn abandon(mut self) -> CommandResult {
        self.result.errors.push(DeploymentError::new(None, "aborted"));
        self.result.finish(self.clock.now());
        self.result
    }

    async fn execute(mut self, session: &Session<'_>, cancel: &CancellationToken) -> CommandResult {
        let mut result = self.result;
        if let Some((live, plan)) = self.found.take() {
            let is_pruning = self.target.desired.is_some();
            let stage = if is_pruning { Stage::Prune } else { Stage::Delete };
            let discriminator = self.target.discriminator.unwrap_or_default();
            let pruned =
                prune_planned(session, stage, discriminator, &plan, &self.options, cancel).await;
            note(&mut result, &self.target, &live, &plan, pruned);
        }
        result.interrupted = cancel.is_cancelled();
        if !session.info.show_secrets {
            obfuscate_result(&mut result);
        }
        result.finish(self.clock.now());
        result
    }
}

/// Plans a deletion; what goes wrong is in the result that its execution returns.
pub(super) async fn planned<'a>(
    session: &Session<'_>,
    target: Removal<'a>,
    options: &PruneOptions,
    cancel: &CancellationToken,
) -> PlannedRemoval<'a> {
    let clock = Clock::starting_at(session.info.started);
    let discriminator = target.discriminator.filter(|text| !text.is_empty());
    let mut result = session
        .command_result(target.command, target.inclusion, discriminator, &clock, cancel)
        .await;
    result.command.dry_run = options.dry_run;
    result.command.no_wait = options.wait.is_none();
    if let Some(desired) = target.desired {
        result.rendered_objects_hash.clone_from(&desired.objects_hash);
    }
    let mut found = None;
    if let Some(discriminator) = discriminator {
        match observed(session, &target, options, discriminator, cancel).await {
            Ok((live, plan)) => {
                note_live(&mut result, &live, target.desired.is_some());
                found = Some((live, plan));
            }
            Err(error) => result.errors.push(error),
        }
    } else {
        let message = format!("{} is refused: {}", target.command, prune::NoDiscriminator);
        result.errors.push(DeploymentError::new(None, message));
    }
    PlannedRemoval { target, options: options.clone(), clock, result, found }
}

fn note_live(result: &mut CommandResult, live: &LiveState, is_pruning: bool) {
    result.errors.extend(remarks(&live.errors));
    result.warnings.extend(remarks(&live.warnings));
    // What cannot be seen now may have to go as well, so it has to be looked for again.
    result.errors.extend(remarks(&live.unlisted));
    // A deployment goes on and tells of it every time; after a deletion nobody is left to tell.
    let forbidden = remarks(&live.forbidden);
    if is_pruning {
        result.warnings.extend(forbidden);
    } else {
        result.errors.extend(forbidden);
    }
    result.has_unlisted = !(live.unlisted.is_empty() && live.forbidden.is_empty());
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
        footprint: Some(&options.footprint),
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
