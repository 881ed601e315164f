//! The walk over a deployment project, its includes and variables (kluctl 2.28).

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::{
    LoadError, LoadProblem,
    config_file::Place,
    inherited::Inherited,
    item::{Item, Project},
    load::{Deployment, LoadInput, Partial},
    metadata::is_label_value,
    project_file::{self, is_true, join},
    sources::{Repositories, Source},
};
use crate::{
    diagnostic::{Class, Diagnostic, FieldPath},
    schema::{self, DeploymentFile},
    vars::{Context, Templates},
};

/// How deep includes may be nested. Real projects stay below ten.
const MAX_DEPTH: usize = 64;
/// How many projects a deployment may consist of, so that includes cannot multiply without end.
const MAX_PROJECTS: usize = 4096;
/// How many problems are gathered before the walk ends.
const MAX_ERRORS: usize = 100;

/// One use of a deployment project that is about to be loaded.
pub(super) struct Visit {
    pub(super) source: usize,
    pub(super) dir: String,
    pub(super) parent: Option<Arc<Project>>,
    /// The item that includes the project, and its place; `None` for the root.
    pub(super) include: Option<(schema::DeploymentItem, Place)>,
    pub(super) context: Context,
}

/// The walk is over, because it was cancelled or there is too much wrong.
pub(super) struct Stop;

pub(super) struct Walk<'a> {
    pub(super) input: LoadInput,
    cancel: &'a CancellationToken,
    pub(super) deployment: Deployment,
    errors: Vec<LoadError>,
    /// The Git repositories in use; `None` makes Git includes an error.
    pub(super) repositories: Option<Arc<Repositories>>,
    /// Positions in `deployment.sources` of the repositories included, by URL and reference as written.
    pub(super) included: HashMap<super::sources::RepositoryKey, usize>,
    /// How often each item directory was used.
    uses: HashMap<(usize, String), usize>,
    /// The projects that are being loaded, outermost first.
    stack: Vec<Frame>,
}

/// A project on the way from the root to the current one.
struct Frame {
    source: usize,
    dir: String,
    context: Context,
    shown: String,
}

impl<'a> Walk<'a> {
    pub(super) fn new(mut input: LoadInput, cancel: &'a CancellationToken) -> Self {
        let repositories = input.vars.git.take().map(|git| Arc::new(Repositories::new(git)));
        input.vars.git = repositories.clone().map(|repositories| repositories as _);
        let deployment = Deployment {
            sources: vec![Source::root(input.tree.clone())],
            projects: Vec::new(),
            items: Vec::new(),
            git_repositories: Vec::new(),
            warnings: Vec::new(),
        };
        Self {
            input,
            cancel,
            deployment,
            errors: Vec::new(),
            repositories,
            included: HashMap::new(),
            uses: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Loads everything from the root on.
    pub(super) async fn root(&mut self) {
        let root = Visit {
            source: 0,
            dir: self.input.dir.clone(),
            parent: None,
            include: None,
            context: self.input.context.clone(),
        };
        // The reason to stop is among the errors.
        let _stopped = self.project(root).await;
    }

    pub(super) fn finish(mut self) -> Partial {
        if let Some(repositories) = &self.repositories {
            self.deployment.git_repositories = repositories.resolved();
        }
        Partial { deployment: self.deployment, errors: self.errors }
    }

    pub(super) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Notes a problem. The walk goes on beside it, unless that makes no sense.
    pub(super) fn fail(&mut self, error: impl Into<LoadError>) -> Result<(), Stop> {
        let error = error.into();
        let is_final =
            matches!(error.problem(), LoadProblem::Cancelled | LoadProblem::TooMany { .. });
        self.errors.push(error);
        if is_final || self.errors.len() >= MAX_ERRORS { Err(Stop) } else { Ok(()) }
    }

    /// The value of a step, or `None` when it failed, which is noted.
    pub(super) fn noted<T>(
        &mut self,
        result: Result<T, impl Into<LoadError>>,
    ) -> Result<Option<T>, Stop> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.fail(error).map(|()| None),
        }
    }

    /// Loads a project and, in order, all items and includes below it.
    pub(super) fn project(&mut self, visit: Visit) -> BoxFuture<'_, Result<(), Stop>> {
        async move {
            if self.cancel.is_cancelled() {
                return self.fail(LoadProblem::Cancelled);
            }
            let entered = self.enter(&visit);
            if self.noted(entered)?.is_none() {
                return Ok(());
            }
            self.project_inside(visit).await?;
            self.stack.pop();
            Ok(())
        }
        .boxed()
    }

    /// Puts the project on the stack, unless it is there already with the same variables: it would include itself for ever.
    /// A project that includes itself with other variables may have an end, which `MAX_DEPTH` makes sure of.
    fn enter(&mut self, visit: &Visit) -> Result<(), LoadError> {
        let place = visit.include.as_ref().map(|(_, place)| place.clone());
        let fail = |problem: LoadProblem| match place.clone() {
            Some(place) => LoadError::at(problem, place),
            None => problem.into(),
        };
        let shown = self.deployment.sources[visit.source].shown(&visit.dir);
        let is_same = |frame: &Frame| {
            frame.source == visit.source
                && frame.dir == visit.dir
                && frame.context.values() == visit.context.values()
        };
        if self.stack.iter().any(is_same) {
            let mut chain: Vec<String> =
                self.stack.iter().map(|frame| frame.shown.clone()).collect();
            chain.push(shown);
            return Err(fail(LoadProblem::Cycle { chain }));
        }
        if self.stack.len() >= MAX_DEPTH {
            let innermost = self.stack.iter().skip(MAX_DEPTH - 4).map(|frame| frame.shown.clone());
            return Err(fail(LoadProblem::TooDeep {
                limit: MAX_DEPTH,
                chain: innermost.collect(),
            }));
        }
        if self.deployment.projects.len() >= MAX_PROJECTS {
            return Err(fail(LoadProblem::TooMany { limit: MAX_PROJECTS }));
        }
        let (source, dir, context) = (visit.source, visit.dir.clone(), visit.context.clone());
        self.stack.push(Frame { source, dir, context, shown });
        Ok(())
    }

    async fn project_inside(&mut self, visit: Visit) -> Result<(), Stop> {
        let templates = self.templates(&visit);
        let file = match project_file::read(&visit, &templates) {
            Ok(Some(file)) => file,
            Ok(None) => {
                self.single_item(visit, templates);
                return Ok(());
            }
            Err(errors) => return errors.into_iter().try_for_each(|error| self.fail(error)),
        };
        let (file, root_place) = file;
        let mut context = visit.context.clone();
        if visit.parent.is_none() && file.when.as_ref().is_some_and(|when| !when.is_empty()) {
            self.fail(LoadError::at(LoadProblem::RootWhen, root_place.child("when")))?;
        }
        let loaded = self.load_vars(&file.vars, &root_place, &templates, &mut context).await;
        if self.noted(loaded)?.is_none() {
            // Whatever follows may need them.
            return Ok(());
        }
        let (items, errors) =
            project_file::items(&visit.dir, &file.deployments, &root_place, &templates, &context);
        errors.into_iter().try_for_each(|error| self.fail(error))?;
        let is_used = is_true(file.when.as_deref(), &root_place, &templates, &context);
        if !self.noted(is_used)?.unwrap_or_default() {
            return Ok(());
        }
        let project = self.add_project(visit, templates, &file);
        for (item, place) in items {
            if item.is_include() {
                Box::pin(self.include(&project, item, place, &context)).await?;
            } else {
                self.item(&project, item, place, context.clone()).await?;
            }
        }
        Ok(())
    }

    /// Templates of a project are searched in its directory and in those of its parents, within the same source.
    fn templates(&self, visit: &Visit) -> Templates {
        let mut dirs = vec![visit.dir.clone()];
        let parents = visit.parent.iter().flat_map(|parent| parent.ancestry());
        for parent in parents.filter(|parent| parent.source == visit.source) {
            if !dirs.contains(&parent.dir) {
                dirs.push(parent.dir.clone());
            }
        }
        let source = &self.deployment.sources[visit.source];
        Templates::new(source.tree.clone(), source.label.clone(), dirs, &self.input.jinja)
    }

    fn add_project(
        &mut self,
        visit: Visit,
        templates: Templates,
        file: &DeploymentFile,
    ) -> Arc<Project> {
        let nothing = Inherited::default();
        let above = visit.parent.as_ref().map_or(&nothing, |parent| &parent.inherited);
        let include_tags = visit.include.as_ref().map_or(&[][..], |(item, _)| &item.tags);
        let inherited = Inherited::below(above, include_tags, file);
        let project = Arc::new(Project {
            id: self.deployment.projects.len(),
            source: visit.source,
            dir: visit.dir,
            parent: visit.parent,
            templates,
            inherited,
        });
        self.deployment.projects.push(project.clone());
        project
    }

    /// A root without `deployment.yaml` is one item: the directory itself.
    fn single_item(&mut self, visit: Visit, templates: Templates) {
        let (dir, context) = (visit.dir.clone(), visit.context.clone());
        let project = self.add_project(visit, templates, &DeploymentFile::default());
        let config = schema::DeploymentItem { path: Some(".".to_owned()), ..Default::default() };
        let (dir, tags) = (Some(dir), Vec::new());
        let item = Item { project, dir, use_index: 0, config, tags, context };
        self.deployment.items.push(item);
    }

    pub(super) async fn item(
        &mut self,
        project: &Arc<Project>,
        config: schema::DeploymentItem,
        place: Place,
        mut context: Context,
    ) -> Result<(), Stop> {
        let loaded = self.load_vars(&config.vars, &place, &project.templates, &mut context).await;
        let dir = match &config.path {
            Some(path) => join(&project.dir, path, &place.child("path")).map(Some),
            None => Ok(None),
        };
        let (Some(()), Some(dir)) = (self.noted(loaded)?, self.noted(dir)?) else { return Ok(()) };
        let use_index = match &dir {
            Some(dir) => {
                let uses = self.uses.entry((project.source, dir.clone())).or_default();
                *uses += 1;
                *uses - 1
            }
            None => 0,
        };
        let tags = project.inherited.item_tags(&config.tags);
        self.warn_of_tags(&tags, &place);
        let item = Item { project: project.clone(), dir, use_index, config, tags, context };
        self.deployment.items.push(item);
        Ok(())
    }

    /// Tags become labels, which cannot have any value.
    fn warn_of_tags(&mut self, tags: &[String], place: &Place) {
        for tag in tags.iter().filter(|tag| !is_label_value(tag)) {
            let message =
                format!("tag {tag:?} is no label value, so API servers refuse the objects");
            let warning = Diagnostic::new(Class::Project, message);
            let warning = place.complete(warning).to_string();
            if !self.deployment.warnings.contains(&warning) {
                self.deployment.warnings.push(warning);
            }
        }
    }

    /// Loads a list of vars entries; each sees the variables of those before it.
    pub(super) async fn load_vars(
        &self,
        entries: &[schema::VarsSource],
        place: &Place,
        templates: &Templates,
        context: &mut Context,
    ) -> Result<(), LoadError> {
        for (index, entry) in entries.iter().enumerate() {
            let place = place.below(&FieldPath::root().child("vars").child(index));
            // Boxed, as the walk is recursive and what loads variables is large.
            let load = Box::pin(self.input.vars.load(entry, place.path(), templates, context));
            let loaded = tokio::select! {
                loaded = load => loaded,
                () = self.cancel.cancelled() => return Err(LoadProblem::Cancelled.into()),
            };
            loaded.map_err(|error| LoadError::at(error, place))?;
        }
        Ok(())
    }
}
