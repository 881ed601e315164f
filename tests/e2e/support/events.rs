use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use axum::{Router, extract::State, http::StatusCode, routing::post};
use serde_json::Value;

/// How an [`EventSink`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkMode {
    /// 202, as notification-controller does.
    Accept,
    /// This status code.
    Refuse(u16),
    /// No answer at all.
    Hang,
}

/// An endpoint in the place of notification-controller that keeps what it was sent.
pub(crate) struct EventSink {
    /// Base URL for `--events-addr`.
    pub(crate) url: String,
    state: Arc<SinkState>,
    task: tokio::task::JoinHandle<()>,
}

struct SinkState {
    mode: Mutex<SinkMode>,
    received: Mutex<Vec<Value>>,
}

impl EventSink {
    /// Listens on a free loopback port.
    pub(crate) async fn start(mode: SinkMode) -> Result<Self> {
        let state = Arc::new(SinkState { mode: Mutex::new(mode), received: Mutex::default() });
        let router = Router::new().fallback(post(receive)).with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.ok();
        });
        Ok(Self { url, state, task })
    }

    /// Changes how it answers from now on.
    pub(crate) fn set_mode(&self, mode: SinkMode) {
        *self.state.mode.lock().unwrap() = mode;
    }

    /// Everything that was POSTed so far, refused or not.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.state.received.lock().unwrap().clone()
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(State(state): State<Arc<SinkState>>, body: axum::body::Bytes) -> StatusCode {
    if let Ok(event) = serde_json::from_slice(&body) {
        state.received.lock().unwrap().push(event);
    }
    let mode = *state.mode.lock().unwrap();
    match mode {
        SinkMode::Accept => StatusCode::ACCEPTED,
        SinkMode::Refuse(code) => StatusCode::from_u16(code).unwrap(),
        SinkMode::Hang => {
            tokio::time::sleep(Duration::from_hours(1)).await;
            StatusCode::ACCEPTED
        }
    }
}
