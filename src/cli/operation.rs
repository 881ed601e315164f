//! What the commands that work on a cluster have in common: the target, its cluster, the run and its result.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Environment, Failure, Report,
    environment::{now, random_id},
    flags::{DeploymentFlags, OutputFormat, ResultOutput, ResultOutputFlags, StoreFlags},
    output,
    progress::{Display, Progress},
    rendered,
    result_text::{self, Style},
    session,
    summary::summary,
};
use crate::{
    cluster::Cluster,
    diagnostic::{Class, Diagnostic},
    engine::{Engine, PrepareRequest, Prepared, ResolvedTarget, Session},
    project::Target,
    results::{CommandInfo, CommandResult, GitInfo, ProjectKey, ResultStore, RunInfo},
    secret::SecretTexts,
    yaml,
};

/// How long storing a result may take.
const STORE: Duration = Duration::from_secs(30);
/// How long it may take after the command was interrupted.
const STORE_INTERRUPTED: Duration = Duration::from_millis(400);

/// A command on a target whose cluster is connected.
pub(super) struct Operation<'a> {
    pub(super) flags: &'a DeploymentFlags,
    pub(super) environment: &'a Environment,
    pub(super) report: Report,
    pub(super) cancel: &'a CancellationToken,
    pub(super) progress: Progress,
    pub(super) cluster: Cluster,
    pub(super) target: Target,
    engine: Engine,
    request: PrepareRequest,
    resolved: ResolvedTarget,
    started: Timestamp,
    clock: Instant,
    /// The repository that the project is in, as soon as it is known.
    origin: Option<JoinHandle<(ProjectKey, GitInfo)>>,
    /// What sensitive variables hold.
    masked: SecretTexts,
}

impl<'a> Operation<'a> {
    /// Resolves the target and connects to its cluster.
    ///
    /// # Errors
    /// When the target cannot be resolved, or there is no cluster.
    pub(super) async fn start(
        flags: &'a DeploymentFlags,
        discriminator: Option<&str>,
        environment: &'a Environment,
        report: Report,
        cancel: &'a CancellationToken,
    ) -> Result<Self, Failure> {
        let request = session::request(flags, discriminator, environment, report)?;
        let mut operation = Self::of_request(flags, request, environment, report, cancel).await?;
        let (project, environment) = (flags.project.clone(), environment.clone());
        let origin = move || session::origin(&project, &environment);
        operation.origin = Some(tokio::task::spawn_blocking(origin));
        Ok(operation)
    }

    /// As [`Operation::start`], for a project that is not on disk.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn of_request(
        flags: &'a DeploymentFlags,
        request: PrepareRequest,
        environment: &'a Environment,
        report: Report,
        cancel: &'a CancellationToken,
    ) -> Result<Self, Failure> {
        let started = now();
        let engine = session::engine();
        let mut resolved = engine.resolve_target(&request, cancel).await?;
        let cluster = session::connect(flags, &mut resolved, environment, report).await?;
        Ok(Self {
            flags,
            environment,
            report,
            cancel,
            progress: Progress::new(report),
            cluster: cluster.ok_or_else(no_cluster)?,
            target: resolved.target.clone(),
            engine,
            request,
            resolved,
            started,
            clock: Instant::now(),
            origin: None,
            masked: SecretTexts::default(),
        })
    }

    /// Renders the target, and writes the files if they are wanted.
    ///
    /// # Errors
    /// All problems of the stage that fails.
    pub(super) async fn prepare(&mut self) -> Result<Prepared, Failure> {
        let Self { flags, environment, cancel, .. } = self;
        let externals = session::externals(flags, environment, Some(&self.cluster), cancel).await?;
        self.masked = externals.masked.clone();
        let resolved = ResolvedTarget {
            project: self.resolved.project.clone(),
            target: self.resolved.target.clone(),
        };
        let prepared = self
            .engine
            .prepare_target(&self.request, resolved, &externals, &self.progress, cancel)
            .await
            .map_err(|error| session::masked_failure(&error, &self.masked))?;
        if let Some(dir) = &flags.render_output_dir {
            rendered::write(&prepared, &environment.path(dir))?;
        }
        Ok(prepared)
    }

    /// What a run knows about itself.
    pub(super) fn info(&self, show_secrets: bool) -> RunInfo {
        let wanted = &self.request.target;
        RunInfo {
            id: random_id(),
            started: self.started,
            target: self.target.to_value(),
            target_name: self.target.name.clone(),
            command: CommandInfo {
                target: wanted.name.clone().unwrap_or_default(),
                target_name_override: wanted.name_override.clone().unwrap_or_default(),
                context_override: wanted.context.clone().unwrap_or_default(),
                args: Some(wanted.args.clone()),
                images: wanted.images.clone(),
                ..CommandInfo::default()
            },
            show_secrets,
            ..RunInfo::default()
        }
    }

    /// The session of a run.
    pub(super) fn session<'s>(&'s self, info: &'s RunInfo) -> Session<'s> {
        Session {
            cluster: &self.cluster,
            info,
            observer: &self.progress,
            cancel: self.cancel,
            timeout: None,
        }
    }

    /// Stores a result and writes it wherever it is wanted.
    ///
    /// # Errors
    /// When it cannot be written, and when there are errors in it. That it cannot be stored is a warning.
    pub(super) async fn conclude(
        &mut self,
        mut result: CommandResult,
        flags: &ResultOutputFlags,
        store: Option<&StoreFlags>,
    ) -> Result<(), Failure> {
        if let Some(origin) = self.origin.take()
            && let Ok((project, info)) = origin.await
        {
            (result.project_key, result.git_info) = (project, info);
        }
        self.mask(&mut result, flags);
        if let Some(store) = store.filter(|store| store.stores(result.command.dry_run)) {
            self.store(&result, store).await;
        }
        for wanted in &flags.output_format {
            let text = match wanted.format {
                OutputFormat::Text => {
                    result_text::text(&result, self.style(wanted, flags.short_output))
                }
                OutputFormat::Yaml => yaml::emit(&result.compacted()),
                OutputFormat::Json => json(&result),
            };
            output::to_files(self.environment, std::slice::from_ref(&wanted.file), &text)?;
        }
        if self.report.display != Display::Quiet {
            let took = self.clock.elapsed();
            output::to_stderr(&summary(&result, &self.progress.stages(), took));
        }
        if result.errors.is_empty() { Ok(()) } else { Err(Failure::Shown) }
    }

    /// Stores a result; whatever goes wrong is a warning on standard error.
    async fn store(&self, result: &CommandResult, flags: &StoreFlags) {
        let warn = |message: &str| output::to_stderr(&self.report.warning(message));
        let store = ResultStore {
            cluster: &self.cluster,
            namespace: &flags.command_result_namespace,
            keep: flags.keep_command_results_count,
        };
        let limit = if result.interrupted { STORE_INTERRUPTED } else { STORE };
        let problem = match tokio::time::timeout(limit, store.write_command(result)).await {
            Ok(Ok(stored)) => {
                if let Some(loss) = stored.completeness.loss() {
                    warn(&format!(
                        "the result is too large to be stored completely: it is stored {loss}"
                    ));
                }
                stored.remaining.iter().for_each(|remaining| warn(remaining));
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not written within {} s", limit.as_secs_f32()),
        };
        let hint = "--write-command-result=false leaves it out";
        warn(&format!("the result is not stored: {}; {hint}", self.masked.mask(&problem)));
    }

    /// How text for `wanted` looks: coloured on a terminal only.
    pub(super) fn style(&self, wanted: &ResultOutput, short: bool) -> Style {
        let is_shown = self.environment.shows_results && wanted.file.as_os_str() == "-";
        Style {
            short,
            width: self.environment.terminal_width(),
            colour: is_shown && self.report.allows_colour,
        }
    }

    /// Text of a result for standard error.
    pub(super) fn preview(&self, mut result: CommandResult, flags: &ResultOutputFlags) -> String {
        self.mask(&mut result, flags);
        let (short, width) = (flags.short_output, self.environment.terminal_width());
        result_text::text(&result, Style { short, width, colour: self.report.colour })
    }

    fn mask(&self, result: &mut CommandResult, flags: &ResultOutputFlags) {
        if !flags.no_obfuscate {
            result.mask(|text| self.masked.mask(text));
        }
    }
}

/// A value as indented JSON.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    format!("{value:#}\n")
}

fn no_cluster() -> Diagnostic {
    Diagnostic::new(Class::Access, "there is no cluster to work on")
        .with_hint("give a kubeconfig with --kubeconfig or KUBECONFIG")
}
