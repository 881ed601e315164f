//! What the commands have in common: a runtime with a deadline, the project, the target, the cluster.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kube::config::Kubeconfig;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{
    Environment, Failure, Report,
    environment::{now, read_file},
    flags::{ArgumentFlags, ClusterFlags, DeploymentFlags, ImageFlags, OfflineFlags, ProjectFlags},
    git::CommandLineGit,
    helm, output,
    overrides::Overrides,
    progress::Progress,
};
use crate::{
    cluster::{
        Cluster, ClusterOptions,
        connect::{Clients, ConnectOptions},
        kubeconfig::{Access, Contexts, Guards},
    },
    diagnostic::{Class, Describe, Diagnostic},
    engine::{
        ConfigFile, Engine, EngineError, Externals, HttpVars, Limits, PrepareRequest, Prepared,
        ResolvedTarget, Source,
    },
    git::WorkTree,
    jinja,
    net::Reach,
    project::{TargetRequest, args},
    results::{GitInfo, ProjectKey},
    schema::{FixedImage, FixedImages, Violations},
    secret::SecretTexts,
    tree::SourceTree,
    vars::GitSource,
    yaml::{self, Schema},
};

/// How long a command may go on after SIGINT or SIGTERM.
const AFTER_SIGNAL: Duration = Duration::from_millis(900);
/// How long a command may go on after its time is over.
const AFTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the async part of a command until it ends, the user interrupts it, or `timeout` is over; the last two cancel the
/// token that `work` is given, and wait for it to wind up.
pub(super) fn run<F>(
    timeout: Duration,
    work: impl FnOnce(CancellationToken) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let runtime = super::runtime::runtime()?;
    let result = runtime.block_on(async {
        let cancel = CancellationToken::new();
        let watch = cancel.clone();
        let why = interruption(timeout);
        let work = work(cancel);
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => result,
            (why, grace) = why => {
                watch.cancel();
                // What is under way gets a moment to end in order, and to tell how far it got.
                match tokio::time::timeout(grace, work).await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(shown @ (Failure::Shown | Failure::Told))) => Err(shown),
                    _ => Err(Diagnostic::new(Class::Cancelled, why).into()),
                }
            }
        }
    });
    // Rendering that nobody waits for any more, and a question that nobody answers, must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(50));
    result
}

/// Returns when the command has to end: why, and how long it may take to do so.
async fn interruption(timeout: Duration) -> (String, Duration) {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await,
            // Then the process ends as it does by default.
            Err(_) => std::future::pending().await,
        }
    };
    let interrupted = "the command was interrupted".to_owned();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (interrupted, AFTER_SIGNAL),
        _ = terminate => (interrupted, AFTER_SIGNAL),
        () = tokio::time::sleep(timeout) => {
            let why = format!("the command took longer than {}s (see --timeout)", timeout.as_secs());
            (why, AFTER_TIMEOUT)
        }
    }
}

/// An engine for this machine.
pub(super) fn engine() -> Engine {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Engine::new(Limits::for_cores(cores))
}

/// The request for the engine.
pub(super) fn request(
    flags: &DeploymentFlags,
    discriminator: Option<&str>,
    environment: &Environment,
    report: Report,
) -> Result<PrepareRequest, Diagnostic> {
    check_overrides(flags, environment)?;
    let target = &flags.target;
    Ok(PrepareRequest {
        source: source(&flags.project, environment, report)?,
        target: TargetRequest {
            name: target.target.clone(),
            name_override: target.target_name_override.clone(),
            args: external_args(&flags.arguments, environment)?,
            discriminator: discriminator.map(str::to_owned),
            images: fixed_images(&flags.images, environment)?,
            context: target.context.clone(),
        },
        inclusion: flags.inclusion.inclusion()?,
        jinja: template_options(),
    })
}

/// Checks overrides that nothing uses yet.
fn check_overrides(flags: &DeploymentFlags, environment: &Environment) -> Result<(), Diagnostic> {
    let project = &flags.project;
    let (single, groups) = (&project.local_oci_override, &project.local_oci_group_override);
    Overrides::parse("oci", single, groups, environment).map(|_| ())
}

/// Resolves the target, connects to its cluster unless offline, and prepares the deployment.
pub(super) async fn prepare(
    flags: &DeploymentFlags,
    offline: &OfflineFlags,
    discriminator: Option<&str>,
    environment: &Environment,
    report: Report,
    cancel: &CancellationToken,
) -> Result<Prepared, Failure> {
    let request = request(flags, discriminator, environment, report)?;
    let engine = engine();
    let mut resolved = engine.resolve_target(&request, cancel).await?;
    let cluster = if offline.offline_kubernetes {
        resolved.target.set_context("");
        None
    } else {
        connect(flags, &mut resolved, environment, report).await?
    };
    let mut externals = externals(flags, environment, cluster.as_ref(), cancel).await?;
    if let Some(charts) = &mut externals.helm {
        charts.kube_version = offline.version()?;
    }
    let progress = Progress::new(report);
    let prepared = engine.prepare_target(&request, resolved, &externals, &progress, cancel).await;
    prepared.map_err(|error| masked_failure(&error, &externals.masked))
}

/// The problems of a preparation without anything that sensitive variables hold.
pub(super) fn masked_failure(error: &EngineError, secrets: &SecretTexts) -> Failure {
    Failure::Problems(error.masked_diagnostics(secrets))
}

/// Settings of the template engine for a command at a terminal.
pub(super) fn template_options() -> jinja::Options {
    let mut options = jinja::Options::new(now());
    options.debug = Some(Arc::new(|message: &str| output::to_stderr(&format!("{message}\n"))));
    options
}

/// The project's source: the Git work tree around the project directory, else the directory itself.
pub(super) fn source(
    flags: &ProjectFlags,
    environment: &Environment,
    report: Report,
) -> Result<Source, Diagnostic> {
    let given = flags.project_dir.as_deref().unwrap_or(Path::new("."));
    let fail = |what: &str| {
        let message = format!("project directory {} {what}", given.display());
        Diagnostic::new(Class::Project, message)
    };
    let project_dir = environment.path(given).canonicalize().map_err(|_| fail("does not exist"))?;
    if !project_dir.is_dir() {
        return Err(fail("is not a directory"));
    }
    let root = work_tree_of(&project_dir);
    if root.is_none() {
        output::to_stderr(&report.warning(
            "the project is not in a Git work tree; its directory is taken as the source root",
        ));
    }
    let root = root.unwrap_or(&project_dir);
    let below = project_dir.strip_prefix(root).unwrap_or(Path::new(""));
    let project_dir =
        below.to_str().ok_or_else(|| fail("has a name that is not UTF-8"))?.to_owned();
    let tree: Arc<dyn SourceTree> = Arc::new(
        WorkTree::new(root).map_err(|error| Diagnostic::new(Class::Project, error.to_string()))?,
    );
    let Some(config) = &flags.project_config else {
        return Ok(Source { tree, project_dir, config_file: None });
    };
    let content = read_file(&environment.path(config))?;
    let file = ConfigFile { name: config.display().to_string(), content };
    Ok(Source { tree, project_dir, config_file: Some(file) })
}

/// The root of the Git work tree that a directory is in.
fn work_tree_of(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").exists())
}

/// The repository that the project is in, as results name it.
pub(super) fn origin(flags: &ProjectFlags, environment: &Environment) -> (ProjectKey, GitInfo) {
    let given = flags.project_dir.as_deref().unwrap_or(Path::new("."));
    let Ok(project_dir) = environment.path(given).canonicalize() else { return Default::default() };
    let Some(root) = work_tree_of(&project_dir) else { return Default::default() };
    let origin = WorkTree::origin(root);
    let sub_dir = project_dir.strip_prefix(root).unwrap_or(Path::new(""));
    let sub_dir = sub_dir.to_string_lossy().into_owned();
    let repo_key = origin.url.as_ref().map(|url| format!("git://{}", url.key()));
    let project = ProjectKey { repo_key: repo_key.unwrap_or_default(), sub_dir: sub_dir.clone() };
    let info = GitInfo {
        url: origin.url.map(|url| url.without_user()),
        reference: origin.branch.map(|branch| serde_json::json!({"branch": branch})),
        sub_dir,
        commit: origin.commit.unwrap_or_default(),
        dirty: origin.is_dirty,
    };
    (project, info)
}

/// Arguments from the command line, and those from files over them.
fn external_args(
    flags: &ArgumentFlags,
    environment: &Environment,
) -> Result<serde_json::Value, Diagnostic> {
    let mut load =
        |path: &str| read_file(&environment.path(Path::new(path))).map_err(|error| error.message);
    let given = flags.arg.iter().map(String::as_str);
    let given = args::parse(given, Some(&mut load)).map_err(|error| error.describe())?;
    let mut files = Vec::new();
    for path in &flags.args_from_file {
        let content = read_file(&environment.path(path))?;
        let shown = path.display().to_string();
        files.push(args::parse_file(&shown, &content).map_err(|error| error.describe())?);
    }
    Ok(args::external(given, files))
}

/// Fixed images from the file, then those from flags, which win.
fn fixed_images(
    flags: &ImageFlags,
    environment: &Environment,
) -> Result<Vec<FixedImage>, Diagnostic> {
    let mut images = Vec::new();
    if let Some(path) = &flags.fixed_images_file {
        let shown = path.display().to_string();
        let text = read_file(&environment.path(path))?;
        let document = yaml::parse_document(&shown, &text, Schema::Config)
            .map_err(|error| error.describe())?;
        let file: FixedImages =
            yaml::from_document(&shown, &document).map_err(|error| error.describe())?;
        let mut violations = Violations::default();
        file.check(&mut violations);
        if let Some(violation) = violations.into_vec().into_iter().next() {
            let position = document.positions.of(&violation.path);
            let at = crate::diagnostic::SourceLocation { file: shown, position };
            return Err(Diagnostic::new(Class::Project, violation.message)
                .with_location(at)
                .with_field(violation.path.to_string())
                .with_expected(violation.expected));
        }
        images.extend(file.images);
    }
    images.extend(flags.pinned()?);
    Ok(images)
}

/// The target cluster, and the target with the context that is really used. Without any kubeconfig, and when no context is
/// asked for, there is a warning and no cluster.
pub(super) async fn connect(
    flags: &DeploymentFlags,
    resolved: &mut ResolvedTarget,
    environment: &Environment,
    report: Report,
) -> Result<Option<Cluster>, Diagnostic> {
    let wanted = flags.target.context.clone().or_else(|| resolved.target.context.clone());
    let wanted = wanted.filter(|context| !context.is_empty());
    let Some(config) = kubeconfig(&flags.cluster, environment)? else {
        if let Some(context) = wanted {
            let message = format!("there is no kubeconfig, so context {context:?} does not exist");
            return Err(Diagnostic::new(Class::Access, message).with_hint(
                "give one with --kubeconfig or KUBECONFIG, or use --offline-kubernetes",
            ));
        }
        output::to_stderr(&report.warning(
            "no valid kubeconfig, so there is no access to a cluster; commands that need one will fail",
        ));
        resolved.target.set_context("");
        return Ok(None);
    };
    let context = wanted.or_else(|| config.current_context.clone());
    let access = Contexts::from_loaded(config, Guards::NONE)
        .and_then(|contexts| contexts.select(context.as_deref()))
        .map_err(|error| error.describe())?;
    let Access::Kubeconfig { context, .. } = &access else {
        return Err(Diagnostic::new(Class::Access, "the kubeconfig has no context"));
    };
    resolved.target.set_context(context);
    let options = ConnectOptions { proxies: environment.proxies()?, ..ConnectOptions::default() };
    let clients =
        Clients::new(kube::Config::new(http::Uri::from_static("http://localhost")), options);
    let client = clients.get(&access, None).await.map_err(|error| error.describe())?;
    Ok(Some(Cluster::new(client, ClusterOptions::default())))
}

/// The kubeconfig that the flag, `KUBECONFIG` or the home directory names, merged; `None` when there is none.
fn kubeconfig(
    flags: &ClusterFlags,
    environment: &Environment,
) -> Result<Option<Kubeconfig>, Diagnostic> {
    let invalid = |path: &Path, error: &kube::config::KubeconfigError| {
        let message = format!("kubeconfig {} cannot be used: {error}", path.display());
        Diagnostic::new(Class::Access, message)
    };
    if let Some(path) = &flags.kubeconfig {
        let path = environment.path(path);
        return Kubeconfig::read_from(&path).map(Some).map_err(|error| invalid(&path, &error));
    }
    let paths: Vec<PathBuf> = match environment.get("KUBECONFIG") {
        Some(list) => {
            std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect()
        }
        None => environment
            .get("HOME")
            .map(|home| Path::new(home).join(".kube/config"))
            .into_iter()
            .collect(),
    };
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().map(|path| environment.path(path)).filter(|path| path.exists()) {
        let config = Kubeconfig::read_from(&path).map_err(|error| invalid(&path, &error))?;
        merged = Some(match merged {
            None => config,
            Some(first) => first.merge(config).map_err(|error| invalid(&path, &error))?,
        });
    }
    Ok(merged.filter(|config| !config.contexts.is_empty()))
}

/// What the engine may talk to.
pub(super) async fn externals(
    flags: &DeploymentFlags,
    environment: &Environment,
    cluster: Option<&Cluster>,
    cancel: &CancellationToken,
) -> Result<Externals, Diagnostic> {
    let git: Arc<dyn GitSource> = {
        let (git, project) = (&flags.git, &flags.project);
        Arc::new(CommandLineGit::new(git, project, environment, cancel.clone())?)
    };
    let charts = helm::charts(&flags.helm, &flags.registry, &git, environment, cancel)?;
    let externals = Externals {
        git: Some(git),
        http: Some(Arc::new(HttpVars::new(
            environment.proxies()?,
            Reach::Anywhere,
            cancel.clone(),
        )?)),
        helm: Some(charts),
        downloads: Some(Arc::new(HttpVars::following(
            environment.proxies()?,
            Reach::Anywhere,
            cancel.clone(),
        )?)),
        environment: Arc::new(environment.variables.clone()),
        ..Externals::default()
    };
    match cluster {
        Some(cluster) => externals.with_cluster(cluster).await,
        None => Ok(externals),
    }
}
