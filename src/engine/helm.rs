//! Renders the Helm charts of all items, between their templates and their kustomizations.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{EngineError, Externals};
use crate::{
    cluster::{ApiOutcome, Cluster},
    deployment::{ChartError, ChartProblem, ChartUse, ItemError, RenderedItem, Rendering},
    diagnostic::{Class, Describe, Diagnostic},
    helm::{
        Capabilities, ChartCache, ChartFiles, Found, HelmError, Origin, Puller, Release, Renderer,
        Version,
    },
    secret::SecretTexts,
    tree::SourceTree,
    vars::GitSource,
};

/// Charts that are found and rendered at the same time; how many programs run is up to the renderer.
const PARALLEL: usize = 32;

/// What a run needs to render Helm charts.
#[derive(Clone)]
pub struct Charts {
    /// Runs Helm.
    pub renderer: Renderer,
    /// Fetches charts that are not in the project's source; `None` makes them an error.
    pub source: Option<Arc<dyn ChartSource>>,
    /// The Kubernetes version to tell charts, in place of the target cluster's.
    pub kube_version: Option<String>,
}

/// Where charts come from that are not in the project's source.
pub trait ChartSource: Send + Sync {
    /// The files of a chart.
    ///
    /// # Errors
    /// When the chart or its version does not exist, or may not be read.
    fn fetch<'a>(
        &'a self,
        origin: &'a Origin,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<ChartFiles, Diagnostic>>;
}

/// Charts from repositories and registries with somebody's credentials, and from Git repositories as includes are.
pub struct PulledCharts {
    /// Fetches archives.
    pub puller: Puller,
    /// Keeps them.
    pub cache: ChartCache,
    /// The present time, by which what is kept may be too old.
    pub now: Timestamp,
    /// Where charts in Git repositories come from.
    pub git: Option<Arc<dyn GitSource>>,
    /// Ends downloads.
    pub cancel: CancellationToken,
}

impl ChartSource for PulledCharts {
    fn fetch<'a>(
        &'a self,
        origin: &'a Origin,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<ChartFiles, Diagnostic>> {
        async move {
            let reference = match version {
                Version::Chart(version) => {
                    let (cache, now) = (&self.cache, self.now.into());
                    let files = self.puller.files(origin, version, cache, now, &self.cancel).await;
                    return files.map_err(|error| error.describe());
                }
                Version::Git(reference) => reference.as_ref(),
            };
            let (Origin::Git { address, sub_dir, .. }, Some(git)) = (origin, &self.git) else {
                let message = format!("{origin} cannot be read, there is no access to Git here");
                return Err(Diagnostic::new(Class::Project, message));
            };
            let checkout = git.checkout(address.reveal(), reference).await?;
            read(checkout.tree, sub_dir.clone()).await
        }
        .boxed()
    }
}

/// Renders the charts of the items that have any, and completes those items. The results are in order, as `rendered` is.
pub(super) async fn render_charts(
    rendering: &Arc<Rendering>,
    rendered: Vec<Result<RenderedItem, Vec<ItemError>>>,
    externals: &Externals,
    cancel: &CancellationToken,
) -> Result<Vec<Result<RenderedItem, Vec<ItemError>>>, EngineError> {
    let capabilities = tokio::sync::OnceCell::new();
    let capabilities = &capabilities;
    let items = rendered.into_iter().enumerate().map(|(index, item)| async move {
        match item {
            Ok(item) if !item.charts().is_empty() => {
                let run = Run { rendering, externals, cancel, capabilities };
                run.item(index, item).await
            }
            other => other,
        }
    });
    let all = stream::iter(items).buffered(PARALLEL).collect::<Vec<_>>();
    let results = tokio::select! {
        results = all => results,
        () = cancel.cancelled() => return Err(EngineError::Cancelled),
    };
    if cancel.is_cancelled() { Err(EngineError::Cancelled) } else { Ok(results) }
}

struct Run<'a> {
    rendering: &'a Arc<Rendering>,
    externals: &'a Externals,
    cancel: &'a CancellationToken,
    /// Asked for when the first chart needs them.
    capabilities: &'a tokio::sync::OnceCell<Capabilities>,
}

impl Run<'_> {
    async fn item(&self, index: usize, item: RenderedItem) -> Result<RenderedItem, Vec<ItemError>> {
        let charts = item.charts().iter().map(|chart| self.chart(index, chart));
        let results = futures::future::join_all(charts).await;
        let (mut manifests, mut errors) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(text) => manifests.push(text),
                Err(error) => errors.push(self.rendering.chart_error(index, &item, error)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.rendering.complete_item(index, item, &manifests)
    }

    async fn chart(&self, index: usize, chart: &ChartUse) -> Result<Arc<str>, ChartError> {
        let fail = |problem: ChartProblem| chart.error(problem);
        let Some(helm) = &self.externals.helm else { return Err(fail(ChartProblem::NoHelm)) };
        let files = match &chart.found {
            Found::Here(dir) => read(self.rendering.source_of(index), dir.clone()).await,
            Found::Elsewhere(origin, version) => match &helm.source {
                Some(source) => source.fetch(origin, version).await,
                None => return Err(fail(ChartProblem::NoHelm)),
            },
        };
        let files = files.map_err(|error| fail(ChartProblem::Fetch(Box::new(error))))?;
        let capabilities = self.capabilities.get_or_try_init(|| self.ask_capabilities(helm));
        let capabilities =
            capabilities.await.map_err(|error| fail(ChartProblem::Fetch(Box::new(error))))?;
        let mut values = chart.values.clone();
        if let Some(values) = &mut values {
            values.is_secret |= is_secret(&values.text, &self.externals.masked);
        }
        let release = Release {
            chart: files,
            name: chart.chart.release_name.clone(),
            namespace: chart.chart.namespace.clone().filter(|namespace| !namespace.is_empty()),
            values,
            skip_crds: chart.chart.skip_crds,
            capabilities: capabilities.clone(),
        };
        let rendered = helm.renderer.render(&release, self.cancel).await;
        rendered.map_err(|error: HelmError| fail(error.into()))
    }

    async fn ask_capabilities(&self, helm: &Charts) -> Result<Capabilities, Diagnostic> {
        let mut capabilities = match &self.externals.target {
            Some(cluster) => of_cluster(cluster).await?,
            None => Capabilities::default(),
        };
        if let Some(version) = &helm.kube_version {
            capabilities.kube_version = Some(version.clone());
        }
        Ok(capabilities)
    }
}

/// Whether the values contain what sensitive variables hold.
fn is_secret(values: &[u8], masked: &SecretTexts) -> bool {
    let text = String::from_utf8_lossy(values);
    masked.mask(&text) != text
}

async fn read(tree: Arc<dyn SourceTree>, dir: String) -> Result<ChartFiles, Diagnostic> {
    let reading = tokio::task::spawn_blocking(move || ChartFiles::read(&*tree, &dir)).await;
    match reading {
        Ok(read) => read.map_err(|error| error.describe()),
        Err(error) => Err(Diagnostic::new(Class::Internal, error.to_string())),
    }
}

/// What charts are told about a cluster: its version, and all versions and kinds that it serves.
async fn of_cluster(cluster: &Cluster) -> Result<Capabilities, Diagnostic> {
    let refused = |what: &str, outcome: &ApiOutcome| {
        let mut diagnostic = Diagnostic::new(outcome.class(), what);
        diagnostic.causes.extend(outcome.message().map(str::to_owned));
        diagnostic
    };
    let kinds = cluster.kinds().await;
    let kinds = kinds
        .map_err(|outcome| refused("the kinds of the target cluster cannot be listed", &outcome))?;
    let version = cluster.server_version().await;
    let version = version
        .map_err(|outcome| refused("the version of the target cluster cannot be read", &outcome))?;
    let mut api_versions = std::collections::BTreeSet::new();
    for kind in kinds.all() {
        api_versions.insert(format!("{}/{}", kind.api_version(), kind.kind));
        api_versions.insert(kind.api_version());
    }
    Ok(Capabilities {
        kube_version: Some(version),
        api_versions: api_versions.into_iter().collect(),
    })
}
