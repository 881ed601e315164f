//! Helm charts that a project does not hold itself, and the credentials for them.
//!
//! Secrets are read when the first chart is fetched, so a project without such charts reads none.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use reqwest::Url;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{
    outcome::Failure,
    secrets::{self, SecretData},
};
use crate::{
    api::{
        HelmCredentials, HostCredentials, KluctlDeploymentSpec, NamespacedName,
        RegistryCredentials, reason,
    },
    cluster::Cluster,
    diagnostic::{Class, Diagnostic},
    engine::{ChartSource, PulledCharts},
    helm::{
        Access, AccessRule, AccessRules, ChartCache, ChartFiles, Origin, PullOptions, Puller,
        Version,
    },
    net::{Identity, Proxies, Reach},
    secret::Secret,
    vars::GitSource,
};

const REASON: &str = reason::PREPARE_FAILED;

/// Which Secrets hold credentials for which charts. Nothing has been read yet.
#[derive(Debug, Clone)]
pub(crate) struct ChartCredentials {
    namespace: String,
    helm: Vec<HostCredentials>,
    oci: Vec<RegistryCredentials>,
    /// By URL, as releases before v0.17.0 have them.
    former: Vec<HelmCredentials>,
}

impl ChartCredentials {
    /// Those of a spec.
    pub(crate) fn of(namespace: &str, spec: &KluctlDeploymentSpec) -> Self {
        Self {
            namespace: namespace.to_owned(),
            helm: spec.credentials.helm.clone(),
            oci: spec.credentials.oci.clone(),
            former: spec.helm_credentials.clone(),
        }
    }

    async fn read(
        &self,
        cluster: &Cluster,
        field: &str,
        name: &str,
    ) -> Result<SecretData, Failure> {
        let key = NamespacedName::new(&self.namespace, name);
        secrets::read(cluster, &key, &format!("{field}.secretRef"), REASON).await
    }

    /// Reads the Secrets: the rules for Helm repositories, and those for registries.
    async fn rules(&self, cluster: &Cluster) -> Result<(AccessRules, AccessRules), Failure> {
        let refused =
            |field: &str, error: String| Failure::retry(REASON, format!("{field}: {error}"));
        let (mut repositories, mut registries) = (Vec::new(), Vec::new());
        for (index, entry) in self.helm.iter().enumerate() {
            let field = format!("spec.credentials.helm[{index}]");
            let secret = self.read(cluster, &field, &entry.secret_ref.name).await?;
            let access = access(&secret).map_err(|error| refused(&field, error))?;
            let rule = AccessRule::new(&entry.host, entry.path.as_deref(), access);
            repositories.push(rule.map_err(|error| refused(&field, error))?);
        }
        for (index, entry) in self.oci.iter().enumerate() {
            let field = format!("spec.credentials.oci[{index}]");
            let secret = self.read(cluster, &field, &entry.secret_ref.name).await?;
            let access = access(&secret).map_err(|error| refused(&field, error))?;
            let rule = AccessRule::new(&entry.registry, entry.repository.as_deref(), access);
            registries.push(rule.map_err(|error| refused(&field, error))?);
        }
        for (index, entry) in self.former.iter().enumerate() {
            let field = format!("spec.helmCredentials[{index}]");
            let Some(reference) = &entry.secret_ref else { continue };
            let secret = self.read(cluster, &field, &reference.name).await?;
            repositories.push(former_rule(&secret).map_err(|error| refused(&field, error))?);
        }
        Ok((AccessRules(repositories), AccessRules(registries)))
    }
}

/// A rule for exactly the repository that the Secret names.
pub(super) fn former_rule(secret: &SecretData) -> Result<AccessRule, String> {
    let Some(url) = text(&secret.data, "url")? else {
        return Err(format!(
            "{} has no `url`; credentials by `credentialsId` are no longer supported, name the repository",
            secret.origin
        ));
    };
    let invalid = |what: &str| format!("{}: `url` {what}", secret.origin);
    let url = Url::parse(&url).map_err(|_| invalid("is no URL"))?;
    let host = url.host_str().ok_or_else(|| invalid("names no host"))?;
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.path().trim_matches('/');
    let path = (!path.is_empty()).then(|| globset::escape(path));
    AccessRule::new(&host, path.as_deref(), access(secret)?)
}

/// What a Secret says about how to log in.
pub(super) fn access(secret: &SecretData) -> Result<Access, String> {
    let data = &secret.data;
    let text = |key: &str| text(data, key).map_err(|error| format!("{}: {error}", secret.origin));
    // Docker's and Flux's name, then kluctl's.
    let bytes = |short: &str, long: &str| data.get(short).or_else(|| data.get(long)).cloned();
    let is_set = |key: &str| Ok::<_, String>(text(key)?.is_some_and(|text| is_true(&text)));
    let identity = match (bytes("cert", "certFile"), bytes("key", "keyFile")) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key: Secret::new(key) }),
        (None, None) => None,
        _ => return Err(format!("{} has only one of certificate and key", secret.origin)),
    };
    Ok(Access {
        origin: secret.origin.clone(),
        user: text("username")?,
        password: text("password")?.map(Secret::new),
        identity_token: text("identityToken")?.map(Secret::new),
        token: text("token")?.map(Secret::new),
        identity,
        ca_bundle: bytes("ca", "caFile"),
        skips_tls_checks: is_set("insecure")? || is_set("insecureSkipTlsVerify")?,
        plain_http: is_set("plainHttp")?,
        passes_everywhere: is_set("passCredentialsAll")?,
    })
}

fn text(data: &BTreeMap<String, Vec<u8>>, key: &str) -> Result<Option<String>, String> {
    let Some(bytes) = data.get(key).filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
    String::from_utf8(bytes.clone()).map(Some).map_err(|_| format!("`{key}` is no text"))
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// The engine's way to charts.
pub(crate) struct RemoteCharts {
    /// The cluster with the Secrets, as the controller itself.
    pub(crate) cluster: Cluster,
    /// Which Secrets.
    pub(crate) credentials: ChartCredentials,
    /// Directory for charts.
    pub(crate) cache_dir: PathBuf,
    /// The ways out.
    pub(crate) proxies: Proxies,
    /// Which addresses charts may come from.
    pub(crate) reach: Reach,
    /// Git repositories with charts.
    pub(crate) git: Arc<dyn GitSource>,
    /// The present time.
    pub(crate) now: Timestamp,
    /// Ends downloads.
    pub(crate) cancel: CancellationToken,
    /// Made when the first chart is asked for.
    pub(crate) charts: OnceCell<PulledCharts>,
}

impl RemoteCharts {
    async fn charts(&self) -> Result<&PulledCharts, Diagnostic> {
        let make = async || -> Result<PulledCharts, Failure> {
            let (repositories, registries) = self.credentials.rules(&self.cluster).await?;
            Ok(PulledCharts {
                puller: Puller::new(PullOptions {
                    repositories,
                    registries,
                    proxies: self.proxies.clone(),
                    reach: self.reach,
                    ..PullOptions::new(self.cache_dir.join("downloads"))
                }),
                cache: ChartCache::new(self.cache_dir.join("charts")),
                now: self.now,
                git: Some(self.git.clone()),
                cancel: self.cancel.clone(),
            })
        };
        let charts = self.charts.get_or_try_init(make).await;
        charts.map_err(|failure| Diagnostic::new(Class::Access, failure.message))
    }
}

impl ChartSource for RemoteCharts {
    fn fetch<'a>(
        &'a self,
        origin: &'a Origin,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<ChartFiles, Diagnostic>> {
        async move { self.charts().await?.fetch(origin, version).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(entries: &[(&str, &str)]) -> SecretData {
        let data =
            entries.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        SecretData { origin: "Secret ns/s".to_owned(), data: data.collect() }
    }

    #[test]
    fn secrets_are_read_by_the_names_of_all_releases() {
        let read = access(&secret(&[
            ("username", "anna"),
            ("password", "hunter2"),
            ("certFile", "C"),
            ("key", "K"),
            ("ca", "short"),
            ("caFile", "long"),
            ("insecureSkipTlsVerify", "true"),
            ("passCredentialsAll", "no"),
        ]))
        .unwrap();
        assert_eq!((read.user.as_deref(), read.skips_tls_checks), (Some("anna"), true));
        assert_eq!(read.ca_bundle.as_deref(), Some(&b"short"[..]));
        assert_eq!(read.identity.unwrap().key.reveal(), b"K");
        assert!(!read.passes_everywhere && !read.plain_http);
        let error = access(&secret(&[("certFile", "C")])).unwrap_err();
        assert_eq!(error, "Secret ns/s has only one of certificate and key");
    }

    #[test]
    fn former_credentials_are_for_one_repository() {
        let entries = [("url", "https://h.example/a*b/"), ("username", "anna")];
        let rules = AccessRules(vec![former_rule(&secret(&entries)).unwrap()]);
        let user = |url: &str| rules.choose(&Url::parse(url).unwrap()).user;
        assert_eq!(user("https://h.example/a*b"), Some("anna".to_owned()));
        assert_eq!(user("https://h.example/axb"), None);
        assert_eq!(user("https://h.example/"), None);
        let error = former_rule(&secret(&[("credentialsId", "x")])).unwrap_err();
        assert!(error.contains("has no `url`"), "{error}");
    }
}
