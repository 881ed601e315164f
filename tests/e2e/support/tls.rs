//! A certificate authority that only the test knows.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

/// A certificate authority and a server certificate of it.
pub(crate) struct Tls {
    /// The authority's certificate, PEM.
    pub(crate) ca: String,
    certificate: PathBuf,
    key: PathBuf,
}

impl Tls {
    /// Makes both with `openssl`, for 127.0.0.1 and the DNS names given.
    pub(crate) fn create(dir: &Path, names: &[&str]) -> Result<Self> {
        let dir = dir.join("tls");
        fs::create_dir_all(&dir)?;
        let openssl = |arguments: &str, more: &[&str]| -> Result<()> {
            let output = Command::new("openssl")
                .current_dir(&dir)
                .args(arguments.split(' '))
                .args(more)
                .output()?;
            let errors = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "openssl {arguments}: {errors}");
            Ok(())
        };
        let alternatives: String = names.iter().map(|name| format!(",DNS:{name}")).collect();
        let alternatives = format!("subjectAltName=IP:127.0.0.1{alternatives}");
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        openssl(
            &format!("{new} -keyout ca.key -out ca.pem -subj /CN=test-authority"),
            &["-addext", "keyUsage=critical,keyCertSign"],
        )?;
        openssl(
            &format!("{new} -CA ca.pem -CAkey ca.key -keyout tls.key -out tls.pem -subj /CN=git"),
            &["-addext", "basicConstraints=critical,CA:FALSE", "-addext", &alternatives],
        )?;
        let ca = fs::read_to_string(dir.join("ca.pem"))?;
        Ok(Self { ca, certificate: dir.join("tls.pem"), key: dir.join("tls.key") })
    }

    /// Arguments that make `hack/git-http-server` serve HTTPS.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let path = |path: &Path| path.display().to_string();
        ["--tls-cert".into(), path(&self.certificate), "--tls-key".into(), path(&self.key)]
    }
}
