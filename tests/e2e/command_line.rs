//! The commands of a user at a terminal or in a script: what they print where, what they change, how they end.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, TWO_CONFIG_MAPS, User, config_map},
    tests,
};

tests![
    diff_shows_what_would_change_and_changes_nothing,
    results_are_written_in_several_formats_at_once,
    deploy_asks_at_a_terminal_and_refuses_elsewhere,
    prune_deletes_what_is_gone_and_only_when_confirmed,
    delete_takes_everything_even_if_the_project_is_broken,
    validate_tells_what_is_missing_and_waits_for_it,
    poke_images_changes_images_only,
    flags_come_from_variables,
    the_controller_installs_itself,
    completions_are_there_for_all_shells,
];

async fn diff_shows_what_would_change_and_changes_nothing(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    let nothing = user.run(&["diff"])?.ok()?;
    ensure!(nothing.stdout.is_empty(), "an unchanged target has differences: {}", nothing.stdout);

    let new = config_map("three", "new");
    user.write(&[
        ("config/one.yaml", &config_map("one", "second")),
        ("config/two.yaml", ""),
        ("config/three.yaml", &new),
    ])?;
    let shown = user.run(&["diff"])?.ok()?;
    let namespace = &case.namespace;
    let expected = format!(
        "
New objects:
  {namespace}/ConfigMap/three

Changed objects:
  {namespace}/ConfigMap/one

Diff for object {namespace}/ConfigMap/one
+------------+---------+
| Path       | Diff    |
+------------+---------+
| data.value | -first  |
|            | +second |
+------------+---------+

Orphan objects:
  {namespace}/ConfigMap/two
"
    );
    ensure!(shown.stdout == expected, "{}", shown.stdout);
    let short = user.run(&["diff", "--short-output"])?.ok()?;
    ensure!(!short.stdout.contains("data.value"), "{}", short.stdout);
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "the diff was applied");
    ensure!(case.config_map("three").await?.is_null(), "the diff created an object");

    // A new tag changes the labels, which one may not want to see.
    let tagged = "deployments:\n  - path: config\n    tags: [other]\noverrideNamespace: {{ args.namespace }}\n";
    user.write(&[("deployment.yaml", tagged)])?;
    let label = "kluctl.io/tag-0";
    ensure!(user.run(&["diff"])?.ok()?.stdout.contains(label), "the tag is not shown");
    for flag in ["--ignore-tags", "--ignore-labels", "--ignore-kluctl-metadata"] {
        let shown = user.run(&["diff", flag])?.ok()?.stdout;
        ensure!(!shown.contains(label) && shown.contains("data.value"), "{flag}: {shown}");
    }
    Ok(())
}

async fn results_are_written_in_several_formats_at_once(case: &mut Case) -> Result<()> {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: hunter2-{{ args.version | default(1) }}\n";
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files.push(("config/secret.yaml", secret));
    let user = User::new(case, &files)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    let ran = user.run(&[
        "diff",
        "-a=version=2",
        "-a=apiToken=hunter2-token",
        "-o=text",
        "-o=json=result.json",
        "--output-format=yaml=result.yaml",
    ])?;
    let ran = ran.ok()?;
    ensure!(ran.stdout.contains("***** (obfuscated)"), "{}", ran.stdout);
    let result: Value = serde_json::from_slice(&fs::read(user.project.join("result.json"))?)?;
    ensure!(result["command"]["command"] == "diff", "{result:#}");
    ensure!(result["objects"].as_array().is_some_and(|objects| objects.len() == 3), "{result:#}");
    let yaml = fs::read_to_string(user.project.join("result.yaml"))?;
    ensure!(yaml.contains("compactedObjects:") && yaml.contains("delta: "), "{yaml}");
    for shown in [&ran.stdout, &ran.stderr, &yaml, &result.to_string()] {
        let encoded = "aHVudGVyMi"; // hunter2
        ensure!(!shown.contains("hunter2") && !shown.contains(encoded), "a secret: {shown}");
    }
    let open = user.run(&["diff", "-a=version=2", "-o=json", "--no-obfuscate"])?.ok()?;
    ensure!(open.stdout.contains("hunter2-2"), "{}", open.stdout);
    serde_json::from_str::<Value>(&open.stdout)?;

    let wrong = user.run(&["diff", "-o", "xml"])?.failed()?;
    ensure!(wrong.stderr.contains("expected text, yaml or json"), "{}", wrong.stderr);
    ensure!(wrong.stdout.is_empty(), "{}", wrong.stdout);
    Ok(())
}

async fn deploy_asks_at_a_terminal_and_refuses_elsewhere(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    for refused in [user.run(&["deploy"])?, user.run_with_input(&["deploy"], "y\n")?] {
        let refused = refused.failed()?;
        ensure!(refused.stderr.contains("--yes"), "no way out is shown: {}", refused.stderr);
        ensure!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    let no = user.answer("n", &["deploy"])?.failed()?;
    ensure!(no.stdout.contains("New objects:"), "the plan is not shown: {}", no.stdout);
    ensure!(no.stdout.contains("do you want to proceed? (y/N)"), "{}", no.stdout);
    ensure!(no.stdout.contains("aborted"), "{}", no.stdout);
    ensure!(case.config_map("one").await?.is_null(), "it was deployed against the answer");

    let dry = user.run(&["deploy", "--dry-run"])?.ok()?;
    ensure!(dry.stdout.contains("New objects:"), "{}", dry.stdout);
    ensure!(case.config_map("one").await?.is_null(), "the dry run created an object");

    user.answer("y", &["deploy"])?.ok()?;
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "not deployed");
    Ok(())
}

async fn prune_deletes_what_is_gone_and_only_when_confirmed(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    let nothing = user.run(&["prune"])?.ok()?;
    ensure!(nothing.stdout.is_empty(), "{}", nothing.stdout);
    user.write(&[("config/two.yaml", "")])?;

    let refused = user.run(&["prune"])?.failed()?;
    let object = format!("  {}/ConfigMap/two\n", case.namespace);
    ensure!(refused.stderr.contains(&object), "the objects are not named: {}", refused.stderr);
    ensure!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    user.answer("n", &["prune"])?.failed()?;
    user.run(&["prune", "--dry-run"])?.ok()?;
    ensure!(!case.config_map("two").await?.is_null(), "it was pruned without a confirmation");

    let pruned = user.run(&["prune", "--yes"])?.ok()?;
    ensure!(pruned.stdout == format!("\nDeleted objects:\n{object}"), "{}", pruned.stdout);
    ensure!(case.config_map("two").await?.is_null(), "it was not pruned");
    ensure!(!case.config_map("one").await?.is_null(), "too much was pruned");

    let without = ".kluctl.yaml";
    user.write(&[(without, "args:\n  - name: namespace\n")])?;
    let refused = user.run(&["prune", "--yes"])?.failed()?;
    ensure!(refused.stdout.contains("no discriminator"), "{}", refused.stdout);
    Ok(())
}

async fn delete_takes_everything_even_if_the_project_is_broken(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    case.apply(other).await?;
    user.write(&[("config/one.yaml", "{{ broken"), ("config/two.yaml", "")])?;
    user.run(&["delete"])?.failed()?;
    ensure!(!case.config_map("one").await?.is_null(), "deleted without a confirmation");
    let deleted = user.answer("y", &["delete"])?.ok()?;
    ensure!(deleted.stdout.contains("Do you really want to delete 2 objects?"), "{deleted:?}");
    for name in ["one", "two"] {
        ensure!(case.config_map(name).await?.is_null(), "{name} was not deleted");
    }
    ensure!(!case.config_map("other").await?.is_null(), "an object of somebody else was deleted");
    Ok(())
}

async fn validate_tells_what_is_missing_and_waits_for_it(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    let namespace = case.namespace.clone();
    let missing = user.run(&["validate"])?.failed()?;
    let expected = format!(
        "\nValidation Errors:\n  {namespace}/ConfigMap/one: object not found\n  {namespace}/ConfigMap/two: object not found\n"
    );
    ensure!(missing.stdout == expected, "{}", missing.stdout);
    ensure!(missing.stderr.ends_with("Validation failed\n"), "{}", missing.stderr);

    user.run(&["deploy", "--yes"])?.ok()?;
    let valid = user.run(&["validate"])?.ok()?;
    ensure!(valid.stdout.is_empty(), "{}", valid.stdout);
    ensure!(valid.stderr.ends_with("Validation succeeded\n"), "{}", valid.stderr);

    let key = "validate-result.kluctl.io/url";
    case.annotate("v1", "ConfigMap", "one", key, "https://one.example.com").await?;
    let text = user.run(&["validate"])?.ok()?.stdout;
    ensure!(text.contains("Results:") && text.contains("https://one.example.com"), "{text}");
    let json = user.run(&["validate", "-o", "json", "-o", "yaml=v.yaml"])?.ok()?.stdout;
    let result: Value = serde_json::from_str(&json)?;
    ensure!(result["results"][0]["annotation"] == key, "{result:#}");
    ensure!(result["ready"] == true, "{result:#}");
    let yaml = fs::read_to_string(user.project.join("v.yaml"))?;
    ensure!(yaml.contains("https://one.example.com"), "{yaml}");

    case.delete("v1", "ConfigMap", "two").await?;
    user.run(&["validate", "--wait=300ms", "--sleep=100ms"])?.failed()?;
    let mut command = user.command(&["validate", "--wait=1m", "--sleep=100ms"]);
    let waiting = tokio::task::spawn_blocking(move || command.output());
    tokio::time::sleep(Duration::from_secs(2)).await;
    case.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}))
        .await?;
    let waited = crate::support::Ran::of(&waiting.await??).ok()?;
    ensure!(waited.stderr.contains("not valid yet: "), "{}", waited.stderr);
    // Attempts on the way are no results.
    ensure!(!waited.stdout.contains("not found"), "{}", waited.stdout);
    Ok(())
}

async fn poke_images_changes_images_only(case: &mut Case) -> Result<()> {
    let workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: {{ args.replicas | default(0) }}\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n        - name: main\n          image: \"{{ images.get_image('example.com/web') }}\"\n        - {name: side, image: example.com/side}\n";
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files.push(("config/web.yaml", workload));
    let user = User::new(case, &files)?;
    user.run(&["deploy", "--yes", "-F=example.com/web=web-1"])?.ok()?;
    let poke = ["poke-images", "-F=example.com/web=web-2", "-a=replicas=3"];
    user.run(&poke)?.failed()?;
    let dry = user.run(&[poke.as_slice(), &["--dry-run"]].concat())?.ok()?;
    ensure!(dry.stdout.contains("web-2"), "{}", dry.stdout);
    let image = async || {
        let web = case.get("apps/v1", "Deployment", "web").await?.unwrap_or_default();
        anyhow::Ok(web["spec"]["template"]["spec"]["containers"][0]["image"].clone())
    };
    ensure!(image().await? == "web-1", "the dry run changed something");
    let poked = user.run(&[poke.as_slice(), &["--yes"]].concat())?.ok()?;
    ensure!(poked.stdout.contains("-web-1") && poked.stdout.contains("+web-2"), "{}", poked.stdout);
    ensure!(!poked.stdout.contains("spec.replicas"), "{}", poked.stdout);
    ensure!(image().await? == "web-2", "the image was not changed");
    let web = case.get("apps/v1", "Deployment", "web").await?.unwrap_or_default();
    ensure!(web["spec"]["replicas"] == 0, "more than the image was changed");

    case.delete("apps/v1", "Deployment", "web").await?;
    let gone = user.run(&[poke.as_slice(), &["--yes"]].concat())?.ok()?;
    ensure!(gone.stdout.contains("Deployment/web: is not in the cluster"), "{}", gone.stdout);
    Ok(())
}

async fn flags_come_from_variables(case: &mut Case) -> Result<()> {
    let values = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  value: \"{{ args.a }}-{{ args.b }}-{{ args.c }}\"\n";
    let mut files = TWO_CONFIG_MAPS.to_vec();
    files.push(("config/one.yaml", values));
    let user = User::new(case, &files)?;
    let mut command = user.command(&["deploy", "-a", "c=typed"]);
    // By number, so that the tenth comes last; what is typed comes after all of them.
    let variables = [
        ("KLUCTL_ARG_2", "a=2"),
        ("KLUCTL_ARG_10", "a=10"),
        ("KLUCTL_ARG_1", "b=1"),
        ("KLUCTL_ARG_3", "c=3"),
    ];
    command.envs(variables).envs([("KLUCTL_YES", "true"), ("KLUCTL_OUTPUT_FORMAT", "json")]);
    let ran = crate::support::Ran::of(&command.output()?).ok()?;
    serde_json::from_str::<Value>(&ran.stdout)?;
    let one = case.config_map("one").await?;
    ensure!(one["data"]["value"] == "10-1-typed", "{one}");
    Ok(())
}

async fn the_controller_installs_itself(case: &mut Case) -> Result<()> {
    let user = User::new(case, &[])?;
    fs::create_dir_all(&user.project)?;
    let install = ["controller", "install", "--kluctl-version=9.9.9"];
    user.run(&install)?.failed()?;
    let dry = user.run(&[install.as_slice(), &["--dry-run"]].concat())?.ok()?;
    ensure!(dry.stdout.contains("flux-system/Deployment/flux-kluctl-controller"), "{}", dry.stdout);
    let find = async || {
        let api = case.api("apps/v1", "Deployment", Some("flux-system"));
        let found = api.get_opt("flux-kluctl-controller").await?;
        anyhow::Ok(serde_json::to_value(found)?)
    };
    ensure!(find().await?.is_null(), "the dry run installed something");
    let no_results = "--write-command-result=false";
    user.run(&[install.as_slice(), &["--yes", no_results]].concat())?.ok()?;
    let deployment = find().await?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    ensure!(container["image"] == "ghcr.io/kluctl/flux-kluctl-controller:v9.9.9", "{container}");
    // What it makes is what config/flux has.
    let path = crate::support::root().join("config/flux").display().to_string();
    let differences = case.suite.kubectl(&[
        "apply",
        "-k",
        &path,
        "--dry-run=server",
        "--server-side",
        "--force-conflicts",
        "-o",
        "name",
    ])?;
    for name in differences.lines() {
        let found = case.suite.kubectl(&["get", name, "-n", "flux-system", "-o", "name"]);
        ensure!(found.is_ok(), "{name} was not installed");
    }
    case.suite.kubectl(&["delete", "deployment", "-n", "flux-system", "flux-kluctl-controller"])?;
    Ok(())
}

async fn completions_are_there_for_all_shells(case: &mut Case) -> Result<()> {
    let user = User::new(case, &[])?;
    fs::create_dir_all(&user.project)?;
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = user.run(&["completion", shell])?.ok()?.stdout;
        ensure!(script.contains("poke-images") && script.contains("abort-on-error"), "{shell}");
    }
    let script = user.project.join("completion.bash");
    fs::write(&script, user.run(&["completion", "bash"])?.ok()?.stdout)?;
    let complete = format!(
        "source {}; COMP_WORDS=(kluctl de); COMP_CWORD=1; _kluctl kluctl de kluctl; echo ${{COMPREPLY[*]}}",
        script.display()
    );
    let output = std::process::Command::new("bash").args(["-c", &complete]).output()?;
    let shown = crate::support::Ran::of(&output).ok()?.stdout;
    ensure!(shown.contains("delete") && shown.contains("deploy"), "{shown}");
    user.run(&["completion", "tcsh"])?.failed()?;
    let version = user.run(&["version"])?.ok()?.stdout;
    ensure!(version == concat!(env!("CARGO_PKG_VERSION"), "\n"), "{version}");
    Ok(())
}
