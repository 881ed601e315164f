//! `kluctl deploy`

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, Report,
        environment::{now, random_id},
        flags::{ApplyFlags, DeploymentFlags, OutputFormat, ResultOutputFlags},
        output,
        progress::Progress,
        prompt, rendered, result_text, session,
    },
    cluster::Cluster,
    diagnostic::{Class, Diagnostic},
    engine::{self, DeployOptions, PrepareRequest, Prepared, Session},
    results::{CommandInfo, CommandResult, RunInfo},
    yaml,
};

/// Renders a target and applies its objects, item by item, waiting at barriers and for hooks and readiness.
///
/// Without --yes or --dry-run, the changes are shown first, and a question is asked.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Deploy {
    #[command(flatten)]
    pub(in crate::cli) deployment: DeploymentFlags,
    #[command(flatten)]
    apply: ApplyFlags,
    #[command(flatten)]
    output: ResultOutputFlags,
}

pub(super) async fn run(
    command: Deploy,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let deployment = &command.deployment;
    let discriminator = command.apply.discriminator.as_deref();
    let request = session::request(deployment, discriminator, environment, report)?;
    let engine = session::engine();
    let mut resolved = engine.resolve_target(&request, &cancel).await?;
    let cluster = session::connect(deployment, &mut resolved, environment, report).await?;
    let cluster = cluster.ok_or_else(no_cluster)?;
    let externals = session::externals(deployment, environment, Some(&cluster), &cancel).await?;
    let progress = Progress::new(report);
    let prepared =
        engine.prepare_target(&request, resolved, &externals, &progress, &cancel).await?;
    if let Some(dir) = &deployment.render_output_dir {
        rendered::write(&prepared, &environment.path(dir))?;
    }
    let run = Run { request: &request, prepared: &prepared, cluster: &cluster, cancel: &cancel };
    let options = command.apply.options();
    let width = environment.terminal_width();
    if !command.apply.yes && !options.dry_run {
        let preview = DeployOptions { dry_run: true, ..options.clone() };
        let result = run.deploy(&preview, &progress).await;
        output::to_stdout(&result_text::text(&result, command.output.short_output, width))?;
        let question = if result.errors.is_empty() {
            "The diff succeeded, do you want to proceed?"
        } else {
            "The diff resulted in errors, do you still want to proceed?"
        };
        if !prompt::confirm(question, report) {
            return Err(Diagnostic::new(Class::Cancelled, "aborted").into());
        }
    }
    let result = run.deploy(&options, &progress).await;
    for wanted in &command.output.output_format {
        let text = match wanted.format {
            OutputFormat::Text => result_text::text(&result, command.output.short_output, width),
            OutputFormat::Yaml => yaml::emit(&serde_json::to_value(&result).unwrap_or_default()),
        };
        output::to_files(environment, std::slice::from_ref(&wanted.file), &text)?;
    }
    if result.errors.is_empty() { Ok(()) } else { Err(Failure::Shown) }
}

fn no_cluster() -> Diagnostic {
    Diagnostic::new(Class::Access, "there is no cluster to deploy to")
        .with_hint("give a kubeconfig with --kubeconfig or KUBECONFIG")
}

/// What the preview and the real run have in common.
struct Run<'a> {
    request: &'a PrepareRequest,
    prepared: &'a Prepared,
    cluster: &'a Cluster,
    cancel: &'a CancellationToken,
}

impl Run<'_> {
    async fn deploy(&self, options: &DeployOptions, progress: &Progress) -> CommandResult {
        let target = &self.prepared.target;
        let wanted = &self.request.target;
        let info = RunInfo {
            id: random_id(),
            started: now(),
            target: target.to_value(),
            target_name: target.name.clone(),
            command: CommandInfo {
                target: wanted.name.clone().unwrap_or_default(),
                target_name_override: wanted.name_override.clone().unwrap_or_default(),
                context_override: wanted.context.clone().unwrap_or_default(),
                args: Some(wanted.args.clone()),
                images: wanted.images.clone(),
                ..CommandInfo::default()
            },
            ..RunInfo::default()
        };
        let session = Session {
            cluster: self.cluster,
            info: &info,
            observer: progress,
            cancel: self.cancel,
            timeout: None,
        };
        engine::deploy(&session, &self.prepared.desired, options).await
    }
}
