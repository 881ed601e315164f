//! Watching single objects, for waits.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::{ApiKind, Cluster, request::encode};
use crate::object::Object;

/// What happened to a watched object.
#[derive(Debug)]
pub enum ObjectEvent {
    /// It appeared or changed.
    Changed(Object),
    /// It was deleted.
    Gone,
}

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<Value>, kube::Error>> + Send>>;

/// An open watch on one object. Dropping it closes it.
pub struct ObjectWatch {
    events: Events,
    _place: OwnedSemaphorePermit,
}

impl Cluster {
    /// Watches one object from a `resourceVersion` on, for a minute at most. `None` when the cluster's limit of watches is
    /// reached or the server refuses: the caller polls then.
    pub async fn watch(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        name: &str,
        resource_version: &str,
    ) -> Option<ObjectWatch> {
        let place = self.0.watches.clone().try_acquire_owned().ok()?;
        let path = format!(
            "{}?watch=true&timeoutSeconds=60&fieldSelector={}&resourceVersion={}",
            kind.path(namespace, None),
            encode(&format!("metadata.name={name}")),
            encode(resource_version),
        );
        let request = Request::get(path).body(Vec::new()).ok()?;
        let opened = self.client().request_events::<Value>(request);
        let events =
            tokio::time::timeout(self.options().request_timeout, opened).await.ok()?.ok()?;
        Some(ObjectWatch { events: events.boxed(), _place: place })
    }
}

impl ObjectWatch {
    /// The next event; `None` when the watch ended and the object has to be read again.
    pub async fn next(&mut self) -> Option<ObjectEvent> {
        loop {
            match self.events.next().await?.ok()? {
                WatchEvent::Added(value) | WatchEvent::Modified(value) => {
                    return Object::new(value).ok().map(ObjectEvent::Changed);
                }
                WatchEvent::Deleted(_) => return Some(ObjectEvent::Gone),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return None,
            }
        }
    }
}
