//! The front door of loading: what a deployment project is made of, and what comes of it (kluctl 2.28).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{
    LoadError, ResolvedRepository,
    item::{Item, Project},
    sources::Source,
    walk::Walk,
};
use crate::{
    jinja,
    tree::SourceTree,
    vars::{Context, VarsLoader},
};

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
    /// Loads variables. Its Git repositories are also where Git includes come from.
    pub vars: VarsLoader,
}

/// A deployment project with all its includes, ready to be rendered.
pub struct Deployment {
    pub(crate) sources: Vec<Source>,
    pub(crate) projects: Vec<Arc<Project>>,
    /// All items whose conditions are true, in deployment order.
    pub(crate) items: Vec<Item>,
    /// Git repositories that were included or that variables came from, in order of first use.
    pub git_repositories: Vec<ResolvedRepository>,
    /// Things to tell the user that do not prevent a deployment.
    pub warnings: Vec<String>,
}

/// Loads the project: renders and reads each `deployment.yaml`, loads variables, follows includes, and lists all items.
///
/// The only IO is that of `input.vars`; dropping the future between is safe.
///
/// # Errors
/// All problems, with their places. What depends on something that failed is not looked at.
pub async fn load(
    input: LoadInput,
    cancel: &CancellationToken,
) -> Result<Deployment, Vec<LoadError>> {
    let Partial { deployment, errors } = load_partly(input, cancel).await;
    if errors.is_empty() { Ok(deployment) } else { Err(errors) }
}

/// What could be loaded of a project, and what could not. For checking; it is never deployed.
pub(crate) struct Partial {
    pub(crate) deployment: Deployment,
    pub(crate) errors: Vec<LoadError>,
}

/// Loads as much of the project as can be.
pub(crate) async fn load_partly(input: LoadInput, cancel: &CancellationToken) -> Partial {
    let mut walk = Walk::new(input, cancel);
    walk.root().await;
    walk.finish()
}
