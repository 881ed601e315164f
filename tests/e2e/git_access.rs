//! How Git servers are reached: TLS with an authority of one's own, tokens, SSH, clones, proxies; and who gets to see what.

use anyhow::{Context, Result, ensure};
use axum::response::Redirect;
use serde_json::{Value, json};

use crate::{
    git_includes::{library, project},
    support::{
        Case, ForwardProxy, GitRepo, GitServer, SshServer, TWO_CONFIG_MAPS, Tls, config_map,
        message_of,
    },
    tests,
};

tests![
    https_with_basic_auth_and_ca_crt,
    https_with_a_bearer_token_and_ca_file,
    https_of_an_unknown_authority_is_refused,
    ssh_with_the_sources_key,
    ssh_with_explicit_credentials,
    a_wrong_host_key_is_refused,
    a_clone_follows_branch_and_tag,
    a_clone_over_ssh,
    many_deployments_clone_a_repository_once,
    templates_of_a_clone_see_the_latest_commit,
    nothing_is_sent_to_another_host,
    nothing_follows_a_redirect,
    proxies_of_the_environment_are_used,
];

const PASSWORD: &str = "pass-word-1";

/// Creates or changes a Secret.
async fn secret(case: &Case, name: &str, data: Value) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    case.apply(object).await.map(drop)
}

/// Serves `directory` over HTTPS to those who know the credentials.
fn https_server(case: &Case, tls: &Tls, credentials: &[&str]) -> Result<GitServer> {
    let tls = tls.arguments();
    let arguments: Vec<&str> =
        tls.iter().map(String::as_str).chain(credentials.iter().copied()).collect();
    GitServer::start(&case.dir.join("https"), &arguments)
}

/// Creates a repository, for which `files` are written with owned names.
fn repository(
    case: &Case,
    server: &GitServer,
    name: &str,
    files: &[(String, String)],
) -> Result<GitRepo> {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    GitRepo::create(server, &case.dir, &format!("{}/{name}", case.namespace), &files)
}

/// A GitRepository `app` at `url` with the Secret `git`, and a KluctlDeployment of it.
async fn deploy_from(case: &Case, url: &str) -> Result<()> {
    case.apply(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "app"},
        "spec": {"interval": "1h", "url": url, "ref": {"branch": "main"}, "secretRef": {"name": "git"}},
    }))
    .await?;
    case.apply(case.deployment("app", json!({"args": {"namespace": case.namespace}}))).await?;
    Ok(())
}

/// A KluctlDeployment `app` with a clone of its own.
fn clone_of(case: &Case, source: &Value) -> Value {
    let spec = json!({"args": {"namespace": case.namespace}, "source": source});
    let mut object = case.deployment("app", spec);
    object["spec"].as_object_mut().expect("a spec").remove("sourceRef");
    object
}

/// Fails when status or log hold one of the texts.
fn check_secrecy(case: &Case, object: &Value, secrets: &[&str]) -> Result<()> {
    let log = case.controllers[0].log_text();
    let status = object["status"].to_string();
    for secret in secrets {
        ensure!(!status.contains(secret), "a secret is in the status: {status}");
        ensure!(!log.contains(secret), "a secret is in the log");
    }
    Ok(())
}

async fn https_with_basic_auth_and_ca_crt(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let tls = Tls::create(&case.dir, &[])?;
    let server = https_server(case, &tls, &["--user", "robot", "--password", PASSWORD])?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD, "ca.crt": tls.ca}))
        .await?;
    let library = library(case, &server, "over-tls")?;
    let app = repository(case, &server, "app", &project(&library.url, "main"))?;
    deploy_from(case, &app.url).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "over-tls", "not deployed");
    check_secrecy(case, &object, &[PASSWORD, "cGFzcy13b3JkLTE"])
}

async fn https_with_a_bearer_token_and_ca_file(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let tls = Tls::create(&case.dir, &[])?;
    let server = https_server(case, &tls, &["--bearer", PASSWORD])?;
    secret(case, "git", json!({"bearerToken": PASSWORD, "caFile": tls.ca})).await?;
    let library = library(case, &server, "by-token")?;
    let app = repository(case, &server, "app", &project(&library.url, "main"))?;
    deploy_from(case, &app.url).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "by-token", "not deployed");
    let log = server.requests();
    let asked = log.lines().filter(|line| line.contains("library.git"));
    ensure!(asked.clone().count() > 0, "the library was not asked for:\n{log}");
    for line in asked {
        ensure!(line.ends_with(&format!(" Bearer {PASSWORD}")), "without the token: {line}");
    }
    check_secrecy(case, &object, &[PASSWORD])
}

async fn https_of_an_unknown_authority_is_refused(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let tls = Tls::create(&case.dir, &[])?;
    let server = https_server(case, &tls, &["--user", "robot", "--password", PASSWORD])?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD})).await?;
    let app = GitRepo::create(&server, &case.dir, "app", TWO_CONFIG_MAPS)?;
    let source = json!({"url": app.url, "secretRef": {"name": "git"}});
    case.apply(clone_of(case, &source)).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("certificate"), "{message}");
    ensure!(server.requests().is_empty(), "something was sent: {}", server.requests());
    // The Secret is watched, so the authority counts as soon as it is there.
    secret(case, "git", json!({"username": "robot", "password": PASSWORD, "ca.crt": tls.ca}))
        .await?;
    let object = case.wait_ready("app").await?;
    check_secrecy(case, &object, &[PASSWORD])
}

async fn ssh_with_the_sources_key(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let ssh = SshServer::start(&case.suite.git.root).await?;
    let data = json!({"identity": ssh.identity(), "identity.pub": "unused", "known_hosts": ssh.known_hosts()});
    secret(case, "git", data).await?;
    let base = format!("{}/{}", ssh.url(), case.namespace);
    library(case, &case.suite.git, "over-ssh")?;
    let files = project(&format!("{base}/library.git"), "main");
    repository(case, &case.suite.git, "app", &files)?;
    deploy_from(case, &format!("{base}/app.git")).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "over-ssh", "not deployed");
    let asked = format!("git-upload-pack '/{}/library.git'", case.namespace);
    ensure!(ssh.seen().contains(&asked), "{:?}", ssh.seen());
    check_secrecy(case, &object, &[&ssh.identity()[40..80]])
}

async fn ssh_with_explicit_credentials(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let ssh = SshServer::start(&case.suite.git.root).await?;
    let data = json!({"identity": ssh.identity(), "known_hosts": ssh.known_hosts()});
    secret(case, "ssh", data).await?;
    library(case, &case.suite.git, "explicit")?;
    let files = project(&format!("{}/{}/library.git", ssh.url(), case.namespace), "main");
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    // Credentials for another path come first and are passed over.
    let entry = |path: &str, secret: &str| json!({"host": ssh.host(), "path": path, "secretRef": {"name": secret}});
    secret(case, "other", json!({"identity": "no key", "known_hosts": "none"})).await?;
    let entries = [entry("elsewhere/**", "other"), entry(&format!("{}/*", case.namespace), "ssh")];
    case.deploy_project("app", &files, json!({"credentials": {"git": entries}})).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "explicit", "not deployed");
    check_secrecy(case, &object, &[&ssh.identity()[40..80]])
}

async fn a_wrong_host_key_is_refused(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let ssh = SshServer::start(&case.suite.git.root).await?;
    let data =
        |known_hosts: String| json!({"identity": ssh.identity(), "known_hosts": known_hosts});
    secret(case, "ssh", data(ssh.wrong_known_hosts())).await?;
    case.repo("app", TWO_CONFIG_MAPS)?;
    let url = format!("{}/{}/app.git", ssh.url(), case.namespace);
    let source = json!({"url": url, "secretRef": {"name": "ssh"}});
    case.apply(clone_of(case, &source)).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    for part in ["host key verification failed", "other keys for the host", "ssh-ed25519 SHA256:"] {
        ensure!(message.contains(part), "{part:?} is not in: {message}");
    }
    let seen = ssh.seen();
    ensure!(seen.iter().all(|what| what == "connection"), "it got further: {seen:?}");
    check_secrecy(case, &object, &[&ssh.identity()[40..80]])?;
    ensure!(case.config_map("one").await?.is_null(), "something was deployed");
    secret(case, "ssh", data(ssh.known_hosts())).await?;
    case.wait_ready("app").await?;
    Ok(())
}

async fn a_clone_follows_branch_and_tag(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let server =
        GitServer::start(&case.dir.join("guarded"), &["--user", "robot", "--password", PASSWORD])?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD})).await?;
    let app = GitRepo::create(&server, &case.dir, "app", TWO_CONFIG_MAPS)?;
    app.push_as("refs/tags/v1")?;
    let released = app.commit(&[("config/one.yaml", &config_map("one", "released"))])?;
    app.push_as("refs/heads/release")?;
    app.commit(&[("config/one.yaml", &config_map("one", "main"))])?;
    for (reference, value, revision) in [
        (json!({"branch": "release"}), "released", format!("release@sha1:{released}")),
        (json!({"tag": "v1"}), "first", "v1@sha1:".to_owned()),
        (json!({"branch": "main"}), "main", "main@sha1:".to_owned()),
    ] {
        let source = json!({"url": app.url, "ref": reference, "secretRef": {"name": "git"}});
        case.apply(clone_of(case, &source)).await?;
        let object = case.wait_ready("app").await?;
        ensure!(case.config_map("one").await?["data"]["value"] == value, "{value} is not deployed");
        let applied = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
        ensure!(applied.starts_with(&revision), "{applied} is not {revision}");
        check_secrecy(case, &object, &[PASSWORD])?;
    }
    // A commit is found without anybody asking when the interval is due; here somebody asks.
    let commit = app.commit(&[("config/one.yaml", &config_map("one", "newer"))])?;
    case.request_reconcile("app", "1").await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "newer", "not deployed");
    Ok(())
}

async fn a_clone_over_ssh(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let ssh = SshServer::start(&case.suite.git.root).await?;
    let data = json!({"identity": ssh.identity(), "known_hosts": ssh.known_hosts()});
    secret(case, "ssh", data).await?;
    let files: Vec<(String, &str)> =
        TWO_CONFIG_MAPS.iter().map(|(path, text)| (format!("deploy/{path}"), *text)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
    case.repo("app", &files)?;
    let url = format!("{}/{}/app.git", ssh.url(), case.namespace);
    let source = json!({"url": url, "path": "deploy", "secretRef": {"name": "ssh"}});
    case.apply(clone_of(case, &source)).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    let applied = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
    ensure!(applied.starts_with("main@sha1:"), "{applied}");
    Ok(())
}

async fn many_deployments_clone_a_repository_once(case: &mut Case) -> Result<()> {
    let cache = case.dir.join("cache");
    let cache_dir = format!("--cache-dir={}", cache.display());
    let repo = case.repo("app", TWO_CONFIG_MAPS)?;
    let names: Vec<String> = (0..6).map(|n| format!("app-{n}")).collect();
    for name in &names {
        let mut object = clone_of(case, &json!({"url": repo.url}));
        object["metadata"]["name"] = name.as_str().into();
        object["spec"]["dryRun"] = true.into();
        case.apply(object).await?;
    }
    case.start_controller(&[&cache_dir, "--concurrent=6"]).await?;
    for name in &names {
        case.wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", name, "a try", |object| {
            object["status"]["lastAttemptedRevision"].is_string()
        })
        .await?;
    }
    let output =
        std::process::Command::new("find").arg(&cache).args(["-name", "*.pack"]).output()?;
    let packs = String::from_utf8(output.stdout)?;
    ensure!(packs.lines().count() == 1, "not one download:\n{packs}");
    Ok(())
}

async fn templates_of_a_clone_see_the_latest_commit(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let manifest = config_map("one", "{{ load_latest_git_commit('config/two.yaml') }}");
    let files = [&TWO_CONFIG_MAPS[..2], &[("config/one.yaml", manifest.as_str())]].concat();
    let app = case.repo("app", &files)?;
    let changed = app.commit(&[("config/two.yaml", &config_map("two", "changed"))])?;
    for n in 0..3 {
        app.commit(&[("README", &format!("another commit {n}"))])?;
    }
    case.apply(clone_of(case, &json!({"url": app.url}))).await?;
    case.wait_ready("app").await?;
    let one = case.config_map("one").await?;
    ensure!(one["data"]["value"] == changed.as_str(), "{changed} is not {}", one["data"]);
    Ok(())
}

async fn nothing_is_sent_to_another_host(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let arguments = ["--user", "robot", "--password", PASSWORD];
    let own = GitServer::start(&case.dir.join("own"), &arguments)?;
    let other = GitServer::start(&case.dir.join("other"), &[])?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD})).await?;
    let library = library(case, &other, "public")?;
    let app = repository(case, &own, "app", &project(&library.url, "main"))?;
    deploy_from(case, &app.url).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "public", "not deployed");
    ensure!(own.requests().contains(" Basic "), "the own server got no credentials");
    let asked = other.requests();
    ensure!(!asked.is_empty(), "the other server was not asked");
    for line in asked.lines() {
        ensure!(line.ends_with(" -"), "sent to another host: {line}");
    }
    Ok(())
}

async fn nothing_follows_a_redirect(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let other = GitServer::start(&case.dir.join("other"), &[])?;
    let app = GitRepo::create(&other, &case.dir, "app", TWO_CONFIG_MAPS)?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD})).await?;
    let to = other.url.replace("127.0.0.1", "localhost");
    let router = axum::Router::new().fallback(move |uri: axum::http::Uri| {
        let target = format!("{to}{uri}");
        async move { Redirect::temporary(&target) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, router).await.ok() });
    let path = app.url.strip_prefix(&other.url).context("another URL")?;
    let url = format!("http://{address}{path}");
    let source = json!({"url": url, "secretRef": {"name": "git"}});
    case.apply(clone_of(case, &source)).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    server.abort();
    let message = message_of(&object, "Ready");
    ensure!(message.contains("redirect") && message.contains("localhost"), "{message}");
    ensure!(other.requests().is_empty(), "it was followed: {}", other.requests());
    check_secrecy(case, &object, &[PASSWORD])
}

async fn proxies_of_the_environment_are_used(case: &mut Case) -> Result<()> {
    let proxy = ForwardProxy::start().await?;
    let environment = [
        ("HTTP_PROXY", proxy.url.as_str()),
        ("https_proxy", proxy.url.as_str()),
        ("NO_PROXY", ".svc,exempt.proxied.test"),
    ];
    case.start_controller_with(&["--http-retry=0"], &environment).await?;
    // A clone through a tunnel, which includes a repository over plain HTTP.
    let tls = Tls::create(&case.dir, &["git.proxied.test"])?;
    let server = https_server(case, &tls, &["--user", "robot", "--password", PASSWORD])?;
    secret(case, "git", json!({"username": "robot", "password": PASSWORD, "ca.crt": tls.ca}))
        .await?;
    let shared = case.suite.git.url.clone();
    let library = library(case, &case.suite.git, "proxied")?;
    let included = library.url.replace("127.0.0.1", "plain.proxied.test");
    let app = repository(case, &server, "app", &project(&included, "main"))?;
    let url = app.url.replace("127.0.0.1", "git.proxied.test");
    let source = json!({"url": url, "secretRef": {"name": "git"}});
    case.apply(clone_of(case, &source)).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "proxied", "not deployed");

    // Artifacts, with and without an exception.
    let artifact = async |host: &str, name: &str| {
        // Each its own bytes, for equal ones would come from the cache.
        let files = [TWO_CONFIG_MAPS, &[("name", name)]].concat();
        case.external_artifact(name, case.tarball(&files)?, "v1@sha256:aaaa").await?;
        let object = case.get("source.toolkit.fluxcd.io/v1", "ExternalArtifact", name).await?;
        let url = object.unwrap_or_default()["status"]["artifact"]["url"].clone();
        let url = url.as_str().context("no URL")?.replace("127.0.0.1", host);
        let status = json!({"status": {"artifact": {"url": url}}});
        case.patch_status("source.toolkit.fluxcd.io/v1", "ExternalArtifact", name, status).await?;
        let spec = json!({
            "args": {"namespace": case.namespace}, "dryRun": true,
            "sourceRef": {"kind": "ExternalArtifact", "name": name},
        });
        case.apply(case.deployment(name, spec)).await?;
        anyhow::Ok(url.trim_start_matches("http://").split('/').next().unwrap_or("").to_owned())
    };
    let through = artifact("artifacts.proxied.test", "through").await?;
    case.wait_for(
        "flux.kluctl.io/v1alpha1",
        "KluctlDeployment",
        "through",
        "an attempt",
        |object| object["status"]["lastAttemptedRevision"].is_string(),
    )
    .await?;
    case.wait_until("the download by the proxy", async || {
        Ok(proxy.seen().contains(&format!("GET {through}")))
    })
    .await?;
    artifact("exempt.proxied.test", "exempt").await?;
    let object = case.wait_failed("exempt", "ArtifactFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("exempt.proxied.test"), "{message}");

    let seen = proxy.seen();
    let https = server.url.replace("https://127.0.0.1", "CONNECT git.proxied.test");
    let plain = shared.replace("http://127.0.0.1", "GET plain.proxied.test");
    for expected in [https, plain] {
        ensure!(seen.contains(&expected), "no {expected} in {seen:?}");
    }
    for request in seen {
        ensure!(!request.contains("127.0.0.1"), "to this machine through the proxy: {request}");
        ensure!(!request.contains("exempt"), "against NO_PROXY: {request}");
    }
    Ok(())
}
