//! A proxy in front of the API server that loses, delays and refuses some of what goes through it.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{Response, StatusCode},
};
use futures::{StreamExt, stream};
use kube::Client;
use serde_json::json;

/// What the proxy does to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ApiFault {
    /// Passes it on, and breaks the connection in the middle of the answer.
    CutAnswer,
    /// Breaks the connection without passing it on.
    CutRequest,
    /// Answers that the server failed.
    ServerError,
    /// Answers that there are too many requests.
    Throttle,
    /// Takes its time.
    Delay,
}

/// The proxy; it has no faults until it is given some.
pub(crate) struct ApiProxy {
    shared: Arc<Shared>,
    pub(crate) kubeconfig: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    client: Client,
    faults: std::sync::Mutex<Vec<ApiFault>>,
    seed: AtomicU64,
    count: AtomicU64,
    hits: AtomicUsize,
}

impl ApiProxy {
    /// Starts it, as the user of `client`, with a kubeconfig in `dir`.
    pub(crate) async fn start(client: Client, dir: &Path) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            client,
            faults: std::sync::Mutex::default(),
            seed: AtomicU64::new(0),
            count: AtomicU64::new(0),
            hits: AtomicUsize::new(0),
        });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let kubeconfig = dir.join("proxy.kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "users": [{"name": "proxy", "user": {}}],
        });
        std::fs::write(&kubeconfig, config.to_string())?;
        Ok(Self { shared, kubeconfig, task })
    }

    /// Has about every fifth request meet one of these faults from now on; which ones depends on `seed`.
    pub(crate) fn set(&self, faults: &[ApiFault], seed: u64) {
        *self.shared.faults.lock().unwrap() = faults.to_vec();
        self.shared.seed.store(seed, Ordering::SeqCst);
        self.shared.count.store(0, Ordering::SeqCst);
    }

    /// How many requests met a fault so far.
    pub(crate) fn hits(&self) -> usize {
        self.shared.hits.load(Ordering::SeqCst)
    }
}

impl Drop for ApiProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    /// The fault of the next request.
    fn fault(&self) -> Option<ApiFault> {
        let faults = self.faults.lock().unwrap().clone();
        let mut hasher = DefaultHasher::new();
        let count = self.count.fetch_add(1, Ordering::SeqCst);
        (self.seed.load(Ordering::SeqCst), count).hash(&mut hasher);
        let noise = hasher.finish();
        if faults.is_empty() || !noise.is_multiple_of(5) {
            return None;
        }
        self.hits.fetch_add(1, Ordering::SeqCst);
        let index = usize::try_from((noise / 5) % 97).unwrap_or_default();
        Some(faults[index % faults.len()])
    }
}

/// An answer that breaks off after `begun`.
fn broken(begun: Bytes) -> Response<Body> {
    let error = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let body = stream::iter([Ok(begun)]).chain(stream::once(async move {
        // So that what has begun is sent on its own.
        tokio::time::sleep(Duration::from_millis(20)).await;
        error
    }));
    Response::new(Body::from_stream(body))
}

fn refused(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::from("fault"));
    *response.status_mut() = status;
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert("retry-after", "1".parse().unwrap());
    }
    response
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let fault = shared.fault();
    match fault {
        Some(ApiFault::CutRequest) => return broken(Bytes::from_static(b"{")),
        Some(ApiFault::ServerError) => return refused(StatusCode::INTERNAL_SERVER_ERROR),
        Some(ApiFault::Throttle) => return refused(StatusCode::TOO_MANY_REQUESTS),
        Some(ApiFault::Delay) => tokio::time::sleep(Duration::from_millis(700)).await,
        Some(ApiFault::CutAnswer) | None => {}
    }
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    parts.uri = path.parse().unwrap();
    for header in ["host", "connection", "accept-encoding"] {
        parts.headers.remove(header);
    }
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return refused(StatusCode::BAD_REQUEST);
    };
    let forwarded = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    let Ok(answer) = shared.client.send(forwarded).await else {
        return refused(StatusCode::BAD_GATEWAY);
    };
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove("content-length");
    parts.headers.remove("transfer-encoding");
    let body = Body::new(body);
    if fault == Some(ApiFault::CutAnswer) {
        let mut begun = broken(Bytes::from_static(b"{\"kind\""));
        *begun.status_mut() = parts.status;
        // The request has been carried out by now.
        return begun;
    }
    Response::from_parts(parts, body)
}
