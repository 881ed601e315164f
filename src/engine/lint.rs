//! Checks a project without a cluster: everything that is wrong with it, for every target.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    Engine, EngineError, Externals, PrepareRequest,
    helm::render_charts,
    parallel::for_each_index,
    prepare::{load_input, render_texts},
};
use crate::{
    deployment::{self, Building, BuiltItem, ItemError, LoadProblem, RenderOptions, RenderedItem},
    diagnostic::{Class, Describe, Diagnostic},
    project::{Project, ProjectError, Target},
    secret::SecretTexts,
    vars::VarsError,
};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The project cannot be deployed like this.
    Error,
    /// Something that could not be checked, or has no effect.
    Warning,
}

/// Something that a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, and where.
    pub diagnostic: Diagnostic,
    /// The targets it was found in, in order; empty when it has nothing to do with a target, or the project has none.
    pub targets: Vec<String>,
}

/// All findings, each once however many targets have it.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, diagnostic: Diagnostic, target: &str) {
        let targets: Vec<String> =
            if target.is_empty() { Vec::new() } else { vec![target.to_owned()] };
        let known = self.0.iter_mut().find(|known| known.diagnostic == diagnostic);
        match known {
            None => self.0.push(Finding { severity, diagnostic, targets }),
            Some(known) => {
                let new = targets.into_iter().filter(|target| !known.targets.contains(target));
                let new: Vec<String> = new.collect();
                known.targets.extend(new);
            }
        }
    }

    /// All of them, without anything that sensitive variables hold.
    fn masked(self, secrets: &SecretTexts) -> Vec<Finding> {
        let masked = self.0.into_iter().map(|found| Finding {
            diagnostic: secrets.mask_diagnostic(found.diagnostic),
            ..found
        });
        masked.collect()
    }
}

impl Engine {
    /// Everything that is wrong with a project: its configuration, and each target's deployment project, templates, manifests
    /// and kustomizations. With a target in the request, only that one is looked at.
    ///
    /// Asks no cluster. What needs one is a warning, and what depends on that is not looked at.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`], or a defect of this program. What is wrong with the project is no error, but a finding.
    pub async fn lint(
        &self,
        request: &PrepareRequest,
        externals: &Externals,
        cancel: &CancellationToken,
    ) -> Result<Vec<Finding>, EngineError> {
        let mut findings = Findings::default();
        for (target, failure) in self.lint_targets(request, cancel).await? {
            match target {
                Some(target) => {
                    self.lint_target(request, &target, externals, cancel, &mut findings).await?;
                }
                None => {
                    for diagnostic in failure {
                        findings.add(Severity::Error, diagnostic, "");
                    }
                }
            }
        }
        Ok(findings.masked(&externals.masked))
    }

    /// The targets to look at; in place of a target, what keeps it from being used.
    async fn lint_targets(
        &self,
        request: &PrepareRequest,
        cancel: &CancellationToken,
    ) -> Result<Vec<(Option<Target>, Vec<Diagnostic>)>, EngineError> {
        let request = request.clone();
        let work = move |_| {
            let failed = |error: ProjectError| vec![(None, error.diagnostics())];
            let project = match request.source.project() {
                Ok(project) => project,
                Err(error) => return failed(error),
            };
            targets(&project, &request).unwrap_or_else(failed)
        };
        let mut results = for_each_index(1, &self.limits().blocking, cancel, work).await?;
        results.pop().ok_or(EngineError::Cancelled)
    }

    async fn lint_target(
        &self,
        request: &PrepareRequest,
        target: &Target,
        externals: &Externals,
        cancel: &CancellationToken,
        findings: &mut Findings,
    ) -> Result<(), EngineError> {
        let name = target.name.as_str();
        let input = load_input(request, target, externals);
        let walk_cancel = cancel.clone();
        let runtime = tokio::runtime::Handle::current();
        let walk = move || runtime.block_on(deployment::load_partly(input, &walk_cancel));
        let partial = tokio::task::spawn_blocking(walk).await;
        let partial =
            partial.map_err(|error| EngineError::Internal { message: error.to_string() })?;
        for error in &partial.errors {
            let mut diagnostic = error.describe();
            let severity = match error.problem() {
                LoadProblem::Cancelled => return Err(EngineError::Cancelled),
                LoadProblem::Vars(error) if needs_cluster(error) => {
                    diagnostic.hints = vec!["what depends on it was not checked".to_owned()];
                    Severity::Warning
                }
                _ => Severity::Error,
            };
            findings.add(severity, diagnostic, name);
        }
        for warning in &partial.deployment.warnings {
            let warning = Diagnostic::new(Class::Project, warning.clone());
            findings.add(Severity::Warning, warning, name);
        }
        let rendering = Arc::new(partial.deployment.into_rendering(RenderOptions {
            inclusion: request.inclusion.clone(),
            discriminator: target.discriminator.clone(),
            images: target.images.clone(),
        }));
        let blocking = &self.limits().blocking;
        let count = rendering.item_count();
        let stage = rendering.clone();
        let rendered =
            for_each_index(count, blocking, cancel, move |index| stage.render_item(index)).await?;
        let rendered = render_charts(&rendering, rendered, externals, cancel).await?;
        let Some((rendered, failed)) = usable(&rendering, rendered, name, findings) else {
            return Ok(());
        };
        let remotes = externals.remotes().map(|remotes| remotes as Arc<_>);
        let building = Arc::new(Building::new(rendering, rendered).with_remotes(remotes));
        let work = move |index: usize| {
            if failed.contains(&index) { Ok(None) } else { building.build_item(index).map(Some) }
        };
        let built = for_each_index(count, blocking, cancel, work).await?;
        objects(built, name, findings);
        Ok(())
    }
}

type Targets = Vec<(Option<Target>, Vec<Diagnostic>)>;

fn targets(project: &Project, request: &PrepareRequest) -> Result<Targets, ProjectError> {
    let render = |texts: &[&str], variables: &Map<String, Value>| {
        render_texts(texts, variables, &request.jinja)
    };
    let is_chosen = request.target.name.as_ref().is_some_and(|name| !name.is_empty());
    if is_chosen || project.config.targets.is_empty() {
        let target = project.resolve(&request.target, &render)?;
        return Ok(vec![(Some(target), Vec::new())]);
    }
    let list = project.targets(&request.target.args, &render);
    let mut targets: Targets =
        list.warnings.into_iter().map(|warning| (None, vec![warning])).collect();
    targets.extend(list.targets.into_iter().map(|mut target| {
        target.images.extend(request.target.images.iter().cloned());
        target.set_context("");
        (Some(target), Vec::new())
    }));
    Ok(targets)
}

fn needs_cluster(error: &VarsError) -> bool {
    matches!(error, VarsError::NoCluster { .. })
}

/// The rendered items, and which of them stand for one that failed. `None` when building makes no sense, because files are
/// missing that other items build upon.
fn usable(
    rendering: &deployment::Rendering,
    rendered: Vec<Result<RenderedItem, Vec<ItemError>>>,
    target: &str,
    findings: &mut Findings,
) -> Option<(Vec<RenderedItem>, Vec<usize>)> {
    let (mut items, mut failed) = (Vec::with_capacity(rendered.len()), Vec::new());
    let mut lacks_base = false;
    for (index, result) in rendered.into_iter().enumerate() {
        match result {
            Ok(item) => items.push(item),
            Err(errors) => {
                for error in errors {
                    findings.add(Severity::Error, error.describe(), target);
                }
                lacks_base |= rendering.is_only_render(index);
                failed.push(index);
                items.push(RenderedItem::default());
            }
        }
    }
    (!lacks_base).then_some((items, failed))
}

/// Adds what is wrong with objects, also across items.
fn objects(
    built: Vec<Result<Option<BuiltItem>, Vec<ItemError>>>,
    target: &str,
    findings: &mut Findings,
) {
    let mut seen = std::collections::BTreeMap::new();
    for result in built {
        let item = match result {
            Ok(Some(item)) => item,
            Ok(None) => continue,
            Err(errors) => {
                for error in errors {
                    findings.add(Severity::Error, error.describe(), target);
                }
                continue;
            }
        };
        for (reference, dir) in item.objects() {
            let (group, kind, namespace, name) = reference.key();
            let key = [group, kind, namespace.unwrap_or_default(), name].map(str::to_owned);
            if let Some(first) = seen.insert(key, dir.to_owned()) {
                let message = format!("the object is in {first} and in {dir}; the last one wins");
                let warning =
                    Diagnostic::new(Class::Project, message).with_object(reference.to_string());
                findings.add(Severity::Warning, warning, target);
            }
        }
    }
}

#[cfg(test)]
mod tests;
