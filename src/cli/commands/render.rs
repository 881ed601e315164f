//! `kluctl render`

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        environment::write_private_file,
        flags::{
            ArgumentFlags, ClusterFlags, ImageFlags, InclusionFlags, OfflineFlags, ProjectFlags,
            TargetFlags,
        },
        output,
        progress::Progress,
        session::{self, Selection},
    },
    diagnostic::{Class, Diagnostic},
    engine::Prepared,
    yaml,
};

/// Renders a target: templates, includes, kustomize, labels and annotations.
///
/// With a kubeconfig, variables are read from the cluster, and objects get the namespaces that their scopes ask for.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Render {
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

    /// Discriminator, instead of the target's
    #[arg(long, value_name = "TEXT", help_heading = "Misc arguments")]
    discriminator: Option<String>,

    /// Print all objects to standard output, instead of writing files
    #[arg(long, help_heading = "Misc arguments")]
    print_all: bool,

    /// Write rendered files to this directory
    #[arg(long = "render-output-dir", value_name = "DIR", help_heading = "Misc arguments")]
    output_dir: Option<PathBuf>,
}

#[cfg(test)]
impl Render {
    /// The images given by `--fixed-image`.
    pub(in crate::cli) fn pinned_images(
        &self,
    ) -> Result<Vec<crate::schema::FixedImage>, Diagnostic> {
        self.images.pinned()
    }
}

pub(super) async fn run(
    command: Render,
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
        discriminator: command.discriminator.as_deref(),
    };
    let cluster = (!command.offline.offline_kubernetes).then_some(&command.cluster);
    let prepared = prepare(&selection, cluster, environment, report, &cancel).await?;
    let render_dir = command.output_dir.map(|dir| environment.path(&dir));
    if command.print_all {
        if let Some(dir) = render_dir {
            write_rendered(&prepared, &dir)?;
        }
        let objects = prepared.desired.objects().map(|object| object.value());
        return Ok(output::to_stdout(&yaml::emit_documents(objects))?);
    }
    let dir = match render_dir {
        Some(dir) => dir,
        None => temporary_dir()?,
    };
    write_rendered(&prepared, &dir)?;
    output::to_stderr(&format!("Rendered into {}\n", dir.display()));
    Ok(())
}

/// A new directory that stays when the command has ended.
fn temporary_dir() -> Result<PathBuf, Diagnostic> {
    let dir = tempfile::Builder::new().prefix("kluctl-render-").tempdir().map_err(|error| {
        Diagnostic::new(Class::Internal, "no temporary directory can be made").with_cause(&error)
    })?;
    Ok(dir.keep())
}

/// Resolves the target, connects to its cluster unless offline, and prepares the deployment.
pub(super) async fn prepare(
    selection: &Selection<'_>,
    cluster: Option<&ClusterFlags>,
    environment: &Environment,
    report: Report,
    cancel: &CancellationToken,
) -> Result<Prepared, Failure> {
    let request = selection.request(environment, report)?;
    let engine = session::engine();
    let mut resolved = engine.resolve_target(&request, cancel).await?;
    let cluster = if let Some(flags) = cluster {
        session::connect(flags, selection.target, &mut resolved, environment, report).await?
    } else {
        resolved.target.set_context("");
        None
    };
    let externals = session::externals(environment, cluster.as_ref(), cancel).await?;
    let progress = Progress::new(report);
    let prepared = engine.prepare_target(&request, resolved, &externals, &progress, cancel).await?;
    Ok(prepared)
}

/// Writes the files of each item, and its objects as `.rendered.yml`, to `<dir>/<source>/<item>`.
fn write_rendered(prepared: &Prepared, dir: &std::path::Path) -> Result<(), Diagnostic> {
    for item in &prepared.rendered_files {
        let item_dir = dir.join(item.source.to_string()).join(&item.render_dir);
        for (path, content) in item.files.files() {
            let below = path.strip_prefix(&item.dir).unwrap_or(path).trim_start_matches('/');
            write_private_file(&item_dir.join(below), content)?;
        }
        let objects = prepared.desired.items[item.index].objects.iter();
        let text = yaml::emit_documents(objects.map(|object| object.value()));
        write_private_file(&item_dir.join(".rendered.yml"), text.as_bytes())?;
    }
    Ok(())
}
