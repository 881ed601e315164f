//! Deletes a whole deployment.

use super::{
    prune::{PlannedRemoval, Removal, planned, remove},
    session::Session,
};
use crate::{deployment::Inclusion, prune::PruneOptions, results::CommandResult};

/// Deletes everything that carries a discriminator and passes the inclusion filters, except what is protected. The project
/// is not needed, so this works when its source is gone. Always returns a result; survivors are in
/// [`CommandResult::survivors`]. Without a discriminator nothing is deleted and the result says so.
pub async fn delete(
    session: &Session<'_>,
    discriminator: Option<&str>,
    inclusion: &Inclusion,
    options: &PruneOptions,
) -> CommandResult {
    let target = Removal { command: "delete", discriminator, inclusion, desired: None };
    remove(session, target, options).await
}

/// Plans what [`delete`] does.
pub async fn plan_delete<'a>(
    session: &Session<'_>,
    discriminator: Option<&'a str>,
    inclusion: &'a Inclusion,
    options: &PruneOptions,
) -> PlannedRemoval<'a> {
    let target = Removal { command: "delete", discriminator, inclusion, desired: None };
    planned(session, target, options, session.cancel).await
}
