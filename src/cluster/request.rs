//! Requests on objects: one HTTP exchange each, with a timeout, and an [`ApiOutcome`] in any case.

use std::hash::Hasher;

use base64::{
    Engine as _,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, Method, Request, header};
use kube::client::Body;
use serde_json::{Value, json};

use super::{
    ApiKind, ApiOutcome, Cluster, DEFAULT_NAMESPACE, FIELD_MANAGER,
    outcome::{Refusal, classify},
};
use crate::net::retry_after;

/// Base64 as Go's decoder takes it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// What came of a request, and what the API server remarked beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What came of it.
    pub outcome: ApiOutcome,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

impl From<ApiOutcome> for Answer {
    fn from(outcome: ApiOutcome) -> Self {
        Self { outcome, warnings: Vec::new() }
    }
}

/// Whether a write is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The change is made.
    Real,
    /// The server does everything but store the change.
    DryRun,
}

impl WriteMode {
    fn query(self) -> &'static str {
        match self {
            Self::Real => "",
            Self::DryRun => "&dryRun=All",
        }
    }
}

/// How an object is deleted.
#[derive(Debug, Clone, Copy)]
pub struct DeleteMode<'a> {
    /// Whether it is meant.
    pub write: WriteMode,
    /// Delete only the object with this UID, not another one of the same name.
    pub uid: Option<&'a str>,
}

/// One HTTP exchange.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) accept: &'static str,
    pub(super) content_type: Option<&'static str>,
    pub(super) etag: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Call {
    pub(super) fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            accept: "application/json",
            content_type: None,
            etag: None,
            body: Vec::new(),
        }
    }

    fn write(method: Method, path: String, content_type: &'static str, body: Vec<u8>) -> Self {
        Self { method, content_type: Some(content_type), body, ..Self::get(path) }
    }
}

/// The answer to a [`Call`] before it is judged.
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Raw {
    /// The body of a success, or what the answer stands for otherwise.
    pub(super) fn into_value(self) -> Result<Value, ApiOutcome> {
        if (200..300).contains(&self.status) {
            return serde_json::from_slice(&self.body).map_err(|error| {
                ApiOutcome::Transient(format!("the answer is not JSON: {error}"))
            });
        }
        let retry_after = retry_after(&self.headers);
        Err(classify(&Refusal { status: self.status, retry_after, body: &self.body }))
    }
}

impl Cluster {
    /// Reads an object. Transient failures are retried by the cluster's policy.
    pub async fn get(&self, kind: &ApiKind, namespace: Option<&str>, name: &str) -> Answer {
        let path = kind.path(namespace, Some(name));
        self.retried(|| Call::get(path.clone())).await
    }

    /// Reads whatever a path holds, with retries.
    pub(super) async fn get_path(&self, path: String) -> Answer {
        self.retried(|| Call::get(path.clone())).await
    }

    /// Reads all objects of a kind with a label selector, in one namespace or (with `None`) in all, page by page.
    /// `apiVersion` and `kind`, which lists leave out, are filled in. Transient failures are retried; a list that changes
    /// so fast that its pages expire is read in one piece.
    ///
    /// # Errors
    /// The outcome that ended the attempt.
    pub async fn list(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ApiOutcome> {
        self.list_as(kind, namespace, selector, "application/json").await
    }

    /// As [`Cluster::list`], with nothing but the metadata of the objects.
    ///
    /// # Errors
    /// As there.
    pub async fn list_metadata(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ApiOutcome> {
        const ACCEPT: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        self.list_as(kind, namespace, selector, ACCEPT).await
    }

    async fn list_as(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        selector: &str,
        accept: &'static str,
    ) -> Result<Vec<Value>, ApiOutcome> {
        let base = kind.path(namespace, None);
        let selector = encode(selector);
        let mut limit = "&limit=500";
        let mut next = String::new();
        let mut items = Vec::new();
        loop {
            let path = format!("{base}?labelSelector={selector}{limit}{next}");
            let call = || Call { accept, ..Call::get(path.clone()) };
            let mut page = match self.retried(call).await.outcome {
                ApiOutcome::Done(page) => page,
                ApiOutcome::Expired(_) if !limit.is_empty() => {
                    (limit, next) = ("", String::new());
                    items.clear();
                    continue;
                }
                outcome => return Err(outcome),
            };
            if let Value::Array(found) = page["items"].take() {
                items.extend(found);
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => next = format!("&continue={}", encode(token)),
                _ => break,
            }
        }
        for item in &mut items {
            item["apiVersion"] = kind.api_version().into();
            item["kind"] = kind.kind.clone().into();
        }
        Ok(items)
    }

    /// Applies an object server-side as field manager `kluctl`; `force` takes over fields of other managers. Sent once:
    /// what follows is decided by `apply::decide`.
    pub async fn apply(
        &self,
        kind: &ApiKind,
        object: &Value,
        mode: WriteMode,
        force: bool,
    ) -> Answer {
        self.apply_as(FIELD_MANAGER, kind, object, mode, force).await
    }

    /// As [`Cluster::apply`], as another field manager.
    pub async fn apply_as(
        &self,
        manager: &str,
        kind: &ApiKind,
        object: &Value,
        mode: WriteMode,
        force: bool,
    ) -> Answer {
        let path = Self::object_path(kind, object);
        let path = format!("{path}?fieldManager={manager}&force={force}{}", mode.query());
        let call = Call::write(Method::PATCH, path, "application/apply-patch+yaml", bytes(object));
        let mut answer = self.once(call).await;
        if let ApiOutcome::BadRequest(message) = &mut answer.outcome {
            message.push_str(&misencoded(object).unwrap_or_default());
        }
        answer
    }

    /// Replaces an object by a complete one, which carries the `resourceVersion` it is meant for. Sent once.
    pub async fn replace(&self, kind: &ApiKind, object: &Value, mode: WriteMode) -> Answer {
        let path = Self::object_path(kind, object);
        let path = format!("{path}?fieldManager={FIELD_MANAGER}{}", mode.query());
        self.once(Call::write(Method::PUT, path, "application/json", bytes(object))).await
    }

    /// Deletes an object, its dependents being collected in the background. The outcome holds the object when it is still
    /// there (finalizers, grace period) and a `Status` when it is gone. Transient failures are retried.
    pub async fn delete(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
        name: &str,
        mode: DeleteMode<'_>,
    ) -> Answer {
        let path = kind.path(namespace, Some(name));
        let mut options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        });
        if let Some(uid) = mode.uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        if mode.write == WriteMode::DryRun {
            options["dryRun"] = json!(["All"]);
        }
        let body = bytes(&options);
        self.retried(|| Call::write(Method::DELETE, path.clone(), "application/json", body.clone()))
            .await
    }

    fn object_path(kind: &ApiKind, object: &Value) -> String {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let namespace = kind.namespaced.then(|| namespace.unwrap_or(DEFAULT_NAMESPACE));
        kind.path(namespace, metadata["name"].as_str())
    }

    /// Sends a request until it succeeds, fails for good, or was sent often enough.
    async fn retried(&self, call: impl Fn() -> Call) -> Answer {
        let mut sent = 0;
        loop {
            let call = call();
            let seed = seed_of(&call.path);
            let answer = self.once(call).await;
            sent += 1;
            match self.options().retry.pause(sent, &answer.outcome, seed) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return answer,
            }
        }
    }

    /// Sends a request once and judges the answer.
    async fn once(&self, call: Call) -> Answer {
        let raw = match self.exchange(call).await {
            Ok(raw) => raw,
            Err(outcome) => return outcome.into(),
        };
        let warnings = raw.headers.get_all(header::WARNING).iter();
        let warnings = warnings.filter_map(|value| warning_text(value.to_str().ok()?)).collect();
        let outcome = match raw.into_value() {
            Ok(value) => ApiOutcome::Done(value),
            Err(outcome) => outcome,
        };
        Answer { outcome, warnings }
    }

    /// One HTTP exchange within the limits. A place in the queue is held from sending to the last byte; the timeout does
    /// not count the time spent queueing.
    pub(super) async fn exchange(&self, call: Call) -> Result<Raw, ApiOutcome> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(header::ACCEPT, call.accept);
        if let Some(content_type) = call.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(etag) = call.etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let request = request
            .body(Body::from(call.body))
            .map_err(|error| ApiOutcome::Unexpected(format!("cannot form the request: {error}")))?;
        let _place = self.0.requests.acquire().await.map_err(|_| ApiOutcome::Interrupted)?;
        let limit = self.options().request_timeout;
        match tokio::time::timeout(limit, receive(self.client(), request)).await {
            Ok(Ok(raw)) => Ok(raw),
            Ok(Err(error)) => Err(broken(&error)),
            Err(_) => {
                Err(ApiOutcome::Timeout(format!("no answer within {} s", limit.as_secs_f32())))
            }
        }
    }
}

async fn receive(client: &kube::Client, request: Request<Body>) -> Result<Raw, kube::Error> {
    let response = client.send(request).await?;
    let (parts, body) = response.into_parts();
    let body = body.collect_bytes().await?.to_vec();
    Ok(Raw { status: parts.status.as_u16(), headers: parts.headers, body })
}

/// Names what the API server does not name: the entries of a Secret or ConfigMap that should be base64 and are not. The
/// values themselves may be secret.
fn misencoded(object: &Value) -> Option<String> {
    let (field, plain) = match object["kind"].as_str()? {
        "Secret" => ("data", "stringData"),
        "ConfigMap" => ("binaryData", "data"),
        _ => return None,
    };
    let entries = object[field].as_object()?.iter();
    let is_base64 = |value: &Value| {
        let Some(text) = value.as_str() else { return value.is_null() };
        BASE64.decode(text.replace(['\r', '\n'], "")).is_ok()
    };
    let wrong: Vec<_> = entries
        .filter(|(_, value)| !is_base64(value))
        .map(|(key, _)| format!("{field}[{key:?}]"))
        .collect();
    let is_one = wrong.len() == 1;
    let be = if is_one { "is" } else { "are" };
    (!wrong.is_empty())
        .then(|| format!(" ({} {be} not base64; plain text goes into {plain})", wrong.join(", ")))
}

/// What a failed exchange stands for: credentials that could not be obtained, or a broken connection.
fn broken(error: &kube::Error) -> ApiOutcome {
    let text = chain(error);
    match error {
        kube::Error::Auth(_) => ApiOutcome::Unauthorized(text),
        kube::Error::HttpError(_) | kube::Error::BuildRequest(_) => ApiOutcome::Unexpected(text),
        _ => ApiOutcome::Unreachable(text),
    }
}

/// An error and its causes in one line, each text once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    crate::secret::redact_text(&text)
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn seed_of(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// The text of a `Warning` header (RFC 7234, 5.5), for example `299 - "deprecated"`.
fn warning_text(value: &str) -> Option<String> {
    let (_, quoted) = value.split_once('"')?;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    Some(text)
}

/// Percent-encodes everything but unreserved characters.
pub(super) fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ignored = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.x\"" "date""#).as_deref(),
            Some(r#"unknown field "spec.x""#)
        );
        assert_eq!(warning_text("299 -"), None);
    }

    #[test]
    fn entries_that_are_not_base64_are_named_without_their_value() {
        let secret = serde_json::json!({"kind": "Secret", "data": {
            "fine": "dGVzdA==", "wrapped": "dGVz\ndA==", "none": null, "plain": "hunter2!", "cut": "dGVzdA",
        }});
        assert_eq!(
            misencoded(&secret).as_deref(),
            Some(
                r#" (data["cut"], data["plain"] are not base64; plain text goes into stringData)"#
            )
        );
        let map =
            serde_json::json!({"kind": "ConfigMap", "data": {"a": "?"}, "binaryData": {"b": "?"}});
        assert_eq!(
            misencoded(&map).as_deref(),
            Some(r#" (binaryData["b"] is not base64; plain text goes into data)"#)
        );
        assert_eq!(misencoded(&serde_json::json!({"kind": "Secret"})), None);
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(encode("kluctl.io/discriminator=a b"), "kluctl.io%2Fdiscriminator%3Da%20b");
    }
}
