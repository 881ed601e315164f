//! Commands through a connection that breaks, an API server that fails, throttles and takes its time.

use anyhow::{Result, ensure};

use crate::{
    support::{ApiFault, ApiProxy, Case, TWO_CONFIG_MAPS, User, config_map},
    tests,
};

tests![
    broken_connections_lose_nothing,
    failing_and_throttling_servers_lose_nothing,
    slow_servers_are_waited_for,
];

/// Runs of each kind of fault.
const RUNS: u64 = 20;
const OBJECTS: usize = 6;

/// The names of the ConfigMaps of the project in the test's namespace.
async fn names(case: &Case) -> Result<Vec<String>> {
    let mut names = case.names("v1", "ConfigMap", "kluctl.io/discriminator").await?;
    names.sort();
    Ok(names)
}

/// Deploys and prunes a project that changes from run to run through the faults, and each time once more without.
async fn converges(case: &mut Case, faults: &[ApiFault], must_succeed: bool) -> Result<()> {
    let proxy = ApiProxy::start(case.client.clone(), &case.dir).await?;
    let files = [TWO_CONFIG_MAPS[0], TWO_CONFIG_MAPS[1]];
    let user = User::new(case, &files)?.with_kubeconfig(&proxy.kubeconfig);
    let deploy = ["deploy", "--yes", "--prune", "--write-command-result=false", "--timeout=60s"];
    let mut succeeded = 0;
    for run in 0..RUNS {
        // Two of the objects come and go.
        let wanted: Vec<String> =
            (0..OBJECTS).map(|index| format!("cm-{}", index as u64 + run % 3)).collect();
        drop(std::fs::remove_dir_all(user.project.join("config")));
        for name in &wanted {
            let path = format!("config/{name}.yaml");
            user.write(&[(&path, &config_map(name, &format!("value-{run}")))])?;
        }
        proxy.set(faults, run);
        let ran = user.run(&deploy)?;
        ensure!(ran.code == 0 || ran.code == 1, "run {run}: {ran:?}");
        ensure!(
            ran.code == 0 || ran.stdout.contains("Errors:") || ran.stderr.contains("error: "),
            "run {run} failed without a word: {ran:?}"
        );
        succeeded += u64::from(ran.code == 0);
        if ran.code == 0 {
            ensure!(names(case).await? == wanted, "run {run} says that it succeeded: {ran:?}");
        }
        proxy.set(&[], run);
        let ran = user.run(&deploy)?.ok()?;
        let found = names(case).await?;
        ensure!(found == wanted, "run {run}: there are {found:?}: {ran:?}");
        for name in &wanted {
            let live = case.config_map(name).await?;
            ensure!(live["data"]["value"] == format!("value-{run}"), "run {run}: {live}");
        }
    }
    ensure!(proxy.hits() > 50, "only {} requests met a fault", proxy.hits());
    ensure!(!must_succeed || succeeded == RUNS, "{succeeded} of {RUNS} runs succeeded");
    Ok(())
}

async fn broken_connections_lose_nothing(case: &mut Case) -> Result<()> {
    converges(case, &[ApiFault::CutRequest, ApiFault::CutAnswer], false).await
}

async fn failing_and_throttling_servers_lose_nothing(case: &mut Case) -> Result<()> {
    converges(case, &[ApiFault::ServerError, ApiFault::Throttle], false).await
}

async fn slow_servers_are_waited_for(case: &mut Case) -> Result<()> {
    converges(case, &[ApiFault::Delay], true).await
}
