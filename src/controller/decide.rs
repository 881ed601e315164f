//! Which of deploy, prune and validate are due.

use std::time::Duration;

use jiff::Timestamp;

use super::{outcome::after, requests::Requests};
use crate::api::{CommandStatus, KluctlDeploymentSpec, KluctlDeploymentStatus};

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
    let prune = basis.spec.prune && (deploy.is_some() || survivors_are_due(basis));
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

fn survivors_are_due(basis: Basis<'_>) -> bool {
    let last = basis.status.last_prune_result.as_ref();
    let failed = !basis.status.survivors.is_empty() || last.is_some_and(|last| !last.succeeded());
    // What was rendered but not deployed does not say what may go.
    let deployed = last_deployment(basis.status, basis.dry_run);
    let is_deployed =
        deployed.is_some_and(|last| last.objects_hash.as_deref() == Some(basis.objects_hash));
    if !is_deployed || basis.is_elsewhere {
        return false;
    }
    let time = last.and_then(|last| last.time.as_ref()).map(|time| time.0);
    failed && is_due(basis.now, time, Some(basis.spec.retry_interval()))
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
    if !last.ready && is_due(basis.now, time, Some(basis.spec.retry_interval())) {
        return Some(ValidateReason::RetryAfterFailure);
    }
    is_due(basis.now, time, basis.spec.validate_period()).then_some(ValidateReason::IntervalElapsed)
}

/// Whether `period` has passed since `last`; a missing period never passes, a missing time is long ago.
fn is_due(now: Timestamp, last: Option<Timestamp>, period: Option<Duration>) -> bool {
    period.is_some_and(|period| last.is_none_or(|last| after(last, period) <= now))
}
