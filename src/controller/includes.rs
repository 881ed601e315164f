//! Git repositories that a project includes, and the credentials for them.
//!
//! Explicit credentials of the spec come first; then the Secret of the GitRepository that the project comes from, which goes
//! to the host and scheme of that GitRepository alone. Secrets are read when the first repository is asked for, so a
//! project without Git includes reads none.

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{outcome::Failure, secrets};
use crate::{
    api::{
        self, FluxSource, KluctlDeploymentSpec, NamespacedName, SourceKind, SourceReference, reason,
    },
    cluster::Cluster,
    diagnostic::{Class, Describe, Diagnostic},
    engine::git_tips,
    git::{
        self, GitUrl, Rules,
        auth::{GitSecret, HostRule, PathGlob, Rule},
    },
    schema::GitRef,
    vars::{GitCheckout, GitSource, GitTips},
};

/// Which Secrets hold credentials for which repositories. Nothing has been read yet.
#[derive(Debug, Clone)]
pub(crate) struct GitCredentials {
    /// Entries of `spec.credentials.git`, in order.
    explicit: Vec<api::HostCredentials>,
    /// Namespace of those entries' Secrets.
    namespace: String,
    /// The source's URL and Secret.
    source: Option<SourceSecret>,
}

#[derive(Debug, Clone)]
struct SourceSecret {
    url: String,
    secret: NamespacedName,
    /// Where the user named it, for messages.
    field: String,
}

impl GitCredentials {
    /// For a project from a Flux source. Only a GitRepository with credentials in a Secret has any to offer.
    pub(crate) fn of_source(
        key: &NamespacedName,
        spec: &KluctlDeploymentSpec,
        reference: &SourceReference,
        source: &FluxSource,
    ) -> Self {
        let namespace = reference.namespace.as_ref().unwrap_or(&key.namespace);
        let is_generic =
            source.spec.provider.as_deref().is_none_or(|provider| provider == "generic");
        let offered = (reference.kind == SourceKind::GitRepository && is_generic)
            .then(|| source.spec.url.clone().zip(source.spec.secret_ref.clone()))
            .flatten();
        let source = offered.map(|(url, secret)| SourceSecret {
            url,
            secret: NamespacedName::new(namespace, secret.name),
            field: format!("GitRepository {namespace}/{}: spec.secretRef", reference.name),
        });
        Self { source, ..Self::explicit(key, spec) }
    }

    /// For a project that is cloned from `source`.
    pub(crate) fn of_clone(
        key: &NamespacedName,
        spec: &KluctlDeploymentSpec,
        source: &api::GitSource,
    ) -> Self {
        let offered = source.secret_ref.as_ref().map(|secret| SourceSecret {
            url: source.url.clone(),
            secret: NamespacedName::new(&key.namespace, &secret.name),
            field: "spec.source.secretRef".to_owned(),
        });
        Self { source: offered, ..Self::explicit(key, spec) }
    }

    fn explicit(key: &NamespacedName, spec: &KluctlDeploymentSpec) -> Self {
        Self {
            explicit: spec.credentials.git.clone(),
            namespace: key.namespace.clone(),
            source: None,
        }
    }

    /// Reads the Secrets.
    ///
    /// # Errors
    /// When one is missing or cannot be used.
    pub(crate) async fn rules(&self, cluster: &Cluster) -> Result<Rules, Failure> {
        const REASON: &str = reason::PREPARE_FAILED;
        let mut rules = Vec::new();
        for (index, entry) in self.explicit.iter().enumerate() {
            let field = format!("spec.credentials.git[{index}]");
            let name = NamespacedName::new(&self.namespace, &entry.secret_ref.name);
            let secret =
                secrets::read(cluster, &name, &format!("{field}.secretRef"), REASON).await?;
            let unusable =
                |error: git::auth::AuthError| Failure::retry(REASON, format!("{field}: {error}"));
            let secret = GitSecret::from_data(secret.origin, &secret.data).map_err(unusable)?;
            let path = entry.path.as_deref().map(PathGlob::parse).transpose().map_err(unusable)?;
            rules.push(Rule::Explicit { host: HostRule::parse(&entry.host), path, secret });
        }
        if let Some(SourceSecret { url, secret, field }) = &self.source {
            let unusable =
                |error: &dyn std::fmt::Display| Failure::retry(REASON, format!("{field}: {error}"));
            let url = GitUrl::parse(url).map_err(|error| unusable(&error))?;
            let secret = secrets::read(cluster, secret, field, REASON).await?;
            let secret = GitSecret::from_data(secret.origin, &secret.data)
                .map_err(|error| unusable(&error))?;
            rules.push(Rule::Source { url, secret });
        }
        Ok(Rules(rules))
    }
}

/// The engine's way to included repositories.
pub(crate) struct Includes {
    cluster: Cluster,
    cache: git::Cache,
    credentials: GitCredentials,
    rules: OnceCell<Rules>,
    cancel: CancellationToken,
}

impl Includes {
    /// Repositories through `cache`, with credentials that are read as the controller itself.
    pub(crate) fn new(
        cluster: Cluster,
        cache: git::Cache,
        credentials: GitCredentials,
        cancel: CancellationToken,
    ) -> Self {
        Self { cluster, cache, credentials, rules: OnceCell::new(), cancel }
    }

    /// The credentials, read on first use.
    async fn rules(&self) -> Result<&Rules, Diagnostic> {
        let rules = self.rules.get_or_try_init(|| self.credentials.rules(&self.cluster)).await;
        rules.map_err(|failure| Diagnostic::new(Class::Access, failure.message))
    }

    async fn fetch(
        &self,
        url: &str,
        reference: Option<&GitRef>,
    ) -> Result<GitCheckout, Diagnostic> {
        let rules = self.rules().await?;
        let url = GitUrl::parse(url).map_err(|error| git::GitError::from(error).describe())?;
        let auth = rules.choose(&url);
        let reference = git::Reference::from(reference);
        let checkout = self.cache.checkout(&url, &reference, &auth, &self.cancel).await;
        let checkout = checkout.map_err(|error| error.describe())?;
        Ok(GitCheckout { tree: checkout.tree, commit: checkout.resolved.commit })
    }
}

impl GitSource for Includes {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        self.fetch(url, reference).boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        async move {
            let rules = self.rules().await?;
            git_tips(&self.cache, rules, url, &self.cancel).await
        }
        .boxed()
    }
}
