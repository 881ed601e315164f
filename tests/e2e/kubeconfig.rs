//! Kubeconfigs from Secrets: what they may do, and what a deletion does when they lead elsewhere.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, config_map, message_of, with},
    tests,
};

tests![
    files_programs_and_insecure_servers_are_refused,
    files_programs_and_insecure_servers_can_be_allowed,
    a_kubeconfig_is_read_from_the_key_given,
    objects_on_another_cluster_are_not_deleted,
    a_lost_kubeconfig_is_noticed_and_its_return_too,
    without_its_service_account_a_deletion_leaves_the_objects,
    a_spec_that_keeps_its_objects_needs_no_kubeconfig,
];

/// The administrator's kubeconfig after `change`.
fn kubeconfig(case: &Case, change: impl Fn(&mut Value)) -> Result<Value> {
    let text = std::fs::read_to_string(&case.suite.kubeconfig)?;
    let mut kubeconfig = serde_json::from_str(&text)?;
    change(&mut kubeconfig);
    Ok(kubeconfig)
}

async fn store(case: &Case, secret: &str, key: &str, kubeconfig: &Value) -> Result<()> {
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret},
        "stringData": {key: kubeconfig.to_string()}}))
        .await?;
    Ok(())
}

async fn deploy_one(case: &Case, name: &str, spec: Value) -> Result<()> {
    let one = config_map("\"{{ args.name }}\"", "first");
    case.deploy_files(name, &with(&SHARED, &[("config/one.yaml", &one)]), spec).await
}

fn with_secret(name: &str) -> Value {
    json!({"kubeConfig": {"secretRef": {"name": name}}, "retryInterval": "1h"})
}

/// Moves inline data of a kubeconfig's user or cluster to a file.
fn to_file(case: &Case, part: &mut Value, field: &str) {
    use base64::Engine as _;
    let data = part[format!("{field}-data")].take();
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap()).unwrap();
    let path = case.dir.join(field);
    std::fs::write(&path, bytes).unwrap();
    let all = part.as_object_mut().unwrap();
    all.remove(&format!("{field}-data"));
    all.insert(field.to_owned(), path.display().to_string().into());
}

/// Kubeconfigs by name, each with one thing that needs trust, and what a refusal says.
fn distrusted(case: &Case) -> Result<Vec<(&'static str, Value, &'static str)>> {
    let change = |change: &dyn Fn(&mut Value, &mut Value)| {
        kubeconfig(case, |all| {
            let mut user = all["users"][0]["user"].take();
            let mut cluster = all["clusters"][0]["cluster"].take();
            change(&mut user, &mut cluster);
            all["users"][0]["user"] = user;
            all["clusters"][0]["cluster"] = cluster;
        })
    };
    let program = |user: &mut Value, _: &mut Value| {
        let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"clientCertificateData": decoded(&user["client-certificate-data"]),
                "clientKeyData": decoded(&user["client-key-data"])}});
        let file = case.dir.join("credential.json");
        std::fs::write(&file, credential.to_string()).unwrap();
        *user = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat",
            "args": [file.display().to_string()], "interactiveMode": "Never"}});
    };
    Ok(vec![
        (
            "client-certificate",
            change(&|user, _| to_file(case, user, "client-certificate"))?,
            "--insecure-kubeconfig-exec",
        ),
        (
            "client-key",
            change(&|user, _| to_file(case, user, "client-key"))?,
            "--insecure-kubeconfig-exec",
        ),
        (
            "certificate-authority",
            change(&|_, cluster| to_file(case, cluster, "certificate-authority"))?,
            "--insecure-kubeconfig-exec",
        ),
        (
            "tokenfile",
            change(&|user, _| {
                let path = case.dir.join("token");
                std::fs::write(&path, "unused").unwrap();
                user["tokenFile"] = path.display().to_string().into();
            })?,
            "--insecure-kubeconfig-exec",
        ),
        ("program", change(&program)?, "--insecure-kubeconfig-exec"),
        (
            "unchecked",
            change(&|_, cluster| {
                cluster.as_object_mut().unwrap().remove("certificate-authority-data");
                cluster["insecure-skip-tls-verify"] = true.into();
            })?,
            "--insecure-kubeconfig-tls",
        ),
    ])
}

fn decoded(data: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn files_programs_and_insecure_servers_are_refused(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let mut all = distrusted(case)?;
    let plain = kubeconfig(case, |all| {
        all["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1".into();
    })?;
    all.push(("plain-http", plain, "--insecure-kubeconfig-tls"));
    for (name, kubeconfig, _) in &all {
        store(case, name, "value", kubeconfig).await?;
        deploy_one(case, name, with_secret(name)).await?;
    }
    for (name, _, flag) in &all {
        let object = case.wait_failed(name, "PrepareFailed").await?;
        let message = message_of(&object, "Ready");
        ensure!(message.contains("is refused"), "{name}: {message}");
        ensure!(message.contains(flag), "{name}: {flag} is not in: {message}");
        let path = case.dir.display().to_string();
        ensure!(!message.contains(&path), "{name}: the file is told: {message}");
        ensure!(case.config_map(name).await?.is_null(), "{name} was deployed");
    }
    Ok(())
}

async fn files_programs_and_insecure_servers_can_be_allowed(case: &mut Case) -> Result<()> {
    case.start_controller(&["--insecure-kubeconfig-exec", "--insecure-kubeconfig-tls"]).await?;
    let all = distrusted(case)?;
    for (name, kubeconfig, _) in &all {
        store(case, name, "value", kubeconfig).await?;
        deploy_one(case, name, with_secret(name)).await?;
    }
    for (name, _, _) in &all {
        case.wait_ready(name).await?;
        ensure!(!case.config_map(name).await?.is_null(), "{name} was not deployed");
    }
    Ok(())
}

async fn a_kubeconfig_is_read_from_the_key_given(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let config = kubeconfig(case, |_| {})?;
    store(case, "flux", "value", &config).await?;
    store(case, "older", "value.yaml", &config).await?;
    store(case, "own", "prod", &config).await?;
    deploy_one(case, "flux", with_secret("flux")).await?;
    deploy_one(case, "older", with_secret("older")).await?;
    let own = json!({"kubeConfig": {"secretRef": {"name": "own", "key": "prod"}}});
    deploy_one(case, "own", own).await?;
    deploy_one(case, "wrong", with_secret("own")).await?;
    for name in ["flux", "older", "own"] {
        case.wait_ready(name).await?;
    }
    let object = case.wait_failed("wrong", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    for mention in ["spec.kubeConfig.secretRef", "/own", "\"value\"", "prod"] {
        ensure!(message.contains(mention), "{mention:?} is not in: {message}");
    }
    Ok(())
}

/// An API server of another cluster, as far as telling which one it is. Keeps the requests it got.
async fn other_cluster() -> Result<(String, Arc<Mutex<Vec<String>>>)> {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&requests);
    let answer = move |request: axum::extract::Request| {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        kept.lock().unwrap().push(format!("{method} {path}"));
        async move {
            use axum::response::IntoResponse as _;
            if path == "/api/v1/namespaces/kube-system" {
                let body = json!({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": "kube-system", "uid": "another-cluster"}});
                let kind = [(axum::http::header::CONTENT_TYPE, "application/json")];
                return (kind, body.to_string()).into_response();
            }
            axum::http::StatusCode::NOT_FOUND.into_response()
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.ok() });
    Ok((url, requests))
}

async fn objects_on_another_cluster_are_not_deleted(case: &mut Case) -> Result<()> {
    case.start_controller(&["--insecure-kubeconfig-tls"]).await?;
    store(case, "target", "value", &kubeconfig(case, |_| {})?).await?;
    deploy_one(case, "app", with_secret("target")).await?;
    case.wait_ready("app").await?;
    let (url, requests) = other_cluster().await?;
    let elsewhere = kubeconfig(case, |all| {
        all["clusters"][0]["cluster"] = json!({"server": url});
        all["users"][0]["user"] = json!({"token": "unused"});
    })?;
    store(case, "target", "value", &elsewhere).await?;
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    let object = case.wait_failed("app", "DeleteFailed").await?;
    let message = message_of(&object, "Ready");
    for mention in ["another-cluster", "spec.kubeConfig", "spec.delete"] {
        ensure!(message.contains(mention), "{mention:?} is not in: {message}");
    }
    let asked = requests.lock().unwrap().clone();
    ensure!(asked.iter().all(|request| request.starts_with("GET ")), "{asked:?}");
    ensure!(!asked.is_empty(), "the other cluster was not asked who it is");
    ensure!(!case.config_map("app").await?.is_null(), "deleted on a cluster nobody named");

    store(case, "target", "value", &kubeconfig(case, |_| {})?).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    ensure!(case.config_map("app").await?.is_null(), "orphaned on the right cluster");
    Ok(())
}

async fn a_lost_kubeconfig_is_noticed_and_its_return_too(case: &mut Case) -> Result<()> {
    // The Secret is there before anybody refers to it, so that its end is the first that the watch tells of it.
    store(case, "target", "value", &kubeconfig(case, |_| {})?).await?;
    case.start_controller(&[]).await?;
    deploy_one(case, "app", with_secret("target")).await?;
    case.wait_ready("app").await?;
    case.delete("v1", "Secret", "target").await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    ensure!(message_of(&object, "Ready").contains("/target"), "{}", object["status"]);
    ensure!(!case.config_map("app").await?.is_null(), "deleted without a kubeconfig");
    store(case, "target", "value", &kubeconfig(case, |_| {})?).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn without_its_service_account_a_deletion_leaves_the_objects(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    case.apply(
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}}),
    )
    .await?;
    case.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": case.namespace}],
    }))
    .await?;
    deploy_one(case, "app", json!({"serviceAccountName": "tenant"})).await?;
    case.wait_ready("app").await?;
    case.delete("v1", "ServiceAccount", "tenant").await?;
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("app").await?.is_null(), "deleted as somebody else");
    case.wait_until("the warning", || async {
        Ok(case.events_of("app").await?.iter().any(|event| {
            event["type"] == "Warning"
                && event["message"].as_str().is_some_and(|text| text.contains("tenant"))
        }))
    })
    .await
}

async fn a_spec_that_keeps_its_objects_needs_no_kubeconfig(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    store(case, "target", "value", &kubeconfig(case, |_| {})?).await?;
    let mut spec = with_secret("target");
    spec["delete"] = false.into();
    deploy_one(case, "app", spec).await?;
    case.wait_ready("app").await.context("deployed")?;
    case.delete("v1", "Secret", "target").await?;
    case.delete_deployment("app").await?;
    ensure!(!case.config_map("app").await?.is_null(), "delete: false removed an object");
    Ok(())
}
