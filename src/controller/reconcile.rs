//! One reconciliation, from the stored object to its new status.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    act::{self, Acting},
    claims::{self, Claimed},
    context::Context,
    decide::{self, Actions, Basis, DeployReason},
    delete,
    fetch::{self, Inputs},
    metrics::Stage,
    observe::RunObserver,
    outcome::{Done, Ending, Failure, Outlook},
    ownership::Target,
    pass::Pass,
    persist::StoreError,
    prepare::{self, Rendered},
    record,
    schedule::Requeue,
    state::Outdated,
    summarize::{self, Event, Severity, Token},
};
use crate::{
    api::{self, KluctlDeploymentSpec, NamespacedName, reason},
    engine,
    observer::Observer,
};

/// What a download that runs out of time gets on top to say why.
const DOWNLOAD_TELLS: Duration = Duration::from_secs(1);

/// Reconciles one object, whatever woke it. Returns when it is to be looked at next.
///
/// The object is read afresh. Nothing is changed in the cluster before a complete render; a run that is interrupted from
/// outside leaves the status as it is, and the next run does the same again.
pub(crate) async fn reconcile(context: &Arc<Context>, key: &NamespacedName, id: &str) -> Requeue {
    let opening = context.stopping.run_until_cancelled(context.openings.acquire()).await;
    let Some(Ok(opening)) = opening else { return Requeue::After(Duration::ZERO) };
    let mut pass = match begin(context, key, id).await {
        Ok(pass) => pass,
        Err(over) => return over,
    };
    if pass.object.is_deleting() {
        drop(opening);
        return Box::pin(delete::delete(pass)).await;
    }
    let spec = match readable(&mut pass).await {
        Ok(spec) => spec,
        Err(over) => {
            return match over {
                Some(failure) => pass.conclude(Ending::Failed(failure)).await,
                None => Requeue::OnChange,
            };
        }
    };
    drop(opening);
    warn_of_deprecated_fields(&pass, &spec);
    let ending = match Box::pin(run(&mut pass, &spec)).await {
        Ok(done) => Ending::Done(done),
        Err(failure) => Ending::Failed(failure),
    };
    pass.conclude(ending).await
}

/// Reads the object, unless it is another controller's meanwhile.
async fn begin(context: &Arc<Context>, key: &NamespacedName, id: &str) -> Result<Pass, Requeue> {
    if !context.state.is_known(key) {
        return Err(Requeue::OnChange);
    }
    match context.store.get(key).await {
        Ok(Some(object)) => Ok(Pass::new(context.clone(), key.clone(), object, id.to_owned())),
        Ok(None) => {
            context.state.remove(key);
            context.metrics.forget(key);
            Err(Requeue::OnChange)
        }
        Err(error) => {
            tracing::warn!("the object could not be read: {error}");
            Err(Requeue::Backoff(Duration::from_mins(1)))
        }
    }
}

/// The spec, of an object that is to be reconciled. Otherwise the failure to report, or nothing when it rests.
async fn readable(pass: &mut Pass) -> Result<KluctlDeploymentSpec, Option<Failure>> {
    let spec = match api::decode(pass.object.value()) {
        Ok(decoded) => decoded.spec,
        Err(error) => return Err(Some(Failure::describe(reason::INVALID_SPEC, &error))),
    };
    if pass.context.state.is_migrated(&pass.key) {
        let message = "the KluctlDeployment of the same name in gitops.kluctl.io has taken over";
        return Err(Some(Failure::stalled(reason::MIGRATED, message)));
    }
    if spec.suspend {
        let status = summarize::suspended(&pass.status, &pass.requests);
        pass.observe(&status);
        pass.write(&status).await;
        tracing::debug!("suspended");
        return Err(None);
    }
    let (context, key) = (pass.context.clone(), pass.key.clone());
    match context.store.add_finalizer(&key, &mut pass.object).await {
        Ok(()) => Ok(spec),
        Err(StoreError::Gone) => Err(None),
        Err(error) => {
            let message = format!("the finalizer could not be added: {error}");
            Err(Some(Failure::new(reason::PREPARE_FAILED, Outlook::Backoff, message)))
        }
    }
}

/// The stages: fetch, prepare, decide, act.
async fn run(pass: &mut Pass, spec: &KluctlDeploymentSpec) -> Result<Done, Failure> {
    let context = pass.context.clone();
    let cancel = context.interrupt.child_token();
    // Whatever ends this run, nothing of it goes on in the background.
    let _ends_with_the_run = cancel.clone().drop_guard();
    let (inputs, mut deadline) = fetch_inputs(pass, spec, &cancel).await?;
    let queued = Instant::now();
    let slot = context.stopping.run_until_cancelled(context.slots.clone().acquire_owned()).await;
    let Some(Ok(slot)) = slot else { return Err(interrupted()) };
    // Waiting for others is no work of this deployment.
    deadline += queued.elapsed();
    pass.queued += queued.elapsed();
    let revision = pass.facts.revision.clone().unwrap_or_default();
    let (observer, progress) =
        RunObserver::new(context.slots.clone(), slot, cancel.clone(), revision);

    let rendered = render(pass, spec, inputs, deadline, &observer, &cancel).await?;
    let actions = decide(pass, spec, &rendered);
    let queued = Instant::now();
    let _turn = claim(pass, actions, &observer).await?;
    deadline += queued.elapsed();
    if actions.is_empty() {
        return Ok(Done::default());
    }
    announce(pass, &rendered, actions).await?;
    if context.stopping.is_cancelled() {
        return Err(interrupted());
    }
    let (key, id, facts) = (pass.key.clone(), pass.id.clone(), pass.facts.clone());
    let (footprint, former) = (pass.status.footprint.clone(), pass.status.former_targets.clone());
    let run = Acting {
        context: &context,
        key: &key,
        spec,
        footprint: &footprint,
        former: &former,
        generation: pass.generation,
        id: &id,
        dry_run: pass.is_dry_run(),
        observer: &observer,
        cancel: &cancel,
        deadline,
    };
    let acting = Box::pin(act::act(run, &rendered, &facts, actions));
    let acting = while_wanted(&context, &key, &observer, &cancel, acting);
    let done = pass.with_progress(progress, is_repetition(actions), acting).await;
    pass.queued += observer.queued();
    done
}

/// Renders the target, within the run's time.
async fn render(
    pass: &mut Pass,
    spec: &KluctlDeploymentSpec,
    inputs: Inputs,
    deadline: Instant,
    observer: &RunObserver,
    cancel: &CancellationToken,
) -> Result<Rendered, Failure> {
    let context = pass.context.clone();
    let ready = pass.status.condition(api::READY);
    if ready.is_none_or(|ready| ready.observed_generation != Some(pass.generation)) {
        let revision = pass.facts.revision.clone().unwrap_or_default();
        let status = pass.progress_status(&format!("Preparing revision {revision}"));
        pass.write(&status).await;
    }
    let started = Instant::now();
    let facts = &mut pass.facts;
    let prepared =
        Box::pin(prepare::prepare(&context, spec, inputs, facts, super::now(), observer, cancel));
    let late = || {
        let timeout = api::GoDuration(spec.timeout());
        let message = format!("the project was not rendered within spec.timeout ({timeout})");
        Failure::retry(reason::PREPARE_FAILED, message)
    };
    let rendered = within(deadline, &context.stopping, late, prepared).await;
    context.metrics.stage(&pass.key, Stage::Prepare, started.elapsed());
    rendered
}

/// Decides what is due, by what was rendered and what the status records.
fn decide(pass: &mut Pass, spec: &KluctlDeploymentSpec, rendered: &Rendered) -> Actions {
    let is_elsewhere = settle_cluster(pass);
    let actions = decide::decide(Basis {
        now: super::now(),
        spec,
        generation: pass.generation,
        status: &pass.status,
        objects_hash: &rendered.prepared.desired.objects_hash,
        requests: &pass.requests,
        dry_run: pass.is_dry_run(),
        is_elsewhere,
    });
    tracing::debug!(?actions, hash = rendered.prepared.desired.objects_hash, "decided");
    actions
}

/// Writes down what the run is about to change, before it does.
async fn announce(pass: &mut Pass, rendered: &Rendered, actions: Actions) -> Result<(), Failure> {
    if actions.deploy.is_some() {
        let found = engine::footprint(&rendered.cluster, &rendered.prepared.desired).await;
        pass.facts.footprint = record::kept(found);
        pass.record_target().await?;
    }
    if actions.prune {
        pass.announce_pruning().await?;
    }
    Ok(())
}

/// Reads what the deployment refers to, as soon as it is its turn. Returns also when the run's time is up.
async fn fetch_inputs(
    pass: &mut Pass,
    spec: &KluctlDeploymentSpec,
    cancel: &CancellationToken,
) -> Result<(Inputs, Instant), Failure> {
    let (context, key) = (pass.context.clone(), pass.key.clone());
    let queued = Instant::now();
    let Some(Ok(_lookup)) = context.stopping.run_until_cancelled(context.lookups.acquire()).await
    else {
        return Err(interrupted());
    };
    pass.queued += queued.elapsed();
    let started = Instant::now();
    let deadline = pass.deadline();
    let fetching = Box::pin(fetch::fetch(&context, &key, spec, &mut pass.facts, deadline, cancel));
    let late = || {
        let timeout = api::GoDuration(spec.timeout());
        let message = format!(
            "the source, the dependencies and the kubeconfig could not be read within spec.timeout ({timeout})"
        );
        let reason = match spec.source_ref {
            Some(_) => reason::ARTIFACT_FAILED,
            None => reason::PREPARE_FAILED,
        };
        Failure::new(reason, Outlook::Backoff, message)
    };
    // A download ends at the deadline by itself, and tells more of why.
    let last = deadline + DOWNLOAD_TELLS;
    let fetched = within(last, &context.stopping, late, fetching).await;
    context.metrics.stage(&key, Stage::Fetch, started.elapsed());
    Ok((fetched?, deadline))
}

/// Runs `work`. A run that has lost its object or its target is ended at once. A run that only waits is ended early when the
/// controller stops, as the next leader takes up the waiting, and when the spec or the source has changed, as a repair must
/// not wait for what it repairs.
pub(super) async fn while_wanted<T>(
    context: &Context,
    key: &NamespacedName,
    observer: &RunObserver,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    let yielding = async {
        let rests = async {
            tokio::select! {
                () = context.stopping.cancelled() => {}
                () = context.state.outdated(key, Outdated::Changed) => {
                    tracing::debug!("the run is outdated");
                }
            }
            observer.waits().await;
        };
        tokio::select! {
            () = rests => {}
            () = context.state.outdated(key, Outdated::Contested) => {
                tracing::info!("the target or the object is another's now, interrupting the run");
            }
        }
        cancel.cancel();
        std::future::pending::<std::convert::Infallible>().await
    };
    tokio::select! {
        biased;
        result = work => result,
        never = yielding => match never {},
    }
}

/// Whether the outcome is expected to be what it was, so that Ready need not become Unknown meanwhile.
fn is_repetition(actions: Actions) -> bool {
    matches!(actions.deploy, None | Some(DeployReason::IntervalElapsed))
}

/// Brings what is known of the cluster and what the status records of it into line. Returns whether the access leads to another
/// cluster than was deployed to.
fn settle_cluster(pass: &mut Pass) -> bool {
    let Some(cluster) = &mut pass.facts.cluster else { return false };
    cluster.settle(&mut pass.status);
    !pass.is_dry_run()
        && !record::is_same_cluster(pass.status.cluster_id.as_deref(), pass.facts.cluster_id())
}

/// The target that a run needs for itself: the one that it is about to deploy to, or else the one that was deployed to.
/// A dry run changes nothing, so it may look at a target of another object.
fn wanted_target(pass: &Pass, actions: Actions) -> Option<Target> {
    if pass.is_dry_run() {
        return None;
    }
    let target = pass.facts.target_claimed();
    if actions.deploy.is_some() {
        return target;
    }
    let discriminator = pass.status.discriminator.clone().filter(|text| !text.is_empty())?;
    let is_there = |target: &Target| {
        target.discriminator == discriminator
            && pass.status.cluster_id.as_ref().is_none_or(|id| *id == target.cluster.id)
    };
    target.filter(is_there).or_else(|| {
        // A change that is not deployed yet leaves the claim where the objects are.
        let claim = pass.status.claim.as_ref().map(Target::of);
        claim.filter(|claim| claim.discriminator == discriminator)
    })
}

/// Claims the target, and waits while another object's run on it comes to its end.
async fn claim(
    pass: &mut Pass,
    actions: Actions,
    observer: &dyn Observer,
) -> Result<Option<tokio::sync::OwnedMutexGuard<()>>, Failure> {
    let Some(target) = wanted_target(pass, actions) else {
        if !pass.is_dry_run() {
            pass.status.claim = None;
        }
        return Ok(None);
    };
    match claims::claim(pass, &target, observer).await? {
        Claimed::Granted => {
            let context = pass.context.clone();
            if let Some(turn) = context.turns.try_take(&target) {
                return Ok(Some(turn));
            }
            // Without the slot, which the other run may need to come to its end.
            observer.rests();
            let queued = Instant::now();
            let turn = context.turns.wait_for(&target);
            let turn = context.stopping.run_until_cancelled(turn).await.ok_or_else(interrupted)?;
            pass.queued += queued.elapsed();
            observer.resume().await;
            Ok(Some(turn))
        }
        Claimed::Refused { owner } => {
            let message = format!(
                "discriminator {:?} is managed by {owner} on the same cluster; nothing was deployed",
                target.discriminator
            );
            // The owner's end wakes this object, unless the owner is out of the watches' sight.
            let retry_after = pass.spec.as_ref().map(|spec| spec.interval.0);
            Err(Failure { retry_after, ..Failure::stalled(reason::OWNERSHIP_CONFLICT, message) })
        }
    }
}

/// Ends `work`, which changes nothing in the cluster, when time is up (then `late` tells of it) or the controller stops.
async fn within<T>(
    deadline: Instant,
    stopping: &CancellationToken,
    late: impl FnOnce() -> Failure,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let limited = tokio::time::timeout_at(deadline, work);
    match stopping.run_until_cancelled(limited).await {
        None => Err(interrupted()),
        Some(Ok(result)) => result,
        Some(Err(_)) => Err(late()),
    }
}

fn interrupted() -> Failure {
    Failure::interrupted(reason::PREPARE_FAILED)
}

/// Fields that have no effect any more are told once per generation, not silently ignored.
fn warn_of_deprecated_fields(pass: &Pass, spec: &KluctlDeploymentSpec) {
    let seen = pass.status.condition(api::READY).and_then(|ready| ready.observed_generation);
    if seen == Some(pass.generation) {
        return;
    }
    let deprecated = [
        (!spec.registry_secrets.is_empty(), "spec.registrySecrets"),
        (spec.update_images, "spec.updateImages"),
    ];
    let events = deprecated.iter().filter(|(is_used, _)| *is_used).map(|(_, field)| Event {
        severity: Severity::Error,
        reason: reason::DEPRECATED_FIELD,
        message: format!("{field} has no effect any more: image registries are not queried"),
        finishes: false,
        token: Token::Episode(pass.generation.to_string()),
    });
    pass.tell(events.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late() -> Failure {
        Failure::new(reason::ARTIFACT_FAILED, Outlook::Backoff, "late")
    }

    #[tokio::test]
    async fn work_ends_at_its_deadline_and_when_the_controller_stops() {
        let soon = Instant::now() + Duration::from_millis(5);
        let far = Instant::now() + Duration::from_mins(1);
        let stopping = CancellationToken::new();
        let done = within(far, &stopping, late, std::future::ready(Ok(1))).await;
        assert_eq!(done, Ok(1));
        let never = || std::future::pending::<Result<u8, Failure>>();
        assert_eq!(within(soon, &stopping, late, never()).await, Err(late()));
        stopping.cancel();
        let stopped = within(far, &stopping, late, never()).await;
        assert_eq!(stopped.unwrap_err().outlook, Outlook::Interrupted);
    }
}
