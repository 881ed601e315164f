use std::{
    collections::HashMap,
    fmt,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use gix::ObjectId;
use gix_transport::client::blocking_io::Transport;
use reqwest::Client;
use sha2::{Digest, Sha256};
use tokio::{runtime::Handle, sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Auth, GitError, GitTree, GitUrl, Reference, Resolved, Scheme,
    fetch::{Fetch, Stop, broken},
    http,
    mirror::{Mirror, WriteLock, disk_usage, last_use, remove_repository},
    operation::{Failure, Operation},
    reference::{self, Found},
    remote::{Depth, Remote},
    ssh,
};
use crate::{
    net::{self, ClientOptions, Proxies, RetryPolicy, jitter},
    tree::SourceTree,
};

/// Conversations about one repository at the same time, so that one slow server cannot take all of them.
const PER_REPOSITORY: usize = 2;
/// HTTP clients kept; each has its own connections and certificates.
const MAX_CLIENTS: usize = 32;

/// Bounds of a [`Cache`] and manners towards servers.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Bytes from the server for one commit.
    pub max_fetch: u64,
    /// The largest file that is read from a tree, in bytes.
    pub max_file: u64,
    /// Bytes on disk; repositories in use are kept beyond it.
    pub max_bytes: u64,
    /// Repositories on disk; those in use are kept beyond it.
    pub max_repositories: usize,
    /// Fetches into one repository before it is started anew.
    pub max_packs: usize,
    /// Conversations at the same time.
    pub max_parallel: usize,
    /// Time for everything that one call does.
    pub timeout: Duration,
    /// Time for TCP, TLS and the start of SSH.
    pub connect_timeout: Duration,
    /// The longest silence of an HTTP server.
    pub read_timeout: Duration,
    /// Second attempts on connection errors, 429 and 5xx.
    pub retry: RetryPolicy,
    /// The ways out for HTTP.
    pub proxies: Proxies,
}

impl Default for CacheOptions {
    /// 1 GiB per fetch, 64 MiB per file, 4 GiB and 200 repositories in all, 3 minutes, 2 retries.
    fn default() -> Self {
        Self {
            max_fetch: 1 << 30,
            max_file: 64 << 20,
            max_bytes: 4 << 30,
            max_repositories: 200,
            max_packs: 60,
            max_parallel: 8,
            timeout: Duration::from_mins(3),
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            retry: RetryPolicy {
                retries: 2,
                min_wait: Duration::from_secs(1),
                max_wait: Duration::from_secs(10),
            },
            proxies: Proxies::default(),
        }
    }
}

/// The files of a commit.
#[derive(Clone)]
pub struct GitCheckout {
    /// The files; they stay on disk as long as this lives.
    pub tree: Arc<dyn SourceTree>,
    /// Which commit, and by which name.
    pub resolved: Resolved,
}

impl fmt::Debug for GitCheckout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitCheckout").field("resolved", &self.resolved).finish_non_exhaustive()
    }
}

/// Repositories on disk, shared by everybody; cheap to clone.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    root: PathBuf,
    pub(super) options: CacheOptions,
    conversations: Semaphore,
    gates: Mutex<HashMap<PathBuf, Arc<Semaphore>>>,
    clients: Mutex<HashMap<ClientOptions, Client>>,
    mirrors: Mutex<HashMap<PathBuf, Weak<Mirror>>>,
}

/// What a conversation is to bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Resolve,
    Files(Depth),
    /// The commit with all that came before it.
    History,
    /// All branches and tags.
    Tips,
}

/// What a conversation brought.
struct Brought {
    found: Found,
    files: Option<(Arc<Mirror>, ObjectId)>,
    tips: Vec<Resolved>,
}

impl Cache {
    /// A cache below a directory, which other processes may use at the same time.
    ///
    /// # Errors
    /// [`GitError::Cache`] when the directory cannot be made.
    pub fn open(root: &Path, options: CacheOptions) -> Result<Self, GitError> {
        // Repositories may hold what other users of the machine must not see.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(|error| cache_error(root, &error))?;
        let conversations = Semaphore::new(options.max_parallel.max(1));
        let inner = Inner {
            root: root.to_owned(),
            options,
            conversations,
            gates: Mutex::default(),
            clients: Mutex::default(),
            mirrors: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The commit that a reference stands for right now. Asks the server, also when a commit is given: whoever may not read the
    /// repository learns nothing from the cache.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn resolve(
        &self,
        url: &GitUrl,
        reference: &Reference,
        auth: &Auth,
        cancel: &CancellationToken,
    ) -> Result<Resolved, GitError> {
        let brought = self.bring(url, reference, auth, Goal::Resolve, cancel).await?;
        Ok(resolved(brought.found))
    }

    /// The files of the commit that a reference stands for right now; downloaded unless some earlier call did.
    ///
    /// The server is asked with the given credentials in any case. Callers at the same time share one download. Safe to drop at
    /// any time.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn checkout(
        &self,
        url: &GitUrl,
        reference: &Reference,
        auth: &Auth,
        cancel: &CancellationToken,
    ) -> Result<GitCheckout, GitError> {
        let brought = self.bring(url, reference, auth, Goal::Files(Depth::One), cancel).await?;
        let (mirror, root) = brought
            .files
            .ok_or_else(|| cache_error(&self.inner.root, &"the commit's files are missing"))?;
        let history = History {
            cache: self.clone(),
            url: url.clone(),
            auth: auth.clone(),
            commit: brought.found.commit,
            runtime: Handle::current(),
            cancel: cancel.clone(),
        };
        let tree = GitTree::new(mirror, root, self.inner.options.max_file, history);
        Ok(GitCheckout { tree: Arc::new(tree), resolved: resolved(brought.found) })
    }

    /// A mirror that has the commit with its history; downloaded unless it is there.
    async fn history(
        &self,
        url: &GitUrl,
        commit: ObjectId,
        auth: &Auth,
        cancel: &CancellationToken,
    ) -> Result<Arc<Mirror>, GitError> {
        let reference = Reference::Commit(commit.to_string());
        let brought = self.bring(url, &reference, auth, Goal::History, cancel).await?;
        let (mirror, _) = brought
            .files
            .ok_or_else(|| cache_error(&self.inner.root, &"the commit's history is missing"))?;
        Ok(mirror)
    }

    /// The branches and tags, by name, and among them the one that is checked out by default. Annotated tags are followed.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn tips(
        &self,
        url: &GitUrl,
        auth: &Auth,
        cancel: &CancellationToken,
    ) -> Result<(Resolved, Vec<Resolved>), GitError> {
        let brought = self.bring(url, &Reference::Default, auth, Goal::Tips, cancel).await?;
        Ok((resolved(brought.found), brought.tips))
    }

    async fn bring(
        &self,
        url: &GitUrl,
        reference: &Reference,
        auth: &Auth,
        goal: Goal,
        cancel: &CancellationToken,
    ) -> Result<Brought, GitError> {
        let options = &self.inner.options;
        // A wrong commit needs no server to be told.
        reference.commit(&url.to_string())?;
        let deadline = Instant::now() + options.timeout;
        let (mut goal, mut attempts) = (goal, 1);
        let failed = |failure: Failure, attempts| {
            failure.into_error(url, auth, attempts, options.timeout, options.max_fetch)
        };
        loop {
            let conversation = self.converse(url, reference, auth, goal, deadline, cancel);
            let bounded = tokio::time::timeout_at(deadline, conversation);
            let stop = match cancel.run_until_cancelled(bounded).await {
                None => return Err(GitError::Cancelled),
                Some(Err(_)) => return Err(failed(Failure::Deadline, attempts)),
                Some(Ok(Ok(brought))) => return Ok(brought),
                Some(Ok(Err(stop))) => stop,
            };
            match stop {
                Stop::Final(error) => return Err(error),
                Stop::NotByItself(_) if goal == Goal::Files(Depth::One) => {
                    goal = Goal::Files(Depth::Full);
                }
                Stop::NotByItself(message) => {
                    return Err(GitError::Protocol { url: url.to_string(), message });
                }
                Stop::Transport(Failure::Again { retry, message }) => {
                    let wait = options.retry.wait(attempts, retry, jitter());
                    let Some(wait) = wait.filter(|wait| Instant::now() + *wait < deadline) else {
                        return Err(failed(Failure::Again { retry, message }, attempts));
                    };
                    tracing::debug!(%url, attempts, message, ?wait, "git: trying again");
                    net::sleep(wait, cancel).await.map_err(|_| GitError::Cancelled)?;
                    attempts += 1;
                }
                Stop::Transport(failure) => return Err(failed(failure, attempts)),
            }
        }
    }

    /// One conversation on the blocking pool. It ends soon after this future is dropped.
    async fn converse(
        &self,
        url: &GitUrl,
        reference: &Reference,
        auth: &Auth,
        goal: Goal,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Brought, Stop> {
        let internal = |error: &dyn fmt::Display| Stop::Final(cache_error(&self.inner.root, error));
        let gate = self.inner.gate(url);
        let turn = gate.acquire().await.map_err(|error| internal(&error))?;
        let permit = self.inner.conversations.acquire().await.map_err(|error| internal(&error))?;
        let interrupt = Arc::new(AtomicBool::new(false));
        let child = cancel.child_token();
        let operation = Arc::new(Operation {
            runtime: Handle::current(),
            deadline,
            cancel: child.clone(),
            interrupt: interrupt.clone(),
            max_bytes: self.inner.options.max_fetch,
            received: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        let _left = Left { interrupt, cancel: child };
        let (inner, url, reference, auth) =
            (self.inner.clone(), url.clone(), reference.clone(), auth.clone());
        let talk = tokio::task::spawn_blocking(move || {
            let result = inner.connect(&url, &reference, &auth, goal, &operation);
            // What a transport noted says more than what became of it on the way.
            result.map_err(|stop| match operation.take_failure() {
                Some(failure) => Stop::Transport(failure.through(inner.proxy_of(&url).as_deref())),
                None => stop,
            })
        });
        let result = talk.await.map_err(|error| internal(&error))?;
        drop((turn, permit));
        result
    }
}

/// How a tree gets the history of its commit, which few ask for.
pub(super) struct History {
    cache: Cache,
    url: GitUrl,
    auth: Auth,
    pub(super) commit: ObjectId,
    runtime: Handle,
    cancel: CancellationToken,
}

impl History {
    /// Downloads it. Blocks the calling thread, which must not be one that the runtime needs.
    pub(super) fn fetch(&self) -> Result<Arc<Mirror>, GitError> {
        let (cache, url, auth) = (self.cache.clone(), self.url.clone(), self.auth.clone());
        let (commit, cancel) = (self.commit, self.cancel.clone());
        let (send, receive) = std::sync::mpsc::channel();
        self.runtime.spawn(async move {
            send.send(cache.history(&url, commit, &auth, &cancel).await).ok();
        });
        // The sender goes without a word only when the runtime ends.
        receive.recv().unwrap_or(Err(GitError::Cancelled))
    }
}

/// Ends a conversation when the one who waits for it leaves.
struct Left {
    interrupt: Arc<AtomicBool>,
    cancel: CancellationToken,
}

impl Drop for Left {
    fn drop(&mut self) {
        self.interrupt.store(true, Ordering::Relaxed);
        self.cancel.cancel();
    }
}

impl Inner {
    fn connect(
        &self,
        url: &GitUrl,
        reference: &Reference,
        auth: &Auth,
        goal: Goal,
        operation: &Arc<Operation>,
    ) -> Result<Brought, Stop> {
        let broken = |error: io::Error| protocol_error(url, &error);
        match url.scheme() {
            Scheme::Http | Scheme::Https => {
                let client = self.client(auth).map_err(|error| {
                    Stop::Final(GitError::Net { url: url.to_string(), source: error })
                })?;
                let transport = http::connect(client, url, auth, operation).map_err(broken)?;
                self.talk(transport, url, reference, goal, operation)
            }
            Scheme::Ssh => {
                let timeout = self.options.connect_timeout;
                let transport =
                    ssh::connect(url, &auth.login, timeout, operation).map_err(broken)?;
                self.talk(transport, url, reference, goal, operation)
            }
        }
    }

    fn talk<T: Transport>(
        &self,
        transport: T,
        url: &GitUrl,
        reference: &Reference,
        goal: Goal,
        operation: &Operation,
    ) -> Result<Brought, Stop> {
        let mut remote = Remote::open(transport, operation).map_err(|error| broken(url, &error))?;
        let found = find(&mut remote, url, reference)?;
        let mut tips = Vec::new();
        let files = match goal {
            Goal::Resolve => None,
            Goal::Tips => {
                let listed = remote.list(&["refs/heads/", "refs/tags/"]);
                tips = reference::tips(&listed.map_err(|error| broken(url, &error))?);
                None
            }
            Goal::Files(depth) => {
                let fetch = Fetch { inner: self, url, reference, operation, commit: found.commit };
                Some(fetch.files(&mut remote, depth)?)
            }
            Goal::History => {
                let fetch = Fetch { inner: self, url, reference, operation, commit: found.commit };
                Some(fetch.history(&mut remote)?)
            }
        };
        Ok(Brought { found, files, tips })
    }

    fn client(&self, auth: &Auth) -> Result<Client, net::NetError> {
        let options = ClientOptions {
            connect_timeout: self.options.connect_timeout,
            read_timeout: self.options.read_timeout,
            ca_bundle: auth.ca_bundle.clone(),
            identity: auth.client_identity.clone(),
            proxies: self.options.proxies.clone(),
            // Requests of Git's protocol have no effect elsewhere, and answers that are none are not shown.
            reach: net::Reach::Anywhere,
            // Some servers speak Git's protocol only to clients that call themselves so.
            user_agent: concat!("git/flux-kluctl-controller-", env!("CARGO_PKG_VERSION"))
                .to_owned(),
            ..ClientOptions::default()
        };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&options) {
            return Ok(client.clone());
        }
        let client = net::client(&options)?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(options, client.clone());
        Ok(client)
    }

    /// Host and port of the proxy that requests to a repository take.
    fn proxy_of(&self, url: &GitUrl) -> Option<String> {
        let url = reqwest::Url::parse(&url.without_user()).ok()?;
        self.options.proxies.select(&url).map(|proxy| net::host_of(proxy.reveal()))
    }

    /// Where callers that want the same repository queue up.
    fn gate(&self, url: &GitUrl) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|_, gate| Arc::strong_count(gate) > 1);
        let gate = gates.entry(self.repository(url));
        gate.or_insert_with(|| Arc::new(Semaphore::new(PER_REPOSITORY))).clone()
    }

    pub(super) fn repository(&self, url: &GitUrl) -> PathBuf {
        let key = url.key();
        let name = key.path.rsplit('/').next().unwrap_or_default();
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = name.chars().map(safe).take(40).collect();
        let hash = Sha256::digest(key.to_string());
        let hash = u64::from_be_bytes(std::array::from_fn(|at| hash[at]));
        self.root.join(format!("{}-{hash:016x}", name.trim_start_matches('.')))
    }

    /// The repository's mirror: the one that is open, or the one on disk.
    pub(super) fn mirror(&self, repository: &Path, lock: &WriteLock) -> io::Result<Arc<Mirror>> {
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        mirrors.retain(|_, mirror| mirror.strong_count() > 0);
        if let Some(mirror) = mirrors.get(repository).and_then(Weak::upgrade) {
            return Ok(mirror);
        }
        let mirror = Arc::new(Mirror::open(repository, lock)?);
        mirrors.insert(repository.to_owned(), Arc::downgrade(&mirror));
        Ok(mirror)
    }

    pub(super) fn renew(
        &self,
        old: &Mirror,
        repository: &Path,
        lock: &WriteLock,
    ) -> io::Result<Arc<Mirror>> {
        let mirror = Arc::new(old.renew(repository, lock)?);
        let mut mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
        mirrors.insert(repository.to_owned(), Arc::downgrade(&mirror));
        Ok(mirror)
    }

    /// Removes the repositories used longest ago until the limits are met.
    pub(super) fn trim(&self) {
        #[expect(clippy::disallowed_methods, reason = "looks at its own cache directory")]
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut repositories: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .map(|path| (last_use(&path), disk_usage(&path), path))
            .collect();
        repositories.sort();
        let mut bytes: u64 = repositories.iter().map(|(_, bytes, _)| bytes).sum();
        let mut count = repositories.len();
        for (_, size, path) in &repositories {
            if bytes <= self.options.max_bytes && count <= self.options.max_repositories {
                break;
            }
            let mirrors = self.mirrors.lock().unwrap_or_else(PoisonError::into_inner);
            let is_open = mirrors.get(path).is_some_and(|mirror| mirror.strong_count() > 0);
            if !is_open && remove_repository(path) {
                bytes -= size;
                count -= 1;
            }
        }
    }
}

/// The commit that a reference stands for, as the server tells.
fn find<T: Transport>(
    remote: &mut Remote<'_, T>,
    url: &GitUrl,
    reference: &Reference,
) -> Result<Found, Stop> {
    if let Some(commit) = reference.commit(&url.to_string()).map_err(Stop::Final)? {
        return Ok(Found { commit, name: None });
    }
    let mut list = |prefixes: &[&str]| remote.list(prefixes).map_err(|error| broken(url, &error));
    let name = reference.full_name().unwrap_or_default();
    if let Some(found) = reference.find(&list(&[&name])?) {
        return Ok(found);
    }
    let all = list(&["refs/heads/", "refs/tags/"])?;
    Err(Stop::Final(reference.unknown(&url.to_string(), &all)))
}

fn resolved(found: Found) -> Resolved {
    Resolved { commit: found.commit.to_string(), name: found.name }
}

pub(super) fn cache_error(path: &Path, error: &dyn fmt::Display) -> GitError {
    GitError::Cache { path: path.display().to_string(), message: error.to_string() }
}

fn protocol_error(url: &GitUrl, error: &io::Error) -> Stop {
    let message = crate::secret::redact_text(&error.to_string());
    Stop::Final(GitError::Protocol { url: url.to_string(), message })
}
