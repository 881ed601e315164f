use std::{collections::BTreeMap, time::Duration};

use reqwest::{Client, StatusCode, Url};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{CONTROLLER_NAME, Notice};
use crate::{
    controller::{conditions::shorten_to, summarize::Severity},
    net::{Failure, RetryPolicy, jitter, retry_after, sleep},
};

/// Time for one attempt (Flux's own client waits as long).
const TIMEOUT: Duration = Duration::from_secs(5);
/// Flux's client tries four times more, on connection errors and 5xx.
const RETRY: RetryPolicy =
    RetryPolicy { retries: 4, min_wait: Duration::from_secs(1), max_wait: Duration::from_secs(10) };
/// Flux's documented limit for messages.
const LONGEST_MESSAGE: usize = 39_000 - 3;

/// What became of a Flux event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    /// notification-controller took it.
    Accepted,
    /// notification-controller had the same news within its rate limit interval.
    Duplicate,
    /// It was refused, or never got through.
    Failed,
}

/// Posts events to notification-controller (Flux's event API).
#[derive(Debug, Clone)]
pub(crate) struct FluxEvents {
    client: Client,
    url: Url,
    /// Name of the machine, which receivers see as the reporting instance.
    instance: String,
    retry: RetryPolicy,
}

/// The body of an event, as notification-controller decodes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    involved_object: InvolvedObject<'a>,
    severity: &'static str,
    timestamp: String,
    message: String,
    reason: &'a str,
    metadata: BTreeMap<String, String>,
    reporting_controller: &'static str,
    reporting_instance: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InvolvedObject<'a> {
    api_version: String,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

impl FluxEvents {
    /// Posts to `url`, the value of `--events-addr`.
    pub(crate) fn new(client: Client, url: Url, instance: String) -> Self {
        Self { client, url, instance, retry: RETRY }
    }

    /// The same with another retry rule, for tests.
    #[cfg(test)]
    pub(crate) fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Posts an event: five seconds per attempt, again on connection errors and 5xx. Failures are only logged.
    pub(super) async fn post(&self, notice: &Notice, cancel: &CancellationToken) -> Sent {
        let body = body(notice, &self.instance);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (failure, message) = match self.attempt(&body).await {
                Ok(sent) => return sent,
                Err(failed) => failed,
            };
            let wait = self.retry.wait(attempts, failure, jitter());
            tracing::debug!(attempts, message, "posting an event to notification-controller");
            let Some(wait) = wait else {
                tracing::warn!(
                    object = %notice.subject.object,
                    attempts,
                    "notification-controller did not take an event: {message}"
                );
                return Sent::Failed;
            };
            if sleep(wait, cancel).await.is_err() {
                return Sent::Failed;
            }
        }
    }

    async fn attempt(&self, body: &Body<'_>) -> Result<Sent, (Failure, String)> {
        let request = self.client.post(self.url.clone()).timeout(TIMEOUT).json(body);
        let response = request.send().await.map_err(|error| {
            // The URL is the operator's own, but may carry credentials.
            (Failure::Connection, crate::secret::redact_text(&error.without_url().to_string()))
        })?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Ok(Sent::Duplicate),
            status if status.is_success() => Ok(Sent::Accepted),
            status => {
                let failure = Failure::Status {
                    code: status.as_u16(),
                    retry_after: retry_after(response.headers()),
                };
                Err((failure, format!("it answered {status}")))
            }
        }
    }
}

fn body<'a>(notice: &'a Notice, instance: &'a str) -> Body<'a> {
    let object = &notice.subject.object;
    // The controller's own keys win over annotations.
    let mut metadata = notice.subject.annotations.clone();
    metadata.extend(notice.metadata());
    Body {
        involved_object: InvolvedObject {
            api_version: object.api_version(),
            kind: &object.kind,
            namespace: object.namespace.as_deref().unwrap_or_default(),
            name: &object.name,
            uid: &notice.subject.uid,
            resource_version: &notice.subject.resource_version,
        },
        severity: match notice.event.severity {
            Severity::Info => "info",
            Severity::Error => "error",
        },
        timestamp: notice.at.to_string(),
        message: shorten_to(&notice.event.message, LONGEST_MESSAGE),
        reason: notice.event.reason,
        metadata,
        reporting_controller: CONTROLLER_NAME,
        reporting_instance: instance,
    }
}
