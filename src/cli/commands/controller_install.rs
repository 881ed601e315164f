//! `kluctl controller install`

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::deploy;
use crate::{
    cli::{
        Environment, Failure, Report,
        flags::{ClusterFlags, ConfirmFlags, DeploymentFlags, ResultOutputFlags, StoreFlags},
        operation::Operation,
        prompt, session,
    },
    deployment::Inclusion,
    diagnostic::{Class, Diagnostic},
    engine::{DeployOptions, PrepareRequest, Source},
    project::TargetRequest,
    tree::MemoryTree,
};

/// The version of the controller that the manifests name.
const OWN_VERSION: &str = concat!("newTag: v", env!("CARGO_PKG_VERSION"));

/// The project that is deployed: what `config/flux` of this version has, with the definition of KluctlDeployments first.
const FILES: [(&str, &str); 13] = [
    (".kluctl.yaml", "discriminator: flux-kluctl-controller\n"),
    ("deployment.yaml", include_str!("controller_install/deployment.yaml")),
    // Nothing in the manifests is a template.
    (".templateignore", "crds\nrbac\nmanager\npolicies\n"),
    ("crds/kustomization.yaml", include_str!("../../../crds/kustomization.yaml")),
    (
        "crds/flux.kluctl.io_kluctldeployments.yaml",
        include_str!("../../../crds/flux.kluctl.io_kluctldeployments.yaml"),
    ),
    ("rbac/kustomization.yaml", include_str!("../../../config/flux/rbac/kustomization.yaml")),
    ("rbac/controller.yaml", include_str!("../../../config/flux/rbac/controller.yaml")),
    ("rbac/deployer.yaml", include_str!("../../../config/flux/rbac/deployer.yaml")),
    ("rbac/users.yaml", include_str!("../../../config/flux/rbac/users.yaml")),
    ("manager/deployment.yaml", include_str!("../../../config/flux/manager/deployment.yaml")),
    ("manager/service.yaml", include_str!("../../../config/flux/manager/service.yaml")),
    (
        "policies/kustomization.yaml",
        include_str!("../../../config/flux/policies/kustomization.yaml"),
    ),
    (
        "policies/network-policies.yaml",
        include_str!("../../../config/flux/policies/network-policies.yaml"),
    ),
];
const MANAGER: (&str, &str) =
    ("manager/kustomization.yaml", include_str!("../../../config/flux/manager/kustomization.yaml"));

/// Installs the controller next to Flux, in namespace flux-system: the same as `kubectl apply -k config/flux`.
///
/// Without --yes or --dry-run, the changes are shown first, and a question is asked.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ControllerInstall {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME", help_heading = "Misc arguments")]
    context: Option<String>,

    /// Version of the controller, instead of the one of this command
    #[arg(long, value_name = "VERSION", help_heading = "Misc arguments")]
    kluctl_version: Option<String>,

    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    store: StoreFlags,
}

pub(super) async fn run(
    command: ControllerInstall,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let ControllerInstall { cluster, context, kluctl_version, confirm, store } = command;
    if confirm.asks() {
        prompt::require_terminal(environment)?;
    }
    let mut flags = DeploymentFlags::unset()?;
    flags.cluster = cluster;
    flags.target.context.clone_from(&context);
    let request = PrepareRequest {
        source: project(kluctl_version.as_deref())?,
        target: TargetRequest { context, ..TargetRequest::default() },
        inclusion: Inclusion::default(),
        jinja: session::template_options(),
    };
    let operation = Operation::of_request(&flags, request, environment, report, &cancel).await?;
    let output = ResultOutputFlags::text();
    let options = DeployOptions { dry_run: confirm.dry_run, ..DeployOptions::default() };
    Box::pin(deploy::execute(operation, confirm, &options, &output, &store)).await
}

/// The project, with another version of the controller if one is given.
fn project(version: Option<&str>) -> Result<Source, Diagnostic> {
    let mut tree = MemoryTree::from_texts(FILES);
    let (path, manager) = MANAGER;
    let manager = match version {
        None => manager.to_owned(),
        Some(version) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if version.is_empty() || !version.chars().all(is_plain) {
                let message = format!("--kluctl-version {version:?} is no version");
                return Err(Diagnostic::new(Class::Project, message)
                    .with_expected("the tag of an image, for example v0.17.0"));
            }
            let tag = if version.starts_with(|c: char| c.is_ascii_digit()) {
                format!("newTag: v{version}")
            } else {
                format!("newTag: {version}")
            };
            manager.replace(OWN_VERSION, &tag)
        }
    };
    tree.insert(path, manager.into_bytes());
    Ok(Source { tree: Arc::new(tree), project_dir: String::new(), config_file: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_name_the_version_of_this_command_unless_told_otherwise() {
        let manager = |version: Option<&str>| {
            let source = project(version).unwrap();
            String::from_utf8(source.tree.read(MANAGER.0).unwrap().to_vec()).unwrap()
        };
        assert!(manager(None).contains(&format!("{OWN_VERSION}\n")), "{}", manager(None));
        assert!(manager(Some("1.2.3")).contains("newTag: v1.2.3\n"));
        assert!(manager(Some("v1.2.3")).contains("newTag: v1.2.3\n"));
        assert!(project(Some("x: y")).is_err());
    }
}
