//! From a source to the desired state.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{EngineError, Externals, Limits, helm::render_charts, parallel::for_each_index};
use crate::{
    deployment::{
        self, Building, Deployment, DesiredState, Inclusion, ItemError, LoadError, LoadInput,
        LoadProblem, RenderOptions, RenderedFiles, RenderedItem, Rendering, ResolvedRepository,
    },
    diagnostic::{Class, Diagnostic},
    jinja,
    observer::{EngineEvent, Observer, Stage},
    project::{Project, ProjectError, Target, TargetList, TargetRequest},
    tree::SourceTree,
    vars::{Context, VarsLoader},
};

/// Where a project is.
#[derive(Clone)]
pub struct Source {
    /// All files of the source: a Flux artifact, a clone, a working directory.
    pub tree: Arc<dyn SourceTree>,
    /// Directory of the project in it, as [`crate::tree::join`] makes it.
    pub project_dir: String,
    /// Configuration to use instead of `.kluctl.yaml` in the project's directory.
    pub config_file: Option<ConfigFile>,
}

/// A project configuration that may lie outside of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// What to call it in messages.
    pub name: String,
    /// What it says.
    pub content: Vec<u8>,
}

/// What is to be prepared.
#[derive(Clone)]
pub struct PrepareRequest {
    /// The project.
    pub source: Source,
    /// The target, its arguments and overrides.
    pub target: TargetRequest,
    /// Which part of the deployment is meant.
    pub inclusion: Inclusion,
    /// Settings of the template engine, with the time that templates see.
    pub jinja: jinja::Options,
}

/// A project and the target chosen from it, before anything is rendered. The front connects to the target's context next.
pub struct ResolvedTarget {
    /// The project.
    pub project: Arc<Project>,
    /// The target. Fronts call [`Target::set_context`] with the context that is really used, since templates see it.
    pub target: Target,
}

/// Everything that is known before the cluster is changed.
pub struct Prepared {
    /// The project.
    pub project: Arc<Project>,
    /// The target.
    pub target: Target,
    /// What is wanted in the cluster.
    pub desired: DesiredState,
    /// Git repositories that were included, with their commits.
    pub git_repositories: Vec<ResolvedRepository>,
    /// The rendered files of each item.
    pub rendered_files: Vec<RenderedFiles>,
}

/// Prepares runs. Cheap to clone; clones share their limits and compiled templates.
#[derive(Debug, Clone)]
pub struct Engine {
    limits: Limits,
    compiled: jinja::Compiled,
}

impl Engine {
    /// An engine with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, compiled: jinja::Compiled::default() }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Settings of the template engine for a run at this time, which takes templates that former runs compiled.
    pub fn template_options(&self, now: jiff::Timestamp) -> jinja::Options {
        jinja::Options { compiled: self.compiled.clone(), ..jinja::Options::new(now) }
    }

    /// Reads the project and chooses the target.
    ///
    /// # Errors
    /// [`EngineError::Project`] when `.kluctl.yaml` is wrong, or the target or its arguments are.
    pub async fn resolve_target(
        &self,
        request: &PrepareRequest,
        cancel: &CancellationToken,
    ) -> Result<ResolvedTarget, EngineError> {
        let request = request.clone();
        self.on_blocking_pool(cancel, move || {
            let project = request.source.project()?;
            let render = |texts: &[&str], variables: &Map<String, Value>| {
                render_texts(texts, variables, &request.jinja)
            };
            let target = project.resolve(&request.target, &render)?;
            Ok(ResolvedTarget { project: Arc::new(project), target })
        })
        .await
    }

    /// The targets of a project that can be used without arguments from outside.
    ///
    /// # Errors
    /// [`EngineError::Project`] when `.kluctl.yaml` is wrong.
    pub async fn list_targets(
        &self,
        source: Source,
        options: jinja::Options,
        cancel: &CancellationToken,
    ) -> Result<TargetList, EngineError> {
        self.on_blocking_pool(cancel, move || {
            let render = |texts: &[&str], variables: &Map<String, Value>| {
                render_texts(texts, variables, &options)
            };
            Ok(source.project()?.targets(&Value::Null, &render))
        })
        .await
    }

    /// Reads the project, chooses the target, and prepares it: [`Engine::resolve_target`] and [`Engine::prepare_target`], for
    /// fronts that know the cluster beforehand.
    ///
    /// # Errors
    /// As those two.
    pub async fn prepare(
        &self,
        request: &PrepareRequest,
        externals: &Externals,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<Prepared, EngineError> {
        let resolved = self.resolve_target(request, cancel).await?;
        self.prepare_target(request, resolved, externals, observer, cancel).await
    }

    /// Loads the deployment project with its includes and variables, renders and builds all items in scope.
    ///
    /// Reads from `externals` only. Work that has begun on the blocking pool ends by itself when the future is dropped.
    ///
    /// # Errors
    /// All problems of the stage that fails; there is no partial result.
    pub async fn prepare_target(
        &self,
        request: &PrepareRequest,
        resolved: ResolvedTarget,
        externals: &Externals,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<Prepared, EngineError> {
        let ResolvedTarget { project, target } = resolved;
        let mut deployment = in_stage(observer, Stage::Load, async {
            self.load(request, &target, externals, cancel).await
        })
        .await?;
        let mut git_repositories = std::mem::take(&mut deployment.git_repositories);
        let rendering = Arc::new(deployment.into_rendering(RenderOptions {
            inclusion: request.inclusion.clone(),
            discriminator: target.discriminator.clone(),
            images: target.images.clone(),
        }));
        let rendered = in_stage(observer, Stage::Render, async {
            let rendering = rendering.clone();
            let count = rendering.item_count();
            self.each_item(count, cancel, move |index| rendering.render_item(index)).await
        })
        .await?;
        let rendered = charts(&rendering, rendered, externals, observer, cancel).await?;
        let remotes = externals.remotes();
        let building = Building::new(rendering, rendered);
        let building = Arc::new(building.with_remotes(remotes.clone().map(|it| it as Arc<_>)));
        let built = in_stage(observer, Stage::Build, async {
            let building = building.clone();
            let count = building.item_count();
            self.each_item(count, cancel, move |index| building.build_item(index)).await
        })
        .await?;
        git_repositories.extend(remotes.iter().flat_map(|remotes| remotes.repositories()));
        let rendered_files = building.rendered_files();
        let desired = building.desired(built, externals.scopes.as_deref());
        for message in &desired.warnings {
            let message = externals.masked.mask(message);
            observer.event(EngineEvent::Warning { message });
        }
        Ok(Prepared { project, target, desired, git_repositories, rendered_files })
    }

    async fn on_blocking_pool<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        work: impl Fn() -> Result<T, ProjectError> + Send + Sync + 'static,
    ) -> Result<T, EngineError> {
        let mut results = for_each_index(1, &self.limits.blocking, cancel, move |_| work()).await?;
        match results.pop() {
            Some(result) => Ok(result?),
            None => Err(EngineError::Cancelled),
        }
    }

    /// Runs the walk over includes and variables on the blocking pool: it renders templates between its awaits.
    async fn load(
        &self,
        request: &PrepareRequest,
        target: &Target,
        externals: &Externals,
        cancel: &CancellationToken,
    ) -> Result<Deployment, EngineError> {
        let input = load_input(request, target, externals);
        // Dropping this future ends the walk at its next step.
        let cancel = cancel.child_token();
        let _end = cancel.clone().drop_guard();
        let runtime = tokio::runtime::Handle::current();
        let walk = move || runtime.block_on(deployment::load(input, &cancel));
        match tokio::task::spawn_blocking(walk).await {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(errors)) => Err(load_failure(errors)),
            Err(error) => Err(EngineError::Internal { message: error.to_string() }),
        }
    }

    /// Works on all items in parallel and gathers all their problems.
    async fn each_item<T: Send + 'static>(
        &self,
        count: usize,
        cancel: &CancellationToken,
        work: impl Fn(usize) -> Result<T, Vec<ItemError>> + Send + Sync + 'static,
    ) -> Result<Vec<T>, EngineError> {
        gather(for_each_index(count, &self.limits.blocking, cancel, work).await?)
    }
}

/// All values, or all problems.
fn gather<T>(results: Vec<Result<T, Vec<ItemError>>>) -> Result<Vec<T>, EngineError> {
    let mut done = Vec::with_capacity(results.len());
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(item) => done.push(item),
            Err(problems) => errors.extend(problems),
        }
    }
    if errors.is_empty() { Ok(done) } else { Err(EngineError::Items(errors)) }
}

/// Renders the Helm charts of the items, if any of them has one.
async fn charts(
    rendering: &Arc<Rendering>,
    rendered: Vec<RenderedItem>,
    externals: &Externals,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> Result<Vec<RenderedItem>, EngineError> {
    if rendered.iter().all(|item| item.charts().is_empty()) {
        return Ok(rendered);
    }
    in_stage(observer, Stage::Helm, async {
        let rendered = rendered.into_iter().map(Ok).collect();
        gather(render_charts(rendering, rendered, externals, cancel).await?)
    })
    .await
}

impl Source {
    pub(super) fn project(&self) -> Result<Project, ProjectError> {
        match &self.config_file {
            Some(file) => Project::parse(&file.name, &file.content),
            None => Project::load(&*self.tree, &self.project_dir, None),
        }
    }
}

fn load_failure(errors: Vec<LoadError>) -> EngineError {
    let is_cancelled = |error: &LoadError| matches!(error.problem(), LoadProblem::Cancelled);
    if errors.iter().any(is_cancelled) { EngineError::Cancelled } else { EngineError::Load(errors) }
}

/// What the walk over a target's deployment project needs.
pub(super) fn load_input(
    request: &PrepareRequest,
    target: &Target,
    externals: &Externals,
) -> LoadInput {
    LoadInput {
        tree: request.source.tree.clone(),
        dir: request.source.project_dir.clone(),
        context: Context::from(target.variables()),
        jinja: request.jinja.clone(),
        vars: VarsLoader {
            environment: externals.environment.clone(),
            cluster: externals.cluster.clone(),
            git: externals.git.clone(),
            http: externals.http.clone(),
            secrets: externals.secrets.clone(),
            masked: externals.masked.clone(),
        },
    }
}

/// Renders the texts of a target, which see no files.
pub(super) fn render_texts(
    texts: &[&str],
    variables: &Map<String, Value>,
    options: &jinja::Options,
) -> Vec<Result<String, Box<Diagnostic>>> {
    let environment = jinja::Environment::new(Arc::new(jinja::NoFiles), options.clone());
    let variables = jinja::Vars::new(&Value::Object(variables.clone()));
    let render = |text: &&str| {
        environment.render("", text, &variables).map_err(|error| {
            let mut diagnostic = Diagnostic::new(Class::Project, error.message);
            if !error.excerpt.is_empty() {
                diagnostic.causes.push(format!("in `{}`", error.excerpt));
            }
            Box::new(diagnostic)
        })
    };
    texts.iter().map(render).collect()
}

/// Reports the beginning of a stage and, when it went well, its end.
async fn in_stage<T>(
    observer: &dyn Observer,
    stage: Stage,
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    observer.event(EngineEvent::StageStarted { stage });
    let result = work.await?;
    observer.event(EngineEvent::StageFinished { stage });
    Ok(result)
}

#[cfg(test)]
mod tests;
