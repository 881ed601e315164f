//! Every annotation of docs/annotations.md, through the command line.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, STUCK, TWO_CONFIG_MAPS, User},
    tests,
};

tests![
    ignored_objects_are_no_part_and_marked_ones_are_deleted,
    conflicts_are_decided_by_annotations,
    protected_objects_are_neither_pruned_nor_deleted,
    differences_are_shown_as_annotations_say,
    readiness_and_validation_follow_annotations,
    hooks_run_when_and_as_they_say,
    kustomizations_have_barriers,
];

/// A ConfigMap with annotations, as a manifest.
fn annotated(name: &str, value: &str, annotations: &[(&str, &str)]) -> String {
    let mut text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    if !annotations.is_empty() {
        text.push_str("  annotations:\n");
    }
    for (key, value) in annotations {
        text.push_str(&format!("    {key}: '{value}'\n"));
    }
    text + &format!("data:\n  value: {value}\n")
}

/// The file of ConfigMap `one`.
const ONE: &str = "config/one.yaml";

async fn ignored_objects_are_no_part_and_marked_ones_are_deleted(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    user.write(&[(ONE, &annotated("one", "x", &[("kluctl.io/ignore", "true")]))])?;
    let shown = user.run(&["deploy", "--yes"])?.ok()?.stdout;
    ensure!(shown.contains("Orphan objects:"), "{shown}");
    ensure!(case.config_map("one").await?["data"]["value"] == "first", "it was applied");
    user.write(&[(ONE, &annotated("one", "x", &[("kluctl.io/delete", "true")]))])?;
    let shown = user.run(&["deploy", "--yes"])?.ok()?.stdout;
    ensure!(shown.contains("Deleted objects:"), "{shown}");
    ensure!(case.config_map("one").await?.is_null(), "it was not deleted");
    user.run(&["deploy", "--yes"])?.ok()?;
    user.run(&["validate"])?.ok()?;
    Ok(())
}

async fn conflicts_are_decided_by_annotations(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    user.run(&["deploy", "--yes"])?.ok()?;
    // Whether the field is taken back, and whether the loss is told.
    let cases = [
        ("kluctl.io/other", "true", false, true),
        ("kluctl.io/force-apply", "true", true, false),
        ("kluctl.io/force-apply-field", "data.value", true, false),
        ("kluctl.io/force-apply-field-7", "data.*", true, false),
        ("kluctl.io/force-apply-field", "data.else", false, true),
        ("kluctl.io/force-apply-manager", "^te", true, false),
        ("kluctl.io/force-apply-manager-1", "nobody", false, true),
        ("kluctl.io/ignore-conflicts", "true", false, false),
        ("kluctl.io/ignore-conflicts-field", "data.value", false, false),
        ("kluctl.io/ignore-conflicts-field-1", "data.else", false, true),
        ("kluctl.io/ignore-conflicts-manager-1", "test", false, false),
    ];
    for (index, (key, value, wins, warns)) in cases.into_iter().enumerate() {
        case.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
            "data": {"value": "of others"}}))
            .await?;
        let new = format!("new-{index}");
        user.write(&[(ONE, &annotated("one", &new, &[(key, value)]))])?;
        let shown = user.run(&["deploy", "--yes"])?.ok()?.stdout;
        let live = case.config_map("one").await?["data"]["value"].clone();
        let expected = if wins { &new } else { "of others" };
        ensure!(live == expected, "{key}: {value}: it is {live}\n{shown}");
        ensure!(shown.contains("field .data.value is left") == warns, "{key}: {value}: {shown}");
    }
    Ok(())
}

async fn protected_objects_are_neither_pruned_nor_deleted(case: &mut Case) -> Result<()> {
    let kept =
        [("skip", "kluctl.io/skip-delete", "true"), ("helm", "helm.sh/resource-policy", "keep")];
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    for (name, key, value) in kept {
        let path = format!("config/{name}.yaml");
        user.write(&[(&path, &annotated(name, "x", &[(key, value)]))])?;
    }
    let tags = annotated("tags", "x", &[("kluctl.io/skip-delete-if-tags", "true")]);
    let forced = annotated("forced", "x", &[("kluctl.io/force-managed", "true")]);
    user.write(&[("config/tags.yaml", &tags), ("config/forced.yaml", &forced)])?;
    user.run(&["deploy", "--yes"])?.ok()?;
    // Somebody else takes the fields over, and removes Kluctl from the list of their managers.
    for name in ["forced", "two"] {
        let managers = json!({"metadata": {"managedFields": [{}]}});
        case.patch("v1", "ConfigMap", name, managers).await?;
    }
    for name in ["one", "two", "skip", "helm", "tags", "forced"] {
        user.write(&[(&format!("config/{name}.yaml"), "")])?;
    }
    user.write(&[("config/new.yaml", &annotated("new", "x", &[]))])?;
    let is_there = async |name: &str| anyhow::Ok(!case.config_map(name).await?.is_null());
    let shown = user.run(&["prune", "--yes", "-I", "config"])?.ok()?.stdout;
    ensure!(is_there("tags").await?, "pruned although the run was restricted by tags: {shown}");
    ensure!(!is_there("one").await?, "not pruned: {shown}");
    ensure!(!is_there("forced").await?, "not pruned although it is managed by force: {shown}");
    ensure!(is_there("two").await?, "an object of others was pruned: {shown}");
    let shown = user.run(&["delete", "--yes"])?.ok()?.stdout;
    ensure!(!is_there("tags").await?, "kept without tags: {shown}");
    for name in ["skip", "helm"] {
        ensure!(is_there(name).await?, "{name} was deleted: {shown}");
        ensure!(shown.contains(&format!("ConfigMap/{name}: not deleted: ")), "{shown}");
    }
    Ok(())
}

async fn differences_are_shown_as_annotations_say(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    let cases = [
        ("kluctl.io/other", "true", true),
        ("kluctl.io/ignore-diff", "true", false),
        ("kluctl.io/ignore-diff-field", "data.value", false),
        ("kluctl.io/ignore-diff-field-1", "data.else", true),
        ("kluctl.io/ignore-diff-field-1", "data[\"value\"]", false),
        ("kluctl.io/ignore-diff-field-regex", "va.ue$", false),
        ("kluctl.io/ignore-diff-field-regex-2", "^nothing", true),
    ];
    for (key, value, shows) in cases {
        user.write(&[(ONE, &annotated("one", "first", &[(key, value)]))])?;
        user.run(&["deploy", "--yes"])?.ok()?;
        user.write(&[(ONE, &annotated("one", "second", &[(key, value)]))])?;
        let shown = user.run(&["diff"])?.ok()?.stdout;
        ensure!(shown.contains("data.value") == shows, "{key}: {value}: {shown}");
    }
    let rules = format!(
        "{}ignoreForDiff:\n  - fieldPath: data.value\n    kind: ConfigMap\n",
        TWO_CONFIG_MAPS[1].1
    );
    user.write(&[("deployment.yaml", &rules)])?;
    let shown = user.run(&["diff"])?.ok()?.stdout;
    ensure!(shown.is_empty(), "the project's rules are not followed: {shown}");

    let named = |name: &str| annotated(name, name, &[("kluctl.io/diff-name", "one")]);
    user.write(&[TWO_CONFIG_MAPS[1], (ONE, &named("one-a"))])?;
    user.run(&["deploy", "--yes"])?.ok()?;
    user.write(&[(ONE, &named("one-b"))])?;
    let shown = user.run(&["diff"])?.ok()?.stdout;
    for expected in ["Changed objects:", "-one-a", "+one-b", "metadata.name"] {
        ensure!(shown.contains(expected), "no {expected}: {shown}");
    }
    ensure!(!shown.contains("New objects:"), "{shown}");
    Ok(())
}

async fn readiness_and_validation_follow_annotations(case: &mut Case) -> Result<()> {
    let with = |annotations: &str| {
        STUCK.replace(
            "  name: \"{{ args.name }}\"\n",
            &format!("  name: stuck\n  annotations: {annotations}\n"),
        )
    };
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    let deploy = ["deploy", "--yes", "--readiness-timeout=1s"];
    let cases = [
        (r#"{kluctl.io/other: "true"}"#, true, false),
        (r#"{kluctl.io/wait-readiness: "true"}"#, false, false),
        (r#"{kluctl.io/wait-readiness: "true", kluctl.io/is-ready: "true"}"#, true, true),
        (r#"{kluctl.io/wait-readiness: "true", kluctl.io/is-ready: "false"}"#, false, false),
        (r#"{kluctl.io/wait-readiness: "true", kluctl.io/validate-ignore: "true"}"#, true, true),
    ];
    for (annotations, deploys, validates) in cases {
        user.write(&[("config/stuck.yaml", &with(annotations))])?;
        let ran = user.run(&deploy)?;
        ensure!((ran.code == 0) == deploys, "{annotations}: {ran:?}");
        if !deploys {
            ensure!(ran.stdout.contains("Deployment/stuck: not ready after 1 s"), "{ran:?}");
        }
        // A status that never came counts as none after a while.
        let ran = user.run(&["validate"])?;
        ensure!((ran.code == 0) == validates, "{annotations}: {ran:?}");
    }
    Ok(())
}

async fn hooks_run_when_and_as_they_say(case: &mut Case) -> Result<()> {
    let user = User::new(case, TWO_CONFIG_MAPS)?;
    let hook = |name: &str, annotations: &[(&str, &str)]| {
        let path = format!("config/hook-{name}.yaml");
        user.write(&[(&path, &annotated(name, "x", annotations))])
    };
    hook("late", &[("kluctl.io/hook", "pre-deploy"), ("kluctl.io/hook-weight", "5")])?;
    hook("early", &[("kluctl.io/hook", "pre-deploy"), ("kluctl.io/hook-weight", "-5")])?;
    hook("after", &[("kluctl.io/hook", "post-deploy")])?;
    hook("first", &[("kluctl.io/hook", "post-deploy-initial")])?;
    hook("again", &[("kluctl.io/hook", "pre-deploy-upgrade,post-deploy-upgrade")])?;
    hook("helm", &[("helm.sh/hook", "post-upgrade")])?;
    hook(
        "gone",
        &[("kluctl.io/hook", "post-deploy"), ("kluctl.io/hook-delete-policy", "hook-succeeded")],
    )?;
    let shown = user.run(&["deploy", "--yes"])?.ok()?.stdout;
    let hooks = shown.split("Applied hooks:\n").nth(1).unwrap_or_default();
    for (name, ran) in
        [("late", true), ("first", true), ("gone", true), ("again", false), ("helm", false)]
    {
        ensure!(hooks.contains(&format!("ConfigMap/{name}\n")) == ran, "{name}: {shown}");
    }
    let version = async |name: &str| -> Result<u64> {
        let object = case.config_map(name).await?;
        Ok(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?)
    };
    let mut versions = Vec::new();
    for name in ["early", "late", "one", "after"] {
        versions.push(version(name).await?);
    }
    ensure!(versions.is_sorted(), "they were not applied in their order: {versions:?}");
    ensure!(case.config_map("gone").await?.is_null(), "a hook that succeeded was not deleted");

    let uid = case.config_map("early").await?["metadata"]["uid"].clone();
    let shown = user.run(&["deploy", "--yes"])?.ok()?.stdout;
    let hooks = shown.split("Applied hooks:\n").nth(1).unwrap_or_default();
    for (name, ran) in [("first", false), ("again", true), ("helm", true)] {
        ensure!(hooks.contains(&format!("ConfigMap/{name}\n")) == ran, "{name}: {shown}");
    }
    let anew = case.config_map("early").await?["metadata"]["uid"].clone();
    ensure!(uid != anew, "it was not deleted before it was created");

    // One that never gets ready: with a limit of its own, and without a wait.
    let stuck = |more: &str| {
        STUCK.replace(
            "  name: \"{{ args.name }}\"\n",
            &format!("  name: stuck\n  annotations:\n    kluctl.io/hook: post-deploy\n{more}"),
        )
    };
    let path = "config/stuck.yaml";
    user.write(&[(
        path,
        &stuck("    kluctl.io/hook-timeout: 1s\n    kluctl.io/hook-delete-policy: hook-failed\n"),
    )])?;
    let failed = user.run(&["deploy", "--yes"])?.failed()?;
    ensure!(failed.stdout.contains("Deployment/stuck: not ready after 1 s"), "{failed:?}");
    let find = async || case.get("apps/v1", "Deployment", "stuck").await;
    case.wait_until("the end of the hook that failed", async || Ok(find().await?.is_none()))
        .await?;
    user.write(&[(path, &stuck("    kluctl.io/hook-wait: \"false\"\n"))])?;
    user.run(&["deploy", "--yes"])?.ok()?;
    ensure!(find().await?.is_some(), "the hook did not run");
    Ok(())
}

async fn kustomizations_have_barriers(case: &mut Case) -> Result<()> {
    let slow = STUCK.replace("{{ args.name }}", "slow");
    let kustomization = "metadata:\n  annotations:\n    kluctl.io/barrier: \"true\"\n    kluctl.io/wait-readiness: \"true\"\nresources: [slow.yaml]\n";
    let files = [
        TWO_CONFIG_MAPS[0],
        (
            "deployment.yaml",
            "deployments:\n  - path: slow\n  - path: config\noverrideNamespace: {{ args.namespace }}\n",
        ),
        ("slow/kustomization.yaml", kustomization),
        ("slow/slow.yaml", &slow),
        TWO_CONFIG_MAPS[2],
    ];
    let user = User::new(case, &files)?;
    let mut command = user.command(&["deploy", "--yes", "--readiness-timeout=4s"]);
    let running = tokio::task::spawn_blocking(move || command.output());
    case.wait_for("apps/v1", "Deployment", "slow", "its creation", Value::is_object).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(case.config_map("one").await?.is_null(), "the next item did not wait");
    let ran = crate::support::Ran::of(&running.await??).failed()?;
    ensure!(ran.stdout.contains("Deployment/slow: not ready after 4 s"), "{ran:?}");
    ensure!(!case.config_map("one").await?.is_null(), "the next item was not applied");
    Ok(())
}
