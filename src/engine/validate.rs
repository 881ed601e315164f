//! Validates a deployment.

use tokio_util::sync::CancellationToken;

use super::session::{Session, interruption, references, remarks, unreadable};
use crate::{
    cluster::{Clock, ObserveRequest},
    deployment::DesiredState,
    results::{DeploymentError, ValidateResult},
    validate::run,
};

/// Checks once that every desired object is there and ready. Always returns a result; `ready` is true only without errors.
pub async fn validate(session: &Session<'_>, desired: &DesiredState) -> ValidateResult {
    let work = async |cancel: CancellationToken| execute(session, desired, &cancel).await;
    let (mut result, timed_out) = session.limited(work).await;
    if result.interrupted {
        result.errors.push(interruption(session.timeout, timed_out));
    }
    result
}

async fn execute(
    session: &Session<'_>,
    desired: &DesiredState,
    cancel: &CancellationToken,
) -> ValidateResult {
    let clock = Clock::starting_at(session.info.started);
    let discriminator = desired.discriminator.as_deref().filter(|text| !text.is_empty());
    let mut result = session.validate_result(discriminator, &clock, cancel).await;
    result.rendered_objects_hash.clone_from(&desired.objects_hash);
    let warnings = desired.warnings.iter().map(|text| DeploymentError::new(None, text.clone()));
    result.warnings.extend(warnings);
    let wanted = references(session.cluster, desired).await;
    let request = ObserveRequest {
        discriminator,
        references: &wanted,
        only_used_kinds: true,
        ..ObserveRequest::default()
    };
    let live = session.observe(&request, cancel).await;
    match (live, session.cluster.kinds().await) {
        (Ok(live), Ok(kinds)) => {
            result.errors.extend(remarks(&live.errors));
            result.warnings.extend(remarks(&live.warnings));
            result.warnings.extend(remarks(&live.unlisted));
            let found = run(desired, &live, &kinds, clock.now());
            result.progressing = result.errors.is_empty() && found.is_progressing();
            result.errors.extend(found.errors);
            result.warnings.extend(found.warnings);
            result.results = found.results;
        }
        (Err(outcome), _) | (_, Err(outcome)) => result.errors.push(unreadable(&outcome)),
    }
    result.interrupted = cancel.is_cancelled();
    result.finish(clock.now());
    result
}
