//! `kluctl controller run`

use std::{path::PathBuf, time::Duration};

use clap::ArgAction;
use reqwest::Url;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Environment, Failure, flags::duration, helm::program},
    cluster::{connect::Own, kubeconfig::Guards},
    controller::{self, ControllerError, Options, parse_address},
    diagnostic::{Class, Describe, Diagnostic},
    net::Reach,
    telemetry::{self, Encoding, Verbosity},
};

/// Reconciles KluctlDeployments: follows their Flux sources, deploys, prunes, validates, reports.
///
/// Flags are named as in kluctl; Flux's names for them work, too.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the operator")]
pub(in crate::cli) struct ControllerRun {
    /// Kubeconfig of the cluster to work in; by default KUBECONFIG, ~/.kube/config, or else the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace to watch; by default all
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Namespace of the controller itself, for its lease; by default `RUNTIME_NAMESPACE`
    #[arg(long, value_name = "NAME")]
    controller_namespace: Option<String>,

    /// With false, watch only the namespace that the controller runs in
    #[arg(
        long,
        action = ArgAction::Set,
        default_value = "true",
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        value_name = "BOOL"
    )]
    watch_all_namespaces: bool,

    /// Reconcile only KluctlDeployments with these labels, for sharding
    #[arg(long, value_name = "SELECTOR")]
    watch_label_selector: Option<String>,

    /// Where to serve metrics; 0 for nowhere
    #[arg(long, visible_alias = "metrics-addr", value_name = "ADDRESS", default_value = ":8080")]
    metrics_bind_address: String,

    /// Where to serve /healthz and /readyz; 0 for nowhere
    #[arg(long, visible_alias = "health-addr", value_name = "ADDRESS", default_value = ":9440")]
    health_probe_bind_address: String,

    /// Address of notification-controller; empty for no events
    #[arg(long, value_name = "URL", default_value = "")]
    events_addr: String,

    /// Elect a leader among replicas
    #[arg(long, visible_alias = "enable-leader-election")]
    leader_elect: bool,

    /// KluctlDeployments that are rendered and applied at the same time
    #[arg(long, visible_alias = "concurrency", value_name = "N", default_value_t = 4)]
    concurrent: usize,

    /// Service account to deploy as where a KluctlDeployment names none
    #[arg(long, value_name = "NAME")]
    default_service_account: Option<String>,

    /// Refuse references into other namespaces
    #[arg(long)]
    no_cross_namespace_refs: bool,

    /// Let `http` variables and remote resources be read from this host, link-local addresses and the cloud's metadata service
    #[arg(long)]
    allow_local_http_vars: bool,

    /// Only pretend changes
    #[arg(long)]
    dry_run: bool,

    /// Pause of KluctlDeployments that wait for a dependency or an artifact
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    requeue_dependency: Duration,

    /// Second attempts at downloading an artifact
    #[arg(long, value_name = "N", default_value_t = 9)]
    http_retry: u32,

    /// Let kubeconfigs from Secrets run programs and read files in the controller's pod
    #[arg(long)]
    insecure_kubeconfig_exec: bool,

    /// Let kubeconfigs from Secrets go without certificate checks
    #[arg(long)]
    insecure_kubeconfig_tls: bool,

    /// Refuse kustomizations that name remote resources
    #[arg(long)]
    no_remote_bases: bool,

    /// By how many percent intervals vary at random
    #[arg(long, value_name = "N", default_value_t = 5)]
    interval_jitter_percentage: u8,

    /// Time for running reconciliations to end after SIGTERM
    #[arg(
        long,
        alias = "graceful-shutdown-timeout",
        value_name = "DURATION",
        value_parser = duration,
        default_value = "45s"
    )]
    grace_period: Duration,

    /// Directory for downloaded artifacts and repositories; by default below `TMPDIR`
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    /// The program that renders Helm charts, instead of `helm` in PATH or beside this program
    #[arg(long, value_name = "FILE")]
    helm_binary: Option<PathBuf>,

    /// trace, debug, info, warn or error
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Verbosity,

    /// json or text
    #[arg(long, value_name = "ENCODING", default_value = "json")]
    log_encoding: Encoding,
}

/// Runs the controller until SIGTERM or SIGINT.
pub(super) fn run(command: ControllerRun, environment: &Environment) -> Result<(), Failure> {
    telemetry::install(command.log_encoding, command.log_level)
        .map_err(|error| Diagnostic::new(Class::Internal, error.to_string()))?;
    let options = options(command, environment)?;
    let internal = |error: std::io::Error| {
        Diagnostic::new(Class::Internal, format!("signals cannot be received: {error}"))
    };
    let runtime = crate::cli::runtime::runtime()?;
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate()).map_err(internal)?;
        let running = controller::run(options, shutdown.clone());
        tokio::pin!(running);
        tokio::select! {
            result = &mut running => return Ok::<_, Diagnostic>(result),
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            _ = tokio::signal::ctrl_c() => tracing::info!("interrupted"),
        }
        shutdown.cancel();
        Ok(running.await)
    })?;
    // Work on the blocking pool that nobody waits for any more must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map_err(|error| Failure::from(describe(&error)))
}

fn options(command: ControllerRun, environment: &Environment) -> Result<Options, Diagnostic> {
    let address = |flag: &str, text: &str| {
        parse_address(text).map_err(|error| Diagnostic::new(Class::Project, error).with_field(flag))
    };
    let metrics_address = address("--metrics-bind-address", &command.metrics_bind_address)?;
    let health_address =
        address("--health-probe-bind-address", &command.health_probe_bind_address)?;
    let events_url = match command.events_addr.trim() {
        "" => None,
        text => Some(events_url(text)?),
    };
    let runtime_namespace = environment.get("RUNTIME_NAMESPACE").map(str::to_owned);
    let controller_namespace = command
        .controller_namespace
        .or_else(|| runtime_namespace.clone())
        .unwrap_or_else(|| "flux-system".to_owned());
    let namespace = command.namespace.filter(|namespace| !namespace.is_empty()).or_else(|| {
        (!command.watch_all_namespaces)
            .then(|| runtime_namespace.unwrap_or_else(|| controller_namespace.clone()))
    });
    let own = match (command.kubeconfig, command.context) {
        (None, None) => Own::Infer,
        (path, context) => Own::File { path: path.map(|path| environment.path(&path)), context },
    };
    let temporary = environment.get("TMPDIR").unwrap_or("/tmp");
    let default_cache = || PathBuf::from(temporary).join("flux-kluctl-controller");
    let host = environment.get("HOSTNAME").map_or_else(host_name, str::to_owned);
    Ok(Options {
        own,
        namespace,
        controller_namespace,
        label_selector: command.watch_label_selector.filter(|selector| !selector.is_empty()),
        metrics_address,
        health_address,
        elects_leader: command.leader_elect,
        concurrency: command.concurrent,
        default_service_account: command.default_service_account.filter(|name| !name.is_empty()),
        no_cross_namespace_refs: command.no_cross_namespace_refs,
        http_vars_reach: if command.allow_local_http_vars {
            Reach::Anywhere
        } else {
            Reach::BeyondThisHost
        },
        dry_run: command.dry_run,
        requeue_dependency: command.requeue_dependency,
        http_retry: command.http_retry,
        guards: Guards {
            allow_exec: command.insecure_kubeconfig_exec,
            allow_files: command.insecure_kubeconfig_exec,
            allow_insecure_tls: command.insecure_kubeconfig_tls,
        },
        events_url,
        interval_jitter: command.interval_jitter_percentage,
        grace_period: command.grace_period,
        cache_dir: command.cache_dir.map_or_else(default_cache, |dir| environment.path(&dir)),
        helm: program(command.helm_binary.as_deref(), environment),
        source_localhost: environment.get("SOURCE_CONTROLLER_LOCALHOST").map(str::to_owned),
        no_remote_bases: command.no_remote_bases,
        proxies: environment.proxies()?,
        host,
    })
}

/// The URL of notification-controller. Flux's manifests end the host in a dot, which HTTP servers need not see.
fn events_url(text: &str) -> Result<Url, Diagnostic> {
    let refused = |message: String| {
        Diagnostic::new(Class::Project, message)
            .with_field("--events-addr")
            .with_expected("an http or https URL")
    };
    let url: Url = text.parse().map_err(|error| refused(format!("{text:?}: {error}")))?;
    if matches!(url.scheme(), "http" | "https") {
        Ok(url)
    } else {
        Err(refused(format!("{text:?} is no HTTP address")))
    }
}

/// The machine's name; in a pod, the pod's.
#[expect(clippy::disallowed_methods, reason = "the kernel tells the name in a file")]
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

fn describe(error: &ControllerError) -> Diagnostic {
    match error {
        ControllerError::Connect(error) => error.describe(),
        ControllerError::Artifacts(error) => error.describe(),
        ControllerError::Repositories(error) => error.describe(),
        ControllerError::LeaseLost => Diagnostic::new(Class::Transient, error.to_string()),
        ControllerError::Http(source) => {
            Diagnostic::new(Class::Internal, error.to_string()).with_cause(source)
        }
        ControllerError::Listen { source, .. } => {
            Diagnostic::new(Class::Access, error.to_string()).with_cause(source)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: ControllerRun,
    }

    #[test]
    fn the_shipped_pod_outlives_the_longest_end() {
        let manifest = include_str!("../../../config/flux/manager/deployment.yaml");
        let given = manifest.lines().find_map(|line| {
            line.trim().strip_prefix("terminationGracePeriodSeconds: ")?.parse().ok()
        });
        let given = Duration::from_secs(given.unwrap());
        let line = Line::parse_from(["kluctl"]);
        let needed = line.command.grace_period + crate::controller::LONGEST_END;
        assert!(
            given > needed,
            "the pod is killed after {given:?}, and the end takes up to {needed:?}"
        );
    }
}
