//! `kluctl helm-pull`

use std::{path::Path, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure,
        flags::{GitFlags, HelmFlags, ProjectFlags, RegistryFlags},
        git::CommandLineGit,
        helm::{
            place::{self, Wanted},
            puller,
            releases::{self, Release},
        },
        output,
    },
    diagnostic::{Class, Describe, Diagnostic},
    helm::{Origin, PULLED_DIR, Puller, Version},
    vars::GitSource,
};

/// Charts that are pulled at the same time.
pub(super) const PARALLEL: usize = 8;

/// What the commands on charts take.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ChartFlags {
    #[command(flatten)]
    pub(super) project: ProjectFlags,
    #[command(flatten)]
    git: GitFlags,
    #[command(flatten)]
    helm: HelmFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Pulls the Helm charts of a project into .helm-charts beside its .kluctl.yaml.
///
/// Every `helm-chart.yaml` below is read, and each chart and version pulled that is not `skipPrePull`. Versions that are not
/// used any more are removed.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HelmPull {
    #[command(flatten)]
    pub(in crate::cli) charts: ChartFlags,
}

pub(super) async fn run(
    command: HelmPull,
    environment: &Environment,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    let root = releases::project_root(command.charts.project.project_dir.as_deref(), environment)?;
    let releases = releases::find(&root).map_err(Failure::Problems)?;
    let remote = command.charts.remote(environment, &cancel)?;
    pull(&root, &releases, &remote, Pull::All).await
}

/// Where charts come from.
pub(super) struct Remote {
    pub(super) puller: Puller,
    pub(super) git: Arc<dyn GitSource>,
    pub(super) cancel: CancellationToken,
}

impl ChartFlags {
    /// How long the whole command may take.
    pub(super) fn timeout(&self) -> Duration {
        self.project.timeout
    }

    /// The user's way to charts.
    pub(super) fn remote(
        &self,
        environment: &Environment,
        cancel: &CancellationToken,
    ) -> Result<Remote, Diagnostic> {
        let git = CommandLineGit::new(&self.git, &self.project, environment, cancel.clone())?;
        let puller = puller(&self.helm, &self.registry, environment)?;
        Ok(Remote { puller, git: Arc::new(git), cancel: cancel.clone() })
    }
}

/// Which charts are pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pull {
    /// All that are used.
    All,
    /// Those that are not there.
    Missing,
}

/// Pulls what releases need, then removes what none needs.
pub(super) async fn pull(
    root: &Path,
    releases: &[Release],
    remote: &Remote,
    which: Pull,
) -> Result<(), Failure> {
    let mut wanted: Wanted<'_> = place::wanted(releases)?;
    if which == Pull::Missing {
        wanted.retain(|dir, _| !place::is_there(root, dir));
    }
    let pulls = wanted.iter().map(|(dir, (origin, version))| async move {
        output::to_stderr(&format!("{}: pulling version {version}\n", origin.name()));
        pull_one(root, dir, origin, version, remote).await.map_err(|mut problem| {
            problem.message = format!("{} {version}: {}", origin.name(), problem.message);
            problem
        })
    });
    let results: Vec<_> = stream::iter(pulls).buffer_unordered(PARALLEL).collect().await;
    let problems: Vec<Diagnostic> = results.into_iter().filter_map(Result::err).collect();
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    for dir in place::unused(root, releases)? {
        let shown = dir.strip_prefix(root.join(PULLED_DIR)).unwrap_or(&dir);
        output::to_stderr(&format!("removing {}, which is not used\n", shown.display()));
        place::remove(&dir)?;
    }
    Ok(())
}

async fn pull_one(
    root: &Path,
    dir: &str,
    origin: &Origin,
    version: &Version,
    remote: &Remote,
) -> Result<(), Diagnostic> {
    let (root, dir) = (root.to_owned(), dir.to_owned());
    let work: Box<dyn FnOnce() -> Result<(), Diagnostic> + Send> = match (version, origin) {
        (Version::Chart(version), _) => {
            let pulled = remote.puller.pull(origin, version, &remote.cancel).await;
            let pulled = pulled.map_err(|error| error.describe())?;
            Box::new(move || {
                let tree = pulled.tree().map_err(|error| error.describe())?;
                place::replace(&root, &dir, &tree, "", None)
            })
        }
        (Version::Git(reference), Origin::Git { address, sub_dir, .. }) => {
            let checkout = remote.git.checkout(address.reveal(), reference.as_ref()).await?;
            let note = place::git_note(reference.as_ref(), &checkout.commit);
            let sub_dir = sub_dir.clone();
            let shown = origin.to_string();
            Box::new(move || {
                let has_chart = crate::helm::Metadata::read(&*checkout.tree, &sub_dir);
                has_chart.map_err(|error| {
                    Diagnostic::new(Class::Project, format!("{shown}: {error}"))
                })?;
                place::replace(&root, &dir, &*checkout.tree, &sub_dir, Some(&note))
            })
        }
        (Version::Git(_), _) => return Ok(()),
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Diagnostic::new(Class::Internal, error.to_string()))?
}
