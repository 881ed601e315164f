//! Tables for the pure parts.

mod decide;
mod dependencies;
mod ownership;
mod ownership_model;
mod record;
mod requests;
mod schedule;
mod summarize;
mod triggers;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::identity::ClusterIdentity;
use crate::api::{self, CommandStatus, KluctlDeployment, KluctlDeploymentSpec, ValidateStatus};

/// Seconds since an arbitrary moment, as a time.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_900_000_000 + seconds).unwrap()
}

/// A cluster whose UID is `uid`.
pub(super) fn cluster() -> ClusterIdentity {
    ClusterIdentity { id: "uid".into(), server: "https://uid".into() }
}

/// An object whose spec has `interval: 10m`, `retryInterval: 1m` and `more`.
pub(super) fn deployment(more: &Value) -> KluctlDeployment {
    let mut spec = json!({
        "interval": "10m",
        "retryInterval": "1m",
        "sourceRef": { "kind": "GitRepository", "name": "shop" },
    });
    crate::object::merge(&mut spec, more.clone());
    api::decode(&json!({ "metadata": { "name": "shop", "namespace": "apps" }, "spec": spec }))
        .unwrap()
}

pub(super) fn spec(more: &Value) -> KluctlDeploymentSpec {
    deployment(more).spec
}

/// A good deployment of objects `hash` under generation 1.
pub(super) fn deployed(seconds: i64, hash: &str) -> CommandStatus {
    CommandStatus {
        time: Some(super::conditions::kube_time(at(seconds))),
        revision: Some("main@sha1:aa".to_owned()),
        objects_hash: Some(hash.to_owned()),
        generation: Some(1),
        applied_objects: 3,
        ..CommandStatus::default()
    }
}

pub(super) fn failed_deployment(seconds: i64, hash: &str) -> CommandStatus {
    CommandStatus {
        errors: 1,
        error: Some("apps/Deployment/web: denied".to_owned()),
        ..deployed(seconds, hash)
    }
}

/// A validation that found objects on their way, since some time.
pub(super) fn progressing(seconds: i64, since: i64) -> ValidateStatus {
    ValidateStatus {
        progressing_since: Some(super::conditions::kube_time(at(since))),
        ..validated(seconds, false)
    }
}

pub(super) fn validated(seconds: i64, ready: bool) -> ValidateStatus {
    ValidateStatus {
        time: Some(super::conditions::kube_time(at(seconds))),
        ready,
        errors: i64::from(!ready),
        error: (!ready).then(|| "apps/Deployment/web: 0 of 1 replicas are ready".to_owned()),
        ..ValidateStatus::default()
    }
}
