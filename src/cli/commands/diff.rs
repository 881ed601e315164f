//! `kluctl diff`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{DeploymentFlags, DiscriminatorFlag, ForceFlags, IgnoreFlags, ResultOutputFlags},
        operation::Operation,
    },
    engine::{self, KnownVersions},
};

/// Shows what a deployment would change, and changes nothing.
///
/// The API server is asked what would happen to each object, so defaults, webhooks and conflicts with other field managers
/// count. Objects that would be pruned are listed as orphans.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Diff {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    force: ForceFlags,
    #[command(flatten)]
    ignore: IgnoreFlags,
    #[command(flatten)]
    discriminator: DiscriminatorFlag,
    #[command(flatten)]
    output: ResultOutputFlags,
}

pub(super) async fn run(
    command: Diff,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Diff { deployment, force, ignore, discriminator, output } = command;
    let discriminator = discriminator.discriminator.as_deref();
    let mut operation =
        Operation::start(&deployment, discriminator, environment, report, &cancel).await?;
    let prepared = operation.prepare().await?;
    let options = force.options(true, None, ignore.options());
    let info = operation.info(output.no_obfuscate);
    let session = operation.session(&info);
    let known = KnownVersions::new();
    let result = engine::diff(&session, &prepared.desired, &options, &known).await;
    operation.conclude(result, &output, None).await
}
