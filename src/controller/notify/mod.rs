//! Events about objects: Kubernetes Events, and Flux events for notification-controller.
//!
//! Both are sent in the background from bounded queues: a reconciliation never waits for them, and an endpoint that hangs
//! costs at most its own events. Events of one object stay in order.

mod flux;
mod kubernetes;

pub(crate) use flux::{FluxEvents, Sent};

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    metrics::Metrics,
    summarize::{Event, Token},
};
use crate::{api, object::ObjectRef};

/// Name under which events are reported; Flux's field managers and the Go controllers use it, too.
pub(crate) const CONTROLLER_NAME: &str = "flux-kluctl-controller";
/// Events of different objects are sent side by side in this many lanes.
const LANES: usize = 4;
/// Events that wait in one lane; more are dropped (and counted), for old news help nobody.
const LANE_LENGTH: usize = 256;

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Group, version, kind, namespace, name.
    pub object: ObjectRef,
    /// UID.
    pub uid: String,
    /// Resource version as last seen.
    pub resource_version: String,
    /// Its annotations with the prefix `event.toolkit.fluxcd.io/`, which are copied into events.
    pub annotations: BTreeMap<String, String>,
}

impl Subject {
    /// The annotations of an object that are meant for events.
    pub(crate) fn event_annotations(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let is_meant =
            |(key, _): &(&String, &String)| key.starts_with(api::EVENT_ANNOTATION_PREFIX);
        all.iter().filter(is_meant).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// An event on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What it is about.
    pub subject: Subject,
    /// What happened.
    pub event: Event,
    /// When.
    pub at: Timestamp,
    /// Revision of the source, when known.
    pub revision: Option<String>,
    /// Revision of the application's source, when known.
    pub origin_revision: Option<String>,
    /// Identity of the reconciliation.
    pub reconcile_id: String,
}

impl Notice {
    /// The event's metadata for notification-controller, without the subject's annotations. Keys are prefixed by the
    /// object's API group, or notification-controller drops them.
    fn metadata(&self) -> BTreeMap<String, String> {
        let group = &self.subject.object.group;
        let token = match &self.event.token {
            Token::Always => self.reconcile_id.clone(),
            Token::Episode(since) => since.clone(),
        };
        let finishes = self.event.finishes.then(|| "update".to_owned());
        [
            ("revision", self.revision.clone()),
            ("originRevision", self.origin_revision.clone()),
            ("token", Some(token)),
            ("commit_status", finishes),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((format!("{group}/{key}"), value?)))
        .collect()
    }
}

/// The way for events out of reconciliations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Notifier {
    kubernetes: Arc<[mpsc::Sender<Notice>]>,
    flux: Arc<[mpsc::Sender<Notice>]>,
    metrics: Arc<Metrics>,
}

impl Notifier {
    /// Starts the background tasks in `tasks`. They end when all notifiers are dropped and their queues are empty, or when
    /// `cancel` fires. Without `flux`, only Kubernetes Events are written.
    pub(crate) fn start(
        client: &kube::Client,
        flux: Option<&FluxEvents>,
        metrics: Arc<Metrics>,
        tasks: &mut JoinSet<()>,
        cancel: &CancellationToken,
    ) -> Self {
        let lanes = |count: usize| (0..count).map(|_| mpsc::channel(LANE_LENGTH)).unzip();
        let (kubernetes, receivers): (Vec<_>, Vec<mpsc::Receiver<Notice>>) = lanes(LANES);
        for mut lane in receivers {
            let (client, cancel) = (client.clone(), cancel.clone());
            tasks.spawn(async move {
                let mut writer = kubernetes::Writer::new(client);
                while let Some(Some(notice)) = cancel.run_until_cancelled(lane.recv()).await {
                    cancel.run_until_cancelled(writer.write(&notice)).await;
                }
            });
        }
        let (senders, receivers): (Vec<_>, Vec<mpsc::Receiver<Notice>>) =
            lanes(if flux.is_some() { LANES } else { 0 });
        for mut lane in receivers {
            let (flux, metrics, cancel) = (flux.cloned(), metrics.clone(), cancel.clone());
            tasks.spawn(async move {
                while let Some(Some(notice)) = cancel.run_until_cancelled(lane.recv()).await {
                    let Some(flux) = &flux else { continue };
                    let sent = cancel.run_until_cancelled(flux.post(&notice, &cancel)).await;
                    metrics.flux_event(sent.unwrap_or(flux::Sent::Failed));
                }
            });
        }
        Self { kubernetes: kubernetes.into(), flux: senders.into(), metrics }
    }

    /// Hands over an event. Never waits; an event that finds its queue full is dropped and counted.
    pub(crate) fn notify(&self, notice: &Notice) {
        for lanes in [&self.kubernetes, &self.flux] {
            self.send(lanes, notice);
        }
    }

    /// As [`Notifier::notify`], as a Kubernetes Event alone: for objects that are not this controller's to report on to Flux.
    pub(crate) fn notify_kubernetes(&self, notice: &Notice) {
        self.send(&self.kubernetes, notice);
    }

    fn send(&self, lanes: &[mpsc::Sender<Notice>], notice: &Notice) {
        let Some(lane) = lane_of(lanes, &notice.subject) else { return };
        if lane.try_send(notice.clone()).is_err() {
            self.metrics.event_dropped();
            tracing::warn!(
                object = %notice.subject.object,
                "an event was dropped because too many are waiting to be sent"
            );
        }
    }
}

fn lane_of<'a>(
    lanes: &'a [mpsc::Sender<Notice>],
    subject: &Subject,
) -> Option<&'a mpsc::Sender<Notice>> {
    let mut hasher = DefaultHasher::new();
    subject.uid.hash(&mut hasher);
    let count = u64::try_from(lanes.len()).ok().filter(|count| *count > 0)?;
    lanes.get(usize::try_from(hasher.finish() % count).unwrap_or_default())
}

/// Waits until the queues are empty, at most `patience`; what is left then is lost.
pub(crate) async fn flush(mut tasks: JoinSet<()>, patience: Duration) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(patience, all).await.is_err() {
        tracing::warn!("events were still waiting to be sent at the end");
    }
}

#[cfg(test)]
mod tests;
