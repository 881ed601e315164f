//! Which of deploy, prune and validate are due.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    outcome::{after, until},
    requests::Requests,
};
use crate::api::{CommandStatus, KluctlDeploymentSpec, KluctlDeploymentStatus, ValidateStatus};

/// The pause before what is on its way is looked at again, at first.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// The same in the end; it is a quarter of the time since, in between.
const LAST_LOOK: Duration = Duration::from_mins(1);

/// Why a deployment is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeployReason {
    /// There is no record of a deployment.
    NeverDeployed,
    /// An annotation asks for it.
    Requested,
    /// The spec changed since the last deployment (resuming counts as a change).
    SpecChanged,
    /// The rendered objects differ from those of the last deployment.
    ObjectsChanged,
    /// The kubeconfig leads to another cluster than the last deployment went to.
    ClusterChanged,
    /// The last deployment failed and the retry interval has passed.
    RetryAfterFailure,
    /// `deployInterval` has passed.
    IntervalElapsed,
}

/// Why a validation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValidateReason {
    /// There is no record of a validation.
    NeverValidated,
    /// A deployment precedes it.
    Deployed,
    /// An annotation asks for a reconciliation.
    Requested,
    /// What the last validation found not to be ready was on its way.
    Progressing,
    /// The last validation was not content and the retry interval has passed.
    RetryAfterFailure,
    /// `validateInterval` has passed.
    IntervalElapsed,
}

/// What is going to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Actions {
    /// Deploy, and why.
    pub deploy: Option<DeployReason>,
    /// Prune, after the deployment or alone when earlier deletions are not confirmed yet.
    pub prune: bool,
    /// Validate, and why.
    pub validate: Option<ValidateReason>,
}

impl Actions {
    /// Whether nothing is due.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// What the decision rests on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    /// The time of the decision.
    pub now: Timestamp,
    /// What the user wants.
    pub spec: &'a KluctlDeploymentSpec,
    /// Generation of that spec.
    pub generation: i64,
    /// What was done before.
    pub status: &'a KluctlDeploymentStatus,
    /// SHA-256 over the objects as rendered now.
    pub objects_hash: &'a str,
    /// Open requests.
    pub requests: &'a Requests,
    /// Whether changes are only pretended.
    pub dry_run: bool,
    /// Whether the objects would go to another cluster than the last deployment went to.
    pub is_elsewhere: bool,
}

/// Decides what is due.
///
/// Prune follows every deployment. Validation follows every deployment and has a period of its own. A result of a dry run
/// counts only as long as dry runs are asked for, so that dropping the switch deploys.
pub(crate) fn decide(basis: Basis<'_>) -> Actions {
    let deploy = deploy_reason(basis);
    let here = Some(basis.objects_hash).filter(|_| !basis.is_elsewhere);
    let prune_again = || prune_again(basis.spec, basis.status, here, basis.dry_run);
    let prune = match deploy {
        Some(_) => basis.spec.prune,
        None => prune_again().is_some_and(|due| due <= basis.now),
    };
    // A dry run leaves nothing behind that could be validated.
    let validates = basis.spec.validate && !basis.dry_run;
    let validate = if validates { validate_reason(basis, deploy) } else { None };
    Actions { deploy, prune, validate }
}

fn deploy_reason(basis: Basis<'_>) -> Option<DeployReason> {
    let Basis { now, spec, generation, status, objects_hash, requests, dry_run, is_elsewhere } =
        basis;
    let Some(last) = last_deployment(status, dry_run) else {
        return Some(DeployReason::NeverDeployed);
    };
    if requests.deploys() {
        return Some(DeployReason::Requested);
    }
    if last.generation != Some(generation) {
        return Some(DeployReason::SpecChanged);
    }
    if spec.deploy_on_changes && last.objects_hash.as_deref() != Some(objects_hash) {
        return Some(DeployReason::ObjectsChanged);
    }
    if spec.deploy_on_changes && is_elsewhere {
        return Some(DeployReason::ClusterChanged);
    }
    let time = last.time.as_ref().map(|time| time.0);
    if !last.succeeded() && is_due(now, time, Some(spec.retry_interval())) {
        return Some(DeployReason::RetryAfterFailure);
    }
    is_due(now, time, spec.deploy_period()).then_some(DeployReason::IntervalElapsed)
}

/// The last deployment of the same seriousness, if its record says when it was.
pub(crate) fn last_deployment(
    status: &KluctlDeploymentStatus,
    dry_run: bool,
) -> Option<&CommandStatus> {
    let last = status.last_deploy_result.as_ref()?;
    (last.dry_run == dry_run && last.time.is_some()).then_some(last)
}

/// Whether deletions are outstanding.
pub(crate) fn prune_failed(status: &KluctlDeploymentStatus) -> bool {
    !status.survivors.is_empty()
        || status.last_prune_result.as_ref().is_some_and(|last| !last.succeeded())
}

/// When outstanding deletions are tried again, without a deployment before them; `None` when there are none, or when
/// `objects_hash` (of what is rendered, if it is for the cluster deployed to) is not what was last deployed, without errors: what
/// was rendered does not say what may go, and of a deployment that failed, what it no longer wants may be all that still works.
pub(crate) fn prune_again(
    spec: &KluctlDeploymentSpec,
    status: &KluctlDeploymentStatus,
    objects_hash: Option<&str>,
    dry_run: bool,
) -> Option<Timestamp> {
    let deployed = last_deployment(status, dry_run).filter(|last| last.succeeded())?;
    let is_wanted = spec.prune && prune_failed(status);
    let is_deployed = objects_hash.is_some() && deployed.objects_hash.as_deref() == objects_hash;
    if !is_wanted || !is_deployed {
        return None;
    }
    let last = status.last_prune_result.as_ref().and_then(|last| last.time.as_ref());
    Some(last.map_or(Timestamp::MIN, |last| after(last.0, spec.retry_interval())))
}

/// When a validation that was not content is repeated; `None` when it was. What is on its way is looked at soon, and ever less
/// often, and for the last time when it ceases to be an excuse.
pub(crate) fn validate_again(
    spec: &KluctlDeploymentSpec,
    last: &ValidateStatus,
) -> Option<Timestamp> {
    let time = last.time.as_ref().filter(|_| !last.ready)?.0;
    let retry = after(time, spec.retry_interval());
    let Some(since) = last.progressing_since.as_ref().map(|since| since.0) else {
        return Some(retry);
    };
    let limit = after(since, spec.timeout());
    if limit <= time {
        return Some(retry);
    }
    let pause = (until(since, time) / 4).clamp(FIRST_LOOK, LAST_LOOK);
    Some(after(time, pause).min(limit).min(retry))
}

/// Whether what the last validation found not to be ready may still become so by itself.
pub(crate) fn is_progressing(
    spec: &KluctlDeploymentSpec,
    last: &ValidateStatus,
    now: Timestamp,
) -> bool {
    let since = last.progressing_since.as_ref().filter(|_| !last.ready);
    since.is_some_and(|since| now < after(since.0, spec.timeout()))
}

fn validate_reason(basis: Basis<'_>, deploy: Option<DeployReason>) -> Option<ValidateReason> {
    if deploy.is_some() {
        return Some(ValidateReason::Deployed);
    }
    let Some(last) = basis.status.last_validate_result.as_ref().filter(|last| last.time.is_some())
    else {
        return Some(ValidateReason::NeverValidated);
    };
    if basis.requests.reconcile.is_some() {
        return Some(ValidateReason::Requested);
    }
    let time = last.time.as_ref().map(|time| time.0);
    if validate_again(basis.spec, last).is_some_and(|due| due <= basis.now) {
        return Some(match last.progressing_since {
            Some(_) => ValidateReason::Progressing,
            None => ValidateReason::RetryAfterFailure,
        });
    }
    is_due(basis.now, time, basis.spec.validate_period()).then_some(ValidateReason::IntervalElapsed)
}

/// Whether `period` has passed since `last`; a missing period never passes, a missing time is long ago.
fn is_due(now: Timestamp, last: Option<Timestamp>, period: Option<Duration>) -> bool {
    period.is_some_and(|period| last.is_none_or(|last| after(last, period) <= now))
}
