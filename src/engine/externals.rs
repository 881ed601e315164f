use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{ApiKind, ApiOutcome, Cluster, Discovery},
    deployment::{GitCheckout, GitSource, ScopeLookup},
    diagnostic::{Class, Describe, Diagnostic},
    git::{self, GitUrl},
    schema::GitRef,
    vars::ClusterReader,
};

/// What a run may talk to, handed in by the front. Each part that is missing makes its use an error with a clear message.
#[derive(Clone, Default)]
pub struct Externals {
    /// Where Git includes come from.
    pub git: Option<Arc<dyn GitSource>>,
    /// The target cluster, for variables.
    pub cluster: Option<Arc<dyn ClusterReader>>,
    /// The kinds of the target cluster; without, objects keep the namespaces they are written with.
    pub scopes: Option<Arc<dyn ScopeLookup>>,
    /// Environment variables that `systemEnvVars` may read.
    pub environment: Arc<BTreeMap<String, String>>,
}

impl Externals {
    /// Adds the target cluster, after learning its kinds.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn with_cluster(mut self, cluster: &Cluster) -> Result<Self, Diagnostic> {
        let kinds = cluster.kinds().await.map_err(|outcome| {
            refused(&outcome, "the kinds of the target cluster cannot be listed")
        })?;
        self.scopes = Some(Arc::new(ClusterScopes(kinds)));
        self.cluster = Some(Arc::new(cluster.clone()));
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
}

struct ClusterScopes(Arc<Discovery>);

impl ScopeLookup for ClusterScopes {
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.0.is_namespaced(group, kind)
    }
}

impl ClusterReader for Cluster {
    fn get<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>> {
        async move {
            let api_kind = core_kind(api_version, kind);
            match Cluster::get(self, &api_kind, Some(namespace), name).await.outcome {
                ApiOutcome::Done(object) => Ok(Some(object)),
                outcome if outcome.is_absent() => Ok(None),
                outcome => {
                    Err(refused(&outcome, &format!("{namespace}/{kind}/{name} cannot be read")))
                }
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
            let api_kind = core_kind(api_version, kind);
            let selector: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let list = Cluster::list(self, &api_kind, Some(namespace), &selector.join(",")).await;
            let mut objects = list.map_err(|outcome| {
                refused(
                    &outcome,
                    &format!("{kind} objects of namespace {namespace} cannot be listed"),
                )
            })?;
            let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
            objects.sort_by_key(name);
            Ok(objects)
        }
        .boxed()
    }
}

/// One of the namespaced kinds of the core group, whose plural is regular; they need no discovery.
fn core_kind(api_version: &str, kind: &str) -> ApiKind {
    ApiKind {
        group: String::new(),
        version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        preferred: true,
        listable: true,
        deletable: true,
        ..ApiKind::namespace()
    }
}

fn refused(outcome: &ApiOutcome, what: &str) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(outcome.class(), what);
    diagnostic.causes.extend(outcome.message().map(str::to_owned));
    if outcome.class() == Class::Access {
        diagnostic.hints.push("grant the right to read it".to_owned());
    }
    diagnostic
}
