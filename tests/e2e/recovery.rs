//! Interruptions: a killed controller, a restarted API server, an orderly shutdown, two replicas.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    support::{
        Case, SHARED, STUCK, TWO_CONFIG_MAPS, condition, config_map, is_ready, message_of, with,
    },
    tests,
};

tests![
    a_killed_controller_loses_and_orphans_nothing,
    what_a_killed_first_deployment_left_behind_goes_with_its_deletion,
    what_was_deployed_before_and_after_a_new_discriminator_survives_a_kill,
    an_interrupted_deployment_without_discriminator_is_told_of,
    a_status_that_others_change_is_written_all_the_same,
    an_api_server_restart_during_a_deployment_is_survived,
    sigterm_ends_in_good_order_in_the_middle_of_a_deployment,
    a_run_that_outlasts_the_grace_period_is_interrupted_and_that_is_written_down,
    two_replicas_hand_over,
    a_leader_that_lost_its_lease_unawares_writes_nothing_any_more,
];

/// A project with many `ConfigMap`s, each in an item of its own when `barriers`.
fn many(count: usize, barriers: bool) -> Vec<(String, String)> {
    let mut deployments = String::from("deployments:\n");
    let mut files = vec![(
        ".kluctl.yaml".to_owned(),
        "discriminator: test-{{ args.namespace }}\nargs:\n  - name: namespace\n".to_owned(),
    )];
    for index in 0..count {
        let item = if barriers { format!("item-{index:02}") } else { "all".to_owned() };
        if barriers || index == 0 {
            deployments.push_str(&format!("  - path: {item}\n"));
            if barriers {
                deployments.push_str("  - barrier: true\n");
            }
        }
        files.push((
            format!("{item}/cm-{index:02}.yaml"),
            config_map(&format!("cm-{index:02}"), "first"),
        ));
    }
    deployments.push_str("overrideNamespace: {{ args.namespace }}\n");
    files.push(("deployment.yaml".to_owned(), deployments));
    files
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

async fn count(case: &Case) -> Result<usize> {
    Ok(case
        .names("v1", "ConfigMap", &format!("kluctl.io/discriminator=test-{}", case.namespace))
        .await?
        .len())
}

async fn a_killed_controller_loses_and_orphans_nothing(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let files = many(60, true);
    let repo = case.deploy_project("app", &borrowed(&files), json!({})).await?;
    case.wait_until("the first ten objects", || async { Ok(count(case).await? >= 10) }).await?;
    case.controllers[0].kill()?;
    let reached = count(case).await?;
    ensure!(reached < 60, "the kill came too late to prove anything ({reached} objects)");
    case.controllers.clear();
    // While nobody is there, the project changes: one object goes.
    let commit = repo.commit(&[
        ("item-05/cm-05.yaml", ""),
        ("item-05/cm-new.yaml", &config_map("cm-new", "first")),
    ])?;
    case.fetch_commit("app", &commit).await?;
    case.start_controller(&[]).await?;
    case.wait_ready_at("app", &commit).await?;
    ensure!(count(case).await? == 60, "{} objects", count(case).await?);
    ensure!(
        case.config_map("cm-05").await?.is_null(),
        "an object of the interrupted deployment is orphaned"
    );
    Ok(())
}

async fn what_a_killed_first_deployment_left_behind_goes_with_its_deletion(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let files = many(60, true);
    case.deploy_project("app", &borrowed(&files), json!({})).await?;
    case.wait_until("the first objects", || async { Ok(count(case).await? >= 5) }).await?;
    case.controllers[0].kill()?;
    let reached = count(case).await?;
    ensure!(reached < 60, "the kill came too late to prove anything ({reached} objects)");
    case.controllers.clear();
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    case.start_controller(&[]).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    ensure!(count(case).await? == 0, "{} objects are orphaned", count(case).await?);
    Ok(())
}

async fn what_was_deployed_before_and_after_a_new_discriminator_survives_a_kill(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let mut files = many(60, true);
    files[0].1 = files[0].1.replace("test-", "test-second-");
    files.extend(
        ["config/one.yaml", "config/two.yaml"].map(|path| (path.to_owned(), String::new())),
    );
    let commit = repo.commit(&borrowed(&files))?;
    case.fetch_commit("app", &commit).await?;
    let second = format!("kluctl.io/discriminator=test-second-{}", case.namespace);
    let new = async |case: &Case| {
        Ok::<_, anyhow::Error>(case.names("v1", "ConfigMap", &second).await?.len())
    };
    case.wait_until("the first objects", || async { Ok(new(case).await? >= 5) }).await?;
    case.controllers[0].kill()?;
    let reached = new(case).await?;
    ensure!(reached < 60, "the kill came too late to prove anything ({reached} objects)");
    ensure!(count(case).await? == 2, "the former objects are gone already");
    case.controllers.clear();
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    case.start_controller(&[]).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    ensure!(new(case).await? == 0, "{} new objects are orphaned", new(case).await?);
    ensure!(count(case).await? == 0, "{} former objects are orphaned", count(case).await?);
    Ok(())
}

async fn an_interrupted_deployment_without_discriminator_is_told_of(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let mut files = many(60, true);
    "args:\n  - name: namespace\n".clone_into(&mut files[0].1);
    case.deploy_project("app", &borrowed(&files), json!({"prune": false, "delete": true})).await?;
    case.wait_for("v1", "ConfigMap", "cm-03", "it", serde_json::Value::is_object).await?;
    case.controllers[0].kill()?;
    ensure!(case.config_map("cm-59").await?.is_null(), "the kill came too late to prove anything");
    case.controllers.clear();
    case.delete("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    case.start_controller(&[]).await?;
    case.wait_gone("flux.kluctl.io/v1alpha1", "KluctlDeployment", "app").await?;
    ensure!(!case.config_map("cm-03").await?.is_null(), "deleted without a discriminator?");
    case.wait_event("ObjectsLeftBehind", "without a discriminator").await?;
    Ok(())
}

/// Somebody else writes to the object all the time: every write of the controller rests on an outdated version now and then.
async fn a_status_that_others_change_is_written_all_the_same(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let repo = case.deploy_project("app", TWO_CONFIG_MAPS, json!({})).await?;
    case.wait_ready("app").await?;
    let deployments =
        case.api("flux.kluctl.io/v1alpha1", "KluctlDeployment", Some(&case.namespace));
    let meddling = async {
        let params = PatchParams::default();
        for count in 0_u64.. {
            let text = count.to_string();
            let note = json!({"metadata": {"annotations": {"example.com/count": text}}});
            deployments.patch("app", &params, &Patch::Merge(note)).await?;
            // A field that the controller did not set; the next write of the status takes it away.
            let status = json!({"status": {"lastHandledForceAt": text}});
            deployments.patch_status("app", &params, &Patch::Merge(status)).await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, anyhow::Error>(())
    };
    let deploying = async {
        for round in 0..5 {
            let value = format!("round-{round}");
            let commit = repo.commit(&[("config/one.yaml", &config_map("one", &value))])?;
            case.fetch_commit("app", &commit).await?;
            case.wait_ready_at("app", &commit).await?;
            let one = case.config_map("one").await?;
            ensure!(one["data"]["value"] == value, "Ready, but {one}");
        }
        Ok(())
    };
    tokio::select! {
        meddled = meddling => meddled?,
        deployed = deploying => deployed?,
    }
    let log = case.controllers[0].log_text();
    ensure!(log.contains("the object has changed meanwhile"), "there was no conflict at all");
    ensure!(!log.contains("the status could not be written"), "a write was given up");
    Ok(())
}

async fn an_api_server_restart_during_a_deployment_is_survived(case: &mut Case) -> Result<()> {
    let control_plane = case.own_control_plane()?;
    let mut own = control_plane.case(case).await?;
    own.start_controller(&[]).await?;
    let files = many(60, true);
    own.deploy_tarball("app", own.tarball(&borrowed(&files))?, json!({})).await?;
    own.wait_until("the first objects", || async { Ok(count(&own).await? >= 5) }).await?;
    control_plane.restart_api_server()?;
    own.wait_until("the end of the old API server", || async {
        Ok(own.client.apiserver_version().await.is_err())
    })
    .await?;
    own.wait_deployment("app", "Ready", is_ready).await?;
    own.wait_until("all objects", || async { Ok(count(&own).await? == 60) }).await?;
    own.finish().await
}

async fn sigterm_ends_in_good_order_in_the_middle_of_a_deployment(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let files = many(60, true);
    case.deploy_project("app", &borrowed(&files), json!({})).await?;
    case.wait_until("the first objects", || async { Ok(count(case).await? >= 5) }).await?;
    let status = case.controllers[0].terminate(Duration::from_secs(20)).await?;
    ensure!(status.success(), "ended with {status}");
    case.controllers.clear();
    case.start_controller(&[]).await?;
    case.wait_ready("app").await?;
    ensure!(count(case).await? == 60, "{} objects", count(case).await?);
    Ok(())
}

async fn a_run_that_outlasts_the_grace_period_is_interrupted_and_that_is_written_down(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&["--grace-period=10ms"]).await?;
    let files = many(200, true);
    case.deploy_project("app", &borrowed(&files), json!({})).await?;
    case.wait_until("the first objects", || async { Ok(count(case).await? >= 5) }).await?;
    let status = case.controllers[0].terminate(Duration::from_secs(10)).await?;
    ensure!(status.success(), "ended with {status}");
    let deployed = count(case).await?;
    ensure!(deployed < 200, "the run came to its end");
    let object = case.get_deployment("app").await?;
    for kind in ["Ready", "Reconciling"] {
        let message = message_of(&object, kind);
        ensure!(message.starts_with("Interrupted"), "{kind}: {}", object["status"]);
    }
    let ready = condition(&object, "Ready").cloned().unwrap_or_default();
    ensure!(ready["status"] == "Unknown", "{ready}");
    case.controllers.clear();
    case.start_controller(&[]).await?;
    case.wait_ready("app").await?;
    ensure!(count(case).await? == 200, "{} objects", count(case).await?);
    Ok(())
}

async fn a_leader_that_lost_its_lease_unawares_writes_nothing_any_more(
    case: &mut Case,
) -> Result<()> {
    case.start_controller(&["--leader-elect"]).await?;
    let waiting = "deployments:\n  - path: config\n    waitReadiness: true\noverrideNamespace: \"{{ args.namespace }}\"\n";
    let files = with(&SHARED, &[("deployment.yaml", waiting), ("config/it.yaml", STUCK)]);
    case.deploy_files("app", &files, json!({"timeout": "300s"})).await?;
    case.wait_deployment("app", "that it waits", |object| {
        message_of(object, "Reconciling").starts_with("Waiting for")
    })
    .await?;
    case.start_controller(&["--leader-elect"]).await?;
    // As a node does that hangs for a while: nothing is given back, and nobody is told.
    case.controllers[0].signal("STOP")?;
    let took_over = || async { Ok(case.controllers[1].log_text().contains("became the leader")) };
    case.wait_until("the other's turn", took_over).await?;
    let one = config_map("one", "first");
    let files = with(&SHARED, &[("config/it.yaml", &one)]);
    case.publish("app", &files, "v2@sha256:0002").await?;
    let before = case.wait_ready_at("app", "0002").await?;
    case.controllers[0].signal("CONT")?;
    let status = case.controllers[0].ended(Duration::from_secs(10)).await?;
    ensure!(!status.success(), "it went as if nothing had happened: {status}");
    let log = case.controllers[0].log_text();
    ensure!(log.contains("another replica may be at work"), "{log}");
    let after = case.get_deployment("app").await?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    ensure!(version(&after) == version(&before), "from {before:#} to {after:#}");
    let stuck = case.get("apps/v1", "Deployment", "app").await?;
    ensure!(stuck.is_none(), "what the new leader pruned is back");
    case.controllers.remove(0);
    Ok(())
}

async fn two_replicas_hand_over(case: &mut Case) -> Result<()> {
    case.start_controller(&["--leader-elect"]).await?;
    case.start_controller(&["--leader-elect"]).await?;
    let files = many(2, false);
    let repo = case.deploy_project("app", &borrowed(&files), json!({})).await?;
    case.wait_ready("app").await?;
    let leaders = |case: &Case| -> Vec<bool> {
        case.controllers
            .iter()
            .map(|controller| controller.log_text().contains("Reconciliation finished"))
            .collect()
    };
    let led = leaders(case);
    ensure!(led.iter().filter(|leads| **leads).count() == 1, "who works? {led:?}");
    let leader = led.iter().position(|leads| *leads).unwrap_or_default();
    let status = case.controllers[leader].terminate(Duration::from_secs(20)).await?;
    ensure!(status.success(), "the leader ended with {status}");
    let started = std::time::Instant::now();
    let commit = repo.commit(&[("all/cm-01.yaml", &config_map("cm-01", "second"))])?;
    case.fetch_commit("app", &commit).await?;
    case.wait_ready_at("app", &commit).await?;
    // A released lease is taken at once; without the release it would take the whole lease duration (35 s).
    ensure!(
        started.elapsed() < Duration::from_secs(20),
        "the hand-over took {:?}",
        started.elapsed()
    );
    case.controllers.remove(leader);
    Ok(())
}
