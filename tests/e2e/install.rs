//! What `config/flux` and the CRD give to a user.

use anyhow::{Result, ensure};

use crate::{
    support::{Case, root},
    tests,
};

tests![
    config_flux_is_accepted_by_the_api_server,
    explain_describes_the_fields,
    get_shows_columns,
    contradictions_are_refused_by_the_schema,
    the_notification_component_patches_fluxs_crds,
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

async fn explain_describes_the_fields(case: &mut Case) -> Result<()> {
    let explained = case.suite.kubectl(&[
        "explain",
        "kluctldeployment.spec.sourceRef",
        "--api-version=flux.kluctl.io/v1alpha1",
    ])?;
    ensure!(
        explained.contains("GitRepository") && explained.contains("DESCRIPTION"),
        "{explained}"
    );
    Ok(())
}

async fn get_shows_columns(case: &mut Case) -> Result<()> {
    case.apply(case.deployment("app", serde_json::json!({"suspend": true}))).await?;
    let shown = case.suite.kubectl(&["get", "kd", "-n", &case.namespace])?;
    for column in ["NAME", "READY", "STATUS", "AGE"] {
        ensure!(shown.contains(column), "{column} is missing:\n{shown}");
    }
    Ok(())
}

async fn contradictions_are_refused_by_the_schema(case: &mut Case) -> Result<()> {
    let both =
        case.deployment("app", serde_json::json!({"source": {"url": "https://example.com/x.git"}}));
    let error = case.apply(both).await.expect_err("source and sourceRef were accepted together");
    ensure!(format!("{error:#}").contains("exactly one of sourceRef and source"), "{error:#}");
    let mut neither = case.deployment("app", serde_json::json!({}));
    neither["spec"].as_object_mut().expect("a mapping").remove("sourceRef");
    ensure!(case.apply(neither).await.is_err(), "an object without any source was accepted");
    Ok(())
}

async fn the_notification_component_patches_fluxs_crds(case: &mut Case) -> Result<()> {
    let dir = case.dir.join("flux");
    std::fs::create_dir_all(&dir)?;
    let crds = case.suite.programs.join("../crds/flux/notification-controller");
    for entry in std::fs::read_dir(crds)? {
        let entry = entry?;
        std::fs::copy(entry.path(), dir.join(entry.file_name()))?;
    }
    std::os::unix::fs::symlink(
        root().join("config/flux/components/notification"),
        dir.join("component"),
    )
    .ok();
    let component = root().join("config/flux/components/notification");
    copy_directory(&component, &dir.join("notification"))?;
    let names: Vec<String> = std::fs::read_dir(&dir)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".yaml") && name != "kustomization.yaml")
        .collect();
    std::fs::remove_file(dir.join("component")).ok();
    let kustomization = format!("resources: [{}]\ncomponents: [notification]\n", names.join(", "));
    std::fs::write(dir.join("kustomization.yaml"), kustomization)?;
    let output = case.suite.kubectl(&["kustomize", &dir.display().to_string()])?;
    let patched = output.matches("- KluctlDeployment\n").count();
    ensure!(patched >= 2, "{patched} enumerations hold KluctlDeployment");
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
