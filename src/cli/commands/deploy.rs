//! `kluctl deploy`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{
            ConfirmFlags, DeployFlags, DeploymentFlags, DiscriminatorFlag, ForceFlags,
            ResultOutputFlags, StoreFlags,
        },
        operation::Operation,
        output::to_stderr,
        prompt,
    },
    engine::{self, DeployOptions, DiffOptions},
};

/// Renders a target and applies its objects, item by item, waiting at barriers and for hooks and readiness.
///
/// Without --yes or --dry-run, the changes are shown first, and a question is asked.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Deploy {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    force: ForceFlags,
    #[command(flatten)]
    run: DeployFlags,
    #[command(flatten)]
    discriminator: DiscriminatorFlag,
    #[command(flatten)]
    output: ResultOutputFlags,
    #[command(flatten)]
    store: StoreFlags,
}

pub(super) async fn run(
    command: Deploy,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Deploy { deployment, confirm, force, run, discriminator, output, store } = command;
    if confirm.asks() {
        prompt::require_terminal(environment)?;
    }
    let discriminator = discriminator.discriminator.as_deref();
    let operation =
        Operation::start(&deployment, discriminator, environment, report, &cancel).await?;
    let options = force.options(confirm.dry_run, Some(run), DiffOptions::default());
    Box::pin(execute(operation, confirm, &options, &output, &store)).await
}

/// Prepares a target, asks if that is needed, and deploys it.
pub(super) async fn execute(
    mut operation: Operation<'_>,
    confirm: ConfirmFlags,
    options: &DeployOptions,
    output: &ResultOutputFlags,
    store: &StoreFlags,
) -> Result<(), Failure> {
    let prepared = operation.prepare().await?;
    if confirm.asks() {
        let preview = DeployOptions { dry_run: true, ..options.clone() };
        let info = operation.info(output.no_obfuscate);
        let session = operation.session(&info);
        let result = engine::deploy(&session, &prepared.desired, &preview).await;
        let question = if result.errors.is_empty() {
            "The diff succeeded, do you want to proceed?"
        } else {
            "The diff resulted in errors, do you still want to proceed?"
        };
        to_stderr(&operation.preview(result, output));
        let Operation { environment, report, cancel, .. } = &operation;
        prompt::confirm(question, environment, *report, cancel).await?;
    }
    let info = operation.info(output.no_obfuscate);
    let result = engine::deploy(&operation.session(&info), &prepared.desired, options).await;
    operation.conclude(result, output, Some(store)).await
}
