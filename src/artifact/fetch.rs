use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use reqwest::{Client, StatusCode, Url};
use tokio::{
    fs::File,
    io::{AsyncWriteExt, BufWriter},
    sync::watch,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{Artifact, ArtifactError, Digest};
use crate::{
    archive::UnpackLimits,
    net::{
        Failure, NetError, Proxies, RetryPolicy, host_of, jitter, retry_after, sleep,
        stream_bounded,
    },
    secret::redact_url,
};

/// Bounds and patience for one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchOptions {
    /// The largest file that is downloaded, in bytes.
    pub max_download: u64,
    /// Bounds for unpacking.
    pub unpack: UnpackLimits,
    /// Second attempts on connection errors, 429 and 5xx.
    pub retry: RetryPolicy,
    /// Time for everything, waits included: for other downloads, and between attempts. It is the caller's alone; whoever waits for
    /// the same download has a time of their own.
    pub timeout: Duration,
    /// Value of `SOURCE_CONTROLLER_LOCALHOST`: host to download from instead of the URL's.
    pub localhost: Option<String>,
    /// The proxies that the client takes, for messages.
    pub proxies: Proxies,
}

impl Default for FetchOptions {
    /// 256 MiB, Flux's 9 retries, 5 minutes.
    fn default() -> Self {
        Self {
            max_download: 256 << 20,
            unpack: UnpackLimits::default(),
            retry: RetryPolicy::flux(9),
            timeout: Duration::from_mins(5),
            localhost: None,
            proxies: Proxies::default(),
        }
    }
}

/// How one attempt ended without the file.
enum Stop {
    /// Another attempt may help.
    Again {
        failure: Failure,
        message: String,
    },
    Final(ArtifactError),
}

/// How far a download has come, for all who wait for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    /// Bytes of the present attempt.
    received: Arc<AtomicU64>,
    /// Why the last attempt failed, and when the next one is.
    trouble: watch::Sender<Option<Trouble>>,
}

#[derive(Debug)]
struct Trouble {
    error: ArtifactError,
    next: Instant,
}

impl Course {
    /// Returns once a download cannot be there by `deadline`, with the reason: at once when it does not even try again before.
    pub(super) async fn too_late(
        &self,
        artifact: &Artifact,
        options: &FetchOptions,
        deadline: Instant,
    ) -> ArtifactError {
        let mut trouble = self.trouble.subscribe();
        let is_hopeless = |trouble: &Option<Trouble>| {
            trouble.as_ref().is_some_and(|trouble| trouble.next >= deadline)
        };
        let limited = tokio::time::timeout_at(deadline, trouble.wait_for(is_hopeless));
        if let Ok(Ok(trouble)) = limited.await
            && let Some(trouble) = &*trouble
        {
            return trouble.error.clone();
        }
        let url = super::locate(&artifact.url, options.localhost.as_deref());
        ArtifactError::Deadline {
            url: redact_url(url.as_ref().map_or(artifact.url.as_str(), Url::as_str)),
            seconds: options.timeout.as_secs(),
            received: self.received.load(Ordering::Relaxed),
        }
    }
}

/// Downloads the artifact to `target` and compares size and digest. On success `target` holds exactly the announced bytes.
/// The file is left behind on failure; the caller's directory is temporary. `options.timeout` does not count here.
pub(super) async fn download(
    client: &Client,
    artifact: &Artifact,
    options: &FetchOptions,
    target: &Path,
    course: &Course,
    cancel: &CancellationToken,
) -> Result<u64, ArtifactError> {
    let url = super::locate(&artifact.url, options.localhost.as_deref())?;
    let shown = redact_url(url.as_str());
    let max = options.max_download;
    let announced = artifact.size.filter(|size| *size > 0);
    if announced.is_some_and(|size| size > max) {
        return Err(ArtifactError::TooLarge { url: shown, limit: max });
    }
    // What is longer than announced has another digest; there is no need to read on.
    let limit = announced.unwrap_or(max);
    let proxy = options.proxies.select(&url).map(|proxy| host_of(proxy.reveal()));
    let mut run = Download {
        client,
        artifact,
        announced,
        limit,
        target,
        url,
        shown,
        proxy,
        course,
        received: 0,
    };
    let work = cancel.run_until_cancelled(run.with_retries(&options.retry, cancel));
    work.await.unwrap_or(Err(ArtifactError::Cancelled))
}

struct Download<'a> {
    client: &'a Client,
    artifact: &'a Artifact,
    /// The size that the source announces, in bytes.
    announced: Option<u64>,
    limit: u64,
    target: &'a Path,
    url: Url,
    shown: String,
    /// Host and port of the proxy in between.
    proxy: Option<String>,
    course: &'a Course,
    received: u64,
}

impl Download<'_> {
    async fn with_retries(
        &mut self,
        retry: &RetryPolicy,
        cancel: &CancellationToken,
    ) -> Result<u64, ArtifactError> {
        let mut attempts = 1;
        loop {
            match self.attempt().await {
                Ok(()) => return Ok(self.received),
                Err(Stop::Final(error)) => return Err(error),
                Err(Stop::Again { failure, message }) => {
                    let url = self.shown.clone();
                    let message = match &self.proxy {
                        Some(proxy) => format!("{message} (through the proxy {proxy})"),
                        None => message,
                    };
                    let wait = retry.wait(attempts, failure, jitter());
                    tracing::debug!(url, attempts, message, ?wait, "artifact: the attempt failed");
                    let error = ArtifactError::Unavailable { url, attempts, message };
                    let Some(wait) = wait else { return Err(error) };
                    // Who has not that much time goes with this error, instead of waiting for a time that will not come.
                    let trouble = Trouble { error, next: Instant::now() + wait };
                    self.course.trouble.send_replace(Some(trouble));
                    sleep(wait, cancel).await.map_err(|_| ArtifactError::Cancelled)?;
                    attempts += 1;
                }
            }
        }
    }

    async fn attempt(&mut self) -> Result<(), Stop> {
        self.received = 0;
        self.course.received.store(0, Ordering::Relaxed);
        let response = self.client.get(self.url.clone()).send().await;
        let response =
            response.map_err(|error| self.stop(NetError::from_reqwest(&self.url, error)))?;
        let status = response.status();
        if status != StatusCode::OK {
            let url = self.shown.clone();
            return Err(match status.as_u16() {
                404 | 410 => Stop::Final(ArtifactError::StorageGone { url }),
                code @ (408 | 429 | 500 | 502..=599) => Stop::Again {
                    failure: Failure::Status { code, retry_after: retry_after(response.headers()) },
                    message: format!("the source's storage answered {status}"),
                },
                status => Stop::Final(ArtifactError::Refused { url, status }),
            });
        }
        if response.content_length().is_some_and(|length| length > self.limit) {
            return Err(self.too_large());
        }
        let actual = self.write(response).await?;
        if actual == self.artifact.digest {
            return Ok(());
        }
        Err(Stop::Final(ArtifactError::DigestMismatch {
            url: self.shown.clone(),
            expected: self.artifact.digest.clone(),
            actual,
            received: self.received,
        }))
    }

    /// Streams the body to the target file, and returns its digest.
    async fn write(&mut self, response: reqwest::Response) -> Result<Digest, Stop> {
        let cannot_write = |error: std::io::Error| {
            Stop::Final(ArtifactError::Cache {
                path: self.target.display().to_string(),
                message: error.to_string(),
            })
        };
        let file = File::create(self.target).await.map_err(cannot_write)?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        let mut hasher = self.artifact.digest.hasher();
        let mut body = std::pin::pin!(stream_bounded(response, self.limit));
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| self.stop(error))?;
            self.received += chunk.len() as u64;
            self.course.received.store(self.received, Ordering::Relaxed);
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(cannot_write)?;
        }
        file.flush().await.map_err(cannot_write)?;
        Ok(hasher.finish())
    }

    fn stop(&self, error: NetError) -> Stop {
        match error {
            NetError::TooLarge { .. } => self.too_large(),
            NetError::Cancelled => Stop::Final(ArtifactError::Cancelled),
            error => match error.failure() {
                Failure::Final => {
                    Stop::Final(ArtifactError::Net { url: self.shown.clone(), source: error })
                }
                failure => Stop::Again { failure, message: error.to_string() },
            },
        }
    }

    fn too_large(&self) -> Stop {
        let url = self.shown.clone();
        Stop::Final(match self.announced {
            Some(announced) => ArtifactError::LongerThanAnnounced { url, announced },
            None => ArtifactError::TooLarge { url, limit: self.limit },
        })
    }
}
