//! Projects that real people deploy.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, root},
    tests,
};

tests![metrics_server_is_deployed_as_kustomize_builds_it, the_shop_example_is_deployed];

async fn metrics_server_is_deployed_as_kustomize_builds_it(case: &mut Case) -> Result<()> {
    let manifests = case.suite.programs.join("../manifests/metrics-server").canonicalize()?;
    let kluctl = "discriminator: metrics-server-{{ target.name }}\ntargets:\n  - name: base\n    args: {overlay: base}\n  - name: release\n    args: {overlay: overlays/release}\nargs:\n  - name: overlay\n";
    // The bases have to be rendered, too; only the overlay's objects are wanted.
    let deployment = "deployments:\n  - path: manifests/base\n    onlyRender: {{ args.overlay != 'base' }}\n{% if args.overlay != 'base' %}  - path: manifests/components/release\n    onlyRender: true\n  - path: manifests/{{ args.overlay }}\n{% endif %}commonLabels:\n  example.com/target: {{ target.name }}\n";
    let repo =
        case.repo("metrics-server", &[(".kluctl.yaml", kluctl), ("deployment.yaml", deployment)])?;
    repo.commit_directory_as(&manifests, "manifests")?;
    case.git_repository("metrics-server", &repo).await?;
    case.start_controller(&[]).await?;
    for (target, overlay) in [("release", "overlays/release"), ("base", "base")] {
        let name = "metrics-server";
        let wanted = kustomize_build(case, &manifests.join(overlay))?;
        ensure!(!wanted.is_empty(), "kustomize built nothing");
        case.apply(case.deployment(name, json!({"target": target}))).await?;
        case.wait_ready(name).await?;
        for (id, object) in &wanted {
            let live = live(case, object)
                .await?
                .with_context(|| format!("{id} is not in the API server"))?;
            let applied = applied_by_kluctl(object, &live);
            ensure!(applied == *object, "{id} differs:\nwanted {object:#}\nlive   {applied:#}");
            ensure!(
                live["metadata"]["labels"]["example.com/target"] == target,
                "{id}: no common label"
            );
            let discriminator = &live["metadata"]["labels"]["kluctl.io/discriminator"];
            ensure!(*discriminator == format!("metrics-server-{target}"), "{id}: {discriminator}");
            ensure!(
                live["metadata"]["annotations"]["kluctl.io/deployment-item-dir"].is_string(),
                "{id}: no item dir"
            );
        }
    }
    case.delete_deployment("metrics-server").await
}

/// What the real kustomize makes of a directory, by `Kind/namespace/name`.
fn kustomize_build(case: &Case, dir: &std::path::Path) -> Result<BTreeMap<String, Value>> {
    let output = std::process::Command::new(case.suite.programs.join("kustomize"))
        .arg("build")
        .arg(dir)
        .output()?;
    ensure!(
        output.status.success(),
        "kustomize build: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let documents = flux_kluctl_controller::yaml::parse_documents(
        "kustomize",
        &output.stdout,
        flux_kluctl_controller::yaml::Schema::Manifest,
    )?;
    let id = |object: &Value| {
        format!(
            "{}/{}/{}",
            object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]
        )
    };
    Ok(documents.into_iter().map(|document| (id(&document.value), document.value)).collect())
}

async fn live(case: &Case, object: &Value) -> Result<Option<Value>> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let api = case.api(api_version, kind, object["metadata"]["namespace"].as_str());
    let found = api.get_opt(object["metadata"]["name"].as_str().unwrap_or_default()).await?;
    Ok(found.map(serde_json::to_value).transpose()?)
}

/// The live object cut down to the fields of the wanted one, without what Kluctl adds: what remains must be equal.
fn applied_by_kluctl(wanted: &Value, live: &Value) -> Value {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted
            .iter()
            .map(|(key, value)| {
                (key.clone(), applied_by_kluctl(value, live.get(key).unwrap_or(&Value::Null)))
            })
            .collect(),
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            wanted.iter().zip(live).map(|(wanted, live)| applied_by_kluctl(wanted, live)).collect()
        }
        (_, live) => live.clone(),
    }
}

async fn the_shop_example_is_deployed(case: &mut Case) -> Result<()> {
    let repo = case.repo("shop", &[("README.md", "The shop")])?;
    repo.commit_directory(&root().join("examples/shop"))?;
    case.git_repository("shop", &repo).await?;
    case.start_controller(&[]).await?;
    case.apply(case.deployment("shop", json!({"target": "prod"}))).await?;
    case.wait_ready("shop").await?;
    let web = case.api("apps/v1", "Deployment", Some("shop-prod")).get("web").await?;
    let web = serde_json::to_value(web)?;
    ensure!(web["status"]["readyReplicas"] == 3, "{}", web["status"]);
    case.delete_deployment("shop").await
}
