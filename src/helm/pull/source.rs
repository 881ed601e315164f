#![expect(
    clippy::disallowed_methods,
    reason = "this module owns the directories that charts are unpacked to"
)]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    AccessRules, ChartCache, PullError, client::Clients, oci::Registry, repository::Repository,
};
use crate::{
    archive::{UnpackLimits, unpack},
    helm::{ChartFiles, HelmError, Metadata, Origin},
    net::{Proxies, Reach},
    tree::{DiskTree, SourceTree},
};

/// How charts are fetched.
#[derive(Debug, Clone)]
pub struct PullOptions {
    /// Directory for downloads.
    pub work_dir: PathBuf,
    /// Credentials for Helm repositories.
    pub repositories: AccessRules,
    /// Credentials for OCI registries.
    pub registries: AccessRules,
    /// The ways out.
    pub proxies: Proxies,
    /// Which addresses may be asked.
    pub reach: Reach,
    /// The largest archive, in bytes.
    pub max_download: u64,
    /// Bounds for unpacking.
    pub unpack: UnpackLimits,
    /// Time for one chart, or one list of versions.
    pub timeout: Duration,
    /// Downloads at the same time.
    pub parallel: usize,
}

impl PullOptions {
    /// 100 MiB packed and unpacked as Helm has it, 5 minutes, 8 at the same time, nobody's credentials.
    pub fn new(work_dir: PathBuf) -> Self {
        Self {
            work_dir,
            repositories: AccessRules::default(),
            registries: AccessRules::default(),
            proxies: Proxies::default(),
            reach: Reach::default(),
            max_download: 100 << 20,
            unpack: UnpackLimits { max_bytes: 256 << 20, ..UnpackLimits::default() },
            timeout: Duration::from_mins(5),
            parallel: 8,
        }
    }
}

/// A downloaded archive.
pub(super) struct Download {
    pub(super) path: PathBuf,
    /// Where it comes from, for messages.
    pub(super) url: String,
}

/// An unpacked chart in a temporary directory, which goes with this value.
#[derive(Debug)]
pub struct PulledChart {
    dir: TempDir,
    chart: PathBuf,
    /// What its `Chart.yaml` says.
    pub metadata: Metadata,
}

impl PulledChart {
    /// The directory with the chart's files.
    pub fn path(&self) -> &Path {
        &self.chart
    }

    /// The chart's files.
    ///
    /// # Errors
    /// When the directory is gone.
    pub fn tree(&self) -> Result<DiskTree, PullError> {
        DiskTree::new(&self.chart).map_err(|error| PullError::Helm(HelmError::Tree(error)))
    }

    /// The temporary directory around it.
    pub fn temporary_dir(&self) -> &Path {
        self.dir.path()
    }
}

/// Fetches charts. Cheap to clone.
#[derive(Clone)]
pub struct Puller(Arc<Inner>);

struct Inner {
    options: PullOptions,
    clients: Clients,
    permits: Semaphore,
}

impl Puller {
    /// A puller with these options.
    pub fn new(options: PullOptions) -> Self {
        let clients = Clients::new(options.proxies.clone(), options.reach);
        let permits = Semaphore::new(options.parallel.max(1));
        Self(Arc::new(Inner { options, clients, permits }))
    }

    /// The versions that there are of a chart, in no order that means anything.
    ///
    /// # Errors
    /// See [`PullError`]. Safe to drop at any time.
    pub async fn versions(
        &self,
        origin: &Origin,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, PullError> {
        self.limited(cancel, async {
            let inner = &*self.0;
            match origin {
                Origin::Repository { url, name } => {
                    let dir = self.temporary().await?;
                    let access = inner.options.repositories.choose(url);
                    let repository =
                        Repository { clients: &inner.clients, url, access: &access, cancel };
                    let entries = repository.versions(name, dir.path()).await?;
                    Ok(entries.into_iter().map(|entry| entry.version).collect())
                }
                Origin::Oci { url } => {
                    let access = inner.options.registries.choose(url);
                    Registry { clients: &inner.clients, url, access: &access, cancel }
                        .versions()
                        .await
                }
                Origin::Local { .. } | Origin::Git { .. } => Err(elsewhere(origin)),
            }
        })
        .await
    }

    /// Downloads, checks and unpacks a version of a chart.
    ///
    /// # Errors
    /// See [`PullError`]. Nothing is left behind then. Safe to drop at any time.
    pub async fn pull(
        &self,
        origin: &Origin,
        version: &str,
        cancel: &CancellationToken,
    ) -> Result<PulledChart, PullError> {
        self.limited(cancel, async {
            let inner = &*self.0;
            let dir = self.temporary().await?;
            let limit = inner.options.max_download;
            let download = match origin {
                Origin::Repository { url, name } => {
                    let access = inner.options.repositories.choose(url);
                    let repository =
                        Repository { clients: &inner.clients, url, access: &access, cancel };
                    repository.download(name, version, dir.path(), limit).await?
                }
                Origin::Oci { url } => {
                    let access = inner.options.registries.choose(url);
                    let registry =
                        Registry { clients: &inner.clients, url, access: &access, cancel };
                    registry.download(version, dir.path(), limit).await?
                }
                Origin::Local { .. } | Origin::Git { .. } => return Err(elsewhere(origin)),
            };
            let unpacking = Unpacking {
                dir,
                download,
                limits: inner.options.unpack,
                name: origin.name(),
                version: version.to_owned(),
                cancel: cancel.clone(),
            };
            let unpacked = tokio::task::spawn_blocking(move || unpacking.run()).await;
            unpacked.map_err(|_| PullError::Cancelled)?
        })
        .await
    }

    /// The files of a version of a chart: from `cache` when they were fetched not too long before `now`, else as
    /// [`Self::pull`] gets them.
    ///
    /// # Errors
    /// As [`Self::pull`].
    pub async fn files(
        &self,
        origin: &Origin,
        version: &str,
        cache: &ChartCache,
        now: SystemTime,
        cancel: &CancellationToken,
    ) -> Result<ChartFiles, PullError> {
        let options = &self.0.options;
        let access = match origin {
            Origin::Repository { url, .. } => options.repositories.choose(url),
            Origin::Oci { url } => options.registries.choose(url),
            Origin::Local { .. } | Origin::Git { .. } => return Err(elsewhere(origin)),
        };
        let key = ChartCache::key(origin, version, &access);
        let (looked, name) = (cache.clone(), key.clone());
        let found = tokio::task::spawn_blocking(move || looked.get(&name, now)).await;
        if let Some(files) = found.ok().flatten() {
            return Ok(files);
        }
        let pulled = self.pull(origin, version, cancel).await?;
        let cache = cache.clone();
        let kept = tokio::task::spawn_blocking(move || cache.put(&key, &pulled)).await;
        kept.map_err(|_| PullError::Cancelled)?
    }

    async fn limited<T>(
        &self,
        cancel: &CancellationToken,
        work: impl Future<Output = Result<T, PullError>>,
    ) -> Result<T, PullError> {
        let permit = cancel.run_until_cancelled(self.0.permits.acquire()).await;
        let Some(Ok(_permit)) = permit else { return Err(PullError::Cancelled) };
        let timeout = self.0.options.timeout;
        match cancel.run_until_cancelled(tokio::time::timeout(timeout, work)).await {
            None => Err(PullError::Cancelled),
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(PullError::Protocol {
                url: "the chart".to_owned(),
                problem: format!("was not there after {} s", timeout.as_secs()),
            }),
        }
    }

    async fn temporary(&self) -> Result<TempDir, PullError> {
        let parent = self.0.options.work_dir.clone();
        let make = tokio::task::spawn_blocking(move || {
            let made = fs::create_dir_all(&parent)
                .and_then(|()| tempfile::Builder::new().prefix("chart-").tempdir_in(&parent));
            made.map_err(|error| disk(&parent, &error))
        });
        make.await.map_err(|_| PullError::Cancelled)?
    }
}

fn elsewhere(origin: &Origin) -> PullError {
    let problem = "is in no repository or registry".to_owned();
    PullError::Content { url: origin.to_string(), problem }
}

fn disk(path: &Path, error: &std::io::Error) -> PullError {
    PullError::Disk { path: path.display().to_string(), message: error.to_string() }
}

struct Unpacking {
    dir: TempDir,
    download: Download,
    limits: UnpackLimits,
    name: String,
    version: String,
    cancel: CancellationToken,
}

impl Unpacking {
    /// Unpacks the archive and checks that it holds the chart that was asked for.
    fn run(self) -> Result<PulledChart, PullError> {
        let Download { path, url } = self.download;
        let file = File::open(&path).map_err(|error| disk(&path, &error))?;
        let root = self.dir.path().join("unpacked");
        fs::create_dir(&root).map_err(|error| disk(&root, &error))?;
        unpack(file, &root, &self.limits, &self.cancel)
            .map_err(|source| PullError::Archive { url: url.clone(), source })?;
        fs::remove_file(&path).map_err(|error| disk(&path, &error))?;
        let other = |problem: String| PullError::Content { url: url.clone(), problem };
        let entries = fs::read_dir(&root).map_err(|error| disk(&root, &error))?;
        let charts: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("Chart.yaml").is_file())
            .collect();
        let [chart] = charts.as_slice() else {
            return Err(other("holds no chart, or several".to_owned()));
        };
        let tree = DiskTree::new(chart).map_err(HelmError::Tree)?;
        let metadata =
            Metadata::parse("Chart.yaml", &tree.read("Chart.yaml").map_err(HelmError::Tree)?)
                .map_err(|error| other(error.to_string()))?;
        if metadata.name != self.name {
            return Err(other(format!("holds chart {}, not {}", metadata.name, self.name)));
        }
        if metadata.version != self.version {
            let found = &metadata.version;
            return Err(other(format!("holds version {found}, not {}", self.version)));
        }
        Ok(PulledChart { chart: chart.clone(), dir: self.dir, metadata })
    }
}
