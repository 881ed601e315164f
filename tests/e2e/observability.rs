//! What operators see of the controller: listeners, logs, metrics.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, Controller, SHARED, config_map, message_of, with},
    tests,
};

tests![
    zero_turns_listeners_off,
    log_lines_are_json_with_the_id_of_the_reconciliation,
    text_logs_and_fluxs_spellings_of_flags_are_understood,
    metrics_tell_stages_and_conditions,
];

async fn deploy_one(case: &Case, name: &str, value: &str) -> Result<()> {
    let one = config_map("\"{{ args.name }}\"", value);
    let files = with(&SHARED, &[("config/one.yaml", &one)]);
    case.deploy_files(name, &files, json!({"retryInterval": "1h"})).await
}

/// Ports on which a process accepts TCP connections, as the kernel lists them.
fn listening_ports(process: u32) -> Result<BTreeSet<u16>> {
    const LISTENING: &str = "0A";
    let mut sockets = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        // Descriptors come and go.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let name = target.to_string_lossy().into_owned();
        let inode = name.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        sockets.extend(inode.map(str::to_owned));
    }
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (Some(local), Some(state), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            if *state == LISTENING && sockets.contains(*inode) {
                let port = local.rsplit_once(':').context("no port")?.1;
                ports.insert(u16::from_str_radix(port, 16)?);
            }
        }
    }
    Ok(ports)
}

fn port(address: &str) -> Result<u16> {
    Ok(address.rsplit_once(':').context("no port")?.1.parse()?)
}

async fn zero_turns_listeners_off(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    let controller = &case.controllers[0];
    let expected = BTreeSet::from([port(&controller.health)?, port(&controller.metrics)?]);
    let ports = listening_ports(controller.id())?;
    ensure!(ports == expected, "listens on {ports:?}, not on {expected:?}");
    case.controllers.clear();

    case.start_controller(&["--metrics-bind-address=0"]).await?;
    let controller = &case.controllers[0];
    let ports = listening_ports(controller.id())?;
    ensure!(ports == BTreeSet::from([port(&controller.health)?]), "without metrics: {ports:?}");
    case.controllers.clear();

    case.start_controller(&["--metrics-addr=0", "--health-addr=0"]).await?;
    deploy_one(case, "app", "first").await?;
    case.wait_ready("app").await?;
    let ports = listening_ports(case.controllers[0].id())?;
    ensure!(ports.is_empty(), "listens on {ports:?} although both are off");
    Ok(())
}

fn json_lines(controller: &Controller) -> Result<Vec<Value>> {
    let text = controller.log_text();
    // The last line may be half written.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}")))
        .collect()
}

async fn log_lines_are_json_with_the_id_of_the_reconciliation(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    deploy_one(case, "app", "first").await?;
    let object = case.wait_ready("app").await?;
    deploy_one(case, "other", "{{ nope }}").await?;
    let failed = case.wait_failed("other", "PrepareFailed").await?;
    let id = object["status"]["lastDeployResult"]["reconcileId"].as_str().context("no id")?;
    case.wait_until("the line at the end", || async {
        let lines = json_lines(&case.controllers[0])?;
        let of_run: Vec<_> = lines.iter().filter(|line| line["reconcileID"] == id).collect();
        let finished = of_run.iter().find(|line| {
            line["msg"].as_str().is_some_and(|text| text.starts_with("Reconciliation finished"))
        });
        let Some(finished) = finished else { return Ok(false) };
        ensure!(finished["level"] == "info", "{finished}");
        ensure!(finished["revision"] == "v1@sha256:0001", "{finished}");
        for line in &of_run {
            ensure!(
                line["name"] == "app"
                    && line["namespace"] == case.namespace
                    && line["controllerKind"] == "KluctlDeployment",
                "{line}"
            );
        }
        Ok(true)
    })
    .await?;
    case.wait_until("the line about the failure", || async {
        let lines = json_lines(&case.controllers[0])?;
        let of_failure = lines.iter().find(|line| {
            line["name"] == "other"
                && line["msg"].as_str().is_some_and(|text| text.contains("Reconciliation failed"))
        });
        let Some(line) = of_failure else { return Ok(false) };
        ensure!(line["reconcileID"].is_string() && line["reconcileID"] != id, "{line}");
        ensure!(line["level"] == "error", "{line}");
        ensure!(line["error"].as_str().is_some_and(|text| text.contains("nope")), "{line}");
        Ok(true)
    })
    .await?;
    ensure!(message_of(&failed, "Ready").contains("nope"), "{}", failed["status"]);
    for line in json_lines(&case.controllers[0])? {
        let has_time =
            line["ts"].as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
        let level = line["level"].as_str().unwrap_or_default();
        ensure!(
            has_time
                && ["debug", "info", "warn", "error"].contains(&level)
                && line["msg"].is_string(),
            "{line}"
        );
    }
    Ok(())
}

async fn text_logs_and_fluxs_spellings_of_flags_are_understood(case: &mut Case) -> Result<()> {
    case.start_controller(&[
        "--log-encoding=console",
        "--log-level=info",
        "--enable-leader-election",
        "--concurrency=2",
        "--graceful-shutdown-timeout=5s",
    ])
    .await?;
    deploy_one(case, "app", "first").await?;
    case.wait_ready("app").await?;
    case.wait_until("the line at the end", || async {
        let text = case.controllers[0].log_text();
        let line = text.lines().find(|line| line.contains("Reconciliation finished"));
        let Some(line) = line else { return Ok(false) };
        ensure!(!line.starts_with('{') && line.contains("INFO") && line.contains("app"), "{line}");
        ensure!(!text.contains("DEBUG"), "debug lines at level info:\n{text}");
        Ok(true)
    })
    .await?;
    let lease = case.api("coordination.k8s.io/v1", "Lease", Some(&case.namespace));
    let leases = lease.list(&kube::api::ListParams::default()).await?.items;
    ensure!(leases.len() == 1, "leader election is off");
    Ok(())
}

async fn metrics_tell_stages_and_conditions(case: &mut Case) -> Result<()> {
    case.start_controller(&[]).await?;
    deploy_one(case, "app", "first").await?;
    case.wait_ready("app").await?;
    deploy_one(case, "broken", "{{ nope }}").await?;
    case.wait_failed("broken", "PrepareFailed").await?;
    case.apply(case.artifact_deployment("resting", "none", json!({"suspend": true}))).await?;
    let namespace = &case.namespace;
    let of =
        |name: &str| format!("kind=\"KluctlDeployment\",name=\"{name}\",namespace=\"{namespace}\"");
    let (app, broken, resting) = (of("app"), of("broken"), of("resting"));
    let object = format!("namespace=\"{namespace}\",name=\"app\"");
    let wanted = [
        format!("gotk_reconcile_condition{{{app},type=\"Ready\",status=\"True\"}} 1"),
        format!("gotk_reconcile_condition{{{app},type=\"Ready\",status=\"False\"}} 0"),
        format!("gotk_reconcile_condition{{{broken},type=\"Ready\",status=\"False\"}} 1"),
        format!("gotk_suspend_status{{{app}}} 0"),
        format!("gotk_suspend_status{{{resting}}} 1"),
        format!("gotk_reconcile_duration_seconds_bucket{{le=\"+Inf\",{broken}}} "),
        format!("kluctldeployments_last_object_status{{{object}}} 1"),
        format!("kluctldeployments_number_of_changed_objects{{{object}}} 0"),
        format!("kluctldeployments_deployment_duration_seconds_count{{{object}}} 1"),
        format!("kluctldeployments_validate_duration_seconds_count{{{object}}} 1"),
        "kluctl_stage_duration_seconds_count{stage=\"fetch\"} ".to_owned(),
        "kluctl_stage_duration_seconds_count{stage=\"prepare\"} ".to_owned(),
        "kluctl_stage_duration_seconds_count{stage=\"deploy\"} 1".to_owned(),
        "kluctl_stage_duration_seconds_count{stage=\"validate\"} 1".to_owned(),
        "kluctl_leader 1".to_owned(),
        "# EOF".to_owned(),
    ];
    let missing = async || -> Result<Vec<&String>> {
        let text = case.metrics().await?;
        let is_there = |series: &str| text.lines().any(|line| line.starts_with(series));
        Ok(wanted.iter().filter(|series| !is_there(series)).collect())
    };
    let waited = case.wait_until("the series", || async { Ok(missing().await?.is_empty()) }).await;
    if waited.is_err() {
        anyhow::bail!("missing: {:#?} in\n{}", missing().await?, case.metrics().await?);
    }
    Ok(())
}
