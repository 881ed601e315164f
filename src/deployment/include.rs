//! Includes: where the included project is, and which variables it sees (kluctl 2.28).

use std::sync::Arc;

use serde_json::Value;

use super::{
    LoadError, LoadProblem,
    config_file::{self, ConfigFile, Place},
    item::Project,
    project_file::{check_directory, join},
    sources::Source,
    walk::{Stop, Visit, Walk},
};
use crate::{
    diagnostic::{Class, Diagnostic},
    jinja,
    project::args,
    schema::{self, DeploymentItem},
    vars::{Context, GitSource, Templates},
};

impl Walk<'_> {
    /// Loads the project that an item includes, and puts the item's barrier behind it.
    pub(super) async fn include(
        &mut self,
        project: &Arc<Project>,
        config: DeploymentItem,
        place: Place,
        context: &Context,
    ) -> Result<(), Stop> {
        let barrier = config.barrier;
        let located = match Box::pin(self.locate_include(project, &config, &place, context)).await {
            Ok(located) => Some(located),
            Err(errors) => {
                errors.into_iter().try_for_each(|error| self.fail(error))?;
                None
            }
        };
        if let Some((source, dir, context)) = located {
            let visit = Visit {
                source,
                dir,
                parent: Some(project.clone()),
                include: Some((config, place.clone())),
                context,
            };
            self.project(visit).await?;
        }
        if barrier {
            let config = DeploymentItem { barrier: true, ..Default::default() };
            self.item(project, config, place, context.clone()).await?;
        }
        Ok(())
    }

    /// The source, the directory and the variables of an included project.
    async fn locate_include(
        &mut self,
        project: &Arc<Project>,
        config: &DeploymentItem,
        place: &Place,
        context: &Context,
    ) -> Result<(usize, String, Context), Vec<LoadError>> {
        let one = |error: LoadError| vec![error];
        let (source, dir) = self.locate_directory(project, config, place).await.map_err(one)?;
        let included = &self.deployment.sources[source];
        check_directory(&*included.tree, &dir, place).map_err(one)?;
        let library = library_context(included, &self.input.jinja, &dir, config, place, context)?;
        self.warn_of_ineffective(config, place, library.is_some());
        let mut included_context = library.unwrap_or_else(|| context.clone());
        let vars = &config.vars;
        let loaded = self.load_vars(vars, place, &project.templates, &mut included_context).await;
        loaded.map_err(one)?;
        Ok((source, dir, included_context))
    }

    /// The source and directory of an included project; Git repositories are checked out here.
    async fn locate_directory(
        &mut self,
        project: &Arc<Project>,
        config: &DeploymentItem,
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
        let Some(repositories) = self.repositories.clone() else {
            let what = "Git includes in this mode";
            return Err(LoadError::at(LoadProblem::NotSupported { what }, place.clone()));
        };
        let reference = git.reference.as_ref();
        let checkout = tokio::select! {
            checkout = repositories.checkout(&git.url, reference) => checkout,
            () = self.cancelled() => return Err(LoadProblem::Cancelled.into()),
        };
        let checkout = checkout.map_err(|diagnostic| {
            LoadError::at(LoadProblem::Git { diagnostic: Box::new(diagnostic) }, place.clone())
        })?;
        repositories.note_directory(&git.url, reference, git.sub_dir.as_deref());
        let key = (git.url.clone(), git.reference.clone());
        if let Some(source) = self.included.get(&key) {
            return Ok(*source);
        }
        let source = self.deployment.sources.len();
        self.deployment.sources.push(Source::git(checkout.tree, &git.url, reference));
        self.included.insert(key, source);
        Ok(source)
    }

    /// Tells of fields on an include that have no effect, where the user will expect one (kluctl 2.28).
    fn warn_of_ineffective(&mut self, config: &DeploymentItem, place: &Place, is_library: bool) {
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
}

/// The variables of a library: its arguments and, only with `passVars`, those of the including project. `None` when the
/// directory is no library (kluctl 2.28).
fn library_context(
    source: &Source,
    options: &jinja::Options,
    dir: &str,
    include: &DeploymentItem,
    place: &Place,
    parent: &Context,
) -> Result<Option<Context>, Vec<LoadError>> {
    let tree = source.tree.clone();
    let found = config_file::find(&*tree, dir, ".kluctl-library", ["yaml", "yml"]);
    let Some(path) = found.map_err(|error| vec![error.into()])? else { return Ok(None) };
    let plain = Templates::new(tree, source.label.clone(), Vec::new(), options);
    let (library, _): (schema::LibraryFile, _) = ConfigFile::read(&path, &plain, None)
        .map_err(|problems| problems.into_iter().map(LoadError::from).collect::<Vec<_>>())?;
    let given = Value::Object(include.args.clone().unwrap_or_default());
    let args = args::with_defaults(&library.args, given).map_err(|error| {
        vec![LoadError::at(LoadProblem::arguments(&error), place.child("args"))]
    })?;
    let mut context = if include.pass_vars { parent.clone() } else { Context::default() };
    context.set("args", args);
    Ok(Some(context))
}
