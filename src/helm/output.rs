//! From what Helm prints to the manifests of an item (kluctl 2.28). Pure.

use serde_json::Value;

use super::HelmError;
use crate::{
    diagnostic::FieldPath,
    yaml::{self, Schema, YamlError},
};

/// Annotation with the namespace that a chart was rendered for.
const NAMESPACE: &str = "kluctl.io/helm-install-namespace";

/// The objects in Helm's output as YAML: without tests, of keys that are written twice the last one, marked with the namespace
/// of the release if there is one.
///
/// # Errors
/// [`HelmError::Output`] when the output is no YAML, or a document is no object.
pub(super) fn manifests(
    chart: &str,
    output: &str,
    namespace: Option<&str>,
) -> Result<String, HelmError> {
    let documents =
        yaml::parse_documents_last_wins("the chart's manifests", output.as_bytes(), Schema::Config)
            .map_err(|error| no_yaml(chart, output, error))?;
    let mut objects = Vec::with_capacity(documents.len());
    for mut document in documents {
        let at = document.positions.of(&FieldPath::root());
        let Value::Object(_) = &document.value else {
            return Err(HelmError::Output {
                chart: chart.to_owned(),
                template: template_of(output, at.map_or(usize::MAX, |at| at.line)),
                problem: "a document that is no object".to_owned(),
                source: None,
            });
        };
        if is_test(&document.value) {
            continue;
        }
        if let Some(namespace) = namespace {
            annotate(&mut document.value, namespace);
        }
        objects.push(document.value);
    }
    Ok(yaml::emit_documents(&objects))
}

/// Whether output holds data of Secrets, which is not to be written to disk.
pub(super) fn holds_secrets(manifests: &str) -> bool {
    manifests.lines().any(|line| line.trim_start().trim_start_matches("- ") == "kind: Secret")
}

fn no_yaml(chart: &str, output: &str, error: YamlError) -> HelmError {
    let template = error.position().and_then(|at| template_of(output, at.line));
    let problem = "something that is no YAML".to_owned();
    HelmError::Output { chart: chart.to_owned(), template, problem, source: Some(error) }
}

/// The template that a line of the output comes from; Helm notes it in front of each document.
fn template_of(output: &str, line: usize) -> Option<String> {
    let notes = output.lines().take(line).filter_map(|line| line.strip_prefix("# Source: "));
    notes.last().map(str::to_owned)
}

fn is_test(value: &Value) -> bool {
    let events = value["metadata"]["annotations"]["helm.sh/hook"].as_str().unwrap_or_default();
    events.split(',').any(|event| matches!(event.trim(), "test" | "test-success" | "test-failure"))
}

/// Sets the annotation, also where the object has no metadata yet.
fn annotate(value: &mut Value, namespace: &str) {
    let mut parent = value;
    for field in ["metadata", "annotations"] {
        if !parent[field].is_object() {
            parent[field] = Value::Object(serde_json::Map::new());
        }
        parent = &mut parent[field];
    }
    parent[NAMESPACE] = namespace.into();
}
