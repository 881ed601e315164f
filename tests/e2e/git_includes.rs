//! Git repositories that a project includes, reached with the source's own credentials.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, GitRepo, GitServer, condition, config_map, message_of},
    tests,
};

tests![
    an_included_repository_is_fetched_with_the_sources_credentials,
    a_new_commit_of_an_included_repository_is_deployed,
    credentials_are_not_sent_to_another_host,
    explicit_credentials_reach_another_host,
    an_unknown_branch_is_reported_with_those_that_exist,
];

/// A project that includes `library` from Git.
pub(crate) fn project(library: &str, reference: &str) -> Vec<(String, String)> {
    vec![
        (
            ".kluctl.yaml".into(),
            "discriminator: test-{{ args.namespace }}\nargs:\n  - name: namespace\n".into(),
        ),
        (
            "deployment.yaml".into(),
            format!(
                "deployments:\n  - git:\n      url: {library}\n      ref: {{branch: {reference}}}\n      subDir: lib\noverrideNamespace: {{{{ args.namespace }}}}\n"
            ),
        ),
    ]
}

const LIBRARY: &[(&str, &str)] = &[("lib/deployment.yaml", "deployments:\n  - path: config\n")];

pub(crate) fn library(case: &Case, server: &GitServer, value: &str) -> Result<GitRepo> {
    let manifest = config_map("from-library", value);
    let files = [LIBRARY, &[("lib/config/it.yaml", &manifest)]].concat();
    GitRepo::create(server, &case.dir, &format!("{}/library", case.namespace), &files)
}

/// A server that asks for credentials, and a Secret that has them.
async fn guarded_server(case: &Case, directory: &str, secret: &str) -> Result<GitServer> {
    let arguments = ["--user", "robot", "--password", "pass-word-1"];
    let server = GitServer::start(&case.dir.join(directory), &arguments)?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret},
        "stringData": {"username": "robot", "password": "pass-word-1"}}))
        .await?;
    Ok(server)
}

/// Deploys a project that lives on `server` with `secret`.
async fn deploy(
    case: &Case,
    server: &GitServer,
    secret: &str,
    files: &[(String, String)],
    spec: Value,
) -> Result<()> {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repo = GitRepo::create(server, &case.dir, &format!("{}/app", case.namespace), &files)?;
    case.apply(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "app"},
        "spec": {"interval": "1h", "url": repo.url, "ref": {"branch": "main"}, "secretRef": {"name": secret}},
    }))
    .await?;
    let mut all = json!({"args": {"namespace": case.namespace}});
    if let (Value::Object(all), Value::Object(spec)) = (&mut all, spec) {
        all.extend(spec);
    }
    case.apply(case.deployment("app", all)).await?;
    Ok(())
}

async fn an_included_repository_is_fetched_with_the_sources_credentials(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let server = guarded_server(case, "guarded", "git").await?;
    let library = library(case, &server, "included")?;
    deploy(case, &server, "git", &project(&library.url, "main"), json!({})).await?;
    let object = case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "included", "not deployed");
    let listed = &object["status"]["dependentRepositories"][0];
    ensure!(
        listed["commit"].as_str().is_some_and(|commit| commit.len() == 40),
        "{}",
        object["status"]
    );
    let everything = format!("{object} {}", case.controllers[0].log_text());
    ensure!(!everything.contains("pass-word-1"), "the password is in status or log");
    Ok(())
}

async fn a_new_commit_of_an_included_repository_is_deployed(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let library = library(case, &case.suite.git, "before")?;
    let files = project(&library.url, "main");
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    case.deploy_project("app", &files, json!({})).await?;
    case.wait_ready("app").await?;
    let commit = library.commit(&[("lib/config/it.yaml", &config_map("from-library", "after"))])?;
    case.request_reconcile("app", "1").await?;
    let object = case.wait_handled("app", "1").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "after", "not deployed");
    ensure!(
        object["status"]["dependentRepositories"][0]["commit"] == commit.as_str(),
        "{}",
        object["status"]
    );
    Ok(())
}

async fn credentials_are_not_sent_to_another_host(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let own = guarded_server(case, "own", "git").await?;
    let other = guarded_server(case, "other", "git").await?;
    let library = library(case, &other, "elsewhere")?;
    deploy(case, &own, "git", &project(&library.url, "main"), json!({})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("credentials") || message.contains("authentication"), "{message}");
    Ok(())
}

async fn explicit_credentials_reach_another_host(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let own = guarded_server(case, "own", "git").await?;
    let other = guarded_server(case, "other", "other").await?;
    let library = library(case, &other, "elsewhere")?;
    let host = other.url.trim_start_matches("http://").to_owned();
    let credentials =
        json!({"credentials": {"git": [{"host": host, "secretRef": {"name": "other"}}]}});
    deploy(case, &own, "git", &project(&library.url, "main"), credentials).await?;
    case.wait_ready("app").await?;
    ensure!(case.config_map("from-library").await?["data"]["value"] == "elsewhere", "not deployed");
    Ok(())
}

async fn an_unknown_branch_is_reported_with_those_that_exist(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let library = library(case, &case.suite.git, "x")?;
    let files = project(&library.url, "mian");
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    case.deploy_project("app", &files, json!({})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    let message = message_of(&object, "Ready");
    ensure!(message.contains("mian") && message.contains("main"), "{message}");
    ensure!(message.contains("deployment.yaml"), "the place is not named: {message}");
    ensure!(condition(&object, "Stalled").is_none(), "{}", object["status"]);
    Ok(())
}
