use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// A command whose process the kernel ends when the thread that starts it ends.
pub(crate) fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// The built program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kluctl");

/// A running `kluctl controller run`.
pub(crate) struct Controller {
    child: Child,
    pub(crate) log: PathBuf,
    /// `host:port` of the health probes.
    pub(crate) health: String,
    /// `host:port` of the metrics.
    pub(crate) metrics: String,
}

impl Controller {
    /// Starts the controller for one namespace; returns once it is healthy, or at once when `arguments` say where its
    /// probes are.
    pub(crate) async fn start(
        dir: &Path,
        kubeconfig: &Path,
        namespace: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let mut command = tied(Path::new(PROGRAM));
        command.args(["controller", "run", "--kubeconfig"]).arg(kubeconfig);
        Self::launch(command, dir, namespace, arguments, environment).await
    }

    /// As [`Controller::start`], for a command that ends in `controller run`.
    pub(crate) async fn launch(
        mut command: Command,
        dir: &Path,
        namespace: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        fs::create_dir_all(dir.join("tmp"))?;
        let log = dir.join(format!("controller-{}.log", fs::read_dir(dir)?.count()));
        let [health, metrics] = free_addresses()?;
        let defaults = [
            ("namespace", "watch-all-namespaces", namespace),
            ("controller-namespace", "controller-namespace", namespace),
            ("log-level", "log-level", "debug"),
            ("log-encoding", "log-encoding", "json"),
            ("health-probe-bind-address", "health-addr", health.as_str()),
            ("metrics-bind-address", "metrics-addr", metrics.as_str()),
        ];
        let is_given = |flag: &str| {
            arguments.iter().any(|argument| argument.starts_with(&format!("--{flag}=")))
        };
        let defaults = defaults
            .iter()
            .filter(|(flag, alias, _)| !is_given(flag) && !is_given(alias))
            .map(|(flag, _, value)| format!("--{flag}={value}"));
        let child = command
            .args(defaults)
            .args(arguments)
            .env("TMPDIR", dir.join("tmp"))
            .envs(environment.iter().copied())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()
            .context("kluctl controller run")?;
        let mut controller = Self { child, log, health, metrics };
        if is_given("health-probe-bind-address") || is_given("health-addr") {
            return Ok(controller);
        }
        controller.wait_until_healthy().await?;
        Ok(controller)
    }

    async fn wait_until_healthy(&mut self) -> Result<()> {
        let url = format!("http://{}/healthz", self.health);
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the controller ended with {status}:\n{}", self.log_tail(40));
            }
            if reqwest::get(&url).await.is_ok_and(|response| response.status().is_success()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the controller is not healthy within 30 s:\n{}", self.log_tail(40));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends it as a node does: SIGTERM, then waiting up to `grace`.
    pub(crate) async fn terminate(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.signal("TERM")?;
        self.ended(grace).await
    }

    /// Waits up to `grace` until it ends.
    pub(crate) async fn ended(&mut self, grace: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + grace;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                self.kill()?;
                bail!("the controller did not end within {grace:?}:\n{}", self.log_tail(40));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends it without any warning.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        Ok(())
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The whole log so far.
    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self, lines: usize) -> String {
        let text = self.log_text();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A loopback address with a port that was free a moment ago.
pub(crate) fn free_address() -> Result<String> {
    free_addresses().map(|[address, _]| address)
}

/// Two such addresses, which differ.
fn free_addresses() -> Result<[String; 2]> {
    // Both are held until both are known, so that they differ.
    let listeners =
        [std::net::TcpListener::bind("127.0.0.1:0")?, std::net::TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.to_string(), listeners[1].local_addr()?.to_string()])
}
