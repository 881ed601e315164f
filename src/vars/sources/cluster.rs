//! `clusterConfigMap` and `clusterSecret`: one key of an object in the target cluster.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::{
    schema::{ClusterData, VarsSource},
    vars::{
        ClusterReader, Context, Templates, VarsError,
        load::{Loaded, at_target_path},
    },
    yaml::{self, Schema},
};

/// Which of the two sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vars) enum DataKind {
    /// Values are text.
    ConfigMap,
    /// Values are base64.
    Secret,
}

impl DataKind {
    fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::ConfigMap => "clusterConfigMap",
            Self::Secret => "clusterSecret",
        }
    }
}

/// Reads the key, renders it and parses it as YAML. A missing object or key that may be missing gives `None`, so that
/// variables from earlier entries stay.
pub(in crate::vars) async fn read(
    kind: DataKind,
    source: &ClusterData,
    entry: &VarsSource,
    cluster: Option<&dyn ClusterReader>,
    templates: &Templates,
    context: &Context,
) -> Result<Option<Loaded>, VarsError> {
    let cluster = cluster.ok_or(VarsError::NoCluster { kind: kind.field() })?;
    let found = find(kind, source, cluster).await;
    let object = match found {
        Err(VarsError::ObjectNotFound { .. }) if entry.ignore_missing => return Ok(None),
        other => other?,
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let shown = format!("{}/{}/{name}", source.namespace, kind.kind());
    let Some(text) = object["data"].get(&source.key) else {
        if entry.ignore_missing {
            return Ok(None);
        }
        return Err(VarsError::KeyNotFound { object: shown, key: source.key.clone() });
    };
    let fail = |problem: String| VarsError::ObjectContent {
        object: shown.clone(),
        key: source.key.clone(),
        problem,
    };
    let text = decode(kind, text.as_str().unwrap_or_default()).map_err(fail)?;
    let value = parse(kind, &text, entry.multidoc, templates, context).map_err(fail)?;
    let loaded = Loaded { value, what: format!("key {:?} of {shown}", source.key) };
    if source.target_path.is_some() {
        let variables = at_target_path(source.target_path.as_deref(), loaded)?;
        return Ok(Some(Loaded::mapping(variables)));
    }
    Ok(Some(loaded))
}

async fn find(
    kind: DataKind,
    source: &ClusterData,
    cluster: &dyn ClusterReader,
) -> Result<Value, VarsError> {
    let refused = |diagnostic| VarsError::Cluster { diagnostic: Box::new(diagnostic) };
    let (namespace, kind) = (source.namespace.as_str(), kind.kind());
    if let Some(name) = source.name.as_deref().filter(|name| !name.is_empty()) {
        let object = cluster.get("v1", kind, namespace, name).await.map_err(refused)?;
        let object_name = || format!("{namespace}/{kind}/{name}");
        return object.ok_or_else(|| VarsError::ObjectNotFound { object: object_name() });
    }
    let labels: Vec<String> =
        source.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let shown = format!("{namespace}/{kind} with labels {}", labels.join(","));
    let list = cluster.list("v1", kind, namespace, &source.labels);
    let mut objects = list.await.map_err(refused)?;
    match (objects.pop(), objects.len()) {
        (None, _) => Err(VarsError::ObjectNotFound { object: shown }),
        (Some(object), 0) => Ok(object),
        (Some(_), others) => Err(VarsError::Ambiguous { object: shown, count: others + 1 }),
    }
}

fn decode(kind: DataKind, text: &str) -> Result<String, String> {
    if kind == DataKind::ConfigMap {
        return Ok(text.to_owned());
    }
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| "is not valid base64".to_owned())?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Renders and parses. Messages about a Secret tell the line, but nothing of the content.
fn parse(
    kind: DataKind,
    text: &str,
    multidoc: bool,
    templates: &Templates,
    context: &Context,
) -> Result<Value, String> {
    let detail = |line: Option<usize>, message: String| {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        match kind {
            DataKind::ConfigMap => format!("{line}: {message}"),
            DataKind::Secret => line,
        }
    };
    let rendered = templates.render("", text, context).map_err(|error| {
        let line = error.position.map(|position| position.line);
        format!("cannot be rendered ({}){}", error.kind, detail(line, error.message))
    })?;
    let invalid = |error: yaml::YamlError| {
        let line = error.position().map(|position| position.line);
        format!("is not valid YAML{}", detail(line, error.problem().to_string()))
    };
    if multidoc {
        let documents = yaml::parse_documents("", rendered.as_bytes(), Schema::Config);
        let documents = documents.map_err(invalid)?;
        return Ok(documents.into_iter().map(|document| document.value).collect());
    }
    let document = yaml::parse_document("", rendered.as_bytes(), Schema::Config);
    document.map(|document| document.value).map_err(invalid)
}
