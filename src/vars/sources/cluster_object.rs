//! `clusterObject`: a field of one object, or of several, in the target cluster.

use serde_json::{Map, Value};

use super::text::Text;
use crate::{
    object::{JsonPath, get_at},
    schema::{ClusterObject, VarsSource},
    vars::{ClusterReader, Context, Templates, VarsError, load::Loaded},
};

/// Reads the field of each object: a value, or with `list` the list of all values in the order of namespace and name. What is
/// missing and may be gives an empty mapping.
pub(in crate::vars) async fn read(
    source: &ClusterObject,
    entry: &VarsSource,
    cluster: Option<&dyn ClusterReader>,
    templates: &Templates,
    context: &Context,
) -> Result<Loaded, VarsError> {
    let cluster = cluster.ok_or(VarsError::NoCluster { kind: "clusterObject" })?;
    let path = JsonPath::parse(&source.path)
        .map_err(|error| VarsError::JsonPath { field: "clusterObject.path", source: error })?;
    let api_version = api_version(source, cluster).await?;
    let objects = find(source, &api_version, cluster).await?;
    let shown = shown(source);
    if objects.is_empty() {
        if entry.ignore_missing {
            return Ok(Loaded::mapping(Map::new()));
        }
        return Err(VarsError::ObjectNotFound { object: shown });
    }
    if objects.len() > 1 && !source.list {
        return Err(VarsError::Ambiguous { object: shown, count: objects.len() });
    }
    let is_sensitive = entry.sensitive.unwrap_or(true);
    let mut values = Vec::with_capacity(objects.len());
    for object in &objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str();
        let prefix = namespace.map_or(String::new(), |namespace| format!("{namespace}/"));
        let what = format!("field {} of {prefix}{}/{name}", source.path, source.kind);
        let Some(value) = field(object, &path, &source.path, &what)? else {
            if entry.ignore_missing {
                return Ok(Loaded::mapping(Map::new()));
            }
            return Err(VarsError::FieldNotFound { what });
        };
        let value = if source.render { render(value, &what, templates, context)? } else { value };
        values.push(match (source.parse_yaml, value) {
            (false, value) => value,
            (true, Value::String(content)) => {
                super::mapping(&Text { content, what, is_sensitive })?
            }
            (true, _) => {
                let problem = "is no text, so it cannot be read as YAML".to_owned();
                return Err(VarsError::Content { what, problem });
            }
        });
    }
    let value = if source.list { Value::Array(values) } else { values.swap_remove(0) };
    Ok(Loaded { value, what: format!("field {} of {shown}", source.path) })
}

/// As written, or the one that the only group serving the kind prefers.
async fn api_version(
    source: &ClusterObject,
    cluster: &dyn ClusterReader,
) -> Result<String, VarsError> {
    if let Some(version) = source.api_version.clone().filter(|version| !version.is_empty()) {
        return Ok(version);
    }
    let mut served = cluster.api_versions(&source.kind).await.map_err(VarsError::outside)?;
    match (served.len(), served.pop()) {
        (1, Some(version)) => Ok(version),
        (_, last) => Err(VarsError::KindNotUnique {
            kind: source.kind.clone(),
            served: served.into_iter().chain(last).collect(),
        }),
    }
}

async fn find(
    source: &ClusterObject,
    api_version: &str,
    cluster: &dyn ClusterReader,
) -> Result<Vec<Value>, VarsError> {
    let namespace = source.namespace.as_deref().unwrap_or_default();
    let found = match source.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => {
            let object = cluster.get(api_version, &source.kind, namespace, name).await;
            object.map(|object| object.into_iter().collect())
        }
        None => cluster.list(api_version, &source.kind, namespace, &source.labels).await,
    };
    found.map_err(VarsError::outside)
}

fn shown(source: &ClusterObject) -> String {
    let namespace = source.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let prefix = namespace.map_or(String::new(), |namespace| format!("{namespace}/"));
    match source.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("{prefix}{}/{name}", source.kind),
        None => format!("{prefix}{} with labels {}", source.kind, super::selector(&source.labels)),
    }
}

/// The one value that the path leads to.
fn field(
    object: &Value,
    path: &JsonPath,
    text: &str,
    what: &str,
) -> Result<Option<Value>, VarsError> {
    if matches!(text.trim(), "$" | "@") {
        return Ok(Some(object.clone()));
    }
    match path.locate(object).as_slice() {
        [] => Ok(None),
        [found] => Ok(get_at(object, found).cloned()),
        several => {
            let problem = format!("is not one field: the path matches {}", several.len());
            Err(VarsError::Content { what: what.to_owned(), problem })
        }
    }
}

fn render(
    value: Value,
    what: &str,
    templates: &Templates,
    context: &Context,
) -> Result<Value, VarsError> {
    templates.render_strings("", value, context).map_err(|(_, error)| {
        // The text is the cluster's and may be secret.
        let line = error.position.map_or(String::new(), |at| format!(", line {}", at.line));
        let problem = format!("cannot be rendered ({}){line}", error.kind);
        VarsError::Content { what: what.to_owned(), problem }
    })
}
