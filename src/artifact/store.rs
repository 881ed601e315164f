#![expect(clippy::disallowed_methods, reason = "this module owns the files of its cache")]

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File},
    io::Read,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use reqwest::Client;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    Artifact, ArtifactError, Digest, FetchOptions,
    fetch::{Course, download},
};
use crate::{
    archive::{ArchiveError, UnpackLimits, Unpacked, unpack},
    tree::{DiskTree, Entry, EntryKind, SourceTree, TreeError},
};

/// Bounds on the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes on disk, packed and unpacked. Artifacts in use are kept beyond it.
    pub max_bytes: u64,
    /// Artifacts on disk. Artifacts in use are kept beyond it.
    pub max_entries: usize,
    /// Downloads at the same time.
    pub max_downloads: usize,
}

impl Default for StoreLimits {
    /// 2 GiB, 200 artifacts, 8 downloads.
    fn default() -> Self {
        Self { max_bytes: 2 << 30, max_entries: 200, max_downloads: 8 }
    }
}

/// An unpacked artifact. It stays on disk as long as this value lives; as a [`SourceTree`] it holds the artifact's files.
#[derive(Debug)]
pub struct ArtifactTree {
    digest: Digest,
    files: DiskTree,
    packed: u64,
    unpacked: Unpacked,
}

impl ArtifactTree {
    /// Which artifact this is.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The directory with the files.
    pub fn path(&self) -> &Path {
        self.files.root()
    }

    /// Size of the downloaded file in bytes.
    pub fn packed_bytes(&self) -> u64 {
        self.packed
    }

    /// Number and size of the files.
    pub fn unpacked(&self) -> Unpacked {
        self.unpacked
    }

    fn bytes(&self) -> u64 {
        self.packed + self.unpacked.bytes
    }
}

impl SourceTree for ArtifactTree {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        self.files.read(path)
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        self.files.kind(path)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        self.files.list(path)
    }
}

/// Artifacts on disk, by digest; cheap to clone.
///
/// Below the directory, `blobs` holds downloaded files with a verified digest and `trees` what they unpack to. Trees are
/// trusted only by the process that unpacked them: after a restart a blob's digest is computed again and it is unpacked
/// anew, so a crash in the middle of a write can do no harm.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    root: PathBuf,
    client: Client,
    limits: StoreLimits,
    downloads: Semaphore,
    tasks: TaskTracker,
    serial: AtomicU64,
    state: Mutex<State>,
    /// Held for as long as the store lives.
    _lock: File,
}

#[derive(Default)]
struct State {
    held: HashMap<Digest, Held>,
    flights: HashMap<(Digest, String), Flight>,
    /// Counts uses; the order of last use.
    uses: u64,
}

struct Held {
    /// `None` for a blob left by an earlier process, until it is wanted.
    tree: Option<Arc<ArtifactTree>>,
    bytes: u64,
    used: u64,
}

type Outcome = Option<Result<Arc<ArtifactTree>, ArtifactError>>;

/// A download that several callers may be waiting for. It is cancelled when the last of them leaves.
struct Flight {
    id: u64,
    outcome: watch::Receiver<Outcome>,
    course: Course,
    waiters: Weak<DropGuard>,
}

/// One caller's part in a download.
struct Waiting {
    outcome: watch::Receiver<Outcome>,
    course: Course,
    _wanted: Arc<DropGuard>,
}

impl Store {
    /// Opens or creates a cache directory and takes it for this process. Blocking.
    ///
    /// # Errors
    /// [`ArtifactError::Cache`] when the directory cannot be written, or another process has it.
    pub fn open(root: &Path, client: Client, limits: StoreLimits) -> Result<Self, ArtifactError> {
        let fail = |path: &Path, error: &dyn std::fmt::Display| ArtifactError::Cache {
            path: path.display().to_string(),
            message: error.to_string(),
        };
        create_dir(root).map_err(|error| fail(root, &error))?;
        let lock_path = root.join(".lock");
        let lock = File::create(&lock_path).map_err(|error| fail(&lock_path, &error))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => fail(root, &"is in use by another process"),
            fs::TryLockError::Error(error) => fail(&lock_path, &error),
        })?;
        for name in ["tmp", "trees"] {
            let dir = root.join(name);
            if let Err(error) = fs::remove_dir_all(&dir)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(fail(&dir, &error));
            }
            create_dir(&dir).map_err(|error| fail(&dir, &error))?;
        }
        let blobs = root.join("blobs");
        create_dir(&blobs).map_err(|error| fail(&blobs, &error))?;
        let state = State::from_blobs(&blobs).map_err(|error| fail(&blobs, &error))?;
        let inner = Inner {
            root: root.to_owned(),
            client,
            limits,
            downloads: Semaphore::new(limits.max_downloads.max(1)),
            tasks: TaskTracker::new(),
            serial: AtomicU64::new(0),
            state: Mutex::new(state),
            _lock: lock,
        };
        let store = Self { inner: Arc::new(inner) };
        store.inner.trim();
        Ok(store)
    }

    /// The artifact's files: from the cache, or downloaded, verified and unpacked.
    ///
    /// However many callers ask for the same artifact at once, it is downloaded once, with the options of the first of them,
    /// except that each waits as long as its own `timeout` says. A caller that is cancelled or dropped, or whose time is up,
    /// leaves the others alone; the download stops when nobody waits for it.
    ///
    /// # Errors
    /// See [`ArtifactError`]; nothing is cached then.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        options: &FetchOptions,
        cancel: &CancellationToken,
    ) -> Result<Arc<ArtifactTree>, ArtifactError> {
        let deadline = Instant::now() + options.timeout;
        let mut waiting = {
            let mut state = self.inner.state();
            if let Some(tree) = state.hit(&artifact.digest) {
                return Ok(tree);
            }
            self.join_flight(&mut state, artifact, options)
        };
        tokio::select! {
            biased;
            arrived = waiting.outcome.wait_for(Option::is_some) => match arrived {
                Ok(outcome) => outcome.clone().unwrap_or(Err(ArtifactError::Cancelled)),
                Err(_) => Err(self.inner.cache_error("the download ended unexpectedly")),
            },
            () = cancel.cancelled() => Err(ArtifactError::Cancelled),
            why = waiting.course.too_late(artifact, options, deadline) => Err(why),
        }
    }

    /// Number of artifacts on disk, and their bytes.
    pub fn usage(&self) -> (usize, u64) {
        let state = self.inner.state();
        (state.held.len(), state.bytes())
    }

    fn join_flight(
        &self,
        state: &mut State,
        artifact: &Artifact,
        options: &FetchOptions,
    ) -> Waiting {
        let key = (artifact.digest.clone(), artifact.url.clone());
        if let Some(flight) = state.flights.get(&key)
            && let Some(waiters) = flight.waiters.upgrade()
            // The sender of a task that died is gone.
            && flight.outcome.has_changed().is_ok()
        {
            let (outcome, course) = (flight.outcome.clone(), flight.course.clone());
            return Waiting { outcome, course, _wanted: waiters };
        }
        let cancel = CancellationToken::new();
        let waiters = Arc::new(cancel.clone().drop_guard());
        let (sender, outcome) = watch::channel(None);
        let id = self.inner.next_serial();
        let course = Course::default();
        let flight = Flight {
            id,
            outcome: outcome.clone(),
            course: course.clone(),
            waiters: Arc::downgrade(&waiters),
        };
        let waiting = Waiting { outcome, course: course.clone(), _wanted: waiters };
        state.flights.insert(key.clone(), flight);
        let (inner, artifact, options) = (self.inner.clone(), artifact.clone(), options.clone());
        self.inner.tasks.spawn(async move {
            let result = inner.load(&artifact, &options, &course, &cancel).await;
            let mut state = inner.state();
            if state.flights.get(&key).is_some_and(|flight| flight.id == id) {
                state.flights.remove(&key);
            }
            sender.send_replace(Some(result));
        });
        waiting
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(format!("{}.tar.gz", digest.file_stem()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "called from map_err")]
    fn cache_error(&self, message: impl ToString) -> ArtifactError {
        ArtifactError::Cache { path: self.root.display().to_string(), message: message.to_string() }
    }

    /// Brings the artifact into the cache, from an earlier process' blob or from the network.
    async fn load(
        self: &Arc<Self>,
        artifact: &Artifact,
        options: &FetchOptions,
        course: &Course,
        cancel: &CancellationToken,
    ) -> Result<Arc<ArtifactTree>, ArtifactError> {
        let digest = &artifact.digest;
        let left_over = self.state().held.contains_key(digest);
        if left_over {
            match self.admit(digest, self.blob(digest), options.unpack, cancel).await {
                Ok(tree) => return Ok(tree),
                Err(ArtifactError::Cancelled) => return Err(ArtifactError::Cancelled),
                Err(error) => tracing::debug!(%digest, %error, "artifact: cached file is unusable"),
            }
        }
        let part = self.root.join("tmp").join(format!("{}.part", self.next_serial()));
        let part = Removed(part);
        {
            let permit = cancel.run_until_cancelled(self.downloads.acquire()).await;
            let _permit =
                permit.ok_or(ArtifactError::Cancelled)?.map_err(|error| self.cache_error(error))?;
            download(&self.client, artifact, options, &part.0, course, cancel).await?;
        }
        self.admit(digest, part.0.clone(), options.unpack, cancel).await
    }

    /// Verifies and unpacks a file on the blocking pool and makes it an entry of the cache.
    async fn admit(
        self: &Arc<Self>,
        digest: &Digest,
        file: PathBuf,
        limits: UnpackLimits,
        cancel: &CancellationToken,
    ) -> Result<Arc<ArtifactTree>, ArtifactError> {
        let (inner, digest, cancel) = (self.clone(), digest.clone(), cancel.clone());
        let admitted = tokio::task::spawn_blocking(move || {
            let result = inner.admit_blocking(&digest, &file, &limits, &cancel);
            if !matches!(result, Ok(_) | Err(ArtifactError::Cancelled)) {
                inner.state().held.remove(&digest);
                drop(Removed(file));
            }
            inner.trim();
            result
        });
        admitted.await.map_err(|error| self.cache_error(error))?
    }

    fn admit_blocking(
        &self,
        digest: &Digest,
        file: &Path,
        limits: &UnpackLimits,
        cancel: &CancellationToken,
    ) -> Result<Arc<ArtifactTree>, ArtifactError> {
        let io = |error: std::io::Error| self.cache_error(error);
        let packed = verify(file, digest).map_err(io)?;
        let name = format!("{}-{}", self.next_serial(), digest.file_stem());
        let unfinished = Removed(self.root.join("tmp").join(&name));
        fs::create_dir(&unfinished.0).map_err(io)?;
        let archive = File::open(file).map_err(io)?;
        let unpacked = unpack(archive, &unfinished.0, limits, cancel).map_err(|source| {
            if source == ArchiveError::Cancelled {
                return ArtifactError::Cancelled;
            }
            ArtifactError::Archive { digest: digest.clone(), source }
        })?;
        let place = self.root.join("trees").join(name);
        fs::rename(&unfinished.0, &place).map_err(io)?;
        let files = DiskTree::new(&place).map_err(|error| self.cache_error(error))?;
        let tree = Arc::new(ArtifactTree { digest: digest.clone(), files, packed, unpacked });

        let mut state = self.state();
        // The same artifact may have come from another URL meanwhile.
        if let Some(other) = state.hit(digest) {
            drop(state);
            drop(Removed(place));
            return Ok(other);
        }
        let blob = self.blob(digest);
        if file != blob {
            fs::rename(file, blob).map_err(io)?;
        }
        state.insert(tree.clone());
        Ok(tree)
    }

    /// Removes the artifacts that were used longest ago and that nobody holds, until the limits are met. Blocking.
    fn trim(&self) {
        let mut trees = Vec::new();
        {
            let mut state = self.state();
            while state.held.len() > self.limits.max_entries
                || state.bytes() > self.limits.max_bytes
            {
                let Some(digest) = state.oldest_unused() else {
                    break;
                };
                // Below the lock, so that no new download of the same artifact can come in between.
                drop(Removed(self.blob(&digest)));
                trees.extend(state.held.remove(&digest).and_then(|held| held.tree));
            }
        }
        for tree in trees {
            drop(Removed(tree.path().to_owned()));
        }
    }
}

impl State {
    /// What an earlier process left; the order of last use is taken from the files' times.
    fn from_blobs(dir: &Path) -> std::io::Result<Self> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".tar.gz"));
            match stem.and_then(Digest::from_file_stem) {
                Some(digest) => {
                    let metadata = entry.metadata()?;
                    found.push((metadata.modified()?, digest, metadata.len()));
                }
                None => drop(Removed(entry.path())),
            }
        }
        found.sort();
        let mut state = Self::default();
        for (_, digest, bytes) in found {
            state.uses += 1;
            state.held.insert(digest, Held { tree: None, bytes, used: state.uses });
        }
        Ok(state)
    }

    fn hit(&mut self, digest: &Digest) -> Option<Arc<ArtifactTree>> {
        let held = self.held.get_mut(digest)?;
        let tree = held.tree.clone()?;
        self.uses += 1;
        held.used = self.uses;
        Some(tree)
    }

    fn insert(&mut self, tree: Arc<ArtifactTree>) {
        self.uses += 1;
        let digest = tree.digest.clone();
        let held = Held { bytes: tree.bytes(), tree: Some(tree), used: self.uses };
        self.held.insert(digest, held);
    }

    fn bytes(&self) -> u64 {
        self.held.values().map(|held| held.bytes).sum()
    }

    fn oldest_unused(&self) -> Option<Digest> {
        // Only this map hands out references, below its lock: one alone means that nobody else has the tree.
        let unused =
            |held: &Held| held.tree.as_ref().is_none_or(|tree| Arc::strong_count(tree) == 1);
        let unused = self.held.iter().filter(|(_, held)| unused(held));
        unused.min_by_key(|(_, held)| held.used).map(|(digest, _)| digest.clone())
    }
}

/// A path whose file or directory goes when this value does.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let removed = match fs::symlink_metadata(&self.0) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&self.0),
            Ok(_) => fs::remove_file(&self.0),
            Err(_) => Ok(()),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %self.0.display(), %error, "artifact: left behind in the cache");
        }
    }
}

fn create_dir(path: &Path) -> std::io::Result<()> {
    // Artifacts may hold what other users of the machine must not see.
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The file's size, if its digest is the one expected.
fn verify(file: &Path, expected: &Digest) -> std::io::Result<u64> {
    let mut file = File::open(file)?;
    let mut hasher = expected.hasher();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        size += read as u64;
        hasher.update(&buffer[..read]);
    }
    let actual = hasher.finish();
    if actual == *expected {
        return Ok(size);
    }
    Err(std::io::Error::other(format!("the file's digest is {actual}, expected {expected}")))
}
