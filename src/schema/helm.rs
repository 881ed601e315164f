use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitProject, Violation, Violations};
use crate::diagnostic::FieldPath;

/// A `helm-chart.yaml`: the Helm chart that an item renders (kluctl 2.28).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelmChartFile {
    /// The chart, and how it is rendered.
    pub helm_chart: HelmChart,
}

/// Which Helm chart is rendered, and how. Values are in `helm-values.yaml` beside the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelmChart {
    /// Helm repository (`https://…`, with `chartName`) or the chart in an OCI registry (`oci://…`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Directory of a chart, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Directory of a chart in a Git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitProject>,
    /// Name of the chart in the Helm repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_name: Option<String>,
    /// Version of the chart in `repo`, compared literally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_version: Option<String>,
    /// Versions that `helm-update` may choose from, as a constraint on semantic versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_constraints: Option<String>,
    /// Name of the release.
    pub release_name: String,
    /// Namespace of the release; left out, `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// File that the rendered manifests are written to; left out, `helm-rendered.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Leave out the CRDs of the chart.
    #[serde(default, rename = "skipCRDs")]
    pub skip_crds: bool,
    /// Only report newer versions, do not update to them.
    #[serde(default)]
    pub skip_update: bool,
    /// Fetch the chart when it is needed, instead of keeping it beside the project.
    #[serde(default)]
    pub skip_pre_pull: bool,
}

impl HelmChartFile {
    /// The rules between fields that this file breaks.
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations = Violations::default();
        self.helm_chart.check(&FieldPath::root().child("helmChart"), &mut violations);
        violations.into_vec()
    }
}

impl HelmChart {
    fn check(&self, path: &FieldPath, violations: &mut Violations) {
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if self.release_name.is_empty() {
            violations.add(path.child("releaseName"), "is empty", "a name for the release");
        }
        if let Some(git) = &self.git {
            git.check(&path.child("git"), violations);
        }
        let sources = [
            ("repo", is_set(&self.repo)),
            ("path", is_set(&self.path)),
            ("git", self.git.is_some()),
        ];
        let given: Vec<&str> =
            sources.into_iter().filter_map(|(name, set)| set.then_some(name)).collect();
        let expected = "exactly one of repo, path and git";
        match given.as_slice() {
            [] => violations.add(path.clone(), "names no chart", expected),
            [one] => self.check_source(one, path, violations),
            several => {
                let message = format!("has {} at the same time", several.join(" and "));
                violations.add(path.clone(), message, expected);
            }
        }
    }

    fn check_source(&self, source: &str, path: &FieldPath, violations: &mut Violations) {
        let is_oci = self.repo.as_ref().is_some_and(|repo| repo.starts_with("oci://"));
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let is_repository = source == "repo" && !is_oci;
        let fields = [
            ("chartName", is_set(&self.chart_name), is_repository, is_repository),
            ("chartVersion", is_set(&self.chart_version), source == "repo", source == "repo"),
            ("updateConstraints", self.update_constraints.is_some(), false, source != "path"),
        ];
        for (field, is_given, is_required, is_allowed) in fields {
            if is_required && !is_given {
                let message = "is missing";
                violations.add(path.child(field), message, format!("{field}, which `repo` needs"));
            } else if is_given && !is_allowed {
                let what = if is_oci { "an OCI chart" } else { source };
                let message = format!("is not allowed with {what}");
                violations.add(path.child(field), message, "no such field");
            }
        }
    }
}
