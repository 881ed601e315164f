//! Runs the actions that were decided, and puts their results into the controller's terms.

use std::{collections::HashSet, time::Duration};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    conditions::{kube_time, shorten_to},
    context::Context,
    decide::Actions,
    former,
    metrics::Stage,
    observe::RunObserver,
    outcome::{CommandOutcome, Done, Facts, Failure, ValidateOutcome, count},
    prepare::Rendered,
    record::searched,
};
use crate::{
    api::{
        CommandStatus, Footprint, FormerTarget, GoDuration, KluctlDeploymentSpec, NamespacedName,
        ObjectFailure, ValidateStatus, reason,
    },
    engine::{self, DeployOptions, DiffOptions, Session},
    prune::PruneOptions,
    results::{
        CommandInfo, CommandResult, DeploymentError, Initiator, KluctlDeploymentInfo, Operation,
        OutcomeState, RunInfo, ValidateResult,
    },
};

/// The longest that a deletion is waited for.
const DELETION_WAIT: Duration = Duration::from_mins(1);
/// Problems that are named in a message; more are counted.
const NAMED_PROBLEMS: usize = 3;
/// Longest text of one problem in a message, in bytes.
const LONGEST_PROBLEM: usize = 2_000;

/// A run, as far as its actions need to know it.
#[derive(Clone, Copy)]
pub(crate) struct Acting<'a> {
    /// What all runs share.
    pub context: &'a Context,
    /// The deployment.
    pub key: &'a NamespacedName,
    /// What it asks for.
    pub spec: &'a KluctlDeploymentSpec,
    /// Where there may be objects of it.
    pub footprint: &'a Footprint,
    /// Targets that it was deployed to before.
    pub former: &'a [FormerTarget],
    /// Generation of that.
    pub generation: i64,
    /// Identity of the run.
    pub id: &'a str,
    /// Whether changes are only pretended.
    pub dry_run: bool,
    /// Hears what happens.
    pub observer: &'a RunObserver,
    /// Ends the run early.
    pub cancel: &'a CancellationToken,
    /// When time is up.
    pub deadline: tokio::time::Instant,
}

/// Does what is due: deploy, then prune (former targets, too) unless that failed, then validate unless one of those failed.
///
/// # Errors
/// Only when the run was interrupted from outside; what was done is not recorded then, and done again by the next run.
pub(crate) async fn act(
    run: Acting<'_>,
    rendered: &Rendered,
    facts: &Facts,
    actions: Actions,
) -> Result<Done, Failure> {
    let mut done = Done::default();
    if actions.deploy.is_some() {
        let result = run.deploy(rendered, facts).await?;
        let orphans = result.objects.iter().filter(|object| object.base.orphan).count();
        let outcome = run.command_outcome(&result, facts).masked(&rendered.masked);
        let is_good = outcome.status.succeeded();
        done.deploy = Some(outcome);
        if !is_good {
            return Ok(done);
        }
        if actions.prune && orphans == 0 && !result.has_unlisted {
            // The deployment has looked for orphans already, and could see everything.
            done.prune = Some(run.nothing_to_prune(facts));
            done.is_swept = rendered.prepared.desired.inclusion.is_empty();
        }
    }
    if actions.prune && done.prune.is_none() {
        let result = run.prune(rendered, facts).await?;
        let outcome = run.command_outcome(&result, facts).masked(&rendered.masked);
        let is_good = outcome.is_good();
        done.prune = Some(outcome);
        if !is_good {
            return Ok(done);
        }
        done.is_swept = !result.has_unlisted && rendered.prepared.desired.inclusion.is_empty();
    }
    if actions.deploy.is_some() || actions.prune {
        former::settle(&run, rendered, facts, actions.prune, &mut done).await?;
        if done.prune.as_ref().is_some_and(|outcome| !outcome.is_good()) {
            return Ok(done);
        }
    }
    if actions.validate.is_some() {
        done.validate = Some(run.validate(rendered, facts).await?);
    }
    Ok(done)
}

impl Acting<'_> {
    async fn deploy(&self, rendered: &Rendered, facts: &Facts) -> Result<CommandResult, Failure> {
        let spec = self.spec;
        let options = DeployOptions {
            dry_run: self.dry_run,
            force_apply: spec.force_apply,
            replace_on_error: spec.replace_on_error,
            force_replace_on_error: spec.force_replace_on_error,
            abort_on_error: spec.abort_on_error,
            no_wait: spec.no_wait,
            // Pruned afterwards, and only when everything was applied.
            prune: false,
            // The run's own deadline comes first.
            readiness_timeout: spec.timeout(),
            diff: DiffOptions::default(),
            footprint: searched(self.footprint, &self.key.namespace),
        };
        let info = self.info(facts);
        self.context.metrics.deploy_started(self.key, info.started);
        let session = self.session(rendered, &info);
        let work = Box::pin(engine::deploy(&session, &rendered.prepared.desired, &options));
        let mut result = self.timed(Stage::Deploy, work).await;
        self.unless_interrupted(result.interrupted, &mut result.errors)?;
        Ok(result)
    }

    async fn prune(&self, rendered: &Rendered, facts: &Facts) -> Result<CommandResult, Failure> {
        let options = PruneOptions {
            dry_run: self.dry_run,
            wait: self.deletion_wait(),
            footprint: searched(self.footprint, &self.key.namespace),
        };
        let info = self.info(facts);
        let session = self.session(rendered, &info);
        let work = Box::pin(engine::prune(&session, &rendered.prepared.desired, &options));
        let mut result = self.timed(Stage::Prune, work).await;
        self.unless_interrupted(result.interrupted, &mut result.errors)?;
        Ok(result)
    }

    async fn validate(
        &self,
        rendered: &Rendered,
        facts: &Facts,
    ) -> Result<ValidateOutcome, Failure> {
        let info = self.info(facts);
        let session = self.session(rendered, &info);
        let work = Box::pin(engine::validate(&session, &rendered.prepared.desired));
        let mut result = self.timed(Stage::Validate, work).await;
        self.unless_interrupted(result.interrupted, &mut result.errors)?;
        Ok(self.validate_outcome(&result, facts).masked(&rendered.masked))
    }

    /// How long one deletion is waited for, if at all.
    pub(super) fn deletion_wait(&self) -> Option<Duration> {
        (!self.spec.no_wait && !self.dry_run).then_some(DELETION_WAIT)
    }

    pub(super) fn session<'s>(&'s self, rendered: &'s Rendered, info: &'s RunInfo) -> Session<'s> {
        let left = self.deadline.saturating_duration_since(tokio::time::Instant::now());
        Session {
            cluster: &rendered.cluster,
            info,
            observer: self.observer,
            cancel: self.cancel,
            timeout: Some(left),
        }
    }

    pub(super) async fn timed<T>(&self, stage: Stage, work: impl Future<Output = T>) -> T {
        let (result, took) = self.observer.measured(work).await;
        self.context.metrics.stage(self.key, stage, took);
        result
    }

    /// A run that is cut short by its own deadline is a result; one that is cut short from outside is not.
    pub(super) fn unless_interrupted(
        &self,
        is_interrupted: bool,
        errors: &mut Vec<DeploymentError>,
    ) -> Result<(), Failure> {
        if is_interrupted && self.cancel.is_cancelled() {
            return Err(Failure::interrupted(reason::DEPLOY_FAILED));
        }
        if is_interrupted {
            // The engine's last word names only the time that was left; the user knows the field.
            errors.pop();
            let timeout = GoDuration(self.spec.timeout());
            let message = format!("spec.timeout ({timeout}) has passed");
            errors.insert(0, DeploymentError::new(None, message));
        }
        Ok(())
    }

    pub(super) fn info(&self, facts: &Facts) -> RunInfo {
        let spec = self.spec;
        RunInfo {
            id: super::random_id(),
            reconcile_id: self.id.to_owned(),
            started: super::now(),
            target_name: facts.target.clone().unwrap_or_default(),
            kluctl_deployment: Some(KluctlDeploymentInfo {
                name: self.key.name.clone(),
                namespace: self.key.namespace.clone(),
                cluster_id: facts.cluster_id().unwrap_or_default().to_owned(),
            }),
            command: CommandInfo {
                initiator: Initiator::KluctlDeployment,
                target: spec.target.clone().unwrap_or_default(),
                target_name_override: spec.target_name_override.clone().unwrap_or_default(),
                context_override: spec.context.clone().unwrap_or_default(),
                ..CommandInfo::default()
            },
            ..RunInfo::default()
        }
    }

    pub(super) fn nothing_to_prune(&self, facts: &Facts) -> CommandOutcome {
        CommandOutcome {
            status: self.command_status(facts, super::now()),
            failed: Vec::new(),
            survivors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn command_status(&self, facts: &Facts, ended: Timestamp) -> CommandStatus {
        CommandStatus {
            time: Some(kube_time(ended)),
            revision: facts.revision.clone(),
            target: facts.target.clone(),
            target_name_override: self.spec.target_name_override.clone(),
            objects_hash: facts.objects_hash.clone(),
            generation: Some(self.generation),
            dry_run: self.dry_run,
            reconcile_id: Some(self.id.to_owned()),
            ..CommandStatus::default()
        }
    }

    pub(super) fn command_outcome(&self, result: &CommandResult, facts: &Facts) -> CommandOutcome {
        let ended = result.command.end_time.unwrap_or_else(super::now);
        let status = self.command_status(facts, ended);
        outcome_of(result, status, self.spec.no_wait)
    }

    fn validate_outcome(&self, result: &ValidateResult, facts: &Facts) -> ValidateOutcome {
        let ended = result.end_time.unwrap_or_else(super::now);
        let failed = result.errors.iter().filter_map(object_failure).collect();
        let is_progressing = result.progressing && !result.interrupted;
        ValidateOutcome {
            status: ValidateStatus {
                time: Some(kube_time(ended)),
                revision: facts.revision.clone(),
                target: facts.target.clone(),
                target_name_override: self.spec.target_name_override.clone(),
                objects_hash: facts.objects_hash.clone(),
                reconcile_id: Some(self.id.to_owned()),
                ready: result.ready,
                progressing_since: is_progressing.then(|| kube_time(ended)),
                error: problems(&result.errors),
                errors: count(result.errors.len()),
                warnings: count(result.warnings.len()),
            },
            failed,
        }
    }
}

/// What a command's result means for the status. `status` holds what is known besides.
pub(crate) fn outcome_of(
    result: &CommandResult,
    status: CommandStatus,
    no_wait: bool,
) -> CommandOutcome {
    let objects = |is: fn(&crate::results::BaseObject) -> bool| {
        count(result.objects.iter().filter(|object| is(&object.base)).count())
    };
    let applied = result.outcomes.iter().filter(|o| o.operation == Operation::Apply && o.is_done());
    let survivors: Vec<_> = result
        .survivors()
        // Without waiting, an accepted deletion is all there is to know.
        .filter(|outcome| !(no_wait && matches!(outcome.state, OutcomeState::Accepted { .. })))
        .map(|outcome| {
            ObjectFailure::new(&outcome.reference, outcome.problem().unwrap_or_default())
        })
        .collect();

    let mut named = HashSet::new();
    let mut failed: Vec<ObjectFailure> = Vec::new();
    let tried = result.failures().filter(|o| matches!(o.state, OutcomeState::Failed { .. }));
    let tried = tried.map(|o| ObjectFailure::new(&o.reference, o.problem().unwrap_or_default()));
    for failure in tried.chain(result.errors.iter().filter_map(object_failure)) {
        if named.insert(failure.reference().to_string()) {
            failed.push(failure);
        }
    }
    let mut errors = result.errors.clone();
    if errors.is_empty() && !result.is_success() {
        errors.extend(result.failures().map(|outcome| {
            DeploymentError::new(
                Some(outcome.reference.clone()),
                outcome.problem().unwrap_or_default(),
            )
        }));
    }
    if errors.is_empty() {
        let text = |s: &ObjectFailure| {
            DeploymentError::new(Some(s.reference()), format!("not deleted: {}", s.message))
        };
        errors.extend(survivors.iter().map(text));
    }
    CommandOutcome {
        status: CommandStatus {
            error: problems(&errors),
            errors: count(errors.len()),
            warnings: count(result.warnings.len()),
            applied_objects: count(applied.count()),
            new_objects: objects(|object| object.new),
            changed_objects: objects(|object| !object.changes.is_empty()),
            hook_objects: objects(|object| object.hook),
            orphan_objects: objects(|object| object.orphan),
            deleted_objects: objects(|object| object.deleted),
            ..status
        },
        failed,
        survivors,
        warnings: result.warnings.iter().map(shown).collect(),
    }
}

/// The first few problems in one text, and how many there are besides; `None` when there are none.
fn problems(errors: &[DeploymentError]) -> Option<String> {
    if errors.is_empty() {
        return None;
    }
    let mut texts: Vec<String> = errors
        .iter()
        .take(NAMED_PROBLEMS)
        .map(|error| shorten_to(&shown(error), LONGEST_PROBLEM))
        .collect();
    if errors.len() > NAMED_PROBLEMS {
        texts.push(format!("and {} more", errors.len() - NAMED_PROBLEMS));
    }
    Some(texts.join("; "))
}

fn shown(error: &DeploymentError) -> String {
    if error.reference.name.is_empty() {
        return error.message.clone();
    }
    format!("{}: {}", error.reference, error.message)
}

fn object_failure(error: &DeploymentError) -> Option<ObjectFailure> {
    let names_object = !error.reference.name.is_empty();
    names_object.then(|| ObjectFailure::new(&error.reference, error.message.clone()))
}
