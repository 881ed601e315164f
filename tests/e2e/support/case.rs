use std::{
    fmt::Write as _,
    fs,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use kube::{
    Client,
    api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{Controller, GitRepo, Suite, check_conditions, conditions::condition};

/// What a test function returns.
pub(crate) type TestFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// One test: a namespace, a directory, and the controllers it started.
pub(crate) struct Case {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// A directory for this test alone.
    pub(crate) dir: PathBuf,
    /// An administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) suite: Arc<Suite>,
}

/// How long a test waits for something that should happen within a second or two.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

impl Case {
    /// Creates the namespace and the directory.
    pub(crate) async fn start(suite: Arc<Suite>, name: &str) -> Result<Self> {
        let namespace = namespace_of(name);
        let dir = suite.state.path().join(&namespace);
        fs::create_dir_all(&dir)?;
        let case = Self {
            client: suite.client.clone(),
            namespace,
            dir,
            kubeconfig: suite.kubeconfig.clone(),
            controllers: Vec::new(),
            suite,
        };
        case.apply(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}}),
        )
        .await?;
        Ok(case)
    }

    /// Starts a controller for the test's namespace, which sends its events to notification-controller.
    pub(crate) async fn start_controller(&mut self, arguments: &[&str]) -> Result<&mut Controller> {
        self.start_controller_with(arguments, &[]).await
    }

    /// Starts a controller with further environment variables.
    pub(crate) async fn start_controller_with(
        &mut self,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<&mut Controller> {
        let events = format!("--events-addr={}", self.suite.flux_events);
        let mut all = Vec::new();
        if !arguments.iter().any(|argument| argument.starts_with("--events-addr")) {
            all.push(events.as_str());
        }
        all.extend(arguments);
        let controller =
            Controller::start(&self.dir, &self.kubeconfig, &self.namespace, &all, environment)
                .await?;
        self.controllers.push(controller);
        self.controllers.last_mut().context("just pushed")
    }

    /// Creates a repository on the shared server, named after the test.
    pub(crate) fn repo(&self, name: &str, files: &[(&str, &str)]) -> Result<GitRepo> {
        GitRepo::create(&self.suite.git, &self.dir, &format!("{}/{name}", self.namespace), files)
    }

    /// An API handle for a kind; the plural is guessed, which is right for all kinds used here.
    pub(crate) fn api(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        const CLUSTER_SCOPED: [&str; 5] =
            ["Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Node"];
        let kind = object["kind"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&self.namespace);
        let namespace = (!CLUSTER_SCOPED.contains(&kind)).then_some(namespace);
        self.api(object["apiVersion"].as_str().unwrap_or_default(), kind, namespace)
    }

    /// Server-side apply as the user `test`; the namespace is the test's unless given.
    pub(crate) async fn apply(&self, object: Value) -> Result<Value> {
        let name = object["metadata"]["name"].as_str().context("metadata.name")?.to_owned();
        let parameters = PatchParams::apply("test").force();
        let applied = self
            .api_of(&object)
            .patch(&name, &parameters, &Patch::Apply(&object))
            .await
            .with_context(|| format!("apply {}/{name}", object["kind"]))?;
        Ok(serde_json::to_value(applied)?)
    }

    /// A merge patch.
    pub(crate) async fn patch(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value> {
        let api = self.api(api_version, kind, Some(&self.namespace));
        Ok(serde_json::to_value(api.patch(name, &by_hand(), &Patch::Merge(patch)).await?)?)
    }

    /// The object, `None` when it is not there.
    pub(crate) async fn get(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<Value>> {
        let found = self.api(api_version, kind, Some(&self.namespace)).get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// The names of all objects of a kind in the test's namespace that carry the label selector.
    pub(crate) async fn names(
        &self,
        api_version: &str,
        kind: &str,
        selector: &str,
    ) -> Result<Vec<String>> {
        let parameters = ListParams::default().labels(selector);
        let api = self.api(api_version, kind, Some(&self.namespace));
        let deadline = Instant::now() + PATIENCE;
        let list = loop {
            match api.list(&parameters).await.map_err(anyhow::Error::from) {
                Err(error) if is_unreachable(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                listed => break listed?,
            }
        };
        Ok(list.items.into_iter().filter_map(|object| object.metadata.name).collect())
    }

    /// Deletes an object and does not wait.
    pub(crate) async fn delete(&self, api_version: &str, kind: &str, name: &str) -> Result<()> {
        self.api(api_version, kind, Some(&self.namespace))
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Applies a GitRepository for branch `main` of `repo` and waits for its artifact.
    pub(crate) async fn git_repository(&self, name: &str, repo: &GitRepo) -> Result<Value> {
        self.apply(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": name},
            "spec": {"interval": "1h", "url": repo.url, "ref": {"branch": "main"}},
        }))
        .await?;
        self.wait_for(
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            name,
            "an artifact",
            |object| object["status"]["artifact"]["digest"].is_string(),
        )
        .await
    }

    /// Makes source-controller look for the given commit now.
    pub(crate) async fn fetch_commit(&self, name: &str, commit: &str) -> Result<Value> {
        self.annotate(
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            name,
            "reconcile.fluxcd.io/requestedAt",
            commit,
        )
        .await?;
        self.wait_for(
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            name,
            "the commit",
            |object| {
                object["status"]["artifact"]["revision"]
                    .as_str()
                    .is_some_and(|revision| revision.ends_with(commit))
            },
        )
        .await
    }

    /// Sets an annotation.
    pub(crate) async fn annotate(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        key: &str,
        value: &str,
    ) -> Result<Value> {
        self.patch(api_version, kind, name, json!({"metadata": {"annotations": {key: value}}}))
            .await
    }

    /// A KluctlDeployment that deploys the source of the same name; `spec` is merged over the defaults.
    pub(crate) fn deployment(&self, name: &str, spec: Value) -> Value {
        let mut all = json!({
            "interval": "1h", "retryInterval": "2s", "timeout": "60s", "prune": true,
            "sourceRef": {"kind": "GitRepository", "name": name},
        });
        if let (Value::Object(all), Value::Object(spec)) = (&mut all, spec) {
            all.extend(spec);
        }
        json!({
            "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": all,
        })
    }

    /// Creates a repository and its GitRepository, and a KluctlDeployment of the same name with the arg `namespace`.
    pub(crate) async fn deploy_project(
        &self,
        name: &str,
        files: &[(&str, &str)],
        spec: Value,
    ) -> Result<GitRepo> {
        let repo = self.repo(name, files)?;
        self.git_repository(name, &repo).await?;
        let mut all = json!({"args": {"namespace": self.namespace}});
        if let (Value::Object(all), Value::Object(spec)) = (&mut all, spec) {
            all.extend(spec);
        }
        self.apply(self.deployment(name, all)).await?;
        Ok(repo)
    }

    /// A ConfigMap of the test's namespace; `Null` when it is not there.
    pub(crate) async fn config_map(&self, name: &str) -> Result<Value> {
        Ok(self.get("v1", "ConfigMap", name).await?.unwrap_or_default())
    }

    /// Sets an annotation of a KluctlDeployment.
    pub(crate) async fn annotate_deployment(
        &self,
        name: &str,
        key: &str,
        value: &str,
    ) -> Result<Value> {
        self.annotate("flux.kluctl.io/v1alpha1", "KluctlDeployment", name, key, value).await
    }

    /// Requests a reconciliation as `flux reconcile` does.
    pub(crate) async fn request_reconcile(&self, name: &str, token: &str) -> Result<Value> {
        self.annotate_deployment(name, "reconcile.fluxcd.io/requestedAt", token).await
    }

    /// Deletes a KluctlDeployment and waits until it is gone.
    pub(crate) async fn delete_deployment(&self, name: &str) -> Result<()> {
        self.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", name).await?;
        self.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", name).await
    }

    /// Server-side apply of a cluster-scoped object.
    pub(crate) async fn apply_cluster(&self, object: Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().context("metadata.name")?.to_owned();
        let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let api = self.api(api_version.unwrap_or_default(), kind.unwrap_or_default(), None);
        api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await?;
        Ok(())
    }

    /// Deletes a cluster-scoped object.
    pub(crate) async fn delete_cluster(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<()> {
        self.api(api_version, kind, None).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The message of a condition, empty when it is not there.
    pub(crate) fn message<'a>(&self, object: &'a Value, kind: &str) -> &'a str {
        condition(object, kind)
            .and_then(|condition| condition["message"].as_str())
            .unwrap_or_default()
    }

    /// Ends the controllers in good order and removes the namespace.
    pub(crate) async fn finish(mut self) -> Result<()> {
        let deployments =
            self.api("flux.kluctl.io/v1alpha1", "KluctlDeployment", Some(&self.namespace));
        for object in deployments.list(&ListParams::default()).await?.items {
            check_conditions_if_seen(&serde_json::to_value(&object)?)?;
        }
        for controller in &mut self.controllers {
            let status = controller.terminate(Duration::from_secs(20)).await?;
            anyhow::ensure!(
                status.success(),
                "the controller ended with {status}:\n{}",
                controller.log_tail(20)
            );
        }
        for object in deployments.list(&ListParams::default()).await?.items {
            let name = object.metadata.name.unwrap_or_default();
            let no_finalizers = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            deployments.patch(&name, &PatchParams::default(), &no_finalizers).await?;
        }
        self.api("v1", "Namespace", None).delete(&self.namespace, &DeleteParams::default()).await?;
        Ok(())
    }

    /// What a person would look at after a failure.
    pub(crate) async fn dump(&self) -> String {
        let mut text = String::new();
        for (api_version, kind) in [
            ("flux.kluctl.io/v1alpha1", "KluctlDeployment"),
            ("source.toolkit.fluxcd.io/v1", "GitRepository"),
        ] {
            let list = self
                .api(api_version, kind, Some(&self.namespace))
                .list(&ListParams::default())
                .await;
            for mut object in list.map(|list| list.items).unwrap_or_default() {
                object.metadata.managed_fields = None;
                let shown = serde_json::to_string_pretty(&object).unwrap_or_default();
                write!(text, "--- {kind}\n{shown}\n").ok();
            }
        }
        for controller in &self.controllers {
            write!(text, "--- {}\n{}\n", controller.log.display(), controller.log_tail(60)).ok();
        }
        text
    }
}

/// A test's name as a namespace, short enough to be part of a label's value and not the same for two tests.
fn namespace_of(test: &str) -> String {
    const LONGEST: usize = 38;
    let name = test.replace("::", "-").replace('_', "-");
    if name.len() <= LONGEST {
        return name;
    }
    let sum = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte));
    format!("{}-{:04x}", name[..LONGEST - 5].trim_end_matches('-'), sum & 0xffff)
}

/// Whether the API server did not answer at all.
pub(super) fn is_unreachable(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<kube::Error>();
    cause.is_some_and(|cause| !matches!(cause, kube::Error::Api(_)))
}

/// A change as `kubectl edit` makes it: the engine takes fields back from whoever edits by hand.
fn by_hand() -> PatchParams {
    PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() }
}

fn check_conditions_if_seen(object: &Value) -> Result<()> {
    let settled = condition(object, "Ready").is_some_and(|ready| ready["status"] != "Unknown");
    if settled && !is_at_work(object) { check_conditions(object) } else { Ok(()) }
}

/// Whether a repetition of what went well is under way: Ready stays True meanwhile, as in Flux.
pub(super) fn is_at_work(object: &Value) -> bool {
    let is = |kind: &str, key: &str, value: &str| {
        condition(object, kind).is_some_and(|condition| condition[key] == value)
    };
    is("Ready", "status", "True") && is("Reconciling", "reason", "Progressing")
}
