//! What `config/flux` and the CRD give to a user.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, PROGRAM, root},
    tests,
};

tests![
    config_flux_is_accepted_by_the_api_server,
    the_notification_component_patches_fluxs_crds,
    the_monitoring_component_selects_the_service,
    the_bootstrap_example_fits_flux_and_this_repository,
    flux_logs_finds_the_controller,
    the_controllers_pod_passes_the_restricted_standard,
    the_binary_is_a_plug_in_of_flux,
];

async fn config_flux_is_accepted_by_the_api_server(case: &mut Case) -> Result<()> {
    let path = root().join("config/flux").display().to_string();
    let output = case.suite.kubectl(&["apply", "-k", &path, "--dry-run=server"])?;
    for object in [
        "deployment.apps/flux-kluctl-controller",
        "networkpolicy.networking.k8s.io/flux-kluctl-controller",
    ] {
        ensure!(output.contains(object), "{object} is missing:\n{output}");
    }
    Ok(())
}

async fn the_notification_component_patches_fluxs_crds(case: &mut Case) -> Result<()> {
    let dir = case.dir.join("flux");
    let crds = case.suite.programs.join("../crds/flux/notification-controller");
    copy_directory(&crds, &dir)?;
    let names: Vec<String> = std::fs::read_dir(&dir)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".yaml") && name != "kustomization.yaml")
        .collect();
    copy_directory(&root().join("config/flux/components/notification"), &dir.join("notification"))?;
    let kustomization = format!("resources: [{}]\ncomponents: [notification]\n", names.join(", "));
    std::fs::write(dir.join("kustomization.yaml"), kustomization)?;
    let output = build(case, &dir)?;
    for (kind, list) in [("alerts", "eventSources"), ("receivers", "resources")] {
        let name = format!("{kind}.notification.toolkit.fluxcd.io");
        let crd = output.iter().find(|object| object["metadata"]["name"] == name.as_str());
        let versions = crd.and_then(|crd| crd["spec"]["versions"].as_array()).context(kind)?;
        let stored =
            versions.iter().find(|version| version["storage"] == true).context("stored")?;
        let kinds = &stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][list]
            ["items"]["properties"]["kind"]["enum"];
        let accepts =
            |kind: &str| kinds.as_array().is_some_and(|all| all.iter().any(|k| k == kind));
        ensure!(accepts("KluctlDeployment") && accepts("Kustomization"), "{kind}: {kinds}");
    }
    // What notification-controller needs for it: a binding of its own account.
    let binding = output.iter().find(|object| object["kind"] == "ClusterRoleBinding");
    let subject = &binding.context("binding")?["subjects"][0];
    ensure!(subject["name"] == "notification-controller", "{subject}");
    Ok(())
}

/// The objects of a kustomization.
fn build(case: &Case, dir: &std::path::Path) -> Result<Vec<Value>> {
    let text = case.suite.kubectl(&["kustomize", &dir.display().to_string()])?;
    let documents = flux_kluctl_controller::yaml::parse_documents(
        "output",
        text.as_bytes(),
        flux_kluctl_controller::yaml::Schema::Manifest,
    )?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

async fn the_monitoring_component_selects_the_service(case: &mut Case) -> Result<()> {
    let kustomization = json!({
        "resources": [root().join("config/flux")], "components": [root().join("config/flux/components/monitoring")],
    });
    let dir = case.dir.join("monitored");
    std::fs::create_dir_all(&dir)?;
    let relative = kustomization.to_string().replace(&root().display().to_string(), &up(&dir)?);
    std::fs::write(dir.join("kustomization.yaml"), relative)?;
    let output = build(case, &dir)?;
    let find = |kind: &str, name: &str| {
        let mut found = output
            .iter()
            .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.next().with_context(|| format!("{kind} {name}"))
    };
    let monitor = find("ServiceMonitor", "flux-kluctl-controller")?;
    let service = find("Service", "flux-kluctl-controller")?;
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().context("matchLabels")?;
    let labels = &service["metadata"]["labels"];
    ensure!(
        !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value),
        "{wanted:?} does not select {labels}"
    );
    ensure!(monitor["metadata"]["namespace"] == service["metadata"]["namespace"], "{monitor}");
    let port = &monitor["spec"]["endpoints"][0]["port"];
    let ports = service["spec"]["ports"].as_array().context("ports")?;
    let served = ports.iter().find(|served| served["name"] == *port).context("port")?;
    let deployment = find("Deployment", "flux-kluctl-controller")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let named = container["ports"].as_array().context("ports")?;
    let named = named.iter().find(|named| named["name"] == served["targetPort"]);
    let listens = format!("--metrics-bind-address=:{}", named.context("port")?["containerPort"]);
    ensure!(
        container["args"].as_array().is_some_and(|all| all.contains(&listens.as_str().into())),
        "{listens} is not in {}",
        container["args"]
    );
    Ok(())
}

/// The way from a directory to the root of the file system.
fn up(dir: &std::path::Path) -> Result<String> {
    let depth = dir.canonicalize()?.components().count() - 1;
    Ok(format!("{}{}", vec![".."; depth].join("/"), root().display()))
}

async fn the_bootstrap_example_fits_flux_and_this_repository(case: &mut Case) -> Result<()> {
    case.install_kustomization_crd().await?;
    let file = root().join("config/flux/bootstrap/flux-kluctl.yaml").display().to_string();
    let output = case.suite.kubectl(&["apply", "--dry-run=server", "-f", &file, "-o", "json"])?;
    let list: Value = serde_json::from_str(&output)?;
    let items = list["items"].as_array().context("items")?;
    let find = |kind: &str| items.iter().find(|item| item["kind"] == kind).context("not there");
    let (source, kustomization) = (find("GitRepository")?, find("Kustomization")?);
    let reference = &kustomization["spec"]["sourceRef"];
    ensure!(reference["kind"] == "GitRepository", "{reference}");
    ensure!(reference["name"] == source["metadata"]["name"], "{reference}");
    let path = kustomization["spec"]["path"].as_str().context("path")?;
    ensure!(root().join(path).join("kustomization.yaml").is_file(), "{path} is no kustomization");
    // The releases it follows hold the one that is installed.
    let image = "config/flux/manager/kustomization.yaml";
    ensure!(std::fs::read_to_string(root().join(image))?.contains("newTag: v0.17.0"), "{image}");
    ensure!(source["spec"]["ref"]["semver"] == ">=0.17.0", "{}", source["spec"]["ref"]);
    Ok(())
}

/// `flux logs` lists the Deployments of Flux's namespace with this label, and of each the Pods with all labels of its template.
async fn flux_logs_finds_the_controller(case: &mut Case) -> Result<()> {
    let output = build(case, &root().join("config/flux"))?;
    let deployments: Vec<_> = output
        .iter()
        .filter(|object| {
            let metadata = &object["metadata"];
            object["kind"] == "Deployment"
                && metadata["namespace"] == "flux-system"
                && metadata["labels"]["app.kubernetes.io/part-of"] == "flux"
        })
        .collect();
    ensure!(deployments.len() == 1, "{deployments:?}");
    let spec = &deployments[0]["spec"];
    let labels = spec["template"]["metadata"]["labels"].as_object().context("labels")?;
    ensure!(labels.get("app") == Some(&json!("flux-kluctl-controller")), "{labels:?}");
    let selected = spec["selector"]["matchLabels"].as_object().context("selector")?;
    ensure!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)), "{selected:?}");
    // It reads lines of JSON alone.
    let arguments = spec["template"]["spec"]["containers"][0]["args"].as_array().context("args")?;
    ensure!(arguments.contains(&json!("--log-encoding=json")), "{arguments:?}");
    Ok(())
}

async fn the_controllers_pod_passes_the_restricted_standard(case: &mut Case) -> Result<()> {
    case.apply(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}),
    )
    .await?;
    let output = build(case, &root().join("config/flux"))?;
    let deployment = output.iter().find(|object| object["kind"] == "Deployment");
    let mut spec = deployment.context("Deployment")?["spec"]["template"]["spec"].clone();
    // Every namespace has this account.
    spec["serviceAccountName"] = "default".into();
    let container = &spec["containers"][0]["securityContext"];
    ensure!(container["readOnlyRootFilesystem"] == true, "{container}");
    let pod = |spec: &Value| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "it", "namespace": case.namespace}, "spec": spec})
    };
    case.wait_until("the account of the namespace", || async {
        Ok(case.get("v1", "ServiceAccount", "default").await?.is_some())
    })
    .await?;
    case.try_apply(&pod(&spec)).await.context("the Pod is refused")?;
    let mut root_allowed = spec.clone();
    root_allowed["containers"][0]["securityContext"] = json!({});
    let refused = case.try_apply(&pod(&root_allowed)).await;
    ensure!(refused.is_err(), "the API server does not enforce the standard");
    Ok(())
}

/// `flux kluctl …` runs what is called `flux-kluctl` in its directory of plug-ins: a file, or a link to one, that may be run.
async fn the_binary_is_a_plug_in_of_flux(case: &mut Case) -> Result<()> {
    let plugin = case.dir.join("flux-kluctl");
    std::os::unix::fs::symlink(PROGRAM, &plugin)?;
    let run = |arguments: &[&str]| -> Result<String> {
        let output = std::process::Command::new(&plugin).args(arguments).output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {errors}");
        Ok(String::from_utf8(output.stdout)?)
    };
    let shop = root().join("examples/shop").display().to_string();
    let rendered = run(&[
        "render",
        "--project-dir",
        &shop,
        "-t",
        "prod",
        "--offline-kubernetes",
        "--print-all",
    ])?;
    ensure!(rendered.contains("kind: Deployment"), "{rendered}");
    let version = run(&["--version"])?;
    ensure!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    Ok(())
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
