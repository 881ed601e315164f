//! `buildMetadata`: where objects come from and what changed them.

use serde_json::{Value, json};

use super::{
    decode::Located,
    error::{KustomizeError, Result},
};
use crate::yaml;

pub(crate) const ORIGIN_ANNOTATIONS: &str = "originAnnotations";
pub(crate) const TRANSFORMER_ANNOTATIONS: &str = "transformerAnnotations";
pub(crate) const MANAGED_BY_LABEL: &str = "managedByLabel";
const OPTIONS: [&str; 3] = [ORIGIN_ANNOTATIONS, TRANSFORMER_ANNOTATIONS, MANAGED_BY_LABEL];

/// The origin of an object, or a transformer that changed it, as it is written into annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(Value);

impl Origin {
    /// The text of the annotation.
    pub(crate) fn to_annotation(&self) -> String {
        yaml::emit(&self.0)
    }

    /// One annotation for many.
    pub(crate) fn list_to_annotation(origins: &[Self]) -> String {
        let list: Vec<Value> = origins.iter().map(|origin| origin.0.clone()).collect();
        yaml::emit(&Value::Array(list))
    }
}

/// Makes origins, or none when the build does not ask for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origins {
    recorded: bool,
}

impl Origins {
    /// For the `buildMetadata` of the root kustomization.
    ///
    /// # Errors
    /// When an option is unknown.
    pub(crate) fn new(build_metadata: &[Located<String>]) -> Result<Self> {
        for Located { value: option, place } in build_metadata {
            if !OPTIONS.contains(&option.as_str()) {
                let problem = place.problem(format!("unknown option \"{option}\""));
                return Err(KustomizeError::Kustomization(Box::new(
                    problem.with_expected(OPTIONS.join(", ")),
                )));
            }
        }
        Ok(Self { recorded: !build_metadata.is_empty() })
    }

    /// A path below the root kustomization.
    #[expect(clippy::unused_self, reason = "reads as one family at the call sites")]
    pub(crate) fn join(self, base: &str, path: &str) -> String {
        clean(base, path)
    }

    /// The origin of an object of a file.
    pub(crate) fn file(self, base: &str, path: &str) -> Option<Origin> {
        self.recorded.then(|| Origin(json!({"path": clean(base, path)})))
    }

    /// The origin of what a field of a kustomization makes or changes.
    pub(crate) fn field(self, base: &str, file: &str, kind: &str) -> Option<Origin> {
        let by = json!({"apiVersion": "builtin", "kind": kind});
        self.recorded
            .then(|| Origin(json!({"configuredBy": by, "configuredIn": clean(base, file)})))
    }

    /// The origin of what a transformer or generator of a file does.
    pub(crate) fn plugin(self, file: &str, configuration: &Value) -> Option<Origin> {
        let mut by = json!({
            "apiVersion": configuration["apiVersion"],
            "kind": configuration["kind"],
            "name": configuration["metadata"]["name"],
        });
        if let Some(namespace) = configuration["metadata"].get("namespace") {
            by["namespace"] = namespace.clone();
        }
        self.recorded.then(|| Origin(json!({"configuredBy": by, "configuredIn": file})))
    }
}

/// A path relative to the root kustomization, which may lead out of its directory.
fn clean(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}
