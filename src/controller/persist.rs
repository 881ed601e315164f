//! Writing to the KluctlDeployment itself: its status and its finalizer.
//!
//! Every write names the resource version it rests on, so nothing is overwritten unseen. On a conflict the object is read
//! anew and the same status is written onto it: the status is the controller's alone, and one controller works on an object
//! at a time. A run whose object has become another controller's stops writing (`Pass::is_lost`).

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Map, Value, json};

use super::notify::CONTROLLER_NAME;
use crate::{
    api::{self, ClaimState, FINALIZER, KluctlDeploymentStatus, NamespacedName},
    diagnostic::Class,
};

/// Attempts at one write, transient failures included.
const ATTEMPTS: u32 = 6;
/// Attempts at one write when others change the object meanwhile.
const CONFLICTS: u32 = 40;
/// The pause after a conflict, times their number.
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);
/// The pause before the second attempt; it doubles from there (about 12 s in all).
const PAUSE: Duration = Duration::from_millis(200);
/// Time for one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why an object could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// It does not exist any more, or another one has taken its name.
    #[error("the object is gone")]
    Gone,
    /// The API server refused or could not be reached.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// The object is no longer in the version that the write rests on.
    #[error("the object has changed meanwhile")]
    Outdated,
    /// No answer in time.
    #[error("no answer from the API server within {} s", TIMEOUT.as_secs())]
    Timeout,
}

impl StoreError {
    fn class(&self) -> Class {
        match self {
            Self::Gone | Self::Outdated => Class::Waiting,
            Self::Api(kube::Error::Api(status)) => match status.code {
                401 | 403 => Class::Access,
                429 | 500..=599 => Class::Transient,
                _ => Class::Object,
            },
            Self::Timeout | Self::Api(_) => Class::Transient,
        }
    }
}

/// A KluctlDeployment as stored, malformed or not.
#[derive(Debug, Clone)]
pub(crate) struct StoredObject(Value);

impl StoredObject {
    /// An object as the API server has just told it.
    pub(crate) const fn new(object: Value) -> Self {
        Self(object)
    }

    /// The whole object.
    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// `metadata.uid`.
    pub(crate) fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// `metadata.resourceVersion`.
    pub(crate) fn resource_version(&self) -> &str {
        self.0["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    /// `metadata.generation`.
    pub(crate) fn generation(&self) -> i64 {
        self.0["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// `metadata.creationTimestamp`, RFC 3339.
    pub(crate) fn created(&self) -> &str {
        self.0["metadata"]["creationTimestamp"].as_str().unwrap_or_default()
    }

    /// Whether deletion has been asked for.
    pub(crate) fn is_deleting(&self) -> bool {
        !self.0["metadata"]["deletionTimestamp"].is_null()
    }

    /// Whether the controller's finalizer is there.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|name| name == FINALIZER)
    }

    /// All annotations.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        let all = self.0["metadata"]["annotations"].as_object().into_iter().flatten();
        all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    }

    fn finalizers(&self) -> Vec<String> {
        let all = self.0["metadata"]["finalizers"].as_array().into_iter().flatten();
        all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }
}

/// What a write makes of the stored object; `None` when there is nothing left to write.
type Change = dyn Fn(&StoredObject) -> Option<Value> + Send + Sync;

/// The part of an object that a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Status,
    Metadata,
}

/// Which version of the object a write may be based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// The latest, after conflicts, too.
    Any,
    /// The one at hand and no other.
    ThisVersion,
}

/// Reads and writes KluctlDeployments.
#[derive(Clone)]
pub(crate) struct ObjectStore {
    client: Client,
    resource: ApiResource,
}

impl ObjectStore {
    /// A store over the controller's own client.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, resource: resource() }
    }

    /// Reads an object from the API server itself, so that a decision never rests on an old status.
    ///
    /// # Errors
    /// When it cannot be read; `Ok(None)` when it is not there.
    pub(crate) async fn get(
        &self,
        key: &NamespacedName,
    ) -> Result<Option<StoredObject>, StoreError> {
        let api = self.api(&key.namespace);
        let mut pause = PAUSE;
        for attempt in 1.. {
            let found = match tokio::time::timeout(TIMEOUT, api.get_opt(&key.name)).await {
                Ok(found) => found.map_err(StoreError::from),
                Err(_) => Err(StoreError::Timeout),
            };
            match found {
                Err(error) if error.class() == Class::Transient && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
                Ok(None) => return Ok(None),
                Ok(Some(found)) => {
                    return Ok(Some(StoredObject(serde_json::to_value(found).unwrap_or_default())));
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(None)
    }

    /// Writes `status`, if it differs from what is stored, and takes over the object as it is then.
    ///
    /// # Errors
    /// [`StoreError::Gone`] when there is nothing to write to any more; others after several attempts.
    pub(crate) async fn write_status(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
        status: &KluctlDeploymentStatus,
    ) -> Result<(), StoreError> {
        self.write(key, object, status, Basis::Any).await
    }

    /// As [`ObjectStore::write_status`], but only onto the very version that `object` is.
    ///
    /// # Errors
    /// [`StoreError::Outdated`] when the object has been changed by anybody since then; nothing is written then.
    pub(crate) async fn write_status_onto(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
        status: &KluctlDeploymentStatus,
    ) -> Result<(), StoreError> {
        self.write(key, object, status, Basis::ThisVersion).await
    }

    async fn write(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
        status: &KluctlDeploymentStatus,
        basis: Basis,
    ) -> Result<(), StoreError> {
        let wanted = serde_json::to_value(status).unwrap_or_default();
        let change = move |stored: &StoredObject| merge_patch(&stored.value()["status"], &wanted);
        self.patch(key, object, Part::Status, basis, &change).await
    }

    /// Takes down another object's request, onto the very version that `object` is.
    ///
    /// # Errors
    /// As [`ObjectStore::write_status_onto`].
    pub(crate) async fn take_down_request(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
    ) -> Result<(), StoreError> {
        let change = |stored: &StoredObject| {
            let state = &stored.value()["status"]["claim"]["state"];
            (state == "Requested")
                .then(|| json!({ "claim": { "state": ClaimState::Refused, "requestedAt": null } }))
        };
        self.patch(key, object, Part::Status, Basis::ThisVersion, &change).await
    }

    /// Adds the finalizer, if it is missing.
    ///
    /// # Errors
    /// As [`ObjectStore::write_status`].
    pub(crate) async fn add_finalizer(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
    ) -> Result<(), StoreError> {
        self.patch(key, object, Part::Metadata, Basis::Any, &|stored: &StoredObject| {
            let mut finalizers = stored.finalizers();
            if stored.has_finalizer() {
                return None;
            }
            finalizers.push(FINALIZER.to_owned());
            Some(json!({ "finalizers": finalizers }))
        })
        .await
    }

    /// Removes the finalizer, after which the object goes away.
    ///
    /// # Errors
    /// As [`ObjectStore::write_status`]; that the object is gone already is no error.
    pub(crate) async fn remove_finalizer(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
    ) -> Result<(), StoreError> {
        let removed = self
            .patch(key, object, Part::Metadata, Basis::Any, &|stored: &StoredObject| {
                let mut finalizers = stored.finalizers();
                let before = finalizers.len();
                finalizers.retain(|name| name != FINALIZER);
                (finalizers.len() < before).then(|| json!({ "finalizers": finalizers }))
            })
            .await;
        match removed {
            Err(StoreError::Gone) => Ok(()),
            other => other,
        }
    }

    /// Patches a part of the object with what `change` makes of the stored one.
    async fn patch(
        &self,
        key: &NamespacedName,
        object: &mut StoredObject,
        part: Part,
        basis: Basis,
        change: &Change,
    ) -> Result<(), StoreError> {
        let api = self.api(&key.namespace);
        let uid = object.uid().to_owned();
        let params = PatchParams {
            field_manager: Some(format!("gotk-{CONTROLLER_NAME}")),
            ..PatchParams::default()
        };
        let mut pause = PAUSE;
        let (mut conflicts, mut failures) = (0, 0);
        loop {
            let Some(wanted) = change(object) else { return Ok(()) };
            let version = object.resource_version();
            let patch = match part {
                Part::Status => {
                    json!({ "metadata": { "resourceVersion": version }, "status": wanted })
                }
                Part::Metadata => {
                    let mut metadata = wanted;
                    metadata["resourceVersion"] = version.into();
                    json!({ "metadata": metadata })
                }
            };
            let patch = Patch::Merge(patch);
            let sent = async {
                match part {
                    Part::Status => api.patch_status(&key.name, &params, &patch).await,
                    Part::Metadata => api.patch(&key.name, &params, &patch).await,
                }
            };
            let error = match tokio::time::timeout(TIMEOUT, sent).await {
                Ok(Ok(written)) => {
                    *object = StoredObject(serde_json::to_value(written).unwrap_or_default());
                    return Ok(());
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                    return Err(StoreError::Gone);
                }
                Ok(Err(error)) => StoreError::Api(error),
                Err(_) => StoreError::Timeout,
            };
            let is_conflict =
                matches!(&error, StoreError::Api(kube::Error::Api(s)) if s.code == 409);
            if is_conflict {
                if basis == Basis::ThisVersion {
                    return Err(StoreError::Outdated);
                }
                conflicts += 1;
                tracing::debug!(conflicts, "the object has changed meanwhile");
                if conflicts >= CONFLICTS {
                    return Err(error);
                }
                tokio::time::sleep(CONFLICT_PAUSE * conflicts).await;
            } else {
                failures += 1;
                if failures >= ATTEMPTS || error.class() != Class::Transient {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            // Whatever happened: what is stored now decides what is left to write.
            if let Some(stored) = self.get(key).await? {
                if stored.uid() != uid {
                    return Err(StoreError::Gone);
                }
                let is_other = stored.resource_version() != object.resource_version();
                *object = stored;
                // An attempt without an answer may have been carried out; then nothing is left to change.
                if is_other && basis == Basis::ThisVersion && change(object).is_some() {
                    return Err(StoreError::Outdated);
                }
            } else {
                return Err(StoreError::Gone);
            }
        }
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }
}

/// The resource of KluctlDeployments.
pub(crate) fn resource() -> ApiResource {
    ApiResource {
        group: api::GROUP.to_owned(),
        version: api::VERSION.to_owned(),
        api_version: api::API_VERSION.to_owned(),
        kind: api::KIND.to_owned(),
        plural: "kluctldeployments".to_owned(),
    }
}

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; `None` when they are equal.
fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for (key, value) in new {
        if let Some(change) = merge_patch(old.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

/// Limits how often progress is written: at most one write per [`Progress::GAP`], and only news.
#[derive(Debug)]
pub(crate) struct Progress {
    last: Option<Timestamp>,
}

impl Progress {
    /// The shortest time between two writes.
    pub(crate) const GAP: Duration = Duration::from_secs(5);

    /// Nothing was written yet.
    pub(crate) const fn new() -> Self {
        Self { last: None }
    }

    /// Whether a message may be written at `now`; if so, it counts as written.
    pub(crate) fn admits(&mut self, now: Timestamp) -> bool {
        let is_early = self.last.is_some_and(|last| super::outcome::after(last, Self::GAP) > now);
        if !is_early {
            self.last = Some(now);
        }
        !is_early
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_hold_what_changed_and_nothing_else() {
        let old = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "list": [1, 2], "gone": true });
        let new = json!({ "a": 1, "b": { "c": 9, "d": 3 }, "list": [2], "added": { "x": 1 } });
        let patch = merge_patch(&old, &new).unwrap();
        assert_eq!(
            patch,
            json!({ "b": { "c": 9 }, "list": [2], "gone": null, "added": { "x": 1 } })
        );
        let mut applied = old.clone();
        json_patch_merge(&mut applied, &patch);
        assert_eq!(applied, new);
        assert_eq!(merge_patch(&new, &new), None);
        assert_eq!(merge_patch(&Value::Null, &new), Some(new), "a first status");
    }

    /// RFC 7386, section 2.
    fn json_patch_merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        for (key, value) in patch {
            if value.is_null() {
                target.as_object_mut().unwrap().remove(key);
            } else {
                json_patch_merge(&mut target[key], value);
            }
        }
    }

    #[test]
    fn progress_is_written_now_and_then() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut progress = Progress::new();
        let admitted: Vec<_> = (0..12).filter(|s| progress.admits(at(*s))).collect();
        assert_eq!(admitted, [0, 5, 10]);
    }

    #[test]
    fn finalizers_of_others_stay() {
        let object = StoredObject(json!({ "metadata": {
            "finalizers": ["foregroundDeletion", FINALIZER], "uid": "u", "generation": 3,
            "deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": { "a": "b", "bad": 1 },
        } }));
        assert!(object.has_finalizer() && object.is_deleting());
        assert_eq!(object.finalizers(), ["foregroundDeletion", FINALIZER]);
        assert_eq!(object.annotations().len(), 1);
        assert_eq!((object.uid(), object.generation()), ("u", 3));
    }
}
