//! What a command leaves behind: stored results, a summary, and a clean end when it is interrupted.

use std::{
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flux_kluctl_controller::results::expand_objects;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{
    support::{Case, Ran, STUCK, TWO_CONFIG_MAPS, User, config_map},
    tests,
};

tests![
    results_are_stored_and_the_oldest_forgotten,
    a_result_that_cannot_be_stored_fails_no_deployment,
    an_interrupted_deployment_tells_what_is_left_and_the_next_completes_it,
    a_run_ends_with_a_summary_and_errors_with_a_next_step,
];

/// The stored command results of a namespace, the oldest first.
async fn stored(case: &Case, namespace: &str) -> Result<Vec<Value>> {
    let labels = ListParams::default().labels("kluctl.io/result=true,kluctl.io/command-result-id");
    let found = case.api("v1", "Secret", Some(namespace)).list(&labels).await?.items;
    let found = found.into_iter().map(serde_json::to_value);
    let mut found = found.collect::<serde_json::Result<Vec<_>>>()?;
    found.sort_by_key(|secret| summary(secret)["commandInfo"]["startTime"].to_string());
    Ok(found)
}

fn summary(secret: &Value) -> Value {
    let text = secret["metadata"]["annotations"]["kluctl.io/command-result-summary"].as_str();
    serde_json::from_str(text.unwrap_or_default()).unwrap_or_default()
}

fn data(secret: &Value, key: &str) -> Result<Value> {
    let bytes = STANDARD.decode(secret["data"][key].as_str().context(key.to_owned())?)?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn git(user: &User, arguments: &[&str]) -> Result<()> {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
        .args(arguments)
        .current_dir(&user.project)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()?;
    ensure!(output.status.success(), "git {arguments:?}: {output:?}");
    Ok(())
}

async fn results_are_stored_and_the_oldest_forgotten(case: &mut Case) -> Result<()> {
    let results = format!("{}-results", case.namespace);
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: hunter2\n";
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files.push(("config/secret.yaml", secret));
    let user = User::new(case, &files)?;
    git(&user, &["init", "-q", "-b", "main"])?;
    git(&user, &["remote", "add", "origin", "https://git.example.com/Team/my_app.git"])?;
    git(&user, &["add", "."])?;
    git(&user, &["commit", "-qm", "one"])?;
    let namespace = format!("--command-result-namespace={results}");
    let deploy = ["deploy", "--yes", "-a=dbPassword=hunter2", &namespace];
    let with = |more: &[&'static str]| {
        let all: Vec<&str> = deploy.iter().chain(more).copied().collect();
        user.run(&all)?.ok()
    };
    with(&["--dry-run"])?;
    with(&["--write-command-result=false"])?;
    ensure!(stored(case, &results).await?.is_empty(), "something was stored");
    with(&["--keep-command-results-count=2"])?;
    let first = stored(case, &results).await?;
    ensure!(first.len() == 1, "{first:#?}");
    let (first, id) = (&first[0], summary(&first[0])["id"].clone());
    let name = format!("cr-my-app-{}", id.as_str().context("id")?);
    ensure!(first["metadata"]["name"] == name.as_str(), "{}", first["metadata"]["name"]);
    let managers = first["metadata"]["managedFields"].to_string();
    ensure!(managers.contains("kluctl-results"), "{managers}");
    let result = data(first, "reducedResult")?;
    ensure!(result["projectKey"]["repoKey"] == "git://git.example.com/team/my_app", "{result:#}");
    ensure!(result["gitInfo"]["ref"]["branch"] == "main", "{}", result["gitInfo"]);
    ensure!(result["gitInfo"]["dirty"] == false, "{}", result["gitInfo"]);
    ensure!(result["command"]["initiator"] == "CommandLine", "{}", result["command"]);
    ensure!(result["objects"].as_array().is_some_and(|all| all.len() == 3), "{result:#}");
    let objects = expand_objects(data(first, "compactedObjects")?)?;
    let one = objects.iter().find(|object| object.base.reference.name == "one");
    let applied = one.and_then(|one| one.applied.as_ref()).context("one was not applied")?;
    ensure!(applied.value()["data"]["value"] == "first", "{:?}", applied.value());
    for text in [first["metadata"].to_string(), result.to_string(), format!("{objects:?}")] {
        let encoded = STANDARD.encode("hunter2");
        ensure!(!text.contains("hunter2") && !text.contains(&encoded), "a secret: {text}");
    }

    // The times of results have seconds only.
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        with(&["--keep-command-results-count=2"])?;
    }
    let kept = stored(case, &results).await?;
    ensure!(kept.len() == 2, "{} results are kept", kept.len());
    ensure!(kept.iter().all(|secret| summary(secret)["id"] != id), "the oldest was kept");
    with(&["--dry-run", "--force-write-command-result"])?;
    let last = stored(case, &results).await?;
    ensure!(last.len() == 3, "{} results after a dry run", last.len());
    ensure!(summary(&last[2])["commandInfo"]["dryRun"] == true, "{}", summary(&last[2]));
    user.run(&["diff", "--short-output"])?.ok()?;
    ensure!(stored(case, &results).await?.len() == 3, "a diff was stored");
    case.delete_cluster("v1", "Namespace", &results).await
}

/// A kubeconfig of an account that may do everything with ConfigMaps of the test's namespace, and nothing else.
async fn limited_account(case: &Case) -> Result<std::path::PathBuf> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "limited", "namespace": case.namespace});
    case.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})).await?;
    case.apply(json!({"apiVersion": rbac, "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}))
        .await?;
    case.apply(json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"},
        "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": case.namespace}]}))
        .await?;
    let token = case.suite.kubectl(&["create", "token", "limited", "-n", &case.namespace])?;
    let text = std::fs::read_to_string(&case.suite.kubeconfig)?;
    let mut kubeconfig: Value = serde_json::from_str(&text)?;
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = case.dir.join("limited.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}

async fn a_result_that_cannot_be_stored_fails_no_deployment(case: &mut Case) -> Result<()> {
    let kubeconfig = limited_account(case).await?;
    let user = User::new(case, TWO_CONFIG_MAPS)?.with_kubeconfig(&kubeconfig);
    let ran = user.run(&["deploy", "--yes"])?.ok()?;
    ensure!(ran.stderr.contains("the result is not stored: "), "{}", ran.stderr);
    ensure!(ran.stderr.contains("forbidden"), "{}", ran.stderr);
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    Ok(())
}

async fn an_interrupted_deployment_tells_what_is_left_and_the_next_completes_it(
    case: &mut Case,
) -> Result<()> {
    let deployment = "deployments:\n  - path: first\n  - path: slow\n    waitReadiness: true\n  - barrier: true\n  - path: last\noverrideNamespace: {{ args.namespace }}\n";
    let files = [
        TWO_CONFIG_MAPS[0],
        ("deployment.yaml", deployment),
        ("first/one.yaml", &config_map("one", "first")),
        ("slow/slow.yaml", STUCK),
        ("last/two.yaml", &config_map("two", "first")),
    ];
    let user = User::new(case, &files)?;
    for signal in ["TERM", "INT"] {
        if case.get("apps/v1", "Deployment", "slow").await?.is_some() {
            // So that its creation tells that the run is under way.
            case.delete("apps/v1", "Deployment", "slow").await?;
            case.wait_gone("apps/v1", "Deployment", "slow").await?;
        }
        let mut command = user.command(&["deploy", "--yes", "-a=name=slow"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        case.wait_for("apps/v1", "Deployment", "slow", "its creation", Value::is_object).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sent = Instant::now();
        let (signal_flag, id) = (format!("-{signal}"), child.id().to_string());
        let sent_well = Command::new("kill").args([&signal_flag, &id]).status()?.success();
        ensure!(sent_well, "kill {signal_flag}");
        let ran = Ran::of(&child.wait_with_output()?).failed()?;
        let took = sent.elapsed();
        ensure!(took < Duration::from_millis(1500), "{signal}: it took {took:?}");
        ensure!(ran.stderr.contains("interrupted: 2 of 4 steps"), "{signal}: {}", ran.stderr);
        let left = format!("  apply {}/ConfigMap/two: ", case.namespace);
        ensure!(ran.stderr.contains(&left), "{signal}: {}", ran.stderr);
        ensure!(ran.stdout.contains("the run was interrupted"), "{signal}: {}", ran.stdout);
        ensure!(!case.config_map("one").await?.is_null(), "{signal}: the first was not applied");
        ensure!(case.config_map("two").await?.is_null(), "{signal}: it went on");
    }
    user.run(&["deploy", "--yes", "-a=name=slow", "--no-wait"])?.ok()?;
    ensure!(!case.config_map("two").await?.is_null(), "the next run did not complete it");
    Ok(())
}

async fn a_run_ends_with_a_summary_and_errors_with_a_next_step(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    let ran = user.run(&["deploy", "--yes"])?.ok()?;
    let last = ran.stderr.lines().last().unwrap_or_default();
    ensure!(last.starts_with("deploy: 2 created, 0 changed, 0 unchanged, 0 failed in "), "{last}");
    for stage in ["load ", "render ", "build ", "read ", "apply "] {
        ensure!(last.contains(stage), "{last}");
    }
    let ran = user.run(&["deploy", "--yes"])?.ok()?;
    ensure!(ran.stderr.contains("deploy: 0 created, 0 changed, 2 unchanged"), "{}", ran.stderr);
    let quiet = user.run(&["deploy", "--yes", "--quiet"])?.ok()?;
    let lines = quiet.stderr.lines().filter(|line| !line.starts_with("warning: ")).count();
    ensure!(lines == 0, "{}", quiet.stderr);
    let everything = user.run(&["deploy", "--yes", "--debug"])?.ok()?;
    let object = format!("applied {}/ConfigMap/one\n", case.namespace);
    ensure!(everything.stderr.contains(&object), "{}", everything.stderr);

    // All that is wrong is told in one run, with what to do about it.
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: t\n";
    let lost = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: lost\n  namespace: no-such-namespace-x\n";
    let deployment = "deployments:\n  - path: config\n  - path: wrong\n";
    user.write(&[
        ("deployment.yaml", deployment),
        ("wrong/thing.yaml", thing),
        ("wrong/lost.yaml", lost),
    ])?;
    for command in [["deploy", "--yes"].as_slice(), &["deploy", "--dry-run"], &["diff"]] {
        let failed = user.run(command)?.failed()?;
        let errors = failed.stdout.split("\nErrors:\n").nth(1).unwrap_or_default();
        ensure!(errors.contains("Thing/t: the cluster serves no kind Thing"), "{failed:?}");
        ensure!(errors.contains("next step: deploy its CustomResourceDefinition"), "{errors}");
        ensure!(errors.contains("ConfigMap/lost: "), "{errors}");
        ensure!(errors.contains("next step: add the Namespace"), "{errors}");
        ensure!(failed.stderr.ends_with("command failed\n"), "{}", failed.stderr);
    }

    // A terminal shows more, and is left as it was.
    let shown = user.answer("", &["diff"])?.failed()?.stdout;
    ensure!(shown.contains('\u{1b}'), "no colours on a terminal: {shown}");
    let shown = user.answer("", &["diff", "--no-color", "--quiet"])?.failed()?.stdout;
    ensure!(!shown.contains('\u{1b}'), "colours against the flag: {shown:?}");
    Ok(())
}
