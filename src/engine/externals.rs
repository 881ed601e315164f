use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Charts, RemoteResources};
use crate::{
    cluster::{ApiKind, ApiOutcome, Cluster, Discovery},
    deployment::ScopeLookup,
    diagnostic::{Class, Describe, Diagnostic},
    git::{self, GitUrl},
    object::ObjectRef,
    schema::GitRef,
    secret::SecretTexts,
    vars::{ClusterReader, GitCheckout, GitSource, GitTip, GitTips, HttpSource, SecretStores},
};

/// What a run may talk to, handed in by the front. Each part that is missing makes its use an error with a clear message.
#[derive(Clone, Default)]
pub struct Externals {
    /// Where Git includes, and variables in Git repositories, come from.
    pub git: Option<Arc<dyn GitSource>>,
    /// Sends the requests of `http` variables.
    pub http: Option<Arc<dyn HttpSource>>,
    /// Downloads remote files of kustomizations; without, kustomizations may name nothing remote.
    pub downloads: Option<Arc<dyn HttpSource>>,
    /// Stores of secrets for variables.
    pub secrets: SecretStores,
    /// Learns the values of sensitive variables, for whoever tells what a run did.
    pub masked: SecretTexts,
    /// Renders Helm charts.
    pub helm: Option<Charts>,
    /// The target cluster, for what Helm charts are told about it.
    pub target: Option<Cluster>,
    /// The target cluster, for variables.
    pub cluster: Option<Arc<dyn ClusterReader>>,
    /// The kinds of the target cluster; without, objects keep the namespaces they are written with.
    pub scopes: Option<Arc<dyn ScopeLookup>>,
    /// Environment variables that `systemEnvVars` may read.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl Externals {
    /// Where kustomizations get remote resources from, if they are allowed. To be called in a runtime.
    pub(super) fn remotes(&self) -> Option<Arc<RemoteResources>> {
        let (git, downloads) = self.git.clone().zip(self.downloads.clone())?;
        Some(Arc::new(RemoteResources::new(git, downloads, Handle::current())))
    }

    /// Adds the target cluster, after learning its kinds.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn with_cluster(mut self, cluster: &Cluster) -> Result<Self, Diagnostic> {
        let kinds = cluster.kinds().await.map_err(|outcome| refused(&outcome, KINDS_UNKNOWN))?;
        self.scopes = Some(Arc::new(ClusterScopes(kinds)));
        self.cluster = Some(Arc::new(cluster.clone()));
        self.target = Some(cluster.clone());
        Ok(self)
    }
}

/// Git includes from a cache of repositories, with the credentials that fit each URL.
pub struct GitIncludes {
    /// The repositories.
    pub cache: git::Cache,
    /// The credentials.
    pub rules: git::Rules,
    /// Ends downloads.
    pub cancel: CancellationToken,
}

impl GitSource for GitIncludes {
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        async move {
            let url = GitUrl::parse(url).map_err(|error| git::GitError::from(error).describe())?;
            let auth = self.rules.choose(&url);
            let checkout = self.cache.checkout(&url, &reference.into(), &auth, &self.cancel).await;
            let checkout = checkout.map_err(|error| error.describe())?;
            Ok(GitCheckout { tree: checkout.tree, commit: checkout.resolved.commit })
        }
        .boxed()
    }

    fn tips<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        async move { git_tips(&self.cache, &self.rules, url, &self.cancel).await }.boxed()
    }
}

/// The branches and tags of a repository, with the credentials that fit.
///
/// # Errors
/// When the repository does not exist or may not be read.
pub(crate) async fn git_tips(
    cache: &git::Cache,
    rules: &git::Rules,
    url: &str,
    cancel: &CancellationToken,
) -> Result<GitTips, Diagnostic> {
    let url = GitUrl::parse(url).map_err(|error| git::GitError::from(error).describe())?;
    let auth = rules.choose(&url);
    let (default, all) = cache.tips(&url, &auth, cancel).await.map_err(|error| error.describe())?;
    let tip = |tip: git::Resolved| Some(GitTip { name: tip.name?, commit: tip.commit });
    Ok(GitTips { default: default.name, all: all.into_iter().filter_map(tip).collect() })
}

struct ClusterScopes(Arc<Discovery>);

impl ScopeLookup for ClusterScopes {
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.0.is_namespaced(group, kind)
    }
}

impl ClusterReader for Cluster {
    fn api_versions<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<String>, Diagnostic>> {
        async move {
            let kinds = self.kinds().await;
            let kinds = kinds.map_err(|outcome| refused(&outcome, KINDS_UNKNOWN))?;
            let preferred = kinds.matching(None, Some(kind));
            let mut versions: Vec<String> = preferred.map(|found| found.api_version()).collect();
            versions.sort();
            Ok(versions)
        }
        .boxed()
    }

    fn get<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>> {
        async move {
            let api_kind = api_kind(self, api_version, kind).await?;
            let shown = ObjectRef::new(api_version, kind, within(namespace), name);
            match Cluster::get(self, &api_kind, within(namespace), name).await.outcome {
                ApiOutcome::Done(object) => Ok(Some(object)),
                outcome if outcome.is_absent() => Ok(None),
                outcome => Err(refused(&outcome, &format!("{shown} cannot be read"))),
            }
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Vec<Value>, Diagnostic>> {
        async move {
            let api_kind = api_kind(self, api_version, kind).await?;
            let selector: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let list = Cluster::list(self, &api_kind, within(namespace), &selector.join(",")).await;
            let mut objects = list.map_err(|outcome| {
                let place = within(namespace)
                    .map_or(String::new(), |namespace| format!(" of namespace {namespace}"));
                refused(&outcome, &format!("{kind} objects{place} cannot be listed"))
            })?;
            let key = |object: &Value| {
                let metadata = &object["metadata"];
                [&metadata["namespace"], &metadata["name"]]
                    .map(|text| text.as_str().map(str::to_owned))
            };
            objects.sort_by_key(key);
            Ok(objects)
        }
        .boxed()
    }
}

const KINDS_UNKNOWN: &str = "the kinds of the target cluster cannot be listed";

fn within(namespace: &str) -> Option<&str> {
    (!namespace.is_empty()).then_some(namespace)
}

/// The kind as the cluster serves it. The kinds that most variables come from need no discovery.
async fn api_kind(cluster: &Cluster, api_version: &str, kind: &str) -> Result<ApiKind, Diagnostic> {
    if api_version == "v1" && matches!(kind, "ConfigMap" | "Secret") {
        return Ok(ApiKind::core(kind));
    }
    let reference = ObjectRef::new(api_version, kind, None, "");
    let kinds = cluster.kinds().await.map_err(|outcome| refused(&outcome, KINDS_UNKNOWN))?;
    kinds.of_reference(&reference).map(|found| (**found).clone()).ok_or_else(|| {
        let message = format!("the target cluster does not serve {kind} in {api_version}");
        Diagnostic::new(Class::Project, message)
    })
}

fn refused(outcome: &ApiOutcome, what: &str) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(outcome.class(), what);
    diagnostic.causes.extend(outcome.message().map(str::to_owned));
    if outcome.class() == Class::Access {
        diagnostic.hints.push("grant the right to read it".to_owned());
    }
    diagnostic
}
