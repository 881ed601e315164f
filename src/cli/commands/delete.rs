//! `kluctl delete`

use tokio_util::sync::CancellationToken;

use super::prune::confirm_removal;
use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{ConfirmFlags, DeploymentFlags, ResultOutputFlags, StoreFlags},
        operation::Operation,
    },
    engine,
    prune::PruneOptions,
};

/// Deletes all objects of a target.
///
/// Objects are found by the discriminator alone: what is no longer part of the project is deleted as well. The project is not
/// rendered, so that what cannot be rendered any more can be deleted.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Delete {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,

    /// Discriminator to find objects by, instead of the target's
    #[arg(long, value_name = "TEXT", help_heading = "Misc arguments")]
    discriminator: Option<String>,

    /// Do not wait until the objects are gone
    #[arg(long, help_heading = "Misc arguments")]
    no_wait: bool,

    #[command(flatten)]
    output: ResultOutputFlags,
    #[command(flatten)]
    store: StoreFlags,
}

pub(super) async fn run(
    command: Delete,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Delete { deployment, confirm, discriminator, no_wait, output, store } = command;
    let mut operation = Operation::start(&deployment, None, environment, report, &cancel).await?;
    if deployment.render_output_dir.is_some() {
        operation.prepare().await?;
    }
    let options = PruneOptions {
        dry_run: confirm.dry_run,
        wait: (!no_wait).then_some(deployment.project.timeout),
        ..PruneOptions::default()
    };
    let inclusion = deployment.inclusion.inclusion()?;
    let discriminator = discriminator.or_else(|| operation.target.discriminator.clone());
    let info = operation.info(output.no_obfuscate);
    let session = operation.session(&info);
    let planned =
        engine::plan_delete(&session, discriminator.as_deref(), &inclusion, &options).await;
    confirm_removal(&operation, &planned, confirm).await?;
    let result = planned.run(&session).await;
    operation.conclude(result, &output, Some(&store)).await
}
