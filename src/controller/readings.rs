//! Which Secrets the variables of a deployment are read from: their changes wake it, as those of Secrets in its spec do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use super::state::State;
use crate::{api::NamespacedName, diagnostic::Diagnostic, vars::ClusterReader};

/// Reads for variables, and has the controller watch the Secrets that it is asked for.
pub(super) struct Readings {
    cluster: Arc<dyn ClusterReader>,
    state: Arc<State>,
    deployment: NamespacedName,
    secrets: Mutex<BTreeSet<NamespacedName>>,
}

impl Readings {
    /// Readings of a deployment from the cluster that the controller watches.
    pub(super) fn new(
        cluster: Arc<dyn ClusterReader>,
        state: Arc<State>,
        deployment: NamespacedName,
    ) -> Self {
        Self { cluster, state, deployment, secrets: Mutex::default() }
    }

    /// Ends the interest in Secrets that earlier renders read and this one did not.
    pub(super) fn settle(&self) {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.reads_only(&self.deployment, &secrets);
    }

    /// Notes a Secret before it is read, so that no change falls between the two.
    fn note(&self, api_version: &str, kind: &str, namespace: &str, name: &str) {
        if api_version == "v1" && kind == "Secret" {
            let secret = NamespacedName::new(namespace, name);
            self.state.reads(&self.deployment, &secret);
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(secret);
        }
    }
}

impl ClusterReader for Readings {
    fn api_versions<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<String>, Diagnostic>> {
        self.cluster.api_versions(kind)
    }

    fn get<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>> {
        self.note(api_version, kind, namespace, name);
        self.cluster.get(api_version, kind, namespace, name)
    }

    fn list<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Vec<Value>, Diagnostic>> {
        async move {
            let objects = self.cluster.list(api_version, kind, namespace, labels).await?;
            for object in &objects {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                self.note(api_version, kind, text("namespace"), text("name"));
            }
            Ok(objects)
        }
        .boxed()
    }
}
