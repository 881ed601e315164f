//! Tells what a deployment would change.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use super::{
    DeployOptions,
    deploy::{Mode, execute, finished},
    session::Session,
};
use crate::{cluster::LiveKey, deployment::DesiredState, results::CommandResult};

/// Objects that are known to be as desired, with the `resourceVersion` at which they were: the memory of a drift detection.
pub type KnownVersions = HashMap<LiveKey, String>;

/// What a deployment would change, by server-side dry run; nothing is changed. Objects in `known` that still have the
/// `resourceVersion` given there are taken as unchanged without asking. Secrets are masked.
pub async fn diff(
    session: &Session<'_>,
    desired: &DesiredState,
    options: &DeployOptions,
    known: &KnownVersions,
) -> CommandResult {
    let work = async |cancel: CancellationToken| {
        execute(session, desired, options, &Mode::diff(known.clone()), &cancel).await
    };
    finished(session, session.limited(work).await)
}

/// The objects of a result that are as desired now, for the next [`diff`]. After a deployment these are all that were
/// applied; after a diff, those without changes.
pub fn known_versions(result: &CommandResult) -> KnownVersions {
    let is_real = result.command.command == "deploy" && !result.command.dry_run;
    let settled = result.objects.iter().filter(|object| {
        !object.base.hook && (is_real || (object.base.changes.is_empty() && !object.base.new))
    });
    let versions = settled.filter_map(|object| {
        let applied = object.applied.as_ref()?;
        let version = applied.value()["metadata"]["resourceVersion"].as_str()?;
        Some((LiveKey::from(&applied.reference()), version.to_owned()))
    });
    versions.collect()
}
