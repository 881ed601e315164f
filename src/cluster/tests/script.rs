//! An API server that follows a script: answers per method and path, and a record of what was asked.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::any};

use crate::cluster::{Cluster, ClusterOptions, RetryPolicy};

type Answers = HashMap<String, VecDeque<ResponseTemplate>>;

pub(crate) struct Script {
    server: MockServer,
    answers: Arc<Mutex<Answers>>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

/// An answer with this status and body.
pub(crate) fn answer(status: u16, body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(body)
}

/// A refusal as the API server words it.
pub(crate) fn refusal(status: u16, reason: &str, details: &Value) -> ResponseTemplate {
    let message = format!("refused with {reason}");
    answer(
        status,
        &json!({"kind": "Status", "message": message, "reason": reason, "details": details}),
    )
}

/// The answer of a deletion that left nothing.
pub(crate) fn gone() -> ResponseTemplate {
    answer(200, &json!({"kind": "Status", "status": "Success"}))
}

/// Settings with short pauses.
pub(crate) fn hasty() -> ClusterOptions {
    ClusterOptions {
        request_timeout: Duration::from_millis(500),
        retry: RetryPolicy { first_pause: Duration::from_millis(1), ..RetryPolicy::default() },
        ..ClusterOptions::default()
    }
}

impl Script {
    /// A server that serves `ConfigMap`, `Namespace` and `Widget` and has no objects.
    pub(crate) async fn start() -> Self {
        let server = MockServer::start().await;
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let script = (answers.clone(), seen.clone());
        let respond = move |request: &Request| {
            let key = format!("{} {}", request.method, request.url.path());
            let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
            let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            script.1.lock().unwrap().push((format!("{key}{query}"), body));
            let mut answers = script.0.lock().unwrap();
            match answers.get_mut(&key) {
                Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
                Some(answers) => answers.front().unwrap().clone(),
                None if is_collection(request.url.path()) => answer(200, &json!({"items": []})),
                None => refusal(404, "NotFound", &json!({"name": "x", "kind": "things"})),
            }
        };
        Mock::given(any()).respond_with(respond).mount(&server).await;
        let script = Self { server, answers, seen };
        script.on(
            "GET /api",
            [aggregated(
                "",
                "v1",
                &[("namespaces", "Namespace", false), ("configmaps", "ConfigMap", true)],
            )],
        );
        script.on("GET /apis", [aggregated("example.com", "v1", &[("widgets", "Widget", true)])]);
        script
    }

    /// Answers to `METHOD /path`, in order; the last one is repeated.
    pub(crate) fn on(&self, request: &str, answers: impl IntoIterator<Item = ResponseTemplate>) {
        self.answers.lock().unwrap().insert(request.to_owned(), answers.into_iter().collect());
    }

    pub(crate) fn cluster(&self, options: ClusterOptions) -> Cluster {
        // Whoever was first has set it; any one will do.
        let _ignored = rustls::crypto::ring::default_provider().install_default();
        let mut config = kube::Config::new(self.server.uri().parse().unwrap());
        config.default_retry = false;
        Cluster::new(kube::Client::try_from(config).unwrap(), options)
    }

    /// What was asked, discovery left out: method, path and query.
    pub(crate) fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let seen = seen.iter().map(|(request, _)| request.clone());
        seen.filter(|request| request != "GET /api" && request != "GET /apis").collect()
    }

    /// The bodies sent with requests that start with `request`.
    pub(crate) fn bodies(&self, request: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|(text, _)| text.starts_with(request))
            .map(|(_, body)| body.clone())
            .collect()
    }

    pub(crate) fn count(&self, request: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|(text, _)| text.starts_with(request)).count()
    }
}

fn is_collection(path: &str) -> bool {
    ["configmaps", "namespaces", "widgets"].iter().any(|plural| path.ends_with(plural))
}

/// Aggregated discovery of one group.
pub(crate) fn aggregated(
    group: &str,
    version: &str,
    kinds: &[(&str, &str, bool)],
) -> ResponseTemplate {
    let resources: Vec<_> = kinds
        .iter()
        .map(|(plural, kind, namespaced)| {
            json!({"resource": plural, "responseKind": {"kind": kind},
                "scope": if *namespaced { "Namespaced" } else { "Cluster" },
                "verbs": ["get", "list", "delete", "patch", "update", "watch"]})
        })
        .collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {"name": group}, "versions": [{"version": version, "resources": resources}]}]});
    answer(200, &list)
}
