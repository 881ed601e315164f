//! The walk over a deployment project, its includes and variables (kluctl 2.28).

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    GitSource, LoadError, LoadProblem, ResolvedRepository,
    config_file::{self, ConfigFile, Place},
    inherited::{Inherited, default_tag},
    item::{Item, Project},
    sources::Source,
};
use crate::{
    diagnostic::{Class, Diagnostic, FieldPath},
    jinja,
    project::args,
    schema::{self, DeploymentFile, GitRef},
    tree::{self, EntryKind, SourceTree},
    vars::{Context, Templates, VarsLoader},
};

/// How deep includes may be nested. Real projects stay below ten.
const MAX_DEPTH: usize = 64;
/// How many projects a deployment may consist of, so that includes cannot multiply without end.
const MAX_PROJECTS: usize = 4096;

/// What is needed to load a deployment project.
pub struct LoadInput {
    /// The project's source.
    pub tree: Arc<dyn SourceTree>,
    /// Directory of the root project in the source, as [`tree::join`] makes it.
    pub dir: String,
    /// Variables of the root project: `target` and `args`.
    pub context: Context,
    /// Settings of the template engine.
    pub jinja: jinja::Options,
    /// Loads variables.
    pub vars: VarsLoader,
    /// Where Git includes come from; `None` makes them an error.
    pub git: Option<Arc<dyn GitSource>>,
}

/// A deployment project with all its includes, ready to be rendered.
pub struct Deployment {
    pub(crate) sources: Vec<Source>,
    pub(crate) projects: Vec<Arc<Project>>,
    /// All items whose conditions are true, in deployment order.
    pub(crate) items: Vec<Item>,
    /// Git repositories that were included, in order of first use.
    pub git_repositories: Vec<ResolvedRepository>,
    /// Things to tell the user that do not prevent a deployment.
    pub warnings: Vec<String>,
}

/// Loads the project: renders and reads each `deployment.yaml`, loads variables, follows includes, and lists all items.
///
/// The only IO is that of `input.vars` and `input.git`; dropping the future between is safe.
///
/// # Errors
/// The first problem, with its place.
pub async fn load(input: LoadInput, cancel: &CancellationToken) -> Result<Deployment, LoadError> {
    let root = Visit {
        source: 0,
        dir: input.dir.clone(),
        parent: None,
        include: None,
        context: input.context.clone(),
    };
    let sources = vec![Source::root(input.tree.clone())];
    let deployment = Deployment {
        sources,
        projects: Vec::new(),
        items: Vec::new(),
        git_repositories: Vec::new(),
        warnings: Vec::new(),
    };
    let mut walk = Walk {
        input,
        cancel,
        deployment,
        git_sources: HashMap::new(),
        uses: HashMap::new(),
        stack: Vec::new(),
    };
    walk.project(root).await?;
    Ok(walk.deployment)
}

/// One use of a deployment project that is about to be loaded.
struct Visit {
    source: usize,
    dir: String,
    parent: Option<Arc<Project>>,
    /// The item that includes the project, and its place; `None` for the root.
    include: Option<(schema::DeploymentItem, Place)>,
    context: Context,
}

struct Walk<'a> {
    input: LoadInput,
    cancel: &'a CancellationToken,
    deployment: Deployment,
    /// Positions in `deployment.sources`, by URL and reference as written.
    git_sources: HashMap<(String, Option<GitRef>), usize>,
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

impl Walk<'_> {
    /// Loads a project and, in order, all items and includes below it.
    fn project(&mut self, visit: Visit) -> BoxFuture<'_, Result<(), LoadError>> {
        async move {
            if self.cancel.is_cancelled() {
                return Err(LoadProblem::Cancelled.into());
            }
            self.enter(&visit)?;
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

    async fn project_inside(&mut self, visit: Visit) -> Result<(), LoadError> {
        let templates = self.templates(&visit);
        let Some((file, config)) = read_deployment_file(&visit, &templates)? else {
            self.single_item(visit, templates);
            return Ok(());
        };
        let mut context = visit.context.clone();
        let config = Arc::new(config);
        let root_place = Place::new(&config, FieldPath::root());
        self.load_vars(&file.vars, &root_place, &templates, &mut context).await?;
        let items = check_items(&visit.dir, &file.deployments, &root_place, &templates, &context)?;
        if visit.parent.is_none() && file.when.as_ref().is_some_and(|when| !when.is_empty()) {
            return Err(LoadError::at(LoadProblem::RootWhen, root_place.child("when")));
        }
        if !is_true(file.when.as_deref(), &root_place, &templates, &context)? {
            return Ok(());
        }
        let project = self.add_project(visit, templates, &file);
        for (item, place) in items {
            if item.is_include() {
                self.include(&project, item, place, &context).await?;
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

    async fn item(
        &mut self,
        project: &Arc<Project>,
        config: schema::DeploymentItem,
        place: Place,
        mut context: Context,
    ) -> Result<(), LoadError> {
        self.load_vars(&config.vars, &place, &project.templates, &mut context).await?;
        let dir = match &config.path {
            Some(path) => Some(join(&project.dir, path, &place.child("path"))?),
            None => None,
        };
        let use_index = match &dir {
            Some(dir) => {
                let uses = self.uses.entry((project.source, dir.clone())).or_default();
                *uses += 1;
                *uses - 1
            }
            None => 0,
        };
        let tags = project.inherited.item_tags(&config.tags);
        let item = Item { project: project.clone(), dir, use_index, config, tags, context };
        self.deployment.items.push(item);
        Ok(())
    }

    async fn include(
        &mut self,
        project: &Arc<Project>,
        config: schema::DeploymentItem,
        place: Place,
        context: &Context,
    ) -> Result<(), LoadError> {
        let (source, dir) = self.locate_include(project, &config, &place).await?;
        let included = &self.deployment.sources[source];
        check_directory(&*included.tree, &dir, &place)?;
        let library = library_context(included, &self.input.jinja, &dir, &config, &place, context)?;
        self.warn_of_ineffective(&config, &place, library.is_some());
        let mut included_context = library.unwrap_or_else(|| context.clone());
        self.load_vars(&config.vars, &place, &project.templates, &mut included_context).await?;
        let barrier = config.barrier;
        let visit = Visit {
            source,
            dir,
            parent: Some(project.clone()),
            include: Some((config, place.clone())),
            context: included_context,
        };
        self.project(visit).await?;
        if barrier {
            let config = schema::DeploymentItem { barrier: true, ..Default::default() };
            self.item(project, config, place, context.clone()).await?;
        }
        Ok(())
    }

    /// The source and directory of an included project; Git repositories are checked out here.
    async fn locate_include(
        &mut self,
        project: &Arc<Project>,
        config: &schema::DeploymentItem,
        place: &Place,
    ) -> Result<(usize, String), LoadError> {
        if let Some(path) = &config.include {
            let dir = join(&project.dir, path, &place.child("include"))?;
            return Ok((project.source, dir));
        }
        if let Some(git) = &config.git {
            let source = self.git_source(git, &place.child("git")).await?;
            let sub_dir = git.sub_dir.as_deref().unwrap_or_default();
            let dir = join("", sub_dir, &place.child("git").child("subDir"))?;
            return Ok((source, dir));
        }
        let what = "includes of OCI artifacts";
        Err(LoadError::at(LoadProblem::NotSupported { what }, place.child("oci")))
    }

    async fn git_source(
        &mut self,
        git: &schema::GitProject,
        place: &Place,
    ) -> Result<usize, LoadError> {
        let sub_dir = git.sub_dir.clone().unwrap_or_default();
        let key = (git.url.clone(), git.reference.clone());
        if let Some(source) = self.git_sources.get(&key) {
            // The project's own source comes first and is no repository of this list.
            let repository = &mut self.deployment.git_repositories[source - 1];
            if !repository.sub_dirs.contains(&sub_dir) {
                repository.sub_dirs.push(sub_dir);
            }
            return Ok(*source);
        }
        let Some(client) = self.input.git.clone() else {
            let what = "Git includes in this mode";
            return Err(LoadError::at(LoadProblem::NotSupported { what }, place.clone()));
        };
        let checkout = tokio::select! {
            checkout = client.checkout(&git.url, git.reference.as_ref()) => checkout,
            () = self.cancel.cancelled() => return Err(LoadProblem::Cancelled.into()),
        };
        let checkout = checkout.map_err(|diagnostic| {
            LoadError::at(LoadProblem::Git { diagnostic: Box::new(diagnostic) }, place.clone())
        })?;
        let source = self.deployment.sources.len();
        let reference = git.reference.as_ref();
        self.deployment.sources.push(Source::git(checkout.tree, &git.url, reference));
        self.deployment.git_repositories.push(ResolvedRepository {
            url: crate::secret::redact_url(&git.url),
            reference: git.reference.clone(),
            commit: checkout.commit,
            sub_dirs: vec![sub_dir],
        });
        self.git_sources.insert(key, source);
        Ok(source)
    }

    /// Tells of fields on an include that have no effect, where the user will expect one (kluctl 2.28).
    fn warn_of_ineffective(
        &mut self,
        config: &schema::DeploymentItem,
        place: &Place,
        is_library: bool,
    ) {
        let has_args = config.args.as_ref().is_some_and(|args| !args.is_empty());
        let no_library = "the included project is no library: it has no .kluctl-library.yaml";
        let on_include = "the item is an include; set it on the items of the included project";
        let ineffective = [
            ("args", has_args && !is_library, no_library),
            ("passVars", config.pass_vars && !is_library, no_library),
            ("deleteObjects", !config.delete_objects.is_empty(), on_include),
            ("waitReadinessObjects", !config.wait_readiness_objects.is_empty(), on_include),
            ("onlyRender", config.only_render, on_include),
            ("alwaysDeploy", config.always_deploy, on_include),
            ("skipDeleteIfTags", config.skip_delete_if_tags, on_include),
        ];
        for (field, is_ineffective, why) in ineffective {
            if is_ineffective {
                let warning = Diagnostic::new(Class::Project, format!("has no effect: {why}"));
                self.deployment.warnings.push(place.child(field).complete(warning).to_string());
            }
        }
    }

    /// Loads a list of vars entries; each sees the variables of those before it.
    async fn load_vars(
        &self,
        entries: &[schema::VarsSource],
        place: &Place,
        templates: &Templates,
        context: &mut Context,
    ) -> Result<(), LoadError> {
        for (index, entry) in entries.iter().enumerate() {
            let place = place.below(&FieldPath::root().child("vars").child(index));
            let load = self.input.vars.load(entry, place.path(), templates, context);
            let loaded = tokio::select! {
                loaded = load => loaded,
                () = self.cancel.cancelled() => return Err(LoadProblem::Cancelled.into()),
            };
            loaded.map_err(|error| LoadError::at(error, place))?;
        }
        Ok(())
    }
}

/// Reads a project's `deployment.yaml`; `None` when it is the root and has none.
fn read_deployment_file(
    visit: &Visit,
    templates: &Templates,
) -> Result<Option<(DeploymentFile, ConfigFile)>, LoadError> {
    let tree = &**templates.tree();
    let Some(path) = config_file::find(tree, &visit.dir, "deployment", ["yml", "yaml"])? else {
        let Some((_, place)) = &visit.include else { return Ok(None) };
        let kustomization = config_file::find(tree, &visit.dir, "kustomization", ["yml", "yaml"])?;
        let problem = LoadProblem::NoDeploymentFile {
            dir: visit.dir.clone(),
            has_kustomization: kustomization.is_some(),
        };
        return Err(LoadError::at(problem, place.clone()));
    };
    let (mut file, config): (DeploymentFile, _) =
        ConfigFile::read(&path, templates, Some(&visit.context))?;
    if let Some(violation) = file.violations().into_iter().next() {
        let place = Place::new(&Arc::new(config), violation.path.clone());
        return Err(LoadError::at(LoadProblem::Rule(violation), place));
    }
    for item in &mut file.deployments {
        let path = item.path.as_deref().or(item.include.as_deref());
        if item.tags.is_empty() {
            item.tags.extend(path.and_then(default_tag));
        }
    }
    Ok(Some((file, config)))
}

/// The items whose condition is true, with their places, after a check that the directories of all of them exist.
fn check_items(
    project_dir: &str,
    items: &[schema::DeploymentItem],
    root: &Place,
    templates: &Templates,
    context: &Context,
) -> Result<Vec<(schema::DeploymentItem, Place)>, LoadError> {
    let mut used = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = root.below(&FieldPath::root().child("deployments").child(index));
        if !is_true(item.when.as_deref(), &place, templates, context)? {
            continue;
        }
        if let Some(path) = &item.path {
            let place = place.child("path");
            let dir = join(project_dir, path, &place)?;
            check_directory(&**templates.tree(), &dir, &place)?;
        }
        used.push((item.clone(), place));
    }
    Ok(used)
}

fn is_true(
    when: Option<&str>,
    place: &Place,
    templates: &Templates,
    context: &Context,
) -> Result<bool, LoadError> {
    templates.is_true(when, context).map_err(|source| {
        let expression = when.unwrap_or_default().to_owned();
        let problem = LoadProblem::When { expression, source: Box::new(source) };
        LoadError::at(problem, place.child("when"))
    })
}

fn join(base: &str, path: &str, place: &Place) -> Result<String, LoadError> {
    tree::join(base, path)
        .map_err(|_| LoadError::at(LoadProblem::Escapes { path: path.to_owned() }, place.clone()))
}

fn check_directory(tree: &dyn SourceTree, dir: &str, place: &Place) -> Result<(), LoadError> {
    let shown = || if dir.is_empty() { ".".to_owned() } else { dir.to_owned() };
    let problem = match tree.kind(dir) {
        Ok(Some(EntryKind::Directory)) => return Ok(()),
        Ok(Some(EntryKind::File)) => LoadProblem::NotADirectory { dir: shown() },
        Ok(None) => LoadProblem::MissingDirectory { dir: shown() },
        Err(error) => error.into(),
    };
    Err(LoadError::at(problem, place.clone()))
}

/// The variables of a library: its arguments and, only with `passVars`, those of the including project. `None` when the
/// directory is no library (kluctl 2.28).
fn library_context(
    source: &Source,
    options: &jinja::Options,
    dir: &str,
    include: &schema::DeploymentItem,
    place: &Place,
    parent: &Context,
) -> Result<Option<Context>, LoadError> {
    let tree = source.tree.clone();
    let found = config_file::find(&*tree, dir, ".kluctl-library", ["yaml", "yml"])?;
    let Some(path) = found else { return Ok(None) };
    let plain = Templates::new(tree, source.label.clone(), Vec::new(), options);
    let (library, _): (schema::LibraryFile, _) = ConfigFile::read(&path, &plain, None)?;
    let given = Value::Object(include.args.clone().unwrap_or_default());
    let args = args::with_defaults(&library.args, given)
        .map_err(|error| LoadError::at(LoadProblem::arguments(&error), place.child("args")))?;
    let mut context = if include.pass_vars { parent.clone() } else { Context::default() };
    context.set("args", args);
    Ok(Some(context))
}
