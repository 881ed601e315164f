use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Event as KubeEvent, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{CONTROLLER_NAME, Notice};
use crate::{
    controller::{
        conditions::{kube_time, shorten_to},
        summarize::Severity,
    },
    net::{Failure, RetryPolicy, jitter},
};

/// Time for one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Half a minute in all, which an API server that is restarted needs.
const RETRY: RetryPolicy =
    RetryPolicy { retries: 5, min_wait: Duration::from_secs(1), max_wait: Duration::from_secs(15) };

/// Longest message of a Kubernetes Event, in bytes (the API server refuses longer ones).
const LONGEST_MESSAGE: usize = 1024 - 3;
/// Events that are remembered, so that a repeat raises a counter in place of another Event.
const REMEMBERED: usize = 512;

/// Writes Kubernetes Events of `core/v1`, which `kubectl events --for` and `kubectl describe` show.
pub(super) struct Writer {
    client: Client,
    known: HashMap<Identity, Known>,
    order: VecDeque<Identity>,
    random: RandomState,
    retry: RetryPolicy,
}

/// What makes two events the same news.
type Identity = (String, &'static str, String);

struct Known {
    name: String,
    count: i32,
}

impl Writer {
    pub(super) fn new(client: Client) -> Self {
        let (known, order) = (HashMap::new(), VecDeque::new());
        Self { client, known, order, random: RandomState::new(), retry: RETRY }
    }

    /// Writes an event, or raises the counter of an equal one; again when the API server cannot be reached or is in trouble.
    /// Failures are only logged.
    pub(super) async fn write(&mut self, notice: &Notice) {
        let namespace = notice.subject.object.namespace.clone().unwrap_or_else(|| "default".into());
        let api: Api<KubeEvent> = Api::namespaced(self.client.clone(), &namespace);
        let message = shorten_to(&notice.event.message, LONGEST_MESSAGE);
        let identity = (notice.subject.uid.clone(), notice.event.reason, message.clone());
        if let Some(known) = self.known.get_mut(&identity) {
            known.count = known.count.saturating_add(1);
            let patch = json!({ "count": known.count, "lastTimestamp": kube_time(notice.at) });
            let params = PatchParams {
                field_manager: Some(CONTROLLER_NAME.into()),
                ..PatchParams::default()
            };
            let (name, patch) = (known.name.clone(), Patch::Merge(patch));
            match self.send(|| api.patch(&name, &params, &patch)).await {
                Ok(_) => return,
                // The API server drops Events after a while; then it is told anew.
                Err(Untaken { code: 404, .. }) => self.forget(&identity),
                Err(error) => return error.log(notice),
            }
        }
        let name = self.name(notice);
        let event = event(notice, &namespace, &name, message);
        let params =
            PostParams { field_manager: Some(CONTROLLER_NAME.into()), ..PostParams::default() };
        match self.send(|| api.create(&params, &event)).await {
            // It is there already when an attempt got through whose answer did not.
            Ok(_) | Err(Untaken { code: 409, .. }) => self.remember(identity, name),
            Err(error) => error.log(notice),
        }
    }

    async fn send<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, Untaken>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (code, message) = match tokio::time::timeout(TIMEOUT, attempt()).await {
                Ok(Ok(taken)) => return Ok(taken),
                Ok(Err(kube::Error::Api(status))) => (status.code, status.message.clone()),
                Ok(Err(error)) => (0, error.to_string()),
                Err(_) => (0, format!("no answer within {} s", TIMEOUT.as_secs())),
            };
            let failure = match code {
                0 => Failure::Connection,
                code => Failure::Status { code, retry_after: None },
            };
            let Some(wait) = self.retry.wait(attempts, failure, jitter()) else {
                return Err(Untaken { code, message, attempts });
            };
            tracing::debug!(attempts, message, ?wait, "the API server did not take an event yet");
            tokio::time::sleep(wait).await;
        }
    }

    fn forget(&mut self, identity: &Identity) {
        self.known.remove(identity);
        self.order.retain(|known| known != identity);
    }

    fn remember(&mut self, identity: Identity, name: String) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(identity.clone());
        self.known.insert(identity, Known { name, count: 1 });
    }

    /// `<object>.<16 hex digits>`, as client-go names events.
    fn name(&self, notice: &Notice) -> String {
        let unique = self.random.hash_one((notice.at.as_nanosecond(), &notice.event.message));
        let object = shorten_name(&notice.subject.object.name);
        format!("{object}.{unique:016x}")
    }
}

/// What the API server said to an event at last. The code is 0 when it said nothing.
struct Untaken {
    code: u16,
    message: String,
    attempts: u32,
}

impl Untaken {
    fn log(&self, notice: &Notice) {
        let Self { message, attempts, .. } = self;
        let object = &notice.subject.object;
        tracing::warn!(%object, attempts, "the API server did not take an event: {message}");
    }
}

fn shorten_name(name: &str) -> &str {
    // Object names are at most 253 characters of ASCII, and so is the event's.
    name.get(..name.len().min(230)).unwrap_or(name)
}

fn event(notice: &Notice, namespace: &str, name: &str, message: String) -> KubeEvent {
    let object = &notice.subject.object;
    let time: Time = kube_time(notice.at);
    let annotations: std::collections::BTreeMap<_, _> =
        notice.subject.annotations.clone().into_iter().chain(notice.metadata()).collect();
    KubeEvent {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(object.api_version()),
            kind: Some(object.kind.clone()),
            name: Some(object.name.clone()),
            namespace: object.namespace.clone(),
            uid: Some(notice.subject.uid.clone()),
            resource_version: Some(notice.subject.resource_version.clone()),
            field_path: None,
        },
        type_: Some(match notice.event.severity {
            Severity::Info => "Normal".to_owned(),
            Severity::Error => "Warning".to_owned(),
        }),
        reason: Some(notice.event.reason.to_owned()),
        message: Some(message),
        source: Some(EventSource { component: Some(CONTROLLER_NAME.to_owned()), host: None }),
        reporting_component: Some(CONTROLLER_NAME.to_owned()),
        reporting_instance: Some(String::new()),
        first_timestamp: Some(time.clone()),
        last_timestamp: Some(time),
        count: Some(1),
        ..KubeEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

    use super::{
        super::tests::{kubernetes, notice},
        *,
    };
    use crate::controller::summarize::Token;

    const SOON: RetryPolicy = RetryPolicy {
        retries: 2,
        min_wait: Duration::from_millis(1),
        max_wait: Duration::from_millis(2),
    };

    /// How many requests it takes to write an event, twice, when the server answers like this.
    async fn requests(codes: &[u16]) -> usize {
        let server = MockServer::start().await;
        let taken = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {}});
        for code in codes {
            let refused =
                json!({"kind": "Status", "code": code, "status": "Failure", "message": "no"});
            let answer = ResponseTemplate::new(*code).set_body_json(refused);
            Mock::given(method("POST")).respond_with(answer).up_to_n_times(1).mount(&server).await;
        }
        for verb in ["POST", "PATCH"] {
            let answer = ResponseTemplate::new(200).set_body_json(&taken);
            Mock::given(method(verb)).respond_with(answer).mount(&server).await;
        }
        let mut writer = Writer { retry: SOON, ..Writer::new(kubernetes(&server.uri())) };
        for _ in 0..2 {
            writer.write(&notice("news", Token::Always)).await;
        }
        server.received_requests().await.unwrap().len()
    }

    #[tokio::test]
    async fn trouble_calls_for_another_attempt_and_a_refusal_does_not() {
        assert_eq!(requests(&[]).await, 2, "the event, then its counter");
        assert_eq!(requests(&[500, 502]).await, 4);
        assert_eq!(requests(&[500, 409]).await, 3, "an attempt got through whose answer did not");
        assert_eq!(requests(&[403]).await, 2, "each time a new event");
        assert_eq!(requests(&[500, 500, 500]).await, 4, "three attempts and no more");
    }

    #[tokio::test]
    async fn a_dropped_event_leaves_nothing_behind() {
        let mut writer = Writer::new(kubernetes("http://127.0.0.1:1"));
        let identity = |text: &str| ("uid".to_owned(), "Reason", text.to_owned());
        for text in ["a", "b"] {
            writer.remember(identity(text), text.to_owned());
        }
        writer.forget(&identity("a"));
        assert!(writer.known.len() == 1 && writer.known.contains_key(&identity("b")));
        assert_eq!(writer.order, [identity("b")], "a place that would push out a live one");
    }
}
