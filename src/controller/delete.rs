//! What happens when a KluctlDeployment is deleted: its objects are deleted with it, unless the spec declines. The finalizer
//! goes only after the deletion is confirmed or declined.

use std::time::Duration;

use super::{
    act::outcome_of,
    claims::{self, Claimed},
    fetch, lookup,
    metrics::Stage,
    observe::RunObserver,
    outcome::{Ending, Failure, Outlook},
    ownership::Target,
    pass::Pass,
    prepare::{cluster_id, inclusion},
    reconcile::while_wanted,
    schedule::Requeue,
    secrets,
    summarize::{Event, Severity, Token},
};
use crate::{
    api::{CommandStatus, KluctlDeploymentSpec, KluctlDeploymentStatus, reason},
    cluster::{ApiKind, ApiOutcome},
    engine::{self, Session},
    prune::PruneOptions,
    results::{CommandInfo, Initiator, RunInfo},
    yaml::{self, Schema},
};

/// The longest that deleted objects are waited for in one attempt.
const DELETION_WAIT: Duration = Duration::from_mins(5);

/// Why nothing is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Declined {
    /// The user wants it so; nothing to tell.
    BySpec,
    /// The user may have expected otherwise.
    Because(String),
}

/// What is to be done with the deployed objects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    /// They stay.
    Keep(Declined),
    /// Everything with this discriminator goes.
    Delete(String),
}

/// Decides from the spec and the status alone.
fn decide(
    spec: &KluctlDeploymentSpec,
    status: &KluctlDeploymentStatus,
    is_migrated: bool,
) -> Decision {
    if is_migrated || spec.suspend || !spec.deletes() {
        return Decision::Keep(Declined::BySpec);
    }
    let discriminator = status.discriminator.clone().filter(|text| !text.is_empty());
    match discriminator {
        Some(discriminator) => Decision::Delete(discriminator),
        None if status.last_deploy_result.as_ref().is_none_or(|last| last.dry_run) => {
            Decision::Keep(Declined::BySpec)
        }
        None => Decision::Keep(Declined::Because(
            "the deployed objects stay: without a discriminator nothing tells them from others"
                .into(),
        )),
    }
}

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
    let ended = match decide(&spec, &pass.status, is_migrated) {
        Decision::Keep(declined) => Ok(declined),
        Decision::Delete(discriminator) => delete_objects(&mut pass, &spec, &discriminator).await,
    };
    match ended {
        Ok(declined) => release(pass, declined).await,
        Err(failure) => {
            let hint = "to keep the deployed objects, set spec.delete to false";
            let failure = Failure { message: format!("{} ({hint})", failure.message), ..failure };
            pass.conclude(Ending::Failed(failure)).await
        }
    }
}

/// Removes the finalizer.
async fn release(mut pass: Pass, declined: Declined) -> Requeue {
    if let Declined::Because(message) = declined {
        tracing::warn!("{message}");
        pass.tell(vec![event(Severity::Error, message)]);
    }
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
        Severity::Error => reason::DELETE_FAILED,
    };
    Event { severity, reason, message, finishes: false, token: Token::Always }
}

/// Deletes everything that carries the discriminator.
async fn delete_objects(
    pass: &mut Pass,
    spec: &KluctlDeploymentSpec,
    discriminator: &str,
) -> Result<Declined, Failure> {
    if let Some(why) = account_is_gone(pass, spec).await? {
        return Ok(Declined::Because(why));
    }
    let (context, key) = (pass.context.clone(), pass.key.clone());
    let contexts = fetch::read_contexts(&context, &key, spec).await.map_err(as_delete_failure)?;
    let wanted = spec.context.clone().or_else(|| recorded_context(&pass.status));
    let access = contexts.select(wanted.as_deref());
    let access = access.map_err(|e| Failure::describe(reason::DELETE_FAILED, &e))?;
    let account = fetch::account(&context, &key, spec);
    let cluster = context.clusters.get(&access, account.as_ref()).await;
    let cluster = cluster.map_err(|e| Failure::describe(reason::DELETE_FAILED, &e))?;
    let id = cluster_id(&context, &cluster, &access).await.map_err(as_delete_failure)?;
    same_cluster(pass.status.cluster_id.as_deref(), &id)?;
    let target = Target { cluster_id: id, discriminator: discriminator.to_owned() };
    if let Claimed::Refused { owner } = claims::claim(pass, &target).await? {
        return Ok(Declined::Because(format!(
            "the deployed objects stay: they are managed by {owner}"
        )));
    }

    // The turn before the slot: who has the turn may need a slot to come to an end.
    let turn = context.turns.wait_for(&target);
    let turn = context.stopping.run_until_cancelled(turn).await;
    let Some(_turn) = turn else { return Err(interrupted()) };
    let slot = context.slots.clone().acquire_owned();
    let Some(Ok(slot)) = context.stopping.run_until_cancelled(slot).await else {
        return Err(interrupted());
    };
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
        cluster: &cluster,
        info: &info,
        observer: &observer,
        cancel: &cancel,
        timeout: Some(spec.timeout().max(DELETION_WAIT)),
    };
    let is_dry_run = pass.is_dry_run();
    let wait = (!spec.no_wait && !is_dry_run).then_some(DELETION_WAIT);
    let namespaces = vec![key.namespace.clone()];
    let options = PruneOptions { dry_run: is_dry_run, wait, namespaces };
    let started = tokio::time::Instant::now();
    let inclusion = inclusion(spec);
    let work = engine::delete(&session, Some(discriminator), &inclusion, &options);
    let work = while_wanted(&context, &key, &observer, &cancel, Box::pin(work));
    let result = pass.with_progress(progress, false, work).await;
    context.metrics.stage(&key, Stage::Delete, started.elapsed());
    if result.interrupted && cancel.is_cancelled() {
        return Err(interrupted());
    }
    let outcome = outcome_of(&result, CommandStatus::default(), spec.no_wait);
    if outcome.status.succeeded() && outcome.survivors.is_empty() {
        let deleted = outcome.status.deleted_objects;
        let what = if is_dry_run { "dry run of delete" } else { "delete" };
        pass.tell(vec![event(
            Severity::Info,
            format!("{what} succeeded. {deleted} deleted objects."),
        )]);
        return Ok(Declined::BySpec);
    }
    let error = outcome.status.error.unwrap_or_else(|| "some objects still exist".to_owned());
    Err(Failure::retry(reason::DELETE_FAILED, format!("delete failed: {error}")))
}

/// Makes sure that the cluster reached is the one deployed to: elsewhere, the same discriminator may be somebody else's.
/// A status that does not record a cluster is believed.
fn same_cluster(recorded: Option<&str>, reached: &str) -> Result<(), Failure> {
    match recorded.filter(|id| !id.is_empty()) {
        Some(recorded) if recorded != reached => {
            let message = format!(
                "nothing is deleted: the objects were deployed to cluster {recorded}, and the kubeconfig or context now \
                 leads to cluster {reached}; correct spec.kubeConfig or spec.context"
            );
            Err(Failure::retry(reason::DELETE_FAILED, message))
        }
        _ => Ok(()),
    }
}

fn interrupted() -> Failure {
    Failure::new(reason::DELETE_FAILED, Outlook::Interrupted, "the deletion was interrupted")
}

fn as_delete_failure(failure: Failure) -> Failure {
    // Under deletion nothing stays as it is: even a wrong spec is looked at again.
    let outlook = match failure.outlook {
        Outlook::Stalled => Outlook::Retry,
        other => other,
    };
    Failure { reason: reason::DELETE_FAILED, outlook, ..failure }
}

/// Why nobody is left to delete as. When a namespace goes, accounts and Secrets may go first; then the objects cannot be
/// deleted any more, and waiting would keep the namespace for ever.
async fn account_is_gone(
    pass: &Pass,
    spec: &KluctlDeploymentSpec,
) -> Result<Option<String>, Failure> {
    let own = &pass.context.own;
    let namespace = &pass.key.namespace;
    let failed =
        |what: &str, outcome: &ApiOutcome| secrets::refused(reason::DELETE_FAILED, what, outcome);
    // With a kubeconfig, the account is one of the other cluster.
    let account = fetch::account(&pass.context, &pass.key, spec);
    if let Some(account) = account.filter(|_| spec.kube_config.is_none()) {
        let kind = secrets::service_account_kind();
        let outcome = lookup::get(own, &kind, Some(namespace), &account.name).await;
        if outcome.is_absent() {
            let name = &account.name;
            return Ok(Some(format!(
                "the deployed objects stay: service account {namespace}/{name}, which would delete them, does not exist"
            )));
        }
        if !matches!(outcome, ApiOutcome::Done(_)) && !outcome.is_refused() {
            return Err(failed("the service account cannot be read", &outcome));
        }
    }
    let Some(secret) = spec.kube_config.as_ref().and_then(|config| config.secret_ref.as_ref())
    else {
        return Ok(None);
    };
    let found = lookup::get(own, &secrets::secret_kind(), Some(namespace), &secret.name).await;
    if !found.is_absent() {
        return Ok(None);
    }
    let holder = lookup::get(own, &ApiKind::namespace(), None, namespace).await;
    let is_ending = match holder {
        ApiOutcome::Done(holder) => !holder["metadata"]["deletionTimestamp"].is_null(),
        outcome => outcome.is_absent(),
    };
    let name = &secret.name;
    Ok(is_ending.then(|| {
        format!("the deployed objects stay: Secret {namespace}/{name} with the kubeconfig does not exist any more")
    }))
}

/// The context of the last deployment, as the status records it (the Go controllers write the same field).
fn recorded_context(status: &KluctlDeploymentStatus) -> Option<String> {
    let text = status.raw_target.as_ref()?;
    let document =
        yaml::parse_document("status.rawTarget", text.as_bytes(), Schema::Config).ok()?;
    document.value["context"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api;

    fn decision(spec: &Value, status: &Value, is_migrated: bool) -> Decision {
        let mut all = json!({ "interval": "1m" });
        crate::object::merge(&mut all, spec.clone());
        let object = api::decode(&json!({ "spec": all, "status": status })).unwrap();
        decide(&object.spec, &object.status.unwrap(), is_migrated)
    }

    #[test]
    fn deletion_follows_delete_and_else_prune() {
        let deployed = json!({ "discriminator": "d", "lastDeployResult": {} });
        let keep = Decision::Keep(Declined::BySpec);
        let delete = Decision::Delete("d".into());
        for (spec, expected) in [
            (json!({}), &keep),
            (json!({ "prune": true }), &delete),
            (json!({ "delete": true }), &delete),
            (json!({ "prune": true, "delete": false }), &keep),
            (json!({ "prune": true, "delete": true, "suspend": true }), &keep),
        ] {
            assert_eq!(decision(&spec, &deployed, false), *expected, "{spec}");
        }
        assert_eq!(decision(&json!({ "prune": true }), &deployed, true), keep, "taken over");
    }

    #[test]
    fn what_was_never_deployed_needs_no_deletion_and_no_word() {
        let spec = json!({ "delete": true });
        let keep = Decision::Keep(Declined::BySpec);
        assert_eq!(decision(&spec, &json!({}), false), keep);
        let dry = json!({ "lastDeployResult": { "dryRun": true } });
        assert_eq!(decision(&spec, &dry, false), keep);
        let no_discriminator = json!({ "lastDeployResult": {} });
        assert!(matches!(
            decision(&spec, &no_discriminator, false),
            Decision::Keep(Declined::Because(_))
        ));
    }

    #[test]
    fn another_cluster_is_refused_and_an_unrecorded_one_believed() {
        assert_eq!(same_cluster(Some("a"), "a"), Ok(()));
        assert_eq!(same_cluster(None, "a"), Ok(()));
        assert_eq!(same_cluster(Some(""), "a"), Ok(()));
        let refused = same_cluster(Some("a"), "b").unwrap_err();
        assert_eq!((refused.reason, refused.outlook), (reason::DELETE_FAILED, Outlook::Retry));
        assert!(refused.message.contains("cluster a"), "{}", refused.message);
        assert!(refused.message.contains("cluster b"), "{}", refused.message);
    }

    #[test]
    fn the_recorded_context_is_found_also_in_the_go_controllers_text() {
        let status = |text: &str| KluctlDeploymentStatus {
            raw_target: Some(text.to_owned()),
            ..KluctlDeploymentStatus::default()
        };
        let theirs = "args:\n  a: b\ncontext: prod\ndiscriminator: d\nname: prod\n";
        assert_eq!(recorded_context(&status(theirs)).as_deref(), Some("prod"));
        assert_eq!(recorded_context(&status("name: x\n")), None);
        assert_eq!(recorded_context(&status(": : :")), None);
    }
}
