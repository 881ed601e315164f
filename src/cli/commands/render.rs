//! `kluctl render`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{DeploymentFlags, OfflineFlags},
        output, rendered, session,
    },
    deployment::DesiredState,
    diagnostic::Diagnostic,
    engine::Prepared,
    yaml,
};

/// Renders a target: templates, includes, kustomize, labels and annotations.
///
/// With a kubeconfig, variables are read from the cluster, and objects get the namespaces that their scopes ask for.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Render {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    offline: OfflineFlags,

    /// Discriminator, instead of the target's
    #[arg(long, value_name = "TEXT", help_heading = "Misc arguments")]
    discriminator: Option<String>,

    /// Print all objects to standard output, instead of writing files
    #[arg(long, help_heading = "Misc arguments")]
    print_all: bool,
}

#[cfg(test)]
impl Render {
    /// The images given by `--fixed-image`.
    pub(in crate::cli) fn pinned_images(
        &self,
    ) -> Result<Vec<crate::schema::FixedImage>, crate::diagnostic::Diagnostic> {
        self.deployment.images.pinned()
    }
}

pub(super) async fn run(
    command: Render,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let Render { deployment, offline, discriminator, print_all } = command;
    let discriminator = discriminator.as_deref();
    let prepared =
        session::prepare(&deployment, &offline, discriminator, environment, report, &cancel)
            .await?;
    let dir = deployment.render_output_dir.map(|dir| environment.path(&dir));
    if print_all {
        if let Some(dir) = dir {
            rendered::write(&prepared, &dir)?;
        }
        print(&prepared.desired)?;
        keep_until_the_end(prepared);
        return Ok(());
    }
    let dir = match dir {
        Some(dir) => dir,
        None => rendered::temporary_dir()?,
    };
    rendered::write(&prepared, &dir)?;
    output::to_stderr(&format!("Rendered into {}\n", dir.display()));
    keep_until_the_end(prepared);
    Ok(())
}

/// Prints all objects as documents, some at a time: together they can be much text.
fn print(desired: &DesiredState) -> Result<(), Diagnostic> {
    let mut text = String::new();
    for (index, object) in desired.objects().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        text.push_str(&yaml::emit(object.value()));
        if text.len() > 1 << 16 {
            output::to_stdout(&text)?;
            text.clear();
        }
    }
    output::to_stdout(&text)
}

/// The process ends next. Giving the memory of all objects back piece by piece would take a tenth of its time.
fn keep_until_the_end(prepared: Prepared) {
    std::mem::forget(prepared);
}
