//! How the controller comes to its cluster, and when it says that it is ready.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    support::{Case, Controller, PROGRAM, SHARED, config_map, tied, with},
    tests,
};

tests![
    the_pods_service_account_is_used,
    the_context_that_a_flag_names_is_used,
    a_controller_is_ready_when_it_knows_what_there_is,
];

async fn deploy_one(case: &Case, name: &str) -> Result<()> {
    let one = config_map("\"{{ args.name }}\"", "first");
    case.deploy_files(name, &with(&SHARED, &[("config/one.yaml", &one)]), json!({})).await
}

/// Creates the account `controller` of the test's namespace. Returns its token.
async fn account(case: &Case) -> Result<String> {
    case.apply(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "controller"}}),
    )
    .await?;
    let token = case.suite.kubectl(&["create", "token", "controller", "-n", &case.namespace])?;
    Ok(token.trim().to_owned())
}

/// Gives the account all rights in the test's namespace.
async fn grant(case: &Case) -> Result<()> {
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "controller"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": case.namespace}],
    }))
    .await?;
    Ok(())
}

fn admin(case: &Case) -> Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(&case.suite.kubeconfig)?)?)
}

fn store(case: &Case, name: &str, kubeconfig: &Value) -> Result<PathBuf> {
    let path = case.dir.join(name);
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

/// Shows a directory under the place where pods find their account, to one process alone.
const IN_A_POD: &str = "mount -t tmpfs tmpfs \"$(realpath /var/run)\" && \
    mkdir -p /var/run/secrets/kubernetes.io && \
    cp -r \"$1\" /var/run/secrets/kubernetes.io/serviceaccount && shift && exec \"$@\"";

/// A command that runs as a pod's container does, as far as the account goes: `kluctl controller run`.
fn in_a_pod(account: &Path) -> std::process::Command {
    let mut command = tied(Path::new("unshare"));
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", IN_A_POD, "sh"]);
    command.arg(account).args([PROGRAM, "controller", "run"]);
    command.env_remove("KUBECONFIG").env("HOME", "/nonexistent");
    command
}

/// Whether a test cannot be made here: where pods find their account is fixed, and not every machine lets a process have
/// these paths for itself.
pub(crate) fn is_impossible(test: &str) -> bool {
    if test != "start::the_pods_service_account_is_used" {
        return false;
    }
    let mut trial = std::process::Command::new("unshare");
    trial.args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    !trial.output().is_ok_and(|output| output.status.success())
}

async fn the_pods_service_account_is_used(case: &mut Case) -> Result<()> {
    let token = account(case).await?;
    grant(case).await?;
    let cluster = admin(case)?["clusters"][0]["cluster"].take();
    let ca = cluster["certificate-authority-data"].as_str().context("no CA")?;
    let files = case.dir.join("account");
    std::fs::create_dir_all(&files)?;
    std::fs::write(files.join("token"), token)?;
    std::fs::write(files.join("ca.crt"), STANDARD.decode(ca)?)?;
    std::fs::write(files.join("namespace"), &case.namespace)?;
    let server: reqwest::Url = cluster["server"].as_str().context("no server")?.parse()?;
    let (host, port) = (server.host_str().unwrap_or_default(), server.port().unwrap_or(443));
    let environment =
        [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", &port.to_string())];
    let controller = Controller::launch(
        in_a_pod(&files),
        &case.dir,
        &case.namespace,
        &["--events-addr="],
        &environment,
    )
    .await?;
    case.controllers.push(controller);
    deploy_one(case, "app").await?;
    case.wait_ready("app").await?;
    // Whose rights they were shows when they are gone.
    let bindings = case.api("rbac.authorization.k8s.io/v1", "RoleBinding", Some(&case.namespace));
    bindings.delete("controller", &kube::api::DeleteParams::default()).await?;
    let user = format!("system:serviceaccount:{}:controller", case.namespace);
    case.request_reconcile("app", "1").await?;
    case.wait_until("the refusal", || async {
        let log = case.controllers[0].log_text();
        Ok(log.lines().any(|line| line.contains("forbidden") && line.contains(&user)))
    })
    .await
}

async fn the_context_that_a_flag_names_is_used(case: &mut Case) -> Result<()> {
    let mut kubeconfig = admin(case)?;
    let used = kubeconfig["contexts"][0].clone();
    let right = json!({"name": "right", "context": used["context"]});
    let wrong = json!({"name": "wrong", "context": {"cluster": "nowhere", "user": used["context"]["user"]}});
    kubeconfig["contexts"] = json!([wrong, right]);
    let nowhere = json!({"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}});
    kubeconfig["clusters"].as_array_mut().context("clusters")?.push(nowhere);
    kubeconfig["current-context"] = "wrong".into();
    case.kubeconfig = store(case, "contexts.kubeconfig", &kubeconfig)?;
    case.start_controller(&["--context=right"]).await?;
    deploy_one(case, "app").await?;
    case.wait_ready("app").await?;

    let Err(refused) = case.start_controller(&["--context=left"]).await else {
        anyhow::bail!("started with a context that does not exist");
    };
    let message = refused.to_string();
    for name in ["left", "right", "wrong"] {
        ensure!(message.contains(name), "{name} is not named: {message}");
    }
    Ok(())
}

async fn status_of(url: &str) -> Result<u16> {
    Ok(reqwest::get(url).await?.status().as_u16())
}

async fn a_controller_is_ready_when_it_knows_what_there_is(case: &mut Case) -> Result<()> {
    let token = account(case).await?;
    let mut kubeconfig = admin(case)?;
    kubeconfig["users"][0]["user"] = json!({"token": token});
    case.kubeconfig = store(case, "account.kubeconfig", &kubeconfig)?;
    case.start_controller(&[]).await?;
    let health = case.controllers[0].health.clone();
    let readyz = format!("http://{health}/readyz");
    case.wait_until("the first refusal", || async {
        Ok(case.controllers[0].log_text().contains("list and watch are forbidden"))
    })
    .await?;
    ensure!(status_of(&readyz).await? == 503, "ready without having seen anything");
    ensure!(status_of(&format!("http://{health}/healthz")).await? == 200, "not healthy");
    grant(case).await?;
    case.wait_until("readiness", || async { Ok(status_of(&readyz).await? == 200) }).await
}
