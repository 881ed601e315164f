//! `clusterConfigMap` and `clusterSecret`: one key of an object in the target cluster.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::text::Text;
use crate::{
    schema::{ClusterData, VarsSource},
    vars::{
        ClusterReader, Context, Templates, VarsError,
        load::{Loaded, at_target_path},
    },
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
    let is_sensitive = entry.sensitive.unwrap_or(kind == DataKind::Secret);
    let what = format!("key {:?} of {shown}", source.key);
    let text = decode(kind, text.as_str().unwrap_or_default(), what, is_sensitive)?;
    let text = text.render("", templates, context)?;
    let loaded = Loaded { value: text.parse(entry.multidoc)?, what: text.what };
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
    let (namespace, kind) = (source.namespace.as_str(), kind.kind());
    if let Some(name) = source.name.as_deref().filter(|name| !name.is_empty()) {
        let object = cluster.get("v1", kind, namespace, name).await.map_err(VarsError::outside)?;
        let object_name = || format!("{namespace}/{kind}/{name}");
        return object.ok_or_else(|| VarsError::ObjectNotFound { object: object_name() });
    }
    let shown = format!("{namespace}/{kind} with labels {}", super::selector(&source.labels));
    let list = cluster.list("v1", kind, namespace, &source.labels);
    let mut objects = list.await.map_err(VarsError::outside)?;
    match (objects.pop(), objects.len()) {
        (None, _) => Err(VarsError::ObjectNotFound { object: shown }),
        (Some(object), 0) => Ok(object),
        (Some(_), others) => Err(VarsError::Ambiguous { object: shown, count: others + 1 }),
    }
}

fn decode(kind: DataKind, text: &str, what: String, is_sensitive: bool) -> Result<Text, VarsError> {
    if kind == DataKind::ConfigMap {
        return Ok(Text { content: text.to_owned(), what, is_sensitive });
    }
    match BASE64_STANDARD.decode(text) {
        Ok(bytes) => Text::from_bytes(bytes, what, is_sensitive),
        Err(_) => Err(VarsError::Content { what, problem: "is not valid base64".to_owned() }),
    }
}
