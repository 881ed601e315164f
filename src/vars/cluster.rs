use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::diagnostic::Diagnostic;

/// Reads objects of the target cluster for variables. Implementations retry and time out on their own.
pub trait ClusterReader: Send + Sync {
    /// The object, or `None` when it does not exist.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses, as data for the user.
    fn get<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>>;

    /// The objects of a namespace that have all these labels, sorted by name.
    ///
    /// # Errors
    /// As [`ClusterReader::get`].
    fn list<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Vec<Value>, Diagnostic>>;
}
