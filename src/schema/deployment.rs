use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConflictRule, DeploymentItem, IgnoreRule, OneOrMany, VarsSource, Violation, Violations,
};
use crate::diagnostic::FieldPath;

/// A `deployment.yaml` (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeploymentFile {
    /// Variables for items and included projects.
    pub vars: Vec<VarsSource>,
    /// Expression that decides whether the project contributes anything; not allowed in the root.
    pub when: Option<String>,
    /// Items in deployment order.
    pub deployments: Vec<DeploymentItem>,
    /// Labels of all objects, here and below.
    pub common_labels: BTreeMap<String, String>,
    /// Annotations of all objects, here and below.
    pub common_annotations: BTreeMap<String, String>,
    /// Namespace for items whose kustomization has none, here and below.
    pub override_namespace: Option<String>,
    /// Tags of all items, here and below.
    pub tags: Vec<String>,
    /// Fields left out of diffs, here and below.
    pub ignore_for_diff: Vec<IgnoreRule>,
    /// What to do with fields owned by others, here and below.
    pub conflict_resolution: Vec<ConflictRule>,
}

impl DeploymentFile {
    /// The rules between fields that this file breaks.
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations = Violations::default();
        let root = FieldPath::root();
        for (index, source) in self.vars.iter().enumerate() {
            source.check(&root.child("vars").child(index), &mut violations);
        }
        for (index, item) in self.deployments.iter().enumerate() {
            item.check(&root.child("deployments").child(index), &mut violations);
        }
        let is_empty = |paths: &Option<OneOrMany>| {
            paths.as_ref().is_none_or(|paths| paths.as_slice().is_empty())
        };
        for (index, rule) in self.ignore_for_diff.iter().enumerate() {
            if is_empty(&rule.field_path) && is_empty(&rule.field_path_regex) {
                let path = root.child("ignoreForDiff").child(index);
                violations.add(path, "names no field", "fieldPath or fieldPathRegex");
            }
        }
        for (index, rule) in self.conflict_resolution.iter().enumerate() {
            let fields = [&rule.field_path, &rule.field_path_regex, &rule.manager];
            if fields.into_iter().all(is_empty) {
                let path = root.child("conflictResolution").child(index);
                let expected = "fieldPath, fieldPathRegex or manager";
                violations.add(path, "names neither fields nor managers", expected);
            }
        }
        violations.into_vec()
    }
}
