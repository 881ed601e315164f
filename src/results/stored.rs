//! Results as Secrets (kluctl 2.28): what is written, and what is left out of results that do not fit.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    CommandResult, DeploymentError, KluctlDeploymentInfo, ProjectKey, ResultObject, ValidateResult,
    compact_objects,
};

/// Label of every stored result.
pub(super) const RESULT_LABEL: &str = "kluctl.io/result";
/// Label with the id of a command result.
pub(super) const COMMAND_ID_LABEL: &str = "kluctl.io/command-result-id";
/// Label with the id of a validate result.
pub(super) const VALIDATE_ID_LABEL: &str = "kluctl.io/validate-result-id";
/// Annotation with the summary of a command result.
pub(super) const COMMAND_SUMMARY: &str = "kluctl.io/command-result-summary";
/// Annotation with the summary of a validate result.
pub(super) const VALIDATE_SUMMARY: &str = "kluctl.io/validate-result-summary";

/// Bytes of data that a Secret may hold, with some to spare.
const MOST_DATA: usize = 1_000_000;
/// Bytes that the summary may take: annotations may not have more than 256 KiB together.
const MOST_SUMMARY: usize = 200_000;
/// Longest name of a Secret that the reference writes.
const LONGEST_NAME: usize = 63;

/// What of a result is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completeness {
    /// All of it.
    Complete,
    /// Objects as rendered, and changes; not the objects in the cluster.
    WithoutLive,
    /// Changes only.
    WithoutObjects,
    /// Which objects were new, changed, deleted and so on; not the changes.
    WithoutChanges,
    /// No objects, and the first messages only.
    Summary,
}

impl Completeness {
    /// What is tried, one after the other, when a result does not fit.
    const LESS: [Self; 4] =
        [Self::WithoutLive, Self::WithoutObjects, Self::WithoutChanges, Self::Summary];

    /// What is missing, for people; `None` when nothing is.
    pub fn loss(self) -> Option<&'static str> {
        match self {
            Self::Complete => None,
            Self::WithoutLive => Some("without the objects as they were and are in the cluster"),
            Self::WithoutObjects => Some("without the objects, with their changes"),
            Self::WithoutChanges => Some("without the objects and their changes"),
            Self::Summary => Some("without anything about objects"),
        }
    }
}

/// The Secret of a command result in `namespace`, and what is in it: as much as fits.
pub(super) fn command_secret(result: &CommandResult, namespace: &str) -> (Value, Completeness) {
    let data_of = |completeness| {
        let parts = trimmed(result, completeness);
        [
            ("reducedResult", compressed(&parts.reduced())),
            ("compactedObjects", compressed(&compact_objects(&parts.objects))),
        ]
    };
    let mut completeness = Completeness::Complete;
    let mut data = data_of(completeness);
    for less in Completeness::LESS {
        if data.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= MOST_DATA {
            break;
        }
        completeness = less;
        data = data_of(completeness);
    }
    let mut labels = Map::new();
    labels.insert(COMMAND_ID_LABEL.to_owned(), result.id.as_str().into());
    let head = Head {
        prefix: "cr",
        id: &result.id,
        namespace,
        project: &result.project_key,
        deployment: result.kluctl_deployment.as_ref(),
    };
    let summary = (COMMAND_SUMMARY, command_summary(result));
    (head.secret(labels, summary, &data), completeness)
}

/// The Secret of a validate result in `namespace`.
pub(super) fn validate_secret(result: &ValidateResult, namespace: &str) -> Value {
    let mut result = result.clone();
    let mut data = compressed(&result);
    while data.len() > MOST_DATA {
        for list in [&mut result.errors, &mut result.warnings] {
            shorten(list, list.len() / 2);
        }
        let entries = result.results.len() / 2;
        result.results.truncate(entries);
        data = compressed(&result);
    }
    let mut labels = Map::new();
    labels.insert(VALIDATE_ID_LABEL.to_owned(), result.id.as_str().into());
    let head = Head {
        prefix: "vr",
        id: &result.id,
        namespace,
        project: &result.project_key,
        deployment: result.kluctl_deployment.as_ref(),
    };
    let summary = serde_json::to_string(&result.summary()).unwrap_or_default();
    head.secret(labels, (VALIDATE_SUMMARY, summary), &[("result", data)])
}

/// What all Secrets of results have in common.
struct Head<'a> {
    prefix: &'static str,
    id: &'a str,
    namespace: &'a str,
    project: &'a ProjectKey,
    deployment: Option<&'a KluctlDeploymentInfo>,
}

impl Head<'_> {
    fn secret(
        &self,
        mut labels: Map<String, Value>,
        (summary_key, summary): (&str, String),
        data: &[(&str, Vec<u8>)],
    ) -> Value {
        use base64::{Engine as _, engine::general_purpose::STANDARD};

        labels.insert(RESULT_LABEL.to_owned(), "true".into());
        let mut annotations = Map::new();
        let mut annotate = |key: &str, value: &str| {
            if !value.is_empty() {
                annotations.insert(key.to_owned(), value.into());
            }
        };
        annotate(summary_key, &summary);
        annotate("kluctl.io/result-project-repo-key", &self.project.repo_key);
        annotate("kluctl.io/result-project-subdir", &self.project.sub_dir);
        if let Some(deployment) = self.deployment {
            annotate("kluctl.io/result-deployment-name", &deployment.name);
            annotate("kluctl.io/result-deployment-namespace", &deployment.namespace);
        }
        let data =
            data.iter().map(|(key, bytes)| ((*key).to_owned(), STANDARD.encode(bytes).into()));
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": secret_name(self.prefix, self.id, &self.project.repo_key),
                "namespace": self.namespace,
                "labels": labels,
                "annotations": annotations,
            },
            "data": Value::Object(data.collect()),
        })
    }
}

/// `<prefix>-<repository>-<id>`, the repository being left out when it is unknown.
fn secret_name(prefix: &str, id: &str, repo_key: &str) -> String {
    let repository = repo_key.rsplit('/').next().unwrap_or_default();
    let repository = repository.to_lowercase().replace('_', "-");
    let longest = LONGEST_NAME.saturating_sub(prefix.len() + id.len() + 2);
    let repository: String = repository
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(longest)
        .collect();
    if repository.is_empty() {
        format!("{prefix}-{id}")
    } else {
        format!("{prefix}-{repository}-{id}")
    }
}

/// The result with less in it.
fn trimmed(result: &CommandResult, completeness: Completeness) -> CommandResult {
    let mut result = result.clone();
    let Some(loss) = completeness.loss() else { return result };
    for object in &mut result.objects {
        trim(object, completeness);
    }
    if completeness == Completeness::Summary {
        result.objects.clear();
        result.deployment = None;
        result.seen_images.clear();
        for list in [&mut result.errors, &mut result.warnings] {
            shorten(list, 100);
        }
    }
    let message = format!("the result is too large to be stored completely: it is stored {loss}");
    result.warnings.push(DeploymentError::new(None, message));
    result
}

fn trim(object: &mut ResultObject, completeness: Completeness) {
    object.remote = None;
    object.applied = None;
    if completeness >= Completeness::WithoutObjects {
        object.rendered = None;
    }
    if completeness >= Completeness::WithoutChanges && !object.base.changes.is_empty() {
        // One empty change remains, so that the object still counts as changed.
        object.base.changes.truncate(1);
        for change in &mut object.base.changes {
            (change.old_value, change.new_value) = (None, None);
            change.unified_diff.clear();
        }
    }
}

/// Cuts a list of messages, and says how many are gone.
fn shorten(list: &mut Vec<DeploymentError>, length: usize) {
    if list.len() > length {
        let gone = list.len() - length;
        list.truncate(length);
        list.push(DeploymentError::new(None, format!("… and {gone} more")));
    }
}

/// The summary as JSON, with as many messages as an annotation can take.
fn command_summary(result: &CommandResult) -> String {
    let mut summary = result.summary();
    let mut length = summary.errors.len().max(summary.warnings.len());
    loop {
        let text = serde_json::to_string(&summary).unwrap_or_default();
        if text.len() <= MOST_SUMMARY || length == 0 {
            return text;
        }
        length /= 2;
        shorten(&mut summary.errors, length);
        shorten(&mut summary.warnings, length);
        if length == 0 {
            // Single messages may be long, and so may be arguments.
            summary.command_info.args = None;
            summary.target = json!({"name": summary.target_key.target_name});
        }
    }
}

fn compressed(value: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let written = encoder.write_all(&text);
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
