use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{GitProject, ObjectSelector, OciProject, VarsSource, Violations};
use crate::diagnostic::FieldPath;

/// An entry of `deployments` in `deployment.yaml` (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "the file has as many switches")]
pub struct DeploymentItem {
    /// Directory of manifests, relative to this `deployment.yaml`.
    pub path: Option<String>,
    /// Directory with a `deployment.yaml` of the same source.
    pub include: Option<String>,
    /// Directory with a `deployment.yaml` in a Git repository.
    pub git: Option<GitProject>,
    /// Directory with a `deployment.yaml` in an OCI artifact.
    pub oci: Option<OciProject>,
    /// Objects deleted before this item is applied.
    pub delete_objects: Vec<ObjectSelector>,

    /// Tags; left out, the last part of `path` or `include`.
    pub tags: Vec<String>,
    /// Wait for all items so far before going on.
    pub barrier: bool,
    /// Shown when the barrier is reached.
    pub message: Option<String>,
    /// Take manifests from sub directories too.
    pub recursive: bool,

    /// Wait until the objects of this item are ready.
    pub wait_readiness: bool,
    /// Further objects to wait for.
    pub wait_readiness_objects: Vec<ObjectSelector>,

    /// Arguments of an included library.
    pub args: Option<Map<String, Value>>,
    /// Let an included library see the variables of this project.
    pub pass_vars: bool,
    /// Variables of the item, or of the included project.
    pub vars: Vec<VarsSource>,

    /// Set the annotation that keeps objects from being deleted when tags are given.
    pub skip_delete_if_tags: bool,
    /// Render the files for use by other items, without objects of its own.
    pub only_render: bool,
    /// Deploy even if filters exclude the item.
    pub always_deploy: bool,
    /// Expression that decides whether the item exists.
    pub when: Option<String>,

    /// Written into results, refused in projects.
    #[schemars(skip)]
    pub rendered_objects: Option<Value>,
    /// Written into results, refused in projects.
    #[schemars(skip)]
    pub rendered_helm_chart_config: Option<Value>,
    /// Written into results, refused in projects.
    #[schemars(skip)]
    pub rendered_include: Option<Value>,
}

impl DeploymentItem {
    /// Whether the item stands for another deployment project.
    pub fn is_include(&self) -> bool {
        self.include.is_some() || self.git.is_some() || self.oci.is_some()
    }

    /// Checks the rules between fields; `path` leads to this entry.
    pub fn check(&self, path: &FieldPath, violations: &mut Violations) {
        self.check_kind(path, violations);
        self.check_fields_of_kind(path, violations);
        self.check_output_fields(path, violations);
        for (index, selector) in self.delete_objects.iter().enumerate() {
            check_selector(selector, &path.child("deleteObjects").child(index), violations);
        }
        for (index, selector) in self.wait_readiness_objects.iter().enumerate() {
            check_selector(selector, &path.child("waitReadinessObjects").child(index), violations);
        }
        for (index, source) in self.vars.iter().enumerate() {
            source.check(&path.child("vars").child(index), violations);
        }
        if let Some(git) = &self.git {
            git.check(&path.child("git"), violations);
        }
        if let Some(oci) = &self.oci {
            oci.check(&path.child("oci"), violations);
        }
    }

    fn check_kind(&self, path: &FieldPath, violations: &mut Violations) {
        let kinds = [
            ("path", self.path.is_some()),
            ("include", self.include.is_some()),
            ("git", self.git.is_some()),
            ("oci", self.oci.is_some()),
        ];
        let given: Vec<&str> =
            kinds.into_iter().filter_map(|(name, set)| set.then_some(name)).collect();
        if given.len() > 1 {
            let message = format!("has {} at the same time", given.join(" and "));
            let expected = "only one of path, include, git and oci; write an item for each";
            violations.add(path.clone(), message, expected);
        }
    }

    fn check_fields_of_kind(&self, path: &FieldPath, violations: &mut Violations) {
        let only_with_path = "an item with path";
        let only_with_include = "an item with include, git or oci";
        let mut refuse = |field: &str, refused: bool, allowed: &str| {
            if refused {
                let message = format!("is only allowed on {allowed}");
                violations.add(path.child(field), message, allowed);
            }
        };
        let has_path = self.path.is_some();
        refuse("recursive", self.recursive && !has_path, only_with_path);
        refuse("waitReadiness", self.wait_readiness && !has_path, only_with_path);
        let has_args = self.args.as_ref().is_some_and(|args| !args.is_empty());
        refuse("args", has_args && !self.is_include(), only_with_include);
        refuse("passVars", self.pass_vars && !self.is_include(), only_with_include);
    }

    fn check_output_fields(&self, path: &FieldPath, violations: &mut Violations) {
        let fields = [
            ("renderedObjects", &self.rendered_objects),
            ("renderedHelmChartConfig", &self.rendered_helm_chart_config),
            ("renderedInclude", &self.rendered_include),
        ];
        for (name, value) in fields {
            let is_given = match value {
                None | Some(Value::Null) => false,
                Some(Value::Array(list)) => !list.is_empty(),
                Some(_) => true,
            };
            if is_given {
                let message = "is written into results and cannot be set";
                violations.add(path.child(name), message, "no such field");
            }
        }
    }
}

fn check_selector(selector: &ObjectSelector, path: &FieldPath, violations: &mut Violations) {
    if selector.group.is_none() && selector.kind.is_none() {
        let message = "has neither group nor kind";
        violations.add(path.clone(), message, "group, kind or both, and a name");
    }
    if selector.name.is_empty() {
        violations.add(path.child("name"), "is empty", "an object name");
    }
}
