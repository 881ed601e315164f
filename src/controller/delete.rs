//! What happens when a KluctlDeployment is deleted: its objects are deleted with it, unless the spec declines. The finalizer
//! goes only after the deletion is confirmed or declined, or when nobody is left who could delete; the latter is told.

mod plan;

use std::time::Duration;

use self::plan::{Doomed, Plan, on_cluster, out_of_reach, plan};
use super::{
    act::outcome_of,
    claims::{self, Claimed},
    fetch,
    identity::identify,
    lookup,
    metrics::Stage,
    observe::RunObserver,
    outcome::{CommandOutcome, Ending, Failure, Outlook},
    ownership::Target,
    pass::Pass,
    prepare::inclusion,
    reconcile::while_wanted,
    record::{recorded_context, searched},
    schedule::Requeue,
    secrets,
    summarize::{Event, Severity, Token},
};
use crate::{
    api::{CommandStatus, KluctlDeploymentSpec, reason},
    cluster::{ApiOutcome, Cluster},
    engine::{self, Session},
    observer::Silent,
    prune::PruneOptions,
    results::{CommandInfo, CommandResult, Initiator, RunInfo},
};

/// The longest that deleted objects are waited for in one attempt.
const DELETION_WAIT: Duration = Duration::from_mins(5);
/// Warnings that the event of a deletion quotes.
const QUOTED_WARNINGS: usize = 5;

/// Handles an object under deletion.
pub(crate) async fn delete(mut pass: Pass) -> Requeue {
    if !pass.object.has_finalizer() {
        return Requeue::OnChange;
    }
    let Some(spec) = pass.spec.clone() else {
        let message = "the object cannot be read, so it is not known whether its deployed objects are to be deleted; \
                       correct the spec, or remove the finalizer to keep them";
        return pass
            .conclude(Ending::Failed(Failure::stalled(reason::INVALID_SPEC, message)))
            .await;
    };
    let is_migrated = pass.context.state.is_migrated(&pass.key);
    let ended = match plan(&spec, &pass.status, is_migrated) {
        None => Ok(Vec::new()),
        Some(plan) if plan.targets.is_empty() => Ok(plan.notes),
        Some(plan) => delete_objects(&mut pass, &spec, plan).await,
    };
    match ended {
        Ok(notes) => release(pass, notes).await,
        Err(failure) => {
            let hint = "to keep the deployed objects, set spec.delete to false";
            let failure = Failure { message: format!("{} ({hint})", failure.message), ..failure };
            pass.conclude(Ending::Failed(failure)).await
        }
    }
}

/// Removes the finalizer. `notes` tell of objects that stay although the user may expect otherwise.
async fn release(mut pass: Pass, notes: Vec<String>) -> Requeue {
    if pass.is_lost() {
        return Requeue::OnChange;
    }
    // Also logged, as a namespace that is going away takes no Events.
    for note in &notes {
        tracing::warn!("{note}");
    }
    let events = notes.into_iter().map(|note| event(Severity::Error, note));
    pass.tell(events.collect());
    let context = pass.context.clone();
    match context.store.remove_finalizer(&pass.key, &mut pass.object).await {
        Ok(()) => {
            tracing::info!("the KluctlDeployment is released");
            Requeue::OnChange
        }
        Err(error) => {
            tracing::error!("the finalizer could not be removed: {error}");
            Requeue::Backoff(Duration::from_mins(1))
        }
    }
}

fn event(severity: Severity, message: String) -> Event {
    let reason = match severity {
        Severity::Info => reason::RECONCILIATION_SUCCEEDED,
        Severity::Error => reason::OBJECTS_LEFT_BEHIND,
    };
    Event { severity, reason, message, finishes: false, token: Token::Always }
}

/// Deletes what is planned. Returns what to tell of objects that stay.
async fn delete_objects(
    pass: &mut Pass,
    spec: &KluctlDeploymentSpec,
    plan: Plan,
) -> Result<Vec<String>, Failure> {
    if let Some(why) = access_is_gone(pass, spec).await? {
        return Ok(out_of_reach(plan, &why));
    }
    let (context, key) = (pass.context.clone(), pass.key.clone());
    let contexts = fetch::read_contexts(&context, &key, spec).await.map_err(as_delete_failure)?;
    let wanted = spec.context.clone().or_else(|| recorded_context(&pass.status));
    let access = contexts.select(wanted.as_deref());
    let access = access.map_err(|e| Failure::describe(reason::DELETE_FAILED, &e))?;
    let account = fetch::account(&context, &key, spec);
    let connected = async |account| {
        let cluster = context.clusters.get(&access, account).await;
        cluster.map_err(|e| Failure::describe(reason::DELETE_FAILED, &e))
    };
    if let Some(account) = account.as_ref().filter(|_| is_remote(spec)) {
        // On the other cluster, whoever the kubeconfig is for may know.
        let kind = secrets::service_account_kind();
        let as_given = connected(None).await?;
        let outcome = lookup::get(&as_given, &kind, Some(&account.namespace), &account.name).await;
        if outcome.is_absent() {
            let (namespace, name) = (&account.namespace, &account.name);
            let why = format!(
                "service account {namespace}/{name} of the target cluster, which would delete them, does not exist any more"
            );
            return Ok(out_of_reach(plan, &why));
        }
    }
    let cluster = connected(account.as_ref()).await?;
    let reached = identify(&context, &cluster, &access, account.as_ref()).await;
    let mut reached = reached.map_err(as_delete_failure)?;
    reached.settle(&mut pass.status);
    let Plan { targets, mut notes } = on_cluster(plan, &reached)?;
    let mut deleted = 0;
    let mut warnings = Vec::new();
    for doomed in targets {
        let target =
            Target { cluster: reached.clone(), discriminator: doomed.discriminator.clone() };
        match delete_target(pass, spec, &cluster, &target, &doomed).await? {
            Ok(outcome) => {
                deleted += outcome.status.deleted_objects;
                warnings.extend(outcome.warnings);
            }
            Err(owner) => notes.push(format!(
                "objects with discriminator {:?} stay: they are managed by {owner}",
                doomed.discriminator
            )),
        }
    }
    pass.tell(vec![event(Severity::Info, succeeded(pass.is_dry_run(), deleted, &warnings))]);
    Ok(notes)
}

fn succeeded(is_dry_run: bool, deleted: i64, warnings: &[String]) -> String {
    let what = if is_dry_run { "dry run of delete" } else { "delete" };
    let quoted = warnings.iter().take(QUOTED_WARNINGS);
    let quoted = quoted.map(|warning| format!("\nwarning: {warning}"));
    std::iter::once(format!("{what} succeeded. {deleted} deleted objects.")).chain(quoted).collect()
}

/// Deletes everything that carries the target's discriminator; `Err` names who else manages it.
async fn delete_target(
    pass: &mut Pass,
    spec: &KluctlDeploymentSpec,
    cluster: &Cluster,
    target: &Target,
    doomed: &Doomed,
) -> Result<Result<CommandOutcome, String>, Failure> {
    let (context, key) = (pass.context.clone(), pass.key.clone());
    if let Claimed::Refused { owner } = claims::claim(pass, target, &Silent).await? {
        return Ok(Err(owner.to_string()));
    }
    // The turn before the slot: who has the turn may need a slot to come to an end.
    let queued = tokio::time::Instant::now();
    let turn = context.stopping.run_until_cancelled(context.turns.wait_for(target)).await;
    let Some(_turn) = turn else { return Err(interrupted()) };
    let slot = context.slots.clone().acquire_owned();
    let Some(Ok(slot)) = context.stopping.run_until_cancelled(slot).await else {
        return Err(interrupted());
    };
    pass.queued += queued.elapsed();
    if context.stopping.is_cancelled() {
        return Err(interrupted());
    }
    let cancel = context.interrupt.child_token();
    let revision = pass.status.last_attempted_revision.clone().unwrap_or_default();
    let (observer, progress) =
        RunObserver::new(context.slots.clone(), slot, cancel.clone(), revision);
    let info = RunInfo {
        id: super::random_id(),
        reconcile_id: pass.id.clone(),
        started: super::now(),
        command: CommandInfo { initiator: Initiator::KluctlDeployment, ..CommandInfo::default() },
        ..RunInfo::default()
    };
    let session = Session {
        cluster,
        info: &info,
        observer: &observer,
        cancel: &cancel,
        timeout: Some(spec.timeout().max(DELETION_WAIT)),
    };
    let dry_run = pass.is_dry_run();
    let options = PruneOptions {
        dry_run,
        wait: (!spec.no_wait && !dry_run).then_some(DELETION_WAIT),
        footprint: searched(&doomed.record.footprint, &key.namespace),
    };
    let inclusion = inclusion(spec);
    let discriminator = Some(target.discriminator.as_str());
    let work = Box::pin(engine::delete(&session, discriminator, &inclusion, &options));
    let work = while_wanted(&context, &key, &observer, &cancel, work);
    let work = pass.with_progress(progress, false, work);
    let (result, took): (CommandResult, _) = observer.measured(work).await;
    context.metrics.stage(&key, Stage::Delete, took);
    pass.queued += observer.queued();
    if result.interrupted && cancel.is_cancelled() {
        return Err(interrupted());
    }
    let outcome = outcome_of(&result, CommandStatus::default(), spec.no_wait);
    if outcome.is_good() {
        return Ok(Ok(outcome));
    }
    let error = outcome.status.error.unwrap_or_else(|| "some objects still exist".to_owned());
    Err(Failure::retry(reason::DELETE_FAILED, format!("delete failed: {error}")))
}

fn interrupted() -> Failure {
    Failure::interrupted(reason::DELETE_FAILED)
}

fn as_delete_failure(failure: Failure) -> Failure {
    // Under deletion nothing stays as it is: even a wrong spec is looked at again.
    let outlook = match failure.outlook {
        Outlook::Stalled => Outlook::Retry,
        other => other,
    };
    Failure { reason: reason::DELETE_FAILED, outlook, ..failure }
}

fn is_remote(spec: &KluctlDeploymentSpec) -> bool {
    spec.kube_config.as_ref().is_some_and(|config| config.secret_ref.is_some())
}

/// Why nobody is left to delete as. When things go together, accounts and Secrets may go first; then the objects cannot be
/// deleted any more, and waiting would keep the KluctlDeployment, and perhaps its namespace, for ever.
async fn access_is_gone(
    pass: &Pass,
    spec: &KluctlDeploymentSpec,
) -> Result<Option<String>, Failure> {
    let own = &pass.context.own;
    let namespace = &pass.key.namespace;
    let secret = spec.kube_config.as_ref().and_then(|config| config.secret_ref.as_ref());
    if let Some(secret) = secret {
        let found = lookup::get(own, &secrets::secret_kind(), Some(namespace), &secret.name).await;
        // Whatever else is wrong with it shows when it is used.
        return Ok(found.is_absent().then(|| {
            let name = &secret.name;
            format!("Secret {namespace}/{name} with the kubeconfig does not exist any more")
        }));
    }
    let Some(account) = fetch::account(&pass.context, &pass.key, spec) else { return Ok(None) };
    let kind = secrets::service_account_kind();
    let outcome = lookup::get(own, &kind, Some(namespace), &account.name).await;
    if outcome.is_absent() {
        let name = &account.name;
        return Ok(Some(format!(
            "service account {namespace}/{name}, which would delete them, does not exist any more"
        )));
    }
    if !matches!(outcome, ApiOutcome::Done(_)) && !outcome.is_refused() {
        let what = "the service account cannot be read";
        return Err(secrets::refused(reason::DELETE_FAILED, what, &outcome));
    }
    Ok(None)
}
