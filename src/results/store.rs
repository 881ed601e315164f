//! Writes results to the cluster and forgets old ones (kluctl 2.28).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    CommandResult, CommandResultSummary, Completeness, ProjectKey, TargetKey, ValidateResult,
    ValidateResultSummary,
    stored::{
        COMMAND_ID_LABEL, COMMAND_SUMMARY, VALIDATE_ID_LABEL, VALIDATE_SUMMARY, command_secret,
        validate_secret,
    },
};
use crate::cluster::{ApiKind, ApiOutcome, Cluster, DeleteMode, WriteMode};

/// The field manager that writes results.
const MANAGER: &str = "kluctl-results";

/// Why a result is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct StoreError {
    what: String,
    problem: String,
}

/// A result that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What of it.
    pub completeness: Completeness,
    /// Ids of older results of the same project and target that were deleted.
    pub forgotten: Vec<String>,
    /// Older results that should have been deleted and are still there, with the reason.
    pub remaining: Vec<String>,
}

/// Where results are stored: Secrets of one namespace, readable by kluctl's web UI. Results have to be masked before.
#[derive(Debug, Clone, Copy)]
pub struct ResultStore<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The namespace; made when it is missing.
    pub namespace: &'a str,
    /// How many results of the same project and target are kept, the new one included.
    pub keep: usize,
}

impl ResultStore<'_> {
    /// Writes a command result. What does not fit into a Secret is left out, and said in the stored result.
    ///
    /// # Errors
    /// When the API server refuses the Secret.
    pub async fn write_command(&self, result: &CommandResult) -> Result<Stored, StoreError> {
        let (secret, completeness) = command_secret(result, self.namespace);
        self.write(&secret).await?;
        let of_secret = |text: &str| {
            let summary: CommandResultSummary = serde_json::from_str(text).ok()?;
            let started = summary.command_info.start_time;
            Some(Entry { project: summary.project_key, target: summary.target_key, started })
        };
        let retention = Retention {
            label: COMMAND_ID_LABEL,
            annotation: COMMAND_SUMMARY,
            project: &result.project_key,
            target: &result.target_key,
            newest: &result.id,
        };
        Ok(self.forget(&retention, of_secret, completeness).await)
    }

    /// Writes a validate result.
    ///
    /// # Errors
    /// As [`ResultStore::write_command`].
    pub async fn write_validation(&self, result: &ValidateResult) -> Result<Stored, StoreError> {
        self.write(&validate_secret(result, self.namespace)).await?;
        let of_secret = |text: &str| {
            let summary: ValidateResultSummary = serde_json::from_str(text).ok()?;
            let started = summary.start_time;
            Some(Entry { project: summary.project_key, target: summary.target_key, started })
        };
        let retention = Retention {
            label: VALIDATE_ID_LABEL,
            annotation: VALIDATE_SUMMARY,
            project: &result.project_key,
            target: &result.target_key,
            newest: &result.id,
        };
        Ok(self.forget(&retention, of_secret, Completeness::Complete).await)
    }

    async fn write(&self, secret: &Value) -> Result<(), StoreError> {
        let apply = async |kind: &ApiKind, object: &Value| {
            self.cluster.apply_as(MANAGER, kind, object, WriteMode::Real, false).await.outcome
        };
        let mut outcome = apply(&secrets(), secret).await;
        if matches!(outcome, ApiOutcome::NoSuchNamespace(_)) {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace},
            });
            if let Some(problem) = apply(&ApiKind::namespace(), &namespace).await.message() {
                let what = format!("namespace {} cannot be created", self.namespace);
                return Err(StoreError { what, problem: problem.to_owned() });
            }
            outcome = apply(&secrets(), secret).await;
        }
        match outcome.message() {
            None => Ok(()),
            Some(problem) => {
                let name = secret["metadata"]["name"].as_str().unwrap_or_default();
                let what = format!("Secret {}/{name} cannot be written", self.namespace);
                Err(StoreError { what, problem: problem.to_owned() })
            }
        }
    }

    /// Deletes results beyond those that are kept. Without the right to list, all are kept.
    async fn forget(
        &self,
        retention: &Retention<'_>,
        read: impl Fn(&str) -> Option<Entry>,
        completeness: Completeness,
    ) -> Stored {
        let mut stored = Stored { completeness, forgotten: Vec::new(), remaining: Vec::new() };
        let listed =
            self.cluster.list_metadata(&secrets(), Some(self.namespace), retention.label).await;
        let Ok(listed) = listed else { return stored };
        for (id, name) in retention.surplus(&listed, read, self.keep) {
            let mode = DeleteMode { write: WriteMode::Real, uid: None };
            let deleted = self.cluster.delete(&secrets(), Some(self.namespace), &name, mode).await;
            match deleted.outcome {
                ApiOutcome::Done(_) => stored.forgotten.push(id),
                outcome if outcome.is_absent() => {}
                outcome => {
                    let problem = outcome.message().unwrap_or_default();
                    stored.remaining.push(format!("result {id} is not deleted: {problem}"));
                }
            }
        }
        stored
    }
}

fn secrets() -> ApiKind {
    ApiKind {
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
        ..ApiKind::namespace()
    }
}

/// What a stored result says about itself.
struct Entry {
    project: ProjectKey,
    target: TargetKey,
    started: Option<Timestamp>,
}

/// Which results belong together.
struct Retention<'a> {
    label: &'static str,
    annotation: &'static str,
    project: &'a ProjectKey,
    target: &'a TargetKey,
    /// The one that was just written, which stays whatever its time.
    newest: &'a str,
}

impl Retention<'_> {
    /// Ids and Secrets of the oldest results of the project and target beyond `keep`.
    fn surplus(
        &self,
        secrets: &[Value],
        read: impl Fn(&str) -> Option<Entry>,
        keep: usize,
    ) -> Vec<(String, String)> {
        let candidates = secrets.iter().filter_map(|secret| {
            let metadata = &secret["metadata"];
            let entry = read(metadata["annotations"][self.annotation].as_str()?)?;
            let id = metadata["labels"][self.label].as_str()?;
            let is_meant = entry.project == *self.project && entry.target == *self.target;
            let name = metadata["name"].as_str()?.to_owned();
            (is_meant && id != self.newest).then(|| (entry.started, id.to_owned(), name))
        });
        let mut candidates: Vec<_> = candidates.collect();
        candidates.sort_by(|a, b| b.cmp(a));
        let surplus = candidates.into_iter().skip(keep.saturating_sub(1));
        surplus.map(|(_, id, name)| (id, name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(id: &str, target: &str, started: &str) -> Value {
        let target_key = json!({"targetName": target, "clusterId": "c"});
        let summary = json!({"id": id, "target": target_key, "started": started});
        json!({"metadata": {"name": format!("cr-{id}"), "labels": {COMMAND_ID_LABEL: id},
            "annotations": {COMMAND_SUMMARY: summary.to_string()}}})
    }

    #[test]
    fn the_newest_results_of_a_target_are_kept() {
        let target = TargetKey {
            target_name: "prod".to_owned(),
            cluster_id: "c".to_owned(),
            ..TargetKey::default()
        };
        let retention = Retention {
            label: COMMAND_ID_LABEL,
            annotation: COMMAND_SUMMARY,
            project: &ProjectKey::default(),
            target: &target,
            newest: "new",
        };
        let read = |text: &str| {
            let summary: Value = serde_json::from_str(text).ok()?;
            Some(Entry {
                project: ProjectKey::default(),
                target: serde_json::from_value(summary["target"].clone()).ok()?,
                started: summary["started"].as_str()?.parse().ok(),
            })
        };
        let secrets = [
            secret("b", "prod", "2026-01-02T00:00:00Z"),
            secret("new", "prod", "2020-01-01T00:00:00Z"),
            secret("a", "prod", "2026-01-01T00:00:00Z"),
            secret("other", "test", "2020-01-01T00:00:00Z"),
            secret("c", "prod", "2026-01-03T00:00:00Z"),
        ];
        let ids = |keep| {
            let surplus = retention.surplus(&secrets, read, keep).into_iter();
            surplus.map(|(id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!(ids(2), ["b", "a"]);
        assert_eq!(ids(4), Vec::<String>::new());
        assert_eq!(ids(0), ["c", "b", "a"]);
    }
}
