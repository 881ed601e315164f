//! `kluctl helm-pull` and `helm-update` against a Helm repository, an OCI registry and Git.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{header, path},
};

use crate::{
    support::{Case, Server},
    tests,
};

tests![charts_are_pulled_updated_and_committed, charts_that_are_not_pulled_are_fetched_on_demand];

/// `anna:hunter2`
const BASIC: &str = "Basic YW5uYTpodW50ZXIy";

/// A project, and servers with versions 1.0.0 and 1.1.0 (and a pre-release) of chart `web`.
struct World {
    dir: PathBuf,
    helm: PathBuf,
    repository: MockServer,
    registry: Server,
    git: String,
}

struct Outcome {
    is_ok: bool,
    stdout: String,
    stderr: String,
}

impl World {
    async fn new(case: &Case) -> Result<Self> {
        let dir = case.dir.join("charts");
        let helm = case.suite.programs.join("helm");
        let repository = MockServer::start().await;
        let registry = case.start_registry().await?;
        let files: Vec<(String, String)> =
            chart("1.0.0").into_iter().map(|(p, t)| (format!("charts/{p}"), t)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
        let repo = case.repo("charts", &files)?;
        repo.push_as("refs/tags/v1.0.0")?;
        let world = Self { dir, helm, repository, registry, git: repo.url.clone() };
        world.publish(&["1.0.0"]).await?;
        Ok(world)
    }

    fn run(&self, program: &Path, arguments: &[&str], dir: &Path) -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.dir)
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{} {arguments:?}: {errors}", program.display());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Makes exactly these versions available, packed by Helm itself.
    async fn publish(&self, versions: &[&str]) -> Result<()> {
        self.repository.reset().await;
        let packed = self.dir.join("packed");
        let _former = fs::remove_dir_all(&packed);
        fs::create_dir_all(&packed)?;
        for version in versions {
            let source = self.dir.join("source").join(version).join("web");
            for (name, text) in chart(version) {
                write(&source.join(name), &text)?;
            }
            let source = source.display().to_string();
            self.run(&self.helm, &["package", &source], &packed)?;
            let archive = format!("web-{version}.tgz");
            let target = format!("oci://{}/org", self.registry.address);
            self.run(&self.helm, &["push", "--plain-http", &archive, &target], &packed)?;
            let body = fs::read(packed.join(&archive))?;
            self.serve(&format!("/stable/{archive}"), body).await;
        }
        self.run(&self.helm, &["repo", "index", "."], &packed)?;
        self.serve("/stable/index.yaml", fs::read(packed.join("index.yaml"))?).await;
        Ok(())
    }

    async fn serve(&self, route: &str, body: Vec<u8>) {
        Mock::given(path(route))
            .and(header("authorization", BASIC))
            .respond_with(ResponseTemplate::new(200).set_body_bytes(body))
            .mount(&self.repository)
            .await;
    }

    fn project(&self, extra: &str) -> Result<PathBuf> {
        let project = self.dir.join("project");
        let (repository, registry, git) =
            (self.repository.uri(), &self.registry.address, &self.git);
        let releases = [
            (
                "repository",
                format!(
                    "repo: {repository}/stable\n  chartName: web\n  chartVersion: 1.0.0 # pinned"
                ),
            ),
            ("registry", format!("repo: oci://{registry}/org/web\n  chartVersion: 1.0.0")),
            ("git", format!("git: {{url: '{git}', ref: {{tag: v1.0.0}}, subDir: charts}}")),
        ];
        write(&project.join(".kluctl.yaml"), "discriminator: charts\n")?;
        write(
            &project.join("deployment.yaml"),
            "deployments: [{path: repository}, {path: registry}, {path: git}]\n",
        )?;
        for (dir, chart) in releases {
            let text = format!("helmChart:\n  {chart}\n  releaseName: {dir}\n{extra}");
            write(&project.join(dir).join("helm-chart.yaml"), &text)?;
        }
        Ok(project)
    }

    fn kluctl(&self, arguments: &[&str], project: &Path) -> Result<Outcome> {
        let uri = self.repository.uri();
        let host = uri.trim_start_matches("http://");
        let output = Command::new(env!("CARGO_BIN_EXE_kluctl"))
            .args(arguments)
            .arg(format!("--helm-creds={host}/stable=anna:hunter2"))
            .arg(format!("--helm-binary={}", self.helm.display()))
            .current_dir(project)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.dir)
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Outcome {
            is_ok: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    fn git(&self, project: &Path, arguments: &[&str]) -> Result<String> {
        self.run(Path::new("git"), arguments, project)
    }
}

fn chart(version: &str) -> Vec<(String, String)> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {version: '{{ .Chart.Version }}'}\n";
    [
        ("Chart.yaml", format!("apiVersion: v2\nname: web\nversion: {version}\n")),
        ("templates/a.yaml", template.to_owned()),
    ]
    .map(|(path, text)| (path.to_owned(), text))
    .into()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("has a parent")?)?;
    Ok(fs::write(path, text)?)
}

const RENDER: [&str; 3] = ["render", "--offline-kubernetes", "--print-all"];

async fn charts_are_pulled_updated_and_committed(case: &mut Case) -> Result<()> {
    let world = World::new(case).await?;
    let project = world.project("")?;
    let refused = world.kluctl(&RENDER, &project)?;
    ensure!(!refused.is_ok && refused.stderr.contains("kluctl helm-pull"), "{}", refused.stderr);

    let surplus = project.join(format!(
        ".helm-charts/oci_{}/org/web/0.9.0/Chart.yaml",
        host_dir(&world.registry.address)
    ));
    write(&surplus, "name: web\nversion: 0.9.0\n")?;
    let pulled = world.kluctl(&["helm-pull"], &project)?;
    ensure!(pulled.is_ok, "{}", pulled.stderr);
    ensure!(!surplus.exists(), "a version that nobody uses is still there");
    let rendered = world.kluctl(&RENDER, &project)?;
    ensure!(
        rendered.stdout.matches("version: 1.0.0").count() == 3,
        "{}{}",
        rendered.stdout,
        rendered.stderr
    );

    // Commits need a clean work tree.
    for arguments in [
        vec!["init", "--quiet"],
        vec!["config", "user.email", "anna@example.com"],
        vec!["config", "user.name", "Anna"],
        vec!["add", "--all"],
        vec!["commit", "--quiet", "-m", "first"],
    ] {
        world.git(&project, &arguments)?;
    }
    world.publish(&["1.0.0", "1.1.0", "2.0.0-rc.1"]).await?;
    let told = world.kluctl(&["helm-update"], &project)?;
    ensure!(told.is_ok, "{}", told.stderr);
    for dir in ["repository", "registry"] {
        let line = format!("{dir}: chart web (old version 1.0.0) has new version 1.1.0 available");
        ensure!(told.stderr.contains(&line), "{}", told.stderr);
    }
    ensure!(!told.stderr.contains("git: chart"), "{}", told.stderr);
    ensure!(world.git(&project, &["status", "--porcelain"])?.is_empty(), "something was written");

    write(&project.join("deployment.yaml"), "deployments: []\n")?;
    let refused = world.kluctl(&["helm-update", "--upgrade", "--commit"], &project)?;
    ensure!(
        !refused.is_ok && refused.stderr.contains("deployment.yaml is changed"),
        "{}",
        refused.stderr
    );
    world.git(&project, &["checkout", "--quiet", "deployment.yaml"])?;

    let updated = world.kluctl(&["helm-update", "--upgrade", "--commit"], &project)?;
    ensure!(updated.is_ok, "{}", updated.stderr);
    let text = fs::read_to_string(project.join("repository/helm-chart.yaml"))?;
    ensure!(text.contains("chartVersion: 1.1.0 # pinned"), "{text}");
    ensure!(
        world.git(&project, &["status", "--porcelain"])?.is_empty(),
        "something is not committed"
    );
    let log = world.git(&project, &["log", "--format=%an: %s"])?;
    let message = "Anna: Updated helm chart web from version 1.0.0 to version 1.1.0";
    ensure!(log.matches(message).count() == 2, "{log}");
    let rendered = world.kluctl(&RENDER, &project)?;
    ensure!(
        rendered.stdout.matches("version: 1.1.0").count() == 2,
        "{}{}",
        rendered.stdout,
        rendered.stderr
    );
    let again = world.kluctl(&["helm-update"], &project)?;
    ensure!(again.is_ok && !again.stderr.contains("available"), "{}", again.stderr);
    Ok(())
}

/// `127.0.0.1:5000` as directories of pulled charts have it, without the port's place in front.
fn host_dir(address: &str) -> String {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    format!("{port}_{host}")
}

async fn charts_that_are_not_pulled_are_fetched_on_demand(case: &mut Case) -> Result<()> {
    let world = World::new(case).await?;
    let project = world.project("  skipPrePull: true\n")?;
    let rendered = world.kluctl(&RENDER, &project)?;
    ensure!(
        rendered.stdout.matches("version: 1.0.0").count() == 3,
        "{}{}",
        rendered.stdout,
        rendered.stderr
    );
    ensure!(!project.join(".helm-charts").exists(), "something was written to the project");

    // What was fetched is used again.
    world.repository.reset().await;
    let rendered = world.kluctl(&RENDER, &project)?;
    ensure!(rendered.is_ok, "{}", rendered.stderr);

    world.publish(&["1.1.0"]).await?;
    let path = project.join("repository/helm-chart.yaml");
    write(&path, &fs::read_to_string(&path)?.replace("1.0.0", "1.2.0"))?;
    let refused = world.kluctl(&RENDER, &project)?;
    ensure!(
        !refused.is_ok && refused.stderr.contains("chart web has no version 1.2.0"),
        "{}",
        refused.stderr
    );
    ensure!(!refused.stderr.contains("hunter2"), "{}", refused.stderr);
    Ok(())
}
