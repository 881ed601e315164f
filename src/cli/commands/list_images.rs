//! `kluctl list-images`

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{DeploymentFlags, OfflineFlags, OutputFlags},
        output, rendered, session,
    },
    yaml,
};

/// Lists the images that `images.get_image` was asked for, and what they were resolved to.
///
/// The output is accepted by --fixed-images-file.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListImages {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
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
    let ListImages { deployment, offline, output, simple } = command;
    let prepared =
        session::prepare(&deployment, &offline, None, environment, report, &cancel).await?;
    if let Some(dir) = &deployment.render_output_dir {
        rendered::write(&prepared, &environment.path(dir))?;
    }
    let images = prepared.desired.images.iter().map(|found| {
        if simple {
            json!({"image": found.image, "resultImage": found.result_image})
        } else {
            json!(found)
        }
    });
    let images: Vec<Value> = images.collect();
    let list = if images.is_empty() { json!({}) } else { json!({"images": images}) };
    Ok(output::to_files(environment, &output.output, &yaml::emit(&list))?)
}
