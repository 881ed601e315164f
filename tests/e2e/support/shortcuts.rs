//! Deployments without Git, what the controller reports beside the status, and single values of its metrics.

use anyhow::{Context, Result};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::Case;

impl Case {
    /// Makes `files` the artifact of the ExternalArtifact `name`.
    pub(crate) async fn publish(
        &self,
        name: &str,
        files: &[(&str, &str)],
        revision: &str,
    ) -> Result<()> {
        self.external_artifact(name, self.tarball(files)?, revision).await
    }

    /// Publishes `files` and deploys them: a KluctlDeployment and an ExternalArtifact, both called `name`, with the args
    /// `namespace` and `name`.
    pub(crate) async fn deploy_files(
        &self,
        name: &str,
        files: &[(&str, &str)],
        spec: Value,
    ) -> Result<()> {
        self.publish(name, files, "v1@sha256:0001").await?;
        self.apply(self.artifact_deployment(name, name, spec)).await?;
        Ok(())
    }

    /// A KluctlDeployment of the ExternalArtifact `artifact`; `spec` is merged over the defaults, which have the args
    /// `namespace` and `name`.
    pub(crate) fn artifact_deployment(&self, name: &str, artifact: &str, spec: Value) -> Value {
        let mut all = json!({
            "args": {"namespace": self.namespace, "name": name},
            "sourceRef": {"kind": "ExternalArtifact", "name": artifact},
        });
        if let (Value::Object(all), Value::Object(spec)) = (&mut all, spec) {
            all.extend(spec);
        }
        self.deployment(name, all)
    }

    /// A merge patch of a KluctlDeployment's spec.
    pub(crate) async fn patch_spec(&self, name: &str, spec: Value) -> Result<Value> {
        let patch = json!({"spec": spec});
        self.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", name, patch).await
    }

    /// A KluctlDeployment as it is now.
    pub(crate) async fn get_deployment(&self, name: &str) -> Result<Value> {
        let found = self.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", name).await?;
        found.with_context(|| format!("KluctlDeployment {name}"))
    }

    /// What the API server says to an object, without keeping it. Unknown fields are errors.
    pub(crate) async fn try_apply(&self, object: &Value) -> Result<Value> {
        let name = object["metadata"]["name"].as_str().context("metadata.name")?;
        let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&self.namespace);
        let api =
            self.api(api_version.unwrap_or_default(), kind.unwrap_or_default(), Some(namespace));
        let strict = PatchParams { dry_run: true, ..PatchParams::apply("test").force() };
        let strict = strict.validation_strict();
        Ok(serde_json::to_value(api.patch(name, &strict, &Patch::Apply(object)).await?)?)
    }

    /// The Kubernetes Events about an object of the test's namespace.
    pub(crate) async fn events_of(&self, name: &str) -> Result<Vec<Value>> {
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = self.api("v1", "Event", Some(&self.namespace)).list(&about).await?;
        events.items.into_iter().map(|event| Ok(serde_json::to_value(event)?)).collect()
    }

    /// The metrics of the test's first controller.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let controller = self.controllers.first().context("no controller")?;
        Ok(reqwest::get(format!("http://{}/metrics", controller.metrics)).await?.text().await?)
    }

    /// How often a KluctlDeployment was reconciled.
    pub(crate) async fn reconciliations(&self, name: &str) -> Result<u64> {
        let series = format!(
            "gotk_reconcile_duration_seconds_count{{kind=\"KluctlDeployment\",name=\"{name}\",namespace=\"{}\"}} ",
            self.namespace
        );
        let metrics = self.metrics().await?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
        Ok(value.map(str::parse).transpose()?.unwrap_or_default())
    }

    /// Waits until `count` more reconciliations have ended that nobody asked for.
    pub(crate) async fn wait_reconciliations(&self, name: &str, count: u64) -> Result<()> {
        let before = self.reconciliations(name).await?;
        self.wait_until("reconciliations at the interval", || async {
            Ok(self.reconciliations(name).await? >= before + count)
        })
        .await
    }
}
