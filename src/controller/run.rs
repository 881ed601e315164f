//! Puts the controller together and runs it: watches, leadership, dispatch, probes, shutdown.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    context::{Clusters, Context},
    leader::{Election, RELEASE, Terms, lease_name},
    metrics::Metrics,
    notify::{self, FluxEvents, Notifier},
    options::Options,
    persist::ObjectStore,
    probes,
    reconcile::reconcile,
    schedule::Requeue,
    state::State,
    turns::Turns,
    watches::{Listed, Watches},
};
use crate::{
    api::{self, GoDuration, NamespacedName, SourceKind},
    artifact::{self, ArtifactError},
    cluster::{
        Cluster, ClusterOptions,
        connect::{self, Clients, ConnectError, ConnectOptions},
    },
    engine::{Engine, Limits},
    git::{self, GitError},
    helm::{CacheLimits, Renderer, RendererOptions},
    net::{self, NetError},
};

/// How long runs get to write down that they were interrupted.
const LAST_WRITES: Duration = Duration::from_secs(5);
/// How long events get to leave at the end.
const LAST_EVENTS: Duration = Duration::from_secs(5);
/// The longest that the controller goes on after the grace period: last writes, the lease, events, and a second for whatever is
/// on the blocking pool.
pub const LONGEST_END: Duration =
    Duration::from_secs(LAST_WRITES.as_secs() + RELEASE.as_secs() + LAST_EVENTS.as_secs() + 1);

/// Why the controller cannot run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The cluster cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Http(#[from] NetError),
    /// The directory for artifacts cannot be used.
    #[error(transparent)]
    Artifacts(#[from] ArtifactError),
    /// The directory for repositories cannot be used.
    #[error(transparent)]
    Repositories(#[from] GitError),
    /// An address cannot be listened on.
    #[error("{what} cannot be served at {address}")]
    Listen {
        /// What was to be served.
        what: &'static str,
        /// The address.
        address: std::net::SocketAddr,
        /// The system's message.
        #[source]
        source: std::io::Error,
    },
    /// Another replica has the lease now.
    #[error("the lease was lost")]
    LeaseLost,
}

/// Runs the controller until `shutdown` fires. Then running reconciliations get the grace period to end; what is left is
/// interrupted, events are sent, and the lease is given back last.
///
/// # Errors
/// When it cannot start, or loses its lease.
pub async fn run(options: Options, shutdown: CancellationToken) -> Result<(), ControllerError> {
    let metrics = Arc::new(Metrics::new());
    let state = Arc::new(State::default());
    let background = CancellationToken::new();
    let mut services = JoinSet::new();
    let mut senders = JoinSet::new();

    let proxies = &options.proxies;
    let connect_options = ConnectOptions { proxies: proxies.clone(), ..ConnectOptions::default() };
    let own_config = connect::own_config(&options.own, &connect_options).await?;
    let client = connect::client(own_config.clone(), None, &connect_options)?;
    let own = Cluster::new(client.clone(), ClusterOptions::default());
    let watches = Watches {
        cluster: own.clone(),
        namespace: options.namespace.clone(),
        label_selector: options.label_selector.clone(),
        state: state.clone(),
        metrics: metrics.clone(),
        cancel: background.clone(),
    };
    let listed = start_watches(&watches, &mut services);
    start_listeners(&options, &metrics, &listed, &mut services, &background).await?;

    let http = net::client(&net::ClientOptions {
        proxies: proxies.clone(),
        ..net::ClientOptions::default()
    })?;
    let git_options =
        git::CacheOptions { proxies: proxies.clone(), ..git::CacheOptions::default() };
    let flux = options
        .events_url
        .clone()
        .map(|url| FluxEvents::new(http.clone(), url, options.host.clone()));
    let notifier =
        Notifier::start(&client, flux.as_ref(), metrics.clone(), &mut senders, &background);
    let concurrency = options.concurrency.max(1);
    let own_server = own_config.cluster_url.to_string();
    let election = options.elects_leader.then(|| candidate(&options, &client));
    let context = Arc::new(Context {
        clusters: Clusters::new(Clients::new(own_config, connect_options), own_server),
        store: ObjectStore::new(client),
        artifacts: open_artifacts(&options.cache_dir, &http)?,
        repositories: git::Cache::open(&options.cache_dir.join("repositories"), git_options)?,
        charts: Renderer::new(RendererOptions {
            program: options.helm.clone(),
            work_dir: options.cache_dir.join("helm/work"),
            cache_dir: Some(options.cache_dir.join("helm/renders")),
            cache_limits: CacheLimits::default(),
            parallel: cores(),
        }),
        engine: Engine::new(Limits::for_cores(cores())),
        openings: Semaphore::new(concurrency * 4),
        lookups: Semaphore::new(concurrency * 4),
        slots: Arc::new(Semaphore::new(concurrency)),
        turns: Turns::default(),
        stopping: shutdown.child_token(),
        interrupt: CancellationToken::new(),
        deposed: CancellationToken::new(),
        own,
        state,
        notifier,
        metrics,
        options,
    });
    let result = lead(&context, election, listed, &shutdown).await;
    drop(context);
    notify::flush(senders, LAST_EVENTS).await;
    background.cancel();
    services.shutdown().await;
    result
}

/// This replica as a candidate for the lease of its shard.
fn candidate(options: &Options, client: &kube::Client) -> Election {
    let name = lease_name(options.label_selector.as_deref());
    let (namespace, host) = (&options.controller_namespace, &options.host);
    Election::new(client.clone(), namespace, name, host, Terms::default())
}

/// Opens the cache of artifacts, or (when another process of this machine has it) the next one of a few beside it.
fn open_artifacts(
    dir: &std::path::Path,
    http: &reqwest::Client,
) -> Result<artifact::Store, ArtifactError> {
    let names =
        std::iter::once("artifacts".to_owned()).chain((2..=8).map(|n| format!("artifacts-{n}")));
    let mut first_error = None;
    for name in names {
        let limits = artifact::StoreLimits::default();
        match artifact::Store::open(&dir.join(name), http.clone(), limits) {
            Ok(store) => return Ok(store),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let nothing =
        || ArtifactError::Cache { path: dir.display().to_string(), message: "unusable".into() };
    Err(first_error.unwrap_or_else(nothing))
}

/// Starts the watches. Returns how far those have come that work cannot begin without: what there is to reconcile, and
/// who else claims targets.
fn start_watches(watches: &Watches, services: &mut JoinSet<()>) -> Vec<Listed> {
    let (deployments, listed) = watches.deployments();
    services.spawn(deployments);
    let (foreign, foreign_listed) = watches.foreign();
    services.spawn(foreign);
    let mut needed = vec![listed, foreign_listed];
    if let Some((claims, listed)) = watches.claims() {
        services.spawn(claims);
        needed.push(listed);
    }
    for kind in SourceKind::ALL {
        services.spawn(watches.clone().sources(kind));
    }
    services.spawn(watches.clone().secrets());
    needed
}

async fn start_listeners(
    options: &Options,
    metrics: &Arc<Metrics>,
    listed: &[Listed],
    services: &mut JoinSet<()>,
    cancel: &CancellationToken,
) -> Result<(), ControllerError> {
    let listen = async |what: &'static str, address: std::net::SocketAddr| {
        let listener = probes::bind(address).await;
        let listener =
            listener.map_err(|source| ControllerError::Listen { what, address, source })?;
        let address = listener.local_addr().unwrap_or(address);
        tracing::info!(%address, "serving {what}");
        Ok::<_, ControllerError>(listener)
    };
    if let Some(address) = options.metrics_address {
        let listener = listen("metrics", address).await?;
        services.spawn(probes::serve_metrics(listener, metrics.clone(), cancel.clone()));
    }
    if let Some(address) = options.health_address {
        let listener = listen("health probes", address).await?;
        let listed = listed.to_vec();
        let is_ready = Arc::new(move || listed.iter().all(|listed| *listed.borrow()));
        services.spawn(probes::serve_probes(listener, is_ready, cancel.clone()));
    }
    Ok(())
}

/// Works as long as this replica leads.
async fn lead(
    context: &Arc<Context>,
    election: Option<Election>,
    mut listed: Vec<Listed>,
    shutdown: &CancellationToken,
) -> Result<(), ControllerError> {
    let election = match election {
        Some(election) => {
            let Some(since) = election.acquire(super::now, shutdown).await else { return Ok(()) };
            Some((election, since))
        }
        None => None,
    };
    context.metrics.leader(true);
    let stop = context.stopping.clone();
    let work = async {
        // Nothing is deployed before it is known who else deploys.
        let known = async {
            for listed in &mut listed {
                let _all = listed.wait_for(|listed| *listed).await;
            }
        };
        if stop.run_until_cancelled(known).await.is_some() {
            dispatch(context, &stop).await;
        }
    };
    let Some((election, since)) = election else {
        work.await;
        return Ok(());
    };
    let working_is_over = CancellationToken::new();
    let holding = async {
        let is_ours = election.hold(since, super::now, &working_is_over).await;
        if !is_ours {
            context.deposed.cancel();
        }
        stop.cancel();
        is_ours
    };
    let working = async {
        work.await;
        working_is_over.cancel();
    };
    let (is_ours, ()) = tokio::join!(holding, working);
    context.metrics.leader(false);
    if !is_ours {
        return Err(ControllerError::LeaseLost);
    }
    election.release(super::now()).await;
    Ok(())
}

/// Hands out due objects until `stop` fires, then waits for the runs that are under way; but ends them where they are, with
/// nothing more said or written, when another replica takes over.
async fn dispatch(context: &Arc<Context>, stop: &CancellationToken) {
    let mut runs = JoinSet::new();
    tracing::info!("reconciling");
    while let Some(key) = stop.run_until_cancelled(context.state.next()).await {
        while runs.try_join_next().is_some() {}
        runs.spawn(work_on(context.clone(), key));
        note_load(context);
    }
    while runs.try_join_next().is_some() {}
    tracing::info!(running = runs.len(), "stopping");
    let ended = context.deposed.run_until_cancelled(end(context, &mut runs)).await;
    if ended.is_none() {
        tracing::warn!(running = runs.len(), "another replica may be at work, dropping what runs");
    }
    runs.shutdown().await;
}

/// Waits until all runs have ended, by themselves within the grace period or else by being interrupted.
async fn end(context: &Context, runs: &mut JoinSet<()>) {
    let all = async { while runs.join_next().await.is_some() {} };
    if tokio::time::timeout(context.options.grace_period, all).await.is_ok() {
        return;
    }
    tracing::warn!(running = runs.len(), "the grace period is over, interrupting what runs");
    context.interrupt.cancel();
    let all = async { while runs.join_next().await.is_some() {} };
    // Whoever has not written by then is dropped.
    let _all = tokio::time::timeout(LAST_WRITES, all).await;
}

/// One run over one object. A panic is our defect: it is logged, and does not stop the others.
async fn work_on(context: Arc<Context>, key: NamespacedName) {
    let id = super::random_id();
    let span = tracing::info_span!(
        "reconcile",
        controllerKind = api::KIND,
        name = key.name,
        namespace = key.namespace,
        reconcileID = id,
    );
    let run = AssertUnwindSafe(Box::pin(reconcile(&context, &key, &id))).catch_unwind();
    let next = run.instrument(span.clone()).await.unwrap_or_else(|_| {
        let _entered = span.enter();
        tracing::error!("internal error: the reconciliation panicked; please report this");
        Requeue::Backoff(Duration::from_mins(5))
    });
    let delay = context.state.done(&key, next);
    let _entered = span.enter();
    let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    let delay = delay.map(|delay| GoDuration(Duration::from_millis(millis(delay))).to_string());
    tracing::debug!(after = delay.as_deref().unwrap_or("a change"), "next run");
    note_load(&context);
}

fn note_load(context: &Context) {
    let (queued, running) = context.state.load();
    context.metrics.load(queued, running);
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
