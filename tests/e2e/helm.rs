//! Helm charts against a real cluster: what charts are told about it, their hooks and namespaces.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{support::Case, tests};

tests![a_chart_from_an_artifact_is_deployed, a_chart_that_cannot_be_rendered_changes_nothing];

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.2.3\n";
const RELEASE: &str =
    "helmChart:\n  path: ../charts/web\n  releaseName: rel\n  namespace: NAMESPACE\n";
const TEMPLATE: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-web"}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  deployments: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"
  kluctl: "{{ .Capabilities.APIVersions.Has "flux.kluctl.io/v1alpha1/KluctlDeployment" }}"
  nonsense: "{{ .Capabilities.APIVersions.Has "example.com/v1" }}"
  lookup: "{{ lookup "v1" "Namespace" "" "kube-system" | len }}"
  color: {{ required "color must be set" .Values.color }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
---
apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: c, image: example.com/none}]}
"#;

fn project(namespace: &str, values: &str) -> Vec<(String, String)> {
    [
        (".kluctl.yaml", "discriminator: helm-NAMESPACE\n"),
        ("deployment.yaml", "deployments: [{path: app}]\n"),
        ("app/helm-chart.yaml", RELEASE),
        ("app/helm-values.yaml", values),
        ("charts/web/Chart.yaml", CHART),
        ("charts/web/templates/all.yaml", TEMPLATE),
        ("charts/web/templates/NOTES.txt", "notes\n"),
    ]
    .map(|(path, text)| (path.to_owned(), text.replace("NAMESPACE", namespace)))
    .into()
}

async fn deploy(case: &Case, values: &str) -> Result<()> {
    let files = project(&case.namespace, values);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    case.deploy_project("app", &files, json!({})).await?;
    Ok(())
}

async fn start(case: &mut Case) -> Result<()> {
    let helm = case.suite.programs.join("helm").display().to_string();
    case.start_controller(&[&format!("--helm-binary={helm}")]).await?;
    Ok(())
}

async fn a_chart_from_an_artifact_is_deployed(case: &mut Case) -> Result<()> {
    start(case).await?;
    deploy(case, "color: \"{{ 'bl' + 'ue' }}\"\n").await?;
    case.wait_ready("app").await?;
    let object = case.get("v1", "ConfigMap", "rel-web").await?;
    let data = object.map(|object| object["data"].clone()).unwrap_or_default();
    let expected = json!({
        "deployments": "true", "kluctl": "true", "nonsense": "false", "lookup": "0", "color": "blue",
        "version": data["version"],
    });
    ensure!(data == expected, "{data}");
    let version = data["version"].as_str().unwrap_or_default();
    ensure!(version.starts_with("v1.36."), "not the version of the cluster: {version}");
    ensure!(case.get("v1", "ConfigMap", "before").await?.is_some(), "the hook was not applied");
    ensure!(case.get("v1", "Pod", "test").await?.is_none(), "the chart's test was deployed");
    Ok(())
}

async fn a_chart_that_cannot_be_rendered_changes_nothing(case: &mut Case) -> Result<()> {
    start(case).await?;
    deploy(case, "{}\n").await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = case.message(&object, "Ready");
    for word in ["charts/web/templates/all.yaml:10", "color must be set", "release rel"] {
        ensure!(message.contains(word), "{message}");
    }
    ensure!(case.get("v1", "ConfigMap", "before").await?.is_none(), "something was deployed");
    Ok(())
}
