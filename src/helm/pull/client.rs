//! One HTTP exchange after the other: retries, redirects without credentials, digests.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use reqwest::{Client, Response, Url, header};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::{Access, PullError};
use crate::{
    net::{
        self, ClientOptions, Failure, NetError, Proxies, Reach, Redirects, RetryPolicy, jitter,
        retry_after, sleep, stream_bounded,
    },
    secret::{Secret, redact_url},
};

/// Redirects in a row.
const MAX_REDIRECTS: usize = 10;
/// Connection failures and busy servers: twice more.
const RETRY: RetryPolicy =
    RetryPolicy { retries: 2, min_wait: Duration::from_secs(1), max_wait: Duration::from_secs(10) };

/// How a request proves who it is from. Only sent to the host that it was made for.
#[derive(Clone, Default)]
pub(super) enum Authorization {
    #[default]
    None,
    Basic(String, Option<Secret<String>>),
    Bearer(Secret<String>),
}

/// HTTP clients by what they are made of.
#[derive(Default)]
pub(super) struct Clients {
    proxies: Proxies,
    reach: Reach,
    made: Mutex<HashMap<ClientOptions, Client>>,
}

/// A request that is about to be made.
pub(super) struct Fetch<'a> {
    pub(super) url: &'a Url,
    pub(super) accept: &'a str,
    pub(super) access: &'a Access,
    pub(super) authorization: Authorization,
    pub(super) cancel: &'a CancellationToken,
}

impl Clients {
    pub(super) fn new(proxies: Proxies, reach: Reach) -> Self {
        Self { proxies, reach, made: Mutex::default() }
    }

    /// The client for a host; for others than the one that the access is for, it has no client certificate.
    fn client(&self, access: &Access, is_trusted: bool) -> Result<Client, NetError> {
        let options = ClientOptions {
            ca_bundle: access.ca_bundle.clone(),
            identity: access.identity.clone().filter(|_| is_trusted),
            proxies: self.proxies.clone(),
            reach: self.reach,
            redirects: Redirects::AreAnswers,
            skips_tls_checks: access.skips_tls_checks,
            ..ClientOptions::default()
        };
        let mut clients = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&options) {
            return Ok(client.clone());
        }
        let client = net::client(&options)?;
        clients.insert(options, client.clone());
        Ok(client)
    }

    /// The answer to a GET request after redirects; any status but those that are tried again.
    pub(super) async fn get(&self, fetch: &Fetch<'_>) -> Result<Response, PullError> {
        let mut url = fetch.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get_once(fetch, &url).await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let shown = redact_url(url.as_str());
            let refuse = |problem: &str| PullError::Protocol {
                url: shown.clone(),
                problem: problem.to_owned(),
            };
            let location = response.headers().get(header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            let next = next.ok_or_else(|| refuse("redirects nowhere"))?;
            match (url.scheme(), next.scheme()) {
                ("http", "http" | "https") | ("https", "https") => url = next,
                _ => return Err(refuse("redirects to an unsafe address")),
            }
        }
        Err(PullError::Protocol {
            url: redact_url(fetch.url.as_str()),
            problem: format!("redirects more than {MAX_REDIRECTS} times"),
        })
    }

    async fn get_once(&self, fetch: &Fetch<'_>, url: &Url) -> Result<Response, PullError> {
        let failed = |source: NetError| match source {
            NetError::Cancelled => PullError::Cancelled,
            source => PullError::Net { url: redact_url(url.as_str()), source },
        };
        self.reach.check(url).map_err(failed)?;
        let is_trusted = fetch.access.passes_everywhere || same_origin(url, fetch.url);
        let client = self.client(fetch.access, is_trusted).map_err(failed)?;
        let mut bare = url.clone();
        // Otherwise the HTTP library makes a header of them.
        let _was_http = bare.set_username("").and_then(|()| bare.set_password(None));
        let mut attempts = 1;
        loop {
            let mut request = client.get(bare.clone()).header(header::ACCEPT, fetch.accept);
            match &fetch.authorization {
                Authorization::Basic(user, password) if is_trusted => {
                    request = request.basic_auth(user, password.as_ref().map(Secret::reveal));
                }
                Authorization::Bearer(token) if is_trusted => {
                    request = request.bearer_auth(token.reveal());
                }
                _ => {}
            }
            let sent = fetch.cancel.run_until_cancelled(request.send()).await;
            let (failure, error) = match sent {
                None => return Err(PullError::Cancelled),
                Some(Ok(response)) => {
                    let code = response.status().as_u16();
                    let failure =
                        Failure::Status { code, retry_after: retry_after(response.headers()) };
                    if RETRY.wait(attempts, failure, 0.0).is_none() {
                        return Ok(response);
                    }
                    (failure, None)
                }
                Some(Err(error)) => {
                    let error = NetError::from_reqwest(url, error);
                    (error.failure(), Some(error))
                }
            };
            match (RETRY.wait(attempts, failure, jitter()), error) {
                (Some(wait), _) => sleep(wait, fetch.cancel).await.map_err(failed)?,
                (None, Some(error)) => return Err(failed(error)),
                (None, None) => {}
            }
            attempts += 1;
        }
    }
}

/// An answer with the content asked for; other statuses are errors.
pub(super) fn expect_ok(
    response: Response,
    fetch: &Fetch<'_>,
    what: &'static str,
) -> Result<Response, PullError> {
    let url = redact_url(fetch.url.as_str());
    match response.status().as_u16() {
        200 => Ok(response),
        404 | 410 => Err(PullError::Missing { url, what }),
        status @ (401 | 403) => {
            let access = fetch.access;
            let tried = match &access.user {
                Some(user) => format!("asked as {user} (from {})", access.origin),
                None if access.has_login() => {
                    format!("asked with a token (from {})", access.origin)
                }
                None => "asked without credentials".to_owned(),
            };
            Err(PullError::Denied { url, status, tried })
        }
        status => Err(PullError::Status { url, status }),
    }
}

/// Writes a body of at most `limit` bytes to a file, and returns its SHA-256 in hex.
pub(super) async fn save(
    response: Response,
    fetch: &Fetch<'_>,
    path: &Path,
    limit: u64,
) -> Result<String, PullError> {
    let url = redact_url(fetch.url.as_str());
    let on_disk = |error: std::io::Error| PullError::Disk {
        path: path.display().to_string(),
        message: error.to_string(),
    };
    let mut file = tokio::fs::File::create(path).await.map_err(on_disk)?;
    let mut hasher = Sha256::new();
    let mut body = std::pin::pin!(stream_bounded(response, limit));
    loop {
        let chunk = match fetch.cancel.run_until_cancelled(body.next()).await {
            None => return Err(PullError::Cancelled),
            Some(None) => break,
            Some(Some(chunk)) => chunk,
        };
        let chunk = chunk.map_err(|source| PullError::Net { url: url.clone(), source })?;
        hasher.update(&chunk);
        file.write_all(&chunk).await.map_err(on_disk)?;
    }
    file.flush().await.map_err(on_disk)?;
    Ok(hex(&hasher.finalize()))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ok = write!(text, "{byte:02x}");
        text
    })
}

fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}
