use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{Case, GitServer, TestFuture};

/// The control plane, Flux's controllers and the Git server that all tests share.
pub(crate) struct Suite {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) client: Client,
    /// An administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// Where the built programs and the real manifests are.
    pub(crate) programs: PathBuf,
    /// notification-controller's event endpoint.
    pub(crate) flux_events: String,
    /// Base URL of notification-controller's webhooks, without a slash at the end.
    pub(crate) flux_receiver: String,
    /// Serves `git_root` to everybody.
    pub(crate) git: GitServer,
    pub(crate) state: tempfile::TempDir,
    _control_plane: ControlPlane,
}

impl Suite {
    /// Starts everything; takes some seconds when the programs are built.
    pub(crate) fn start() -> Result<Self> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let state = tempfile::Builder::new().prefix("kluctl-e2e-").tempdir()?;
        let programs = programs()?;
        let control_plane =
            ControlPlane::start(&state.path().join("control-plane"), &programs, &["--flux"])?;
        let git = GitServer::start(&state.path().join("git"), &[])?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let kubeconfig = PathBuf::from(control_plane.variable("KUBECONFIG")?);
        let flux_events = control_plane.variable("FLUX_EVENTS_ADDR")?;
        let flux_receiver = control_plane.variable("FLUX_RECEIVER_URL")?;
        let client = runtime.block_on(client_for(&kubeconfig))?;
        let suite = Self {
            runtime,
            client,
            kubeconfig,
            programs,
            flux_events,
            flux_receiver,
            git,
            state,
            _control_plane: control_plane,
        };
        suite.install_crds()?;
        Ok(suite)
    }

    /// Runs one test in a namespace of its own.
    pub(crate) fn run(
        self: &Arc<Self>,
        name: &str,
        test: for<'a> fn(&'a mut Case) -> TestFuture<'a>,
    ) -> Result<(), String> {
        self.runtime.block_on(async {
            let mut case =
                Case::start(Arc::clone(self), name).await.map_err(|error| format!("{error:#}"))?;
            let outcome = tokio::time::timeout(Duration::from_mins(3), test(&mut case)).await;
            let result = match outcome {
                Ok(result) => result.map_err(|error| format!("{error:#}")),
                Err(_) => Err("not finished within 180 s".to_owned()),
            };
            match result {
                Ok(()) => case.finish().await.map_err(|error| format!("{error:#}")),
                Err(error) => Err(format!("{error}\n\n{}", case.dump().await)),
            }
        })
    }

    /// What `kubectl`, as administrator, prints.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        loop {
            let output = Command::new(self.programs.join("kubectl"))
                .arg("--kubeconfig")
                .arg(&self.kubeconfig)
                .args(arguments)
                .output()?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            // `kubectl wait` trips over objects that have no status yet.
            if !errors.contains(".status.conditions accessor error") {
                bail!("kubectl {}: {errors}", arguments.join(" "));
            }
        }
    }

    fn install_crds(&self) -> Result<()> {
        let crds = root().join("crds");
        self.kubectl(&["apply", "--server-side", "-k", &crds.display().to_string()])?;
        let component = root().join("config/flux/components/notification");
        for (crd, patch) in [("alerts", "alert-kinds.yaml"), ("receivers", "receiver-kinds.yaml")] {
            let name = format!("{crd}.notification.toolkit.fluxcd.io");
            let file = component.join(patch).display().to_string();
            self.kubectl(&["patch", "crd", &name, "--type=json", "--patch-file", &file])?;
        }
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"])?;
        Ok(())
    }
}

/// The checkout.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A client for a kubeconfig's current context.
pub(crate) async fn client_for(kubeconfig: &Path) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(
        Kubeconfig::read_from(kubeconfig)?,
        &KubeConfigOptions::default(),
    )
    .await?;
    Ok(Client::try_from(config)?)
}

/// The directory of the real programs; builds what is missing, which takes long the first time.
fn programs() -> Result<PathBuf> {
    let output = Command::new(root().join("hack/control-plane/build"))
        .arg("test")
        .stderr(Stdio::inherit())
        .output()
        .context("hack/control-plane/build")?;
    if !output.status.success() {
        bail!("hack/control-plane/build ended with {}", output.status);
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// `hack/control-plane/up` as a child that ends with this process.
pub(crate) struct ControlPlane {
    child: Child,
    printed: Vec<String>,
}

impl ControlPlane {
    /// Starts it with its state below `state`; `arguments` may add Flux.
    pub(crate) fn start(state: &Path, programs: &Path, arguments: &[&str]) -> Result<Self> {
        let mut child = super::controller::tied(&root().join("hack/control-plane/up"))
            .args(arguments)
            .arg("--state")
            .arg(state)
            .arg("--programs")
            .arg(programs)
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (lines, received) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let last = line.starts_with("# ready");
                if lines.send(line).is_err() || last {
                    break;
                }
            }
        });
        let mut printed = Vec::new();
        loop {
            let line = received.recv_timeout(Duration::from_mins(2)).with_context(|| {
                format!("hack/control-plane/up is not ready; see {}", state.display())
            })?;
            let ready = line.starts_with("# ready");
            printed.push(line);
            if ready {
                return Ok(Self { child, printed });
            }
        }
    }

    /// The value of an `export NAME=value` line.
    pub(crate) fn variable(&self, name: &str) -> Result<String> {
        let prefix = format!("export {name}=");
        let value = self.printed.iter().find_map(|line| line.strip_prefix(&prefix));
        value.map(str::to_owned).with_context(|| format!("hack/control-plane/up printed no {name}"))
    }
}

impl ControlPlane {
    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()?;
        anyhow::ensure!(status.success(), "kill -{name}: {status}");
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        Command::new("kill").arg(self.child.id().to_string()).status().ok();
        self.child.wait().ok();
    }
}
