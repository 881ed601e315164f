//! One owner per target, sharding, metrics, malformed objects, worker slots.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    support::{
        Case, SHARED, STUCK, TWO_CONFIG_MAPS, Tunnel, condition, config_map, is_ready, message_of,
        ready_reason, with,
    },
    tests,
};

tests![
    two_owners_of_a_target_are_told_so,
    shards_never_deploy_to_one_target_both,
    a_run_ends_when_an_object_of_the_other_api_comes,
    a_controller_with_rights_in_one_namespace_works_there,
    a_dropped_version_and_a_reinstalled_kind_are_followed,
    a_source_of_another_namespace_wakes_a_controller_of_one_namespace,
    a_waiting_deployment_holds_no_worker,
    a_repair_does_not_wait_for_what_it_repairs,
    the_label_selector_shards,
    an_object_that_leaves_the_shard_is_left_alone,
    a_start_with_many_objects_asks_for_few_at_a_time,
    metrics_have_fluxs_names,
    a_suspended_deployment_rests,
    a_malformed_object_is_reported_and_stops_no_other,
    a_forced_reconciliation_deploys_again,
];

async fn two_owners_of_a_target_are_told_so(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("first", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("first").await?;
    case.deploy_project("second", TWO_CONFIG_MAPS, json!({})).await?;
    for (name, other) in [("second", "first"), ("first", "second")] {
        let object = case
            .wait_for(
                "flux.kluctl.io/v1alpha1",
                "KluctlDeployment",
                name,
                "the conflict",
                |object| message_of(object, "OwnershipConflict").contains(other),
            )
            .await?;
        let message = message_of(&object, "Ready");
        ensure!(message.contains(other), "{name} does not name {other}: {message}");
        ensure!(is_ready(&object) == (name == "first"), "{name}: {}", object["status"]);
    }
    let second = case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "second").await?;
    ensure!(
        ready_reason(&second.unwrap_or_default()) == "OwnershipConflict",
        "second is not refused"
    );
    case.delete_deployment("second").await?;
    case.wait_deployment("first", "the end of the conflict", |object| {
        is_ready(object) && condition(object, "OwnershipConflict").is_none()
    })
    .await?;
    ensure!(
        !case.config_map("one").await?.is_null(),
        "the loser's deletion removed the winner's objects"
    );
    Ok(())
}

/// A project whose target is `pair`, and whose ConfigMap `pair` tells who deployed it.
const PAIR: &[(&str, &str)] = &[
    (
        ".kluctl.yaml",
        "discriminator: test-{{ args.namespace }}-{{ args.pair }}\nargs:\n  - name: namespace\n  - name: pair\n  - name: owner\n",
    ),
    (
        "deployment.yaml",
        "deployments:\n  - path: config\noverrideNamespace: {{ args.namespace }}\n",
    ),
    (
        "config/it.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ args.pair }}\ndata:\n  owner: {{ args.owner }}\n",
    ),
];
const PAIRS: [&str; 4] = ["north", "south", "east", "west"];

async fn shards_never_deploy_to_one_target_both(case: &mut Case) -> Result<()> {
    let repo = case.repo("app", PAIR)?;
    case.git_repository("app", &repo).await?;
    for shard in ["one", "two"] {
        let selector = format!("--watch-label-selector=shard={shard}");
        case.start_controller(&[&selector, "--requeue-dependency=1s"]).await?;
    }
    let apply = async |pair: &str, shard: &str| {
        let name = format!("{pair}-{shard}");
        let args = json!({"namespace": case.namespace, "pair": pair, "owner": name});
        let source = json!({"kind": "GitRepository", "name": "app"});
        let mut object = case.deployment(&name, json!({"args": args, "sourceRef": source}));
        object["metadata"]["labels"] = json!({"shard": shard});
        case.apply(object).await
    };
    for pair in PAIRS {
        // At the same time, and the two of a pair are equally old.
        tokio::try_join!(apply(pair, "one"), apply(pair, "two"))?;
    }
    for pair in PAIRS {
        let names = ["one", "two"].map(|shard| format!("{pair}-{shard}"));
        for (name, other) in [(&names[0], &names[1]), (&names[1], &names[0])] {
            case.wait_deployment(name, "the conflict", |object| {
                message_of(object, "OwnershipConflict").contains(other)
                    && (is_ready(object) || ready_reason(object) == "OwnershipConflict")
            })
            .await?;
        }
        let (mut owners, mut refused) = (Vec::new(), Vec::new());
        for name in &names {
            let object = case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", name).await?;
            let object = object.context("gone")?;
            if is_ready(&object) {
                ensure!(object["status"]["claim"]["state"] == "Granted", "{}", object["status"]);
                owners.push(name);
            } else {
                ensure!(
                    object["status"]["lastDeployResult"].is_null(),
                    "{name} deployed to the other's target: {}",
                    object["status"]
                );
                refused.push(name);
            }
        }
        ensure!(owners.len() == 1, "the owners of {pair} are {owners:?}");
        let deployed_by = case.config_map(pair).await?["data"]["owner"].clone();
        ensure!(deployed_by == **owners[0], "{pair} was deployed by {deployed_by}");
        case.delete_deployment(owners[0]).await?;
        let heir = case.wait_ready(refused[0]).await?;
        ensure!(condition(&heir, "OwnershipConflict").is_none(), "{}", heir["status"]);
        let deployed_by = case.config_map(pair).await?["data"]["owner"].clone();
        ensure!(deployed_by == **refused[0], "{pair} was deployed by {deployed_by}");
    }
    Ok(())
}

async fn a_run_ends_when_an_object_of_the_other_api_comes(case: &mut Case) -> Result<()> {
    crate::rivals::install_gitops_crd(case).await?;
    case.start_controller(&[]).await?;
    case.deploy_project("ours", &stuck_project(), json!({"timeout": "300s"})).await?;
    case.wait_for("apps/v1", "Deployment", "stuck", "it", serde_json::Value::is_object).await?;
    let ours = case
        .wait_for(
            "flux.kluctl.io/v1alpha1",
            "KluctlDeployment",
            "ours",
            "that it waits",
            |object| message_of(object, "Reconciling").contains("stuck"),
        )
        .await?;
    let claim = &ours["status"]["claim"];
    ensure!(claim["state"] == "Granted", "{}", ours["status"]);
    let (version, kind) = ("gitops.kluctl.io/v1beta1", "KluctlDeployment");
    case.apply(json!({"apiVersion": version, "kind": kind, "metadata": {"name": "theirs"}}))
        .await?;
    let key = json!({"clusterId": claim["clusterId"], "discriminator": claim["discriminator"]});
    case.patch_status(version, kind, "theirs", json!({"status": {"targetKey": key}})).await?;
    let refused = case.wait_failed("ours", "OwnershipConflict").await?;
    let message = message_of(&refused, "OwnershipConflict");
    ensure!(message.contains("KluctlDeployment.gitops.kluctl.io"), "{message}");
    ensure!(refused["status"]["claim"]["state"] == "Refused", "{}", refused["status"]);
    Ok(())
}

async fn a_controller_with_rights_in_one_namespace_works_there(case: &mut Case) -> Result<()> {
    let namespace = case.namespace.clone();
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "confined"}});
    case.apply(account).await?;
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "confined"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "confined", "namespace": namespace}],
    }))
    .await?;
    let token = case.suite.kubectl(&["-n", &namespace, "create", "token", "confined"])?;
    let mut kubeconfig = kube::config::Kubeconfig::read_from(&case.kubeconfig)?;
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(serde_json::from_value(json!({"token": token.trim()}))?);
    }
    let confined = case.dir.join("confined.kubeconfig");
    std::fs::write(&confined, serde_json::to_string(&kubeconfig)?)?;
    case.kubeconfig = confined;
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    case.deploy_project("second", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_failed("second", "OwnershipConflict").await?;
    let log = case.controllers[0].log_text();
    ensure!(
        log.contains(
            "another KluctlDeployment with the same target is noticed only in the watched namespace"
        ),
        "no warning:\n{log}"
    );
    Ok(())
}

/// The versions of the kind ExternalArtifact: `v1` is stored, and one of the two is served.
async fn serve_external_artifacts(case: &Case, served: &str) -> Result<()> {
    let name = "externalartifacts.source.toolkit.fluxcd.io";
    let api = case.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let versions = ["v1", "v1old"].map(|version| {
        json!({
            "name": version, "served": version == served, "storage": version == "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    });
    let patch = kube::api::Patch::Merge(json!({"spec": {"versions": versions}}));
    api.patch(name, &kube::api::PatchParams::default(), &patch).await?;
    let list = case.api(
        &format!("source.toolkit.fluxcd.io/{served}"),
        "ExternalArtifact",
        Some(&case.namespace),
    );
    case.wait_until("the version", || async {
        Ok(list.list(&kube::api::ListParams::default()).await.is_ok())
    })
    .await
}

/// The status of an ExternalArtifact with a project whose ConfigMap `one` has this value.
async fn artifact(case: &Case, value: &str, revision: &str) -> Result<serde_json::Value> {
    let manifest = crate::support::config_map("one", value);
    let mut files = TWO_CONFIG_MAPS[..2].to_vec();
    files.push(("config/one.yaml", &manifest));
    let bytes = case.tarball(&files)?;
    let artifact = json!({
        "digest": format!("sha256:{}", case.sha256(&bytes)), "revision": revision,
        "url": case.serve_bytes(bytes).await?, "path": "x.tar.gz",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    });
    Ok(json!({"status": {"artifact": artifact}}))
}

async fn a_source_of_another_namespace_wakes_a_controller_of_one_namespace(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let other = format!("{}-sources", case.namespace);
    case.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}))
        .await?;
    let version = "source.toolkit.fluxcd.io/v1";
    case.apply(json!({"apiVersion": version, "kind": "ExternalArtifact",
        "metadata": {"name": "app", "namespace": other}, "spec": {}}))
        .await?;
    let sources = case.api(version, "ExternalArtifact", Some(&other));
    let publish = async |value: &str, revision: &str| {
        let patch = kube::api::Patch::Merge(artifact(case, value, revision).await?);
        sources.patch_status("app", &kube::api::PatchParams::default(), &patch).await?;
        anyhow::Ok(())
    };
    publish("first", "v1@sha256:0001").await?;
    let source = json!({"kind": "ExternalArtifact", "name": "app", "namespace": other});
    let spec = json!({"args": {"namespace": case.namespace}, "sourceRef": source});
    case.apply(case.deployment("app", spec)).await?;
    case.wait_ready_at("app", "0001").await?;
    // The interval is an hour, so only the watch can tell.
    publish("second", "v2@sha256:0002").await?;
    case.wait_ready_at("app", "0002").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "second", "not deployed");
    Ok(())
}

async fn a_dropped_version_and_a_reinstalled_kind_are_followed(case: &mut Case) -> Result<()> {
    let control_plane = case.own_control_plane()?;
    let mut own = control_plane.case(case).await?;
    own.start_controller(&["--events-addr="]).await?;
    own.deploy_tarball("app", own.tarball(TWO_CONFIG_MAPS)?, json!({})).await?;
    own.wait_ready("app").await?;

    serve_external_artifacts(&own, "v1old").await?;
    let status = artifact(&own, "second", "v2@sha256:0002").await?;
    own.patch_status("source.toolkit.fluxcd.io/v1old", "ExternalArtifact", "app", status).await?;
    own.wait_ready_at("app", "0002").await?;
    ensure!(own.config_map("one").await?["data"]["value"] == "second", "not deployed");

    let crd = "externalartifacts.source.toolkit.fluxcd.io";
    own.delete_cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd).await?;
    let crds = own.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    own.wait_until("its end", || async { Ok(crds.get_opt(crd).await?.is_none()) }).await?;
    control_plane.apply_crds(&own.suite.programs)?;
    own.external_artifact("app", own.tarball(TWO_CONFIG_MAPS)?, "v3@sha256:0003").await?;
    own.wait_ready_at("app", "0003").await?;
    ensure!(own.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let refused = own.controllers[0].log_text().matches("no longer served").count();
    ensure!(refused < 10, "{refused} attempts at a version that is not served");
    own.finish().await
}

/// A project with a Deployment that no node can run, so that it never becomes ready.
fn stuck_project() -> Vec<(&'static str, &'static str)> {
    let stuck = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: stuck\nspec:\n  replicas: 1\n  selector:\n    matchLabels: {app: stuck}\n  template:\n    metadata:\n      labels: {app: stuck}\n    spec:\n      nodeSelector: {nowhere: \"true\"}\n      containers:\n        - {name: c, image: example.com/x:1}\n";
    let mut files = TWO_CONFIG_MAPS[..2].to_vec();
    files[0].1 = "discriminator: test-stuck-{{ args.namespace }}\nargs:\n  - name: namespace\n";
    files[1].1 = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: {{ args.namespace }}\n";
    files.push(("config/stuck.yaml", stuck));
    files
}

async fn a_waiting_deployment_holds_no_worker(case: &mut Case) -> Result<()> {
    case.start_controller(&["--concurrent=1"]).await?;
    case.deploy_project("stuck", &stuck_project(), json!({"timeout": "120s"})).await?;
    case.wait_for("apps/v1", "Deployment", "stuck", "it", serde_json::Value::is_object).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let stuck =
        case.get("flux.kluctl.io/v1alpha1", "KluctlDeployment", "stuck").await?.context("stuck")?;
    ensure!(
        condition(&stuck, "Reconciling").is_some(),
        "it does not wait any more: {}",
        stuck["status"]
    );
    Ok(())
}

async fn a_repair_does_not_wait_for_what_it_repairs(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("stuck", &stuck_project(), json!({"timeout": "300s"})).await?;
    case.wait_for("apps/v1", "Deployment", "stuck", "it", serde_json::Value::is_object).await?;
    let commit = repo.commit(&[
        ("config/stuck.yaml", ""),
        ("config/one.yaml", &crate::support::config_map("one", "repaired")),
    ])?;
    case.fetch_commit("stuck", &commit).await?;
    case.wait_ready_at("stuck", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "repaired", "not deployed");
    Ok(())
}

async fn the_label_selector_shards(case: &mut Case) -> Result<()> {
    case.start_controller(&["--watch-label-selector=sharding.fluxcd.io/key=shard1"]).await?;
    let manifest = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/it.yaml", &manifest)]);
    case.deploy_files("app", &files, json!({})).await?;
    // Whoever comes later and belongs here is deployed: then the first one was passed over.
    let mut sentinel = case.artifact_deployment("sentinel", "app", json!({}));
    sentinel["metadata"]["labels"] = json!({"sharding.fluxcd.io/key": "shard1"});
    case.apply(sentinel).await?;
    case.wait_ready("sentinel").await?;
    ensure!(case.config_map("app").await?.is_null(), "an object of another shard was deployed");
    let object = case.get_deployment("app").await?;
    ensure!(object["metadata"]["finalizers"].is_null(), "an object of another shard was touched");
    let label = json!({"metadata": {"labels": {"sharding.fluxcd.io/key": "shard1"}}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", label).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn an_object_that_leaves_the_shard_is_left_alone(case: &mut Case) -> Result<()> {
    case.start_controller(&["--watch-label-selector=shard=one"]).await?;
    let waiting = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(&SHARED, &[("deployment.yaml", waiting), ("config/it.yaml", STUCK)]);
    case.publish("app", &files, "v1@sha256:0001").await?;
    let mut object = case.artifact_deployment("app", "app", json!({"timeout": "300s"}));
    object["metadata"]["labels"] = json!({"shard": "one"});
    case.apply(object).await?;
    case.wait_deployment("app", "that it waits", |object| {
        message_of(object, "Reconciling").starts_with("Waiting for")
    })
    .await?;
    let label = json!({"metadata": {"labels": {"shard": "two"}}});
    let patched = case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", label).await?;
    let runs = case.controllers[0].log_text().matches("\"decided\"").count();
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    let now = case.get_deployment("app").await?;
    let version = |object: &serde_json::Value| object["metadata"]["resourceVersion"].clone();
    ensure!(version(&now) == version(&patched), "written to: {}", now["status"]);
    let log = case.controllers[0].log_text();
    ensure!(log.contains("another controller's, which has the word now"), "{log}");
    ensure!(log.matches("\"decided\"").count() == runs, "reconciled again:\n{log}");
    // Back again, it is worked on again.
    let label = json!({"metadata": {"labels": {"shard": "one"}}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", label).await?;
    let runs_again =
        || async { Ok(case.controllers[0].log_text().matches("\"decided\"").count() > runs) };
    case.wait_until("the next run", runs_again).await
}

async fn a_start_with_many_objects_asks_for_few_at_a_time(case: &mut Case) -> Result<()> {
    for number in 0..150 {
        let name = format!("app-{number:03}");
        case.apply(case.deployment(&name, json!({"suspend": true}))).await?;
    }
    let mut kubeconfig = kube::config::Kubeconfig::read_from(&case.kubeconfig)?;
    let cluster = kubeconfig.clusters.first_mut().and_then(|named| named.cluster.as_mut());
    let cluster = cluster.context("no cluster")?;
    let server = cluster.server.clone().context("no server")?;
    let tunnel = Tunnel::start(server.trim_start_matches("https://")).await?;
    cluster.server = Some(format!("https://{}", tunnel.address));
    let path = case.dir.join("tunnel.kubeconfig");
    std::fs::write(&path, serde_json::to_string(&kubeconfig)?)?;
    case.kubeconfig = path;
    case.start_controller(&["--concurrent=1"]).await?;
    case.wait_until("all of them", || async {
        Ok(case.controllers[0].log_text().matches("\"suspended\"").count() >= 150)
    })
    .await?;
    let most = tunnel.most();
    ensure!((1..50).contains(&most), "{most} connections at a time");
    Ok(())
}

async fn metrics_have_fluxs_names(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let controller = case.controllers.first().context("controller")?;
    let url = format!("http://{}/metrics", controller.metrics);
    let labels = format!("name=\"app\",namespace=\"{}\"", case.namespace);
    case.wait_until("the metrics", || async {
        let text = reqwest::get(&url).await?.text().await?;
        let series = |name: &str| {
            text.lines().any(|line| line.starts_with(name) && line.contains("name=\"app\""))
        };
        Ok(series("gotk_reconcile_duration_seconds_count"))
    })
    .await
    .with_context(|| format!("wanted gotk_reconcile_duration_seconds with {labels}"))?;
    let readyz = reqwest::get(format!("http://{}/readyz", controller.health)).await?;
    ensure!(readyz.status().is_success(), "/readyz: {}", readyz.status());
    case.delete_deployment("app").await?;
    case.wait_until("the end of the series", || async {
        Ok(!reqwest::get(&url).await?.text().await?.contains("name=\"app\""))
    })
    .await
}

async fn a_suspended_deployment_rests(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let manifest = config_map("\"{{ args.name }}\"", "first");
    let files = with(&SHARED, &[("config/it.yaml", &manifest)]);
    case.deploy_files("app", &files, json!({"suspend": true})).await?;
    // Neither a new revision nor a request wakes it; the sentinel is deployed from the same source after both.
    let second = config_map("\"{{ args.name }}\"", "second");
    let files = with(&SHARED, &[("config/it.yaml", &second)]);
    case.publish("app", &files, "v2@sha256:0002").await?;
    case.request_reconcile("app", "1").await?;
    case.apply(case.artifact_deployment("sentinel", "app", json!({}))).await?;
    case.wait_ready("sentinel").await?;
    ensure!(case.config_map("app").await?.is_null(), "a suspended deployment was deployed");
    case.patch_spec("app", json!({"suspend": false})).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("app").await?["data"]["value"] == "second", "not deployed afterwards");
    Ok(())
}

async fn a_malformed_object_is_reported_and_stops_no_other(case: &mut Case) -> Result<()> {
    // The schema's pattern for durations has no end, so the API server stores what no reader takes.
    let mut malformed =
        case.deployment("malformed", json!({"args": {"namespace": case.namespace}}));
    malformed["spec"]["deployInterval"] = "5mxyz".into();
    case.apply(malformed).await?;
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let object = case
        .wait_deployment("malformed", "the report", |object| ready_reason(object) == "InvalidSpec")
        .await?;
    ensure!(
        message_of(&object, "Ready").contains("deployInterval"),
        "{}",
        message_of(&object, "Ready")
    );
    Ok(())
}

async fn a_forced_reconciliation_deploys_again(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    case.patch("v1", "ConfigMap", "one", json!({"data": {"value": "by hand"}})).await?;
    let both = json!({"metadata": {"annotations": {
        "reconcile.fluxcd.io/requestedAt": "7", "reconcile.fluxcd.io/forceAt": "7",
    }}});
    case.patch("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app", both).await?;
    case.wait_for("v1", "ConfigMap", "one", "the repair", |object| {
        object["data"]["value"] == "first"
    })
    .await?;
    Ok(())
}
