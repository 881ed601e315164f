use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
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
use crate::controller::{
    conditions::{kube_time, shorten_to},
    summarize::Severity,
};

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
        Self { client, known, order, random: RandomState::new() }
    }

    /// Writes an event, or raises the counter of an equal one. Failures are only logged.
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
            if api.patch(&known.name, &params, &Patch::Merge(patch)).await.is_ok() {
                return;
            }
            // The API server drops Events after a while; then it is told anew.
            self.forget(&identity);
        }
        let name = self.name(notice);
        let event = event(notice, &namespace, &name, message);
        let params =
            PostParams { field_manager: Some(CONTROLLER_NAME.into()), ..PostParams::default() };
        match api.create(&params, &event).await {
            Ok(_) => self.remember(identity, name),
            Err(error) => tracing::warn!(
                object = %notice.subject.object,
                "the API server did not take an event: {error}"
            ),
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
    use super::*;

    #[tokio::test]
    async fn a_dropped_event_leaves_nothing_behind() {
        // Whoever was first has set it; any one will do.
        let _ignored = rustls::crypto::ring::default_provider().install_default();
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let mut writer = Writer::new(Client::try_from(config).unwrap());
        let identity = |text: &str| ("uid".to_owned(), "Reason", text.to_owned());
        for text in ["a", "b"] {
            writer.remember(identity(text), text.to_owned());
        }
        writer.forget(&identity("a"));
        assert!(writer.known.len() == 1 && writer.known.contains_key(&identity("b")));
        assert_eq!(writer.order, [identity("b")], "a place that would push out a live one");
    }
}
