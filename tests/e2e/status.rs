//! What is written down: on the objects deployed, and on the KluctlDeployment while others write to it.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, config_map, is_ready, with},
    tests,
};

tests![
    everything_deployed_carries_discriminator_and_field_manager,
    conflicting_writes_lose_no_status,
];

async fn everything_deployed_carries_discriminator_and_field_manager(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \"{{ args.namespace }}\"\nrules: []\n";
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: two\nstringData: {password: x}\n";
    let generator = "configMapGenerator:\n  - name: generated\n    literals: [a=b]\nresources: [role.yaml]\ngeneratorOptions: {disableNameSuffixHash: true}\n";
    let workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {own: label}\nspec:\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n        - {name: c, image: example.com/x:1}\n";
    let one = config_map("one", "first");
    let items = "deployments:\n  - path: config\n  - path: more\n    tags: [more]\ncommonLabels:\n  team: shop\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(
        &SHARED,
        &[
            ("deployment.yaml", items),
            ("config/one.yaml", &one),
            ("config/two.yaml", secret),
            ("config/web.yaml", workload),
            ("more/role.yaml", role),
            ("more/kustomization.yaml", generator),
        ],
    );
    case.deploy_files("app", &files, json!({})).await?;
    case.wait_ready("app").await?;
    let discriminator = format!("app-{}", case.namespace);
    let role = case.api("rbac.authorization.k8s.io/v1", "ClusterRole", None);
    let mut all = vec![serde_json::to_value(role.get(&case.namespace).await?)?];
    for (api_version, kind, name) in [
        ("v1", "ConfigMap", "one"),
        ("v1", "ConfigMap", "generated"),
        ("v1", "Secret", "two"),
        ("apps/v1", "Deployment", "web"),
    ] {
        all.push(case.get(api_version, kind, name).await?.with_context(|| name.to_owned())?);
    }
    for object in &all {
        let metadata = &object["metadata"];
        let name = &metadata["name"];
        let labels = &metadata["labels"];
        ensure!(labels["kluctl.io/discriminator"] == *discriminator, "{name}: {labels}");
        ensure!(labels["team"] == "shop", "{name}: {labels}");
        let managers: Vec<&Value> = metadata["managedFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["subresource"].is_null())
            .map(|entry| &entry["manager"])
            .filter(|manager| *manager != "kube-controller-manager")
            .collect();
        ensure!(managers == ["kluctl"], "{name}: {managers:?}");
    }
    // The label marks what was deployed, not what that creates.
    let template = &all[4]["spec"]["template"]["metadata"]["labels"];
    ensure!(template["kluctl.io/discriminator"].is_null(), "{template}");
    ensure!(all[4]["metadata"]["labels"]["own"] == "label", "{}", all[4]["metadata"]["labels"]);
    case.delete_deployment("app").await?;
    ensure!(role.get_opt(&case.namespace).await?.is_none(), "the cluster-scoped object stays");
    Ok(())
}

async fn conflicting_writes_lose_no_status(case: &mut Case) -> Result<()> {
    // At this level the requests are logged.
    case.start_controller(&["--log-level=trace"]).await?;
    let manifests: Vec<(String, String)> = (0..20)
        .map(|at| (format!("config/{at}.yaml"), config_map(&format!("cm-{at}"), "first")))
        .collect();
    let manifests: Vec<(&str, &str)> =
        manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    case.deploy_files("app", &with(&SHARED, &manifests), json!({})).await?;
    // Every write changes the resource version that the controller's next write rests on.
    let mut writes = 0;
    while !is_ready(&case.get_deployment("app").await?) {
        writes += 1;
        ensure!(writes < 2_000, "never ready: {}", case.get_deployment("app").await?["status"]);
        case.annotate_deployment("app", "example.com/noise", &writes.to_string()).await?;
    }
    ensure!(writes > 5, "{writes} writes prove nothing");
    let object = case.wait_ready("app").await?;
    let status = &object["status"];
    ensure!(status["lastDeployResult"]["newObjects"] == 20, "{status}");
    ensure!(status["lastAppliedRevision"] == "v1@sha256:0001", "{status}");
    ensure!(object["metadata"]["annotations"]["example.com/noise"].is_string(), "lost: {object}");
    let log = case.controllers[0].log_text();
    ensure!(log.contains("\"http.status_code\":409"), "no conflict came up");
    ensure!(!log.contains("could not be written"), "a conflict was not overcome:\n{log}");
    let runs = case.reconciliations("app").await?;
    ensure!(runs <= 2, "{runs} runs: the annotation alone must not cause any");
    Ok(())
}
