//! `kluctl list-images`

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::render::prepare;
use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{
            ArgumentFlags, ClusterFlags, ImageFlags, InclusionFlags, OfflineFlags, OutputFlags,
            ProjectFlags, TargetFlags,
        },
        output,
        session::Selection,
    },
    yaml,
};

/// Lists the images that `images.get_image` was asked for, and what they were resolved to.
///
/// The output is accepted by --fixed-images-file.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListImages {
    #[command(flatten)]
    pub(in crate::cli) project: ProjectFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    target: TargetFlags,
    #[command(flatten)]
    arguments: ArgumentFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    inclusion: InclusionFlags,
    #[command(flatten)]
    offline: OfflineFlags,
    #[command(flatten)]
    output: OutputFlags,

    /// Only images and what they were resolved to
    #[arg(long, help_heading = "Misc arguments")]
    simple: bool,
}

pub(super) async fn run(
    command: ListImages,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let selection = Selection {
        project: &command.project,
        target: &command.target,
        arguments: &command.arguments,
        images: &command.images,
        inclusion: &command.inclusion,
        discriminator: None,
    };
    let cluster = (!command.offline.offline_kubernetes).then_some(&command.cluster);
    let prepared = prepare(&selection, cluster, environment, report, &cancel).await?;
    let images: Vec<Value> = prepared
        .desired
        .images
        .iter()
        .map(|found| {
            if command.simple {
                json!({"image": found.image, "resultImage": found.result_image})
            } else {
                json!(found)
            }
        })
        .collect();
    let list = if images.is_empty() { json!({}) } else { json!({"images": images}) };
    Ok(output::to_files(environment, &command.output.output, &yaml::emit(&list))?)
}
