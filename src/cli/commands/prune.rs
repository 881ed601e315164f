//! `kluctl prune`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{ConfirmFlags, DeploymentFlags, DiscriminatorFlag, ResultOutputFlags, StoreFlags},
        operation::Operation,
        output, prompt,
    },
    engine::{self, PlannedRemoval},
    prune::PruneOptions,
};

/// Deletes objects of a target that are no longer part of it.
///
/// Objects are found by the target's discriminator. What is not written by the field manager `kluctl`, belongs to an owner,
/// or is marked to be kept, stays. With tags or directories, only objects that were deployed with these are deleted.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Prune {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    discriminator: DiscriminatorFlag,
    #[command(flatten)]
    output: ResultOutputFlags,
    #[command(flatten)]
    store: StoreFlags,
}

pub(super) async fn run(
    command: Prune,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Prune { deployment, confirm, discriminator, output, store } = command;
    let discriminator = discriminator.discriminator.as_deref();
    let mut operation =
        Operation::start(&deployment, discriminator, environment, report, &cancel).await?;
    let prepared = operation.prepare().await?;
    let options = PruneOptions {
        dry_run: confirm.dry_run,
        wait: Some(deployment.project.timeout),
        ..PruneOptions::default()
    };
    let info = operation.info(output.no_obfuscate);
    let session = operation.session(&info);
    let planned = engine::plan_prune(&session, &prepared.desired, &options).await;
    confirm_removal(&operation, &planned, confirm).await?;
    let result = planned.run(&session).await;
    operation.conclude(result, &output, Some(&store)).await
}

/// Lists what is going to be deleted, and asks if that is wanted.
pub(super) async fn confirm_removal(
    operation: &Operation<'_>,
    planned: &PlannedRemoval<'_>,
    confirm: ConfirmFlags,
) -> Result<(), Failure> {
    let objects: Vec<String> = planned.objects().map(|object| format!("  {object}\n")).collect();
    if objects.is_empty() {
        return Ok(());
    }
    let list = objects.concat();
    output::to_stderr(&format!("The following objects will be deleted:\n{list}"));
    if confirm.asks() {
        let question = match objects.len() {
            1 => "Do you really want to delete 1 object?".to_owned(),
            count => format!("Do you really want to delete {count} objects?"),
        };
        let Operation { environment, report, cancel, .. } = operation;
        prompt::confirm(&question, environment, *report, cancel).await?;
    }
    Ok(())
}
