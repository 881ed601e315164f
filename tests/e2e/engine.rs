//! The engine on a real API server: who owns which field, what cannot be changed, dry runs, pruning, deletion.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use flux_kluctl_controller::{
    cluster::{Cluster, ClusterOptions},
    deployment::{DesiredItem, DesiredState, Inclusion},
    engine::{
        DeployOptions, KnownVersions, Session, Silent, delete, deploy, diff, known_versions, prune,
    },
    object::Object,
    prune::PruneOptions,
    results::{CommandResult, ObjectOutcome, RunInfo},
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{support::Case, tests};

tests!(
    applying_twice_changes_nothing,
    a_dry_run_reaches_what_does_not_exist_yet,
    definitions_and_their_objects_come_and_go_together,
    fields_of_others_are_left_or_taken_over,
    finalizers_make_survivors,
    namespaces_with_objects_of_others_stay,
    what_cannot_be_changed_is_recreated_only_by_force,
);

/// A deployment of some objects, as its discriminator the test's namespace and a name.
struct Deployment<'a> {
    case: &'a Case,
    cluster: Cluster,
    discriminator: String,
}

impl<'a> Deployment<'a> {
    fn new(case: &'a Case, name: &str) -> Self {
        let cluster = Cluster::new(case.client.clone(), ClusterOptions::default());
        Self { case, cluster, discriminator: format!("{}-{name}", case.namespace) }
    }

    fn desired(&self, objects: &[Value]) -> Result<DesiredState> {
        let objects = objects.iter().map(|tree| {
            let mut object = Object::new(tree.clone())?;
            object.set_label("kluctl.io/discriminator", &self.discriminator);
            Ok(Arc::new(object))
        });
        let objects = objects.collect::<Result<_>>()?;
        Ok(DesiredState {
            items: vec![DesiredItem { dir: "item".into(), objects, ..DesiredItem::default() }],
            discriminator: Some(self.discriminator.clone()),
            inclusion: Inclusion::default(),
            objects_hash: String::new(),
            images: Vec::new(),
            warnings: Vec::new(),
        })
    }

    async fn run<T>(&self, operation: impl AsyncFnOnce(&Session<'_>) -> T) -> T {
        let info = RunInfo { started: jiff::Timestamp::now(), ..RunInfo::default() };
        let cancel = CancellationToken::new();
        let session = Session {
            cluster: &self.cluster,
            info: &info,
            observer: &Silent,
            cancel: &cancel,
            timeout: Some(Duration::from_mins(1)),
        };
        operation(&session).await
    }

    async fn deploy(&self, objects: &[Value], options: DeployOptions) -> Result<CommandResult> {
        let desired = self.desired(objects)?;
        Ok(self.run(async |session| deploy(session, &desired, &options).await).await)
    }

    async fn diff(&self, objects: &[Value], known: &KnownVersions) -> Result<CommandResult> {
        let desired = self.desired(objects)?;
        let options = DeployOptions::default();
        Ok(self.run(async |session| diff(session, &desired, &options, known).await).await)
    }

    async fn prune(&self, objects: &[Value], wait: Option<Duration>) -> Result<CommandResult> {
        let desired = self.desired(objects)?;
        let options = PruneOptions { wait, ..PruneOptions::default() };
        Ok(self.run(async |session| prune(session, &desired, &options).await).await)
    }

    async fn delete(&self) -> CommandResult {
        let options = PruneOptions::default();
        let all = Inclusion::default();
        let run = async |session: &Session<'_>| {
            delete(session, Some(&self.discriminator), &all, &options).await
        };
        self.run(run).await
    }

    async fn config(&self, name: &str) -> Result<Value> {
        let found = self.case.get("v1", "ConfigMap", name).await?;
        found.with_context(|| format!("ConfigMap {name}"))
    }
}

fn config(case: &Case, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": case.namespace}, "data": data})
}

fn succeeded(result: &CommandResult) -> Result<()> {
    ensure!(result.is_success(), "errors: {:?}, outcomes: {:?}", result.errors, result.outcomes);
    Ok(())
}

async fn applying_twice_changes_nothing(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": case.namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": 1}}}]}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": case.namespace},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let objects = [config(case, "one", &json!({"a": "1"})), workload, service];
    let first = it.deploy(&objects, DeployOptions::default()).await?;
    succeeded(&first)?;
    let before = it.config("one").await?;
    let second = it.deploy(&objects, DeployOptions::default()).await?;
    succeeded(&second)?;
    let summary = second.summary();
    ensure!((summary.new_objects, summary.changed_objects) == (0, 0), "{summary:?}");
    ensure!(it.config("one").await? == before, "the second run touched the object");
    let quiet = it.diff(&objects, &known_versions(&second)).await?;
    ensure!(quiet.summary().changed_objects == 0);
    succeeded(&it.delete().await)
}

async fn fields_of_others_are_left_or_taken_over(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let ours = [config(case, "shared", &json!({"aa": "ours", "bb": "ours"}))];
    succeeded(&it.deploy(&ours, DeployOptions::default()).await?)?;
    // Another manager takes a field over.
    case.apply(config(case, "shared", &json!({"aa": "theirs"}))).await?;
    let left = it.deploy(&ours, DeployOptions::default()).await?;
    succeeded(&left)?;
    ensure!(
        left.warnings.iter().any(|warning| warning.message.contains(".data.aa")),
        "{:?}",
        left.warnings
    );
    ensure!(it.config("shared").await?["data"] == json!({"aa": "theirs", "bb": "ours"}));

    let mut insisting = ours[0].clone();
    insisting["metadata"]["annotations"] = json!({"kluctl.io/force-apply-field": "data.aa"});
    let taken = it.deploy(&[insisting], DeployOptions::default()).await?;
    succeeded(&taken)?;
    ensure!(it.config("shared").await?["data"] == json!({"aa": "ours", "bb": "ours"}));

    case.apply(config(case, "shared", &json!({"bb": "theirs"}))).await?;
    let force = DeployOptions { force_apply: true, ..DeployOptions::default() };
    succeeded(&it.deploy(&ours, force).await?)?;
    ensure!(it.config("shared").await?["data"] == json!({"aa": "ours", "bb": "ours"}));

    // What a person changed by hand with kubectl is set right.
    let edited =
        PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    let api = case.api("v1", "ConfigMap", Some(&case.namespace));
    api.patch("shared", &edited, &Patch::Merge(json!({"data": {"aa": "edited"}}))).await?;
    let corrected = it.deploy(&ours, DeployOptions::default()).await?;
    ensure!(corrected.summary().changed_objects == 1);
    ensure!(it.config("shared").await?["data"]["aa"] == "ours");
    Ok(())
}

async fn what_cannot_be_changed_is_recreated_only_by_force(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let secret = |text: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "immutable": true,
            "metadata": {"name": "fixed", "namespace": case.namespace}, "stringData": {"password": text}})
    };
    succeeded(&it.deploy(&[secret("correct-horse")], DeployOptions::default()).await?)?;
    let uid = async || -> Result<Value> {
        let found = case.get("v1", "Secret", "fixed").await?.context("the secret")?;
        Ok(found["metadata"]["uid"].clone())
    };
    let before = uid().await?;
    let refused = it.deploy(&[secret("battery-staple")], DeployOptions::default()).await?;
    ensure!(!refused.is_success() && uid().await? == before);
    let replace = DeployOptions { replace_on_error: true, ..DeployOptions::default() };
    ensure!(!it.deploy(&[secret("battery-staple")], replace).await?.is_success());
    let force = DeployOptions { force_replace_on_error: true, ..DeployOptions::default() };
    let dry = DeployOptions { dry_run: true, ..force.clone() };
    let tried = it.deploy(&[secret("battery-staple")], dry).await?;
    succeeded(&tried)?;
    ensure!(
        tried.summary().changed_objects == 1 && uid().await? == before,
        "a dry run changes nothing"
    );
    let recreated = it.deploy(&[secret("battery-staple")], force).await?;
    succeeded(&recreated)?;
    ensure!(uid().await? != before);
    for result in [refused, tried, recreated] {
        let shown = format!("{result:?}");
        ensure!(
            !shown.contains("battery") && !shown.contains("correct"),
            "a secret value is in a result"
        );
    }
    Ok(())
}

/// A namespace, a definition, an object of its kind and one in the namespace: in an order that does not work as it is.
fn world(case: &Case, kind: &str) -> [Value; 4] {
    let namespace = format!("{}-inner", case.namespace);
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    [
        json!({"apiVersion": "engine.example.com/v1", "kind": kind, "metadata": {"name": "one", "namespace": namespace}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inside", "namespace": namespace}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.engine.example.com")},
            "spec": {"group": "engine.example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    ]
}

async fn a_dry_run_reaches_what_does_not_exist_yet(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let result = it.diff(&world(case, "Dream"), &KnownVersions::new()).await?;
    succeeded(&result)?;
    ensure!(result.summary().new_objects == 4);
    let inside = result.objects.iter().find(|object| object.base.reference.name == "inside");
    let applied = inside.and_then(|object| object.applied.as_ref()).context("the config map")?;
    ensure!(applied.value()["metadata"]["uid"].is_string(), "the API server saw it");
    let namespace = format!("{}-inner", case.namespace);
    ensure!(case.api("v1", "Namespace", None).get_opt(&namespace).await?.is_none());
    Ok(())
}

async fn definitions_and_their_objects_come_and_go_together(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let world = world(case, "Gadget");
    succeeded(&it.deploy(&world, DeployOptions::default()).await?)?;
    // Without the object of the new kind: only this one goes.
    let pruned = it.prune(&world[1..], Some(Duration::from_secs(20))).await?;
    succeeded(&pruned)?;
    let deleted: Vec<_> =
        pruned.outcomes.iter().map(|outcome| outcome.reference.kind.as_str()).collect();
    ensure!(deleted == ["Gadget"], "{deleted:?}");
    let deleted = it.delete().await;
    succeeded(&deleted)?;
    ensure!(deleted.summary().deleted_objects == 3, "{:?}", deleted.outcomes);
    let again = it.delete().await;
    succeeded(&again)?;
    ensure!(again.outcomes.is_empty(), "{:?}", again.outcomes);
    Ok(())
}

async fn finalizers_make_survivors(case: &mut Case) -> Result<()> {
    let it = Deployment::new(case, "d");
    let mut held = config(case, "held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    succeeded(&it.deploy(&[held], DeployOptions::default()).await?)?;
    for wait in [Some(Duration::from_secs(1)), None] {
        let pruned = it.prune(&[], wait).await?;
        ensure!(pruned.is_success() == wait.is_none(), "{:?}", pruned.errors);
        let problems: Vec<_> = pruned.survivors().filter_map(ObjectOutcome::problem).collect();
        ensure!(problems.len() == 1 && problems[0].contains("example.com/hold"), "{problems:?}");
    }
    case.patch("v1", "ConfigMap", "held", json!({"metadata": {"finalizers": null}})).await?;
    let pruned = it.prune(&[], None).await?;
    ensure!(pruned.survivors().next().is_none());
    ensure!(case.get("v1", "ConfigMap", "held").await?.is_none());
    Ok(())
}

async fn namespaces_with_objects_of_others_stay(case: &mut Case) -> Result<()> {
    let namespace = format!("{}-shared", case.namespace);
    let inside = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}});
    let owner = Deployment::new(case, "owner");
    let guest = Deployment::new(case, "guest");
    let shared = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    succeeded(&owner.deploy(&[shared, inside("mine")], DeployOptions::default()).await?)?;
    succeeded(&guest.deploy(&[inside("theirs")], DeployOptions::default()).await?)?;
    let deleted = owner.delete().await;
    let survivors: Vec<_> =
        deleted.survivors().map(|outcome| outcome.reference.to_string()).collect();
    ensure!(survivors == [format!("Namespace/{namespace}")], "{survivors:?}");
    let api = case.api("v1", "ConfigMap", Some(&namespace));
    ensure!(api.get_opt("theirs").await?.is_some() && api.get_opt("mine").await?.is_none());
    succeeded(&guest.delete().await)?;
    succeeded(&owner.delete().await)?;
    let gone = case.api("v1", "Namespace", None).delete(&namespace, &DeleteParams::default()).await;
    ensure!(gone.is_err(), "the namespace went last");
    Ok(())
}
