//! What can come of one request to the API server, as one closed enum.

use std::time::Duration;

use serde_json::Value;

use crate::diagnostic::Class;

/// What came of one request. Everything that decides about retries, conflicts or reports looks at this and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiOutcome {
    /// It worked; the answer's body (an object, a list or a `Status`).
    Done(Value),
    /// Server-side apply met fields that other managers own.
    Conflict {
        /// The server's words.
        message: String,
        /// The fields, in the server's order.
        fields: Vec<FieldConflict>,
    },
    /// The object changed since the `resourceVersion`, or is not the one with the `uid`, that the request named.
    Outdated(String),
    /// An object of that name exists.
    AlreadyExists(String),
    /// The object breaks its schema or a rule of its kind.
    Invalid {
        /// The server's words.
        message: String,
        /// Paths of the fields concerned.
        fields: Vec<String>,
        /// Whether a field that must not change would have changed.
        immutable: bool,
    },
    /// The request could not be understood, for example a field of a wrong type.
    BadRequest(String),
    /// An admission webhook or policy said no.
    Denied(String),
    /// The rights are missing.
    Forbidden(String),
    /// The credentials are missing or wrong.
    Unauthorized(String),
    /// The kind is not served (any more, or yet).
    NoSuchKind(String),
    /// The namespace does not exist.
    NoSuchNamespace(String),
    /// The namespace is being deleted, so nothing can be created in it.
    NamespaceTerminating(String),
    /// The object does not exist.
    NotFound(String),
    /// A list's continuation or a watch's starting point is too old.
    Expired(String),
    /// Too many requests.
    Throttled {
        /// The server's words.
        message: String,
        /// The pause the server asked for.
        retry_after: Option<Duration>,
    },
    /// No answer in time; the request may have been carried out.
    Timeout(String),
    /// The server failed in a way that may pass.
    Transient(String),
    /// There is no connection to the server, or it broke; the request may have been carried out.
    Unreachable(String),
    /// An answer outside the API's rules.
    Unexpected(String),
    /// The run was cancelled while waiting for the answer; the request may have been carried out.
    Interrupted,
}

/// A field that another manager owns, as the API server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The field in the notation of managed fields, for example `.spec.containers[name="web"].image`.
    pub field: String,
    /// The server's words, which name the manager.
    pub message: String,
}

impl ApiOutcome {
    /// The message for people; `None` when it worked.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Done(_) => None,
            Self::Conflict { message, .. }
            | Self::Invalid { message, .. }
            | Self::Throttled { message, .. }
            | Self::Outdated(message)
            | Self::AlreadyExists(message)
            | Self::BadRequest(message)
            | Self::Denied(message)
            | Self::Forbidden(message)
            | Self::Unauthorized(message)
            | Self::NoSuchKind(message)
            | Self::NoSuchNamespace(message)
            | Self::NamespaceTerminating(message)
            | Self::NotFound(message)
            | Self::Expired(message)
            | Self::Timeout(message)
            | Self::Transient(message)
            | Self::Unreachable(message)
            | Self::Unexpected(message) => Some(message),
            Self::Interrupted => Some("interrupted while waiting for the API server"),
        }
    }

    /// Whether the same request may succeed when it is sent again after a while.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Throttled { .. }
                | Self::Timeout(_)
                | Self::Transient(_)
                | Self::Unreachable(_)
                | Self::NamespaceTerminating(_)
        )
    }

    /// Whether the object or its kind is simply not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NoSuchKind(_) | Self::NoSuchNamespace(_))
    }

    /// Whether access was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::Unauthorized(_))
    }

    /// Who has to act; meaningless for [`ApiOutcome::Done`].
    pub fn class(&self) -> Class {
        match self {
            Self::Forbidden(_) | Self::Unauthorized(_) => Class::Access,
            Self::Throttled { .. }
            | Self::Timeout(_)
            | Self::Transient(_)
            | Self::Unreachable(_)
            | Self::Expired(_) => Class::Transient,
            Self::Interrupted => Class::Cancelled,
            _ => Class::Object,
        }
    }
}

/// A refused or broken answer before its meaning is known.
pub(super) struct Refusal<'a> {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: &'a [u8],
}

/// The outcome that an answer with an error status stands for.
pub(super) fn classify(refusal: &Refusal<'_>) -> ApiOutcome {
    let parsed: Option<Value> = serde_json::from_slice(refusal.body).ok();
    let status = parsed.filter(|value| value["kind"] == "Status");
    let Some(status) = status else { return without_status(refusal) };
    let message = status["message"].as_str().unwrap_or("no message").to_owned();
    let reason = status["reason"].as_str().unwrap_or_default();
    let details = &status["details"];
    match (refusal.status, reason) {
        (409, "AlreadyExists") => ApiOutcome::AlreadyExists(message),
        (409, _) => conflict(message, details),
        (422, _) => invalid(message, details),
        (403, _) if has_cause(details, "NamespaceTerminating") => {
            ApiOutcome::NamespaceTerminating(message)
        }
        (400..=499, _) if is_denial(&message) => ApiOutcome::Denied(message),
        (400, _) => ApiOutcome::BadRequest(message),
        // The code says that the server failed; what it means is that a field is unknown or of a wrong type, or that a
        // value is not what the type stands for (base64, a quantity, a time).
        (500, _)
            if message.starts_with("failed to create typed patch object")
                || (message.starts_with("failed to convert new object")
                    && message.contains("unable to convert unstructured object")) =>
        {
            ApiOutcome::BadRequest(message)
        }
        (401, _) => ApiOutcome::Unauthorized(message),
        (403, _) => ApiOutcome::Forbidden(message),
        (404, _) if message.starts_with("the server could not find the requested resource") => {
            ApiOutcome::NoSuchKind(message)
        }
        (404, _) if details["kind"] == "namespaces" => ApiOutcome::NoSuchNamespace(message),
        (404, _) => ApiOutcome::NotFound(message),
        (408 | 504, _) | (500, "Timeout" | "ServerTimeout") => ApiOutcome::Timeout(message),
        (410, _) => ApiOutcome::Expired(message),
        (429, _) => ApiOutcome::Throttled { message, retry_after: pause(refusal, details) },
        (503, _) if pause(refusal, details).is_some() => {
            ApiOutcome::Throttled { message, retry_after: pause(refusal, details) }
        }
        (500..=599, _) => ApiOutcome::Transient(message),
        _ => ApiOutcome::Unexpected(message),
    }
}

/// An error status whose body is not the API's: a proxy, or a path that nobody serves.
fn without_status(refusal: &Refusal<'_>) -> ApiOutcome {
    let text = String::from_utf8_lossy(refusal.body);
    let shown: String = text.trim().chars().take(200).collect();
    let message = if shown.is_empty() {
        format!("HTTP status {}", refusal.status)
    } else {
        format!("HTTP status {}: {shown}", refusal.status)
    };
    match refusal.status {
        401 => ApiOutcome::Unauthorized(message),
        403 => ApiOutcome::Forbidden(message),
        404 => ApiOutcome::NoSuchKind(message),
        408 | 504 => ApiOutcome::Timeout(message),
        429 => ApiOutcome::Throttled { message, retry_after: refusal.retry_after },
        500..=599 => ApiOutcome::Transient(message),
        _ => ApiOutcome::Unexpected(message),
    }
}

fn causes(details: &Value) -> impl Iterator<Item = &Value> {
    details["causes"].as_array().into_iter().flatten()
}

fn has_cause(details: &Value, reason: &str) -> bool {
    causes(details).any(|cause| cause["reason"] == reason)
}

fn conflict(message: String, details: &Value) -> ApiOutcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields: Vec<_> = causes(details)
        .filter(|cause| cause["reason"] == "FieldManagerConflict")
        .map(|cause| FieldConflict {
            field: text(&cause["field"]),
            message: text(&cause["message"]),
        })
        .collect();
    if fields.is_empty() {
        ApiOutcome::Outdated(message)
    } else {
        ApiOutcome::Conflict { message, fields }
    }
}

fn invalid(message: String, details: &Value) -> ApiOutcome {
    if is_denial(&message) {
        return ApiOutcome::Denied(message);
    }
    let immutable =
        ["immutable", "may not be changed", "updates to statefulset spec", "may not change"]
            .iter()
            .any(|words| message.contains(words));
    let fields = causes(details).filter_map(|cause| cause["field"].as_str()).map(str::to_owned);
    ApiOutcome::Invalid { fields: fields.collect(), immutable, message }
}

/// Webhooks and admission policies have no reason of their own in the API, only their wording.
fn is_denial(message: &str) -> bool {
    (message.contains("admission webhook") && message.contains("denied the request"))
        || (message.contains("ValidatingAdmissionPolicy") && message.contains("denied request"))
}

/// The pause from the `Retry-After` header, or else from the status.
fn pause(refusal: &Refusal<'_>, details: &Value) -> Option<Duration> {
    let from_status = || details["retryAfterSeconds"].as_u64().map(Duration::from_secs);
    refusal.retry_after.or_else(from_status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(status: u16, body: &Value) -> ApiOutcome {
        let body = serde_json::to_vec(body).unwrap();
        classify(&Refusal { status, retry_after: None, body: &body })
    }

    fn status(message: &str, reason: &str, details: &Value) -> Value {
        json!({"kind": "Status", "message": message, "reason": reason, "details": details})
    }

    #[test]
    fn every_refusal_has_its_class() {
        let none = json!({});
        let cases = [
            (409, status("x", "AlreadyExists", &none), ApiOutcome::AlreadyExists("x".into())),
            (409, status("x", "Conflict", &none), ApiOutcome::Outdated("x".into())),
            (400, status("x", "BadRequest", &none), ApiOutcome::BadRequest("x".into())),
            (401, status("x", "Unauthorized", &none), ApiOutcome::Unauthorized("x".into())),
            (403, status("x", "Forbidden", &none), ApiOutcome::Forbidden("x".into())),
            (
                403,
                status("x", "Forbidden", &json!({"causes": [{"reason": "NamespaceTerminating"}]})),
                ApiOutcome::NamespaceTerminating("x".into()),
            ),
            (
                404,
                status("x", "NotFound", &json!({"kind": "pods"})),
                ApiOutcome::NotFound("x".into()),
            ),
            (
                404,
                status("x", "NotFound", &json!({"kind": "namespaces", "name": "n"})),
                ApiOutcome::NoSuchNamespace("x".into()),
            ),
            (408, status("x", "Timeout", &none), ApiOutcome::Timeout("x".into())),
            (410, status("x", "Expired", &none), ApiOutcome::Expired("x".into())),
            (
                429,
                status("x", "TooManyRequests", &json!({"retryAfterSeconds": 3})),
                ApiOutcome::Throttled {
                    message: "x".into(),
                    retry_after: Some(Duration::from_secs(3)),
                },
            ),
            (500, status("x", "InternalError", &none), ApiOutcome::Transient("x".into())),
            (503, status("x", "ServiceUnavailable", &none), ApiOutcome::Transient("x".into())),
            (418, status("x", "", &none), ApiOutcome::Unexpected("x".into())),
        ];
        for (code, body, expected) in cases {
            assert_eq!(outcome(code, &body), expected);
        }
    }

    #[test]
    fn conflicts_name_their_fields() {
        let details = json!({"causes": [
            {"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"}]});
        let ApiOutcome::Conflict { fields, .. } = outcome(409, &status("m", "Conflict", &details))
        else {
            panic!("a conflict was expected")
        };
        assert_eq!(fields[0].field, ".data.a");
    }

    #[test]
    fn codes_that_mislead_are_read_by_their_message() {
        let webhook = "admission webhook \"a.b\" denied the request: no";
        assert_eq!(
            outcome(403, &status(webhook, "Forbidden", &json!({}))),
            ApiOutcome::Denied(webhook.into())
        );
        let policy =
            "x is invalid: : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        assert_eq!(
            outcome(422, &status(policy, "Invalid", &json!({}))),
            ApiOutcome::Denied(policy.into())
        );
        let mistyped = "failed to create typed patch object (a/x; /v1, Kind=ConfigMap): .dat: field not declared in schema";
        assert_eq!(
            outcome(500, &status(mistyped, "", &json!({}))),
            ApiOutcome::BadRequest(mistyped.into())
        );
        let unreadable = "failed to convert new object (a/x; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 0";
        assert_eq!(
            outcome(500, &status(unreadable, "", &json!({}))),
            ApiOutcome::BadRequest(unreadable.into())
        );
        let webhook = "failed to convert new object (a/x; a.b/v1, Kind=X) to proper version: conversion webhook for a.b/v1, Kind=X failed: refused";
        assert!(outcome(500, &status(webhook, "", &json!({}))).is_transient());
        let broken = "Internal error occurred: failed calling webhook \"a.b\": timeout";
        assert!(outcome(500, &status(broken, "InternalError", &json!({}))).is_transient());
    }

    #[test]
    fn immutable_fields_are_recognised() {
        let details =
            json!({"causes": [{"field": "spec.selector", "message": "field is immutable"}]});
        let message = "Deployment.apps \"x\" is invalid: spec.selector: field is immutable";
        let ApiOutcome::Invalid { fields, immutable, .. } =
            outcome(422, &status(message, "Invalid", &details))
        else {
            panic!("invalid was expected")
        };
        assert!(immutable);
        assert_eq!(fields, ["spec.selector"]);
    }

    #[test]
    fn answers_that_are_not_the_apis_are_judged_by_code() {
        let plain = |status, body: &[u8]| classify(&Refusal { status, retry_after: None, body });
        assert_eq!(
            plain(404, b"404 page not found\n"),
            ApiOutcome::NoSuchKind("HTTP status 404: 404 page not found".into())
        );
        assert!(plain(502, b"<html>bad gateway</html>").is_transient());
        assert_eq!(plain(302, b""), ApiOutcome::Unexpected("HTTP status 302".into()));
    }
}
