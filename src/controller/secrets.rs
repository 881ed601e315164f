use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    lookup,
    outcome::{Failure, Outlook},
};
use crate::{
    api::NamespacedName,
    cluster::{ApiKind, ApiOutcome, Cluster},
    diagnostic::Class,
};

/// The content of a Secret. Has no `Debug` on purpose.
pub(crate) struct SecretData {
    /// `Secret namespace/name`, for messages.
    pub origin: String,
    /// Decoded values by key.
    pub data: BTreeMap<String, Vec<u8>>,
}

/// The core kind `Secret`.
pub(crate) fn secret_kind() -> ApiKind {
    ApiKind::core("Secret")
}

/// The core kind `ServiceAccount`.
pub(crate) fn service_account_kind() -> ApiKind {
    ApiKind::core("ServiceAccount")
}

/// Reads a Secret as the controller itself. `field` is where the user named it.
///
/// # Errors
/// When it is missing or cannot be read; the text names the field and the Secret.
pub(crate) async fn read(
    cluster: &Cluster,
    key: &NamespacedName,
    field: &str,
    reason: &'static str,
) -> Result<SecretData, Failure> {
    let origin = format!("Secret {key}");
    match lookup::get(cluster, &secret_kind(), Some(&key.namespace), &key.name).await {
        ApiOutcome::Done(object) => Ok(SecretData { origin, data: decoded(&object) }),
        outcome if outcome.is_absent() => {
            Err(Failure::retry(reason, format!("{field}: {origin} does not exist")))
        }
        outcome => Err(refused(reason, &format!("{field}: {origin} cannot be read"), &outcome)),
    }
}

fn decoded(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    let entries = secret["data"].as_object().into_iter().flatten();
    let decode = |(key, value): (&String, &Value)| {
        Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?))
    };
    entries.filter_map(decode).collect()
}

/// A failure for a request of the controller itself that was not answered well.
pub(crate) fn refused(reason: &'static str, what: &str, outcome: &ApiOutcome) -> Failure {
    let message = match outcome.message() {
        Some(message) => format!("{what}: {message}"),
        None => what.to_owned(),
    };
    let outlook = match outcome.class() {
        Class::Transient => Outlook::Backoff,
        Class::Cancelled => Outlook::Interrupted,
        _ => Outlook::Retry,
    };
    Failure::new(reason, outlook, message)
}
