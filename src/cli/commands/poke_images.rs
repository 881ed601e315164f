//! `kluctl poke-images`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{ConfirmFlags, DeploymentFlags, ResultOutputFlags, StoreFlags},
        operation::Operation,
        prompt,
    },
    engine,
};

/// Replaces images in what is deployed, and nothing else.
///
/// The target is rendered completely. Then the images that `images.get_image` resolved to are put into the containers of the
/// deployed objects, which are otherwise left as they are.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct PokeImages {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: ResultOutputFlags,
    #[command(flatten)]
    store: StoreFlags,
}

pub(super) async fn run(
    command: PokeImages,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let PokeImages { deployment, confirm, output, store } = command;
    if confirm.asks() {
        prompt::require_terminal(environment)?;
    }
    let mut operation = Operation::start(&deployment, None, environment, report, &cancel).await?;
    let prepared = operation.prepare().await?;
    if confirm.asks() {
        let context = operation.target.context.as_deref().unwrap_or_default();
        let question =
            format!("Do you really want to poke images to the context/cluster {context}?");
        prompt::confirm(&question, environment, report, &cancel).await?;
    }
    let info = operation.info(output.no_obfuscate);
    let session = operation.session(&info);
    let result = engine::poke_images(&session, &prepared.desired, confirm.dry_run).await;
    operation.conclude(result, &output, Some(&store)).await
}
