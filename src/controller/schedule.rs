//! When an object is looked at next.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    decide::{last_deployment, prune_again, validate_again},
    outcome::{Failure, Outlook, after, until},
};
use crate::api::{KluctlDeploymentSpec, KluctlDeploymentStatus};

/// The shortest pause between two runs of one object that are not asked for.
const SHORTEST: Duration = Duration::from_secs(1);

/// When to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// After this time.
    After(Duration),
    /// After a delay that grows with each failure in a row, at most this long.
    Backoff(Duration),
    /// Not before something changes.
    OnChange,
}

/// When to run again after everything due was done, well or not.
///
/// That is after `interval` (varied by `jitter`, a factor around 1, so that many objects do not run in step), or earlier
/// when a deployment or validation falls due, or when something failed and is tried again. `objects_hash` is that of what was
/// rendered, if it is for the cluster deployed to.
pub(crate) fn after_run(
    now: Timestamp,
    spec: &KluctlDeploymentSpec,
    status: &KluctlDeploymentStatus,
    objects_hash: Option<&str>,
    dry_run: bool,
    jitter: f64,
) -> Requeue {
    let time = |time: Option<&Time>| time.map(|time| time.0);
    let retry = spec.retry_interval();

    let deploy = last_deployment(status, dry_run);
    let deployed_at = deploy.and_then(|last| time(last.time.as_ref()));
    let redeploy = deploy.filter(|last| !last.succeeded()).map(|_| retry);

    let validate = status.last_validate_result.as_ref().filter(|_| spec.validate && !dry_run);
    let validated_at = validate.and_then(|last| time(last.time.as_ref()));

    let delay = [
        deployed_at.zip(spec.deploy_period()),
        deployed_at.zip(redeploy),
        validated_at.zip(spec.validate_period()),
    ]
    .into_iter()
    .flatten()
    .map(|(last, period)| after(last, period))
    .chain(prune_again(spec, status, objects_hash, dry_run))
    .chain(validate.and_then(|last| validate_again(spec, last)))
    .map(|due| until(now, due))
    .fold(spec.interval.0.mul_f64(jitter), Duration::min);
    Requeue::After(delay.max(SHORTEST))
}

/// When to run again after a run that ended early. `waiting` is the pause of those that wait for other objects.
pub(crate) fn after_failure(
    failure: &Failure,
    spec: Option<&KluctlDeploymentSpec>,
    waiting: Duration,
) -> Requeue {
    let retry = spec.map_or(Duration::from_mins(5), KluctlDeploymentSpec::retry_interval);
    if let Some(delay) = failure.retry_after {
        return Requeue::After(delay);
    }
    match failure.outlook {
        Outlook::Stalled => Requeue::OnChange,
        Outlook::Pending | Outlook::Waiting => Requeue::After(waiting),
        Outlook::Retry => Requeue::After(retry.max(SHORTEST)),
        Outlook::Backoff => Requeue::Backoff(retry.max(SHORTEST)),
        Outlook::Interrupted => Requeue::After(Duration::ZERO),
    }
}
