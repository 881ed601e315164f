//! Servers of single tests: a bucket, an OCI registry, a file, a control plane of its own.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Case,
    controller::{free_address, tied},
    suite::ControlPlane,
};

/// A child process that listens on a loopback address and ends with the test.
pub(crate) struct Server {
    child: Child,
    /// `host:port`.
    pub(crate) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Server {
    async fn start(
        case: &Case,
        name: &str,
        arguments: impl Fn(&str) -> Vec<String>,
    ) -> Result<Self> {
        let address = free_address()?;
        let log = File::create(case.dir.join(format!("{name}.log")))?;
        let child = tied(&case.suite.programs.join(name))
            .args(arguments(&address))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let server = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(10);
        while tokio::net::TcpStream::connect(&server.address).await.is_err() {
            ensure!(Instant::now() < deadline, "{name} does not listen");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        Ok(server)
    }
}

impl Case {
    /// An S3 server with one bucket that holds `files`.
    pub(crate) async fn start_bucket_server(
        &self,
        bucket: &str,
        files: &[(&str, &str)],
    ) -> Result<Server> {
        let server = Server::start(self, "gofakes3", |address| {
            ["-host", address, "-backend", "memory", "-initialbucket", bucket]
                .map(str::to_owned)
                .to_vec()
        })
        .await?;
        let client = reqwest::Client::new();
        for (path, text) in files {
            let url = format!("http://{}/{bucket}/{path}", server.address);
            let response = client.put(&url).body((*text).to_owned()).send().await?;
            ensure!(response.status().is_success(), "PUT {url}: {}", response.status());
        }
        Ok(server)
    }

    /// An OCI registry.
    pub(crate) async fn start_registry(&self) -> Result<Server> {
        Server::start(self, "crane", |address| {
            ["registry", "serve", "--address", address].map(str::to_owned).to_vec()
        })
        .await
    }

    /// Pushes files as an artifact of one layer.
    pub(crate) fn push_oci_artifact(&self, reference: &str, files: &[(&str, &str)]) -> Result<()> {
        let layer = self.dir.join("layer.tar.gz");
        fs::write(&layer, self.tarball(files)?)?;
        let output = Command::new(self.suite.programs.join("crane"))
            .args(["append", "--insecure", "--oci-empty-base", "-t", reference, "-f"])
            .arg(&layer)
            .stdin(Stdio::null())
            .output()?;
        ensure!(
            output.status.success(),
            "crane append: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// A gzipped tarball of files.
    pub(crate) fn tarball(&self, files: &[(&str, &str)]) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            archive.append_data(&mut header, path, text.as_bytes())?;
        }
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&archive.into_inner()?)?;
        Ok(encoder.finish()?)
    }

    /// Hex SHA-256.
    pub(crate) fn sha256(&self, bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Serves bytes over HTTP for the rest of the run and returns their URL.
    pub(crate) async fn serve_bytes(&self, bytes: Vec<u8>) -> Result<String> {
        let bytes = axum::body::Bytes::from(bytes);
        let router = axum::Router::new().fallback(move || {
            let bytes = bytes.clone();
            async move { bytes }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/artifact.tar.gz", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await.ok() });
        Ok(url)
    }

    /// A merge patch of the status.
    pub(crate) async fn patch_status(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> Result<()> {
        let api = self.api(api_version, kind, Some(&self.namespace));
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Makes a tarball the artifact of an ExternalArtifact.
    pub(crate) async fn external_artifact(
        &self,
        name: &str,
        bytes: Vec<u8>,
        revision: &str,
    ) -> Result<()> {
        let digest = self.sha256(&bytes);
        let url = self.serve_bytes(bytes).await?;
        self.apply(json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact",
            "metadata": {"name": name}, "spec": {}}))
            .await?;
        let status = json!({"status": {"artifact": {
            "digest": format!("sha256:{digest}"), "revision": revision, "url": url,
            "path": format!("externalartifact/{}/{name}/x.tar.gz", self.namespace),
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }}});
        self.patch_status("source.toolkit.fluxcd.io/v1", "ExternalArtifact", name, status).await
    }

    /// A deployment from a tarball, without any Flux controller.
    pub(crate) async fn deploy_tarball(
        &self,
        name: &str,
        bytes: Vec<u8>,
        spec: Value,
    ) -> Result<()> {
        self.external_artifact(name, bytes, "v1@sha256:0000").await?;
        let mut all = json!({
            "args": {"namespace": self.namespace},
            "sourceRef": {"kind": "ExternalArtifact", "name": name},
        });
        if let (Value::Object(all), Value::Object(spec)) = (&mut all, spec) {
            all.extend(spec);
        }
        self.apply(self.deployment(name, all)).await?;
        Ok(())
    }

    /// The kind Kustomization as far as its conditions are concerned; kustomize-controller itself is not run here.
    pub(crate) async fn install_kustomization_crd(&self) -> Result<()> {
        self.apply_cluster(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
            "spec": {
                "group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced",
                "names": {"kind": "Kustomization", "listKind": "KustomizationList",
                          "plural": "kustomizations", "singular": "kustomization"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }))
        .await?;
        self.suite.kubectl(&[
            "wait",
            "--for=condition=Established",
            "crd/kustomizations.kustomize.toolkit.fluxcd.io",
            "--timeout=30s",
        ])?;
        Ok(())
    }

    /// This test with a control plane of its own, which it may restart.
    pub(crate) fn own_control_plane(&self) -> Result<OwnControlPlane> {
        let state = self.dir.join("own-control-plane");
        let control_plane = ControlPlane::start(&state, &self.suite.programs, &[])?;
        let kubeconfig = PathBuf::from(control_plane.variable("KUBECONFIG")?);
        let own = OwnControlPlane { kubeconfig, control_plane };
        own.apply_crds(&self.suite.programs)?;
        Ok(own)
    }
}

/// A control plane that one test has for itself.
pub(crate) struct OwnControlPlane {
    /// An administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    control_plane: ControlPlane,
}

impl OwnControlPlane {
    /// Installs the CRDs of this project and of source-controller.
    pub(crate) fn apply_crds(&self, programs: &Path) -> Result<()> {
        let flux = programs.join("../crds/flux/source-controller");
        for arguments in [
            vec![
                "apply".to_owned(),
                "--server-side".into(),
                "-k".into(),
                super::root().join("crds").display().to_string(),
            ],
            vec![
                "apply".to_owned(),
                "--server-side".into(),
                "-f".into(),
                flux.display().to_string(),
            ],
            ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]
                .map(str::to_owned)
                .to_vec(),
        ] {
            let output = Command::new(programs.join("kubectl"))
                .arg("--kubeconfig")
                .arg(&self.kubeconfig)
                .args(&arguments)
                .output()?;
            if !output.status.success() {
                bail!(
                    "kubectl {}: {}",
                    arguments.join(" "),
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
        Ok(())
    }

    /// A case like `case` on this control plane.
    pub(crate) async fn case(&self, case: &Case) -> Result<Case> {
        let client = super::suite::client_for(&self.kubeconfig).await?;
        let own = Case {
            client,
            namespace: case.namespace.clone(),
            dir: case.dir.join("own"),
            kubeconfig: self.kubeconfig.clone(),
            controllers: Vec::new(),
            suite: Arc::clone(&case.suite),
        };
        fs::create_dir_all(&own.dir)?;
        own.apply(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}}),
        )
        .await?;
        Ok(own)
    }

    /// Ends the API server at once and starts it again; returns when the old process has been told.
    pub(crate) fn restart_api_server(&self) -> Result<()> {
        self.control_plane.signal("USR1").context("hack/control-plane/up")
    }
}
