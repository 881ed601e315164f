//! `/healthz`, `/readyz` and `/metrics` over HTTP.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;

/// An address to listen on, as the flags spell it: `host:port` or `:port`; `0` and nothing turn the listener off.
///
/// # Errors
/// When it is neither; the message names it.
pub fn parse_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let full =
        full.strip_prefix("localhost:").map_or(full.clone(), |port| format!("127.0.0.1:{port}"));
    full.parse()
        .map(Some)
        .map_err(|_| format!("{text:?} is no address, expected host:port, :port or 0"))
}

/// Binds an address. Where the machine has no IPv6, `:port` falls back to IPv4.
///
/// # Errors
/// When the address cannot be bound.
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() => {
            TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

/// Serves the metrics until `cancel` fires.
pub(crate) async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    cancel: CancellationToken,
) {
    let routes = Router::new().route("/metrics", get(metrics_text)).with_state(metrics);
    serve(listener, routes, cancel).await;
}

/// Serves the probes until `cancel` fires. `/healthz` answers as long as the process does; `/readyz` once `is_ready` says so.
pub(crate) async fn serve_probes(
    listener: TcpListener,
    is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
    cancel: CancellationToken,
) {
    let routes = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readiness))
        .with_state(is_ready);
    serve(listener, routes, cancel).await;
}

async fn serve(listener: TcpListener, routes: Router, cancel: CancellationToken) {
    let shutdown = async move { cancel.cancelled().await };
    if let Err(error) = axum::serve(listener, routes).with_graceful_shutdown(shutdown).await {
        tracing::error!("a listener ended: {error}");
    }
}

async fn metrics_text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text())
}

async fn readiness(
    State(is_ready): State<Arc<dyn Fn() -> bool + Send + Sync>>,
) -> impl IntoResponse {
    if is_ready() { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "starting") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spelled_as_in_go() {
        assert_eq!(parse_address("0"), Ok(None));
        assert_eq!(parse_address(""), Ok(None));
        assert_eq!(parse_address(":8080").unwrap().unwrap().to_string(), "[::]:8080");
        assert_eq!(parse_address("127.0.0.1:0").unwrap().unwrap().to_string(), "127.0.0.1:0");
        assert_eq!(parse_address("localhost:9440").unwrap().unwrap().to_string(), "127.0.0.1:9440");
        assert!(parse_address("8080").unwrap_err().contains("8080"));
    }
}
