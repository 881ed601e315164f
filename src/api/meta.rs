use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Annotation that asks for a reconciliation; its value is an opaque token (Flux).
pub const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
/// Annotation that, equal to [`REQUESTED_AT`], asks for one forced deployment (Flux).
pub const FORCE_AT: &str = "reconcile.fluxcd.io/forceAt";
/// Annotation that asks for a deployment whatever the objects hash says; its value is an opaque token.
pub const DEPLOY_REQUESTED_AT: &str = "deploy.flux.kluctl.io/requestedAt";
/// Prefix of annotations that are copied into events (notification-controller).
pub const EVENT_ANNOTATION_PREFIX: &str = "event.toolkit.fluxcd.io/";
/// Finalizer of `flux.kluctl.io` objects; the Go controllers set the same, so theirs are taken over.
pub const FINALIZER: &str = "finalizers.flux.kluctl.io";

/// Namespace and name of a namespaced object. Prints as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl NamespacedName {
    /// Builds a key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object's metadata; empty parts where they are missing.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Names an object of a fixed kind in the namespace of the referring object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LocalObjectReference {
    /// Name of the referent.
    pub name: String,
}
