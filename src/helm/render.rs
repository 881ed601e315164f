use std::{
    collections::HashMap,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    CacheLimits, ChartFiles, HelmError, ProgramChoice,
    cache::{Key, RenderCache},
    output,
    program::{Done, Program},
    stage::Stage,
};
use crate::diagnostic::SourceLocation;

/// Counted up when the same inputs give another output.
const GENERATION: &str = "1";
/// The namespace of releases that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// How charts are rendered.
#[derive(Debug, Clone)]
pub struct RendererOptions {
    /// Which program.
    pub program: ProgramChoice,
    /// Directory for charts while they are rendered.
    pub work_dir: PathBuf,
    /// Directory for renders that may be used again; `None` keeps them in memory only.
    pub cache_dir: Option<PathBuf>,
    /// Bounds on those.
    pub cache_limits: CacheLimits,
    /// Charts that are rendered at the same time.
    pub parallel: usize,
}

/// What charts are told about the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Version of Kubernetes, such as `1.33.1`; `None` for the one that Helm was built for.
    pub kube_version: Option<String>,
    /// Versions (`apps/v1`) and kinds (`apps/v1/Deployment`) that are served beside those that Helm knows, sorted.
    pub api_versions: Arc<[String]>,
}

/// Values for a chart.
#[derive(Debug, Clone)]
pub struct Values {
    /// YAML, as Helm reads it.
    pub text: Arc<[u8]>,
    /// Whether they hold secrets; what comes of them is then never written to disk.
    pub is_secret: bool,
}

/// What is rendered.
#[derive(Debug, Clone)]
pub struct Release {
    /// The chart.
    pub chart: ChartFiles,
    /// Name of the release.
    pub name: String,
    /// Its namespace. If there is one, objects are marked with it.
    pub namespace: Option<String>,
    /// Values over the chart's own.
    pub values: Option<Values>,
    /// Whether CRDs are left out.
    pub skip_crds: bool,
    /// The cluster it is for.
    pub capabilities: Capabilities,
}

/// Renders charts with the `helm` program. Clones share the program, the limit and the cache.
#[derive(Clone)]
pub struct Renderer(Arc<Inner>);

struct Inner {
    options: RendererOptions,
    cache: RenderCache,
    permits: Semaphore,
    /// The program that was found to be recent enough.
    checked: OnceCell<Program>,
    /// Renders under way: who wants the same one waits.
    flights: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Renderer {
    /// A renderer. The program is looked for when the first chart is rendered.
    pub fn new(options: RendererOptions) -> Self {
        Self(Arc::new(Inner {
            cache: RenderCache::new(options.cache_dir.clone(), options.cache_limits),
            permits: Semaphore::new(options.parallel.max(1)),
            checked: OnceCell::new(),
            flights: Mutex::default(),
            options,
        }))
    }

    /// The chart's manifests as YAML: CRDs and objects in Helm's order, then hooks, without tests.
    ///
    /// The same release of the same chart is rendered once, however many ask at the same time and later, until the cache is
    /// full. Safe to drop at any time; the program then ends.
    ///
    /// # Errors
    /// When the program is missing or too old, when Helm refuses the chart or its values, or when the output is no YAML.
    pub async fn render(
        &self,
        release: &Release,
        cancel: &CancellationToken,
    ) -> Result<Arc<str>, HelmError> {
        let inner = &*self.0;
        let program = inner.options.program.find()?;
        let key = key(&program, release);
        if let Some(text) = self.cached(&key).await {
            return Ok(text);
        }
        let flight = Flight::enter(inner, key);
        let _turn = tokio::select! {
            turn = flight.lock.lock() => turn,
            () = cancel.cancelled() => return Err(HelmError::Cancelled),
        };
        if let Some(text) = self.cached(&key).await {
            return Ok(text);
        }
        let permit = tokio::select! {
            permit = inner.permits.acquire() => permit,
            () = cancel.cancelled() => return Err(HelmError::Cancelled),
        };
        let _permit = permit.map_err(|_| HelmError::Cancelled)?;
        self.check(&program, cancel).await?;
        let text = self.run(&program, release, cancel).await?;
        let is_secret = release.values.as_ref().is_some_and(|values| values.is_secret);
        let on_disk = !is_secret && !output::holds_secrets(&text);
        let (this, kept) = (self.clone(), text.clone());
        blocking(move || this.0.cache.put(&key, &kept, on_disk)).await?;
        Ok(text)
    }

    async fn cached(&self, key: &Key) -> Option<Arc<str>> {
        let (this, key) = (self.clone(), *key);
        blocking(move || this.0.cache.get(&key)).await.ok().flatten()
    }

    /// Asks the program for its version once.
    async fn check(&self, program: &Program, cancel: &CancellationToken) -> Result<(), HelmError> {
        let inner = &*self.0;
        let check = async || -> Result<Program, HelmError> {
            let work_dir = inner.options.work_dir.clone();
            let stage = blocking(move || Stage::empty(&work_dir)).await??;
            program.check(&stage.home(), cancel).await?;
            Ok(program.clone())
        };
        if inner.checked.get_or_try_init(check).await? != program {
            // Replaced while this process runs.
            check().await?;
        }
        Ok(())
    }

    async fn run(
        &self,
        program: &Program,
        release: &Release,
        cancel: &CancellationToken,
    ) -> Result<Arc<str>, HelmError> {
        let (work_dir, chart) = (self.0.options.work_dir.clone(), release.chart.clone());
        let stage = blocking(move || Stage::of(&chart, &work_dir)).await??;
        let arguments = arguments(release, stage.chart().into());
        let values = release.values.as_ref().map(|values| &*values.text).unwrap_or_default();
        let done = program.run(&arguments, &stage.home(), values, cancel).await?;
        let name = release.chart.metadata.name.clone();
        if !done.success {
            return Err(refusal(release, &done));
        }
        let namespace = release.namespace.clone();
        blocking(move || {
            // The directory goes on the blocking pool.
            drop(stage);
            let text = String::from_utf8_lossy(&done.output);
            output::manifests(&name, &text, namespace.as_deref()).map(Into::into)
        })
        .await?
    }
}

/// A render that may be under way; the last one to leave clears it.
struct Flight<'a> {
    inner: &'a Inner,
    key: Key,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Flight<'a> {
    fn enter(inner: &'a Inner, key: Key) -> Self {
        let mut flights = inner.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = flights.entry(key).or_default().clone();
        Self { inner, key, lock }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut flights = self.inner.flights.lock().unwrap_or_else(PoisonError::into_inner);
        // This one and the map's.
        if Arc::strong_count(&self.lock) <= 2 {
            flights.remove(&self.key);
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HelmError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| HelmError::Cancelled)
}

/// Everything that the output depends on.
fn key(program: &Program, release: &Release) -> Key {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(GENERATION.as_bytes());
    add(program.identity.as_bytes());
    add(&release.chart.digest);
    add(release.name.as_bytes());
    add(&[u8::from(release.namespace.is_some()), u8::from(release.skip_crds)]);
    add(release.namespace.as_deref().unwrap_or_default().as_bytes());
    add(&[u8::from(release.values.is_some())]);
    add(release.values.as_ref().map(|values| &*values.text).unwrap_or_default());
    add(release.capabilities.kube_version.as_deref().unwrap_or_default().as_bytes());
    for version in release.capabilities.api_versions.iter() {
        add(version.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The words of `helm template`.
fn arguments(release: &Release, chart: OsString) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["template".into()];
    let namespace = release.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    arguments.extend(["--namespace".into(), namespace.into()]);
    arguments.push(if release.skip_crds { "--skip-crds" } else { "--include-crds" }.into());
    if release.values.is_some() {
        arguments.extend(["--values".into(), "-".into()]);
    }
    if let Some(version) = &release.capabilities.kube_version {
        arguments.extend(["--kube-version".into(), version.into()]);
    }
    // One argument may not be longer than 128 KiB.
    for versions in release.capabilities.api_versions.chunks(500) {
        arguments.extend(["--api-versions".into(), versions.join(",").into()]);
    }
    arguments.extend(["--".into(), release.name.as_str().into(), chart]);
    arguments
}

/// What Helm said, without what only its own users need, and with the place in the user's chart.
fn refusal(release: &Release, done: &Done) -> HelmError {
    let chart = &release.chart;
    let mut message = done.messages.as_str();
    if let Some(at) = message.find("Error: ") {
        message = &message[at + "Error: ".len()..];
    }
    let message = message.replace("\n\nUse --debug flag to render out invalid YAML", "");
    let message = message.trim().to_owned();
    HelmError::Render {
        chart: chart.metadata.name.clone(),
        release: release.name.clone(),
        at: place(chart, &message),
        message,
    }
}

/// The first place in the chart that a message names: `name/templates/x.yaml:4:15`.
fn place(chart: &ChartFiles, message: &str) -> Option<SourceLocation> {
    let prefix = format!("{}/", chart.metadata.name);
    let words = message.split(|c: char| c.is_whitespace() || "()<>\"'".contains(c));
    words.into_iter().find_map(|word| {
        let mut parts = word.strip_prefix(&prefix)?.trim_end_matches(':').split(':');
        let path = parts.next().filter(|path| chart.files.iter().any(|(file, _)| file == path))?;
        let file = if chart.dir.is_empty() { path.into() } else { format!("{}/{path}", chart.dir) };
        let mut number = || parts.next()?.parse::<usize>().ok();
        Some(match number() {
            // Helm counts columns from 0.
            Some(line) => SourceLocation::new(file, line, number().map_or(1, |column| column + 1)),
            None => SourceLocation::file(file),
        })
    })
}
