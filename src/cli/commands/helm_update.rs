//! `kluctl helm-update`

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::helm_pull::{ChartFlags, PARALLEL, Pull, Remote, pull};
use crate::{
    cli::{
        Environment, Failure, Report,
        environment::write_file,
        helm::{
            place,
            releases::{self, Release},
        },
        output, prompt,
    },
    diagnostic::{Class, Describe, Diagnostic},
    helm::{Constraint, Origin, PULLED_DIR, SemVer, Version},
};

/// Tells which Helm charts of a project have newer versions, and updates to them.
///
/// Pre-releases count only where `updateConstraints` name one; `skipUpdate` keeps a chart as it is.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HelmUpdate {
    #[command(flatten)]
    pub(in crate::cli) charts: ChartFlags,

    /// Write new versions into helm-chart.yaml, and pull them
    #[arg(long, help_heading = "Misc arguments")]
    upgrade: bool,

    /// Make a Git commit for every updated chart
    #[arg(long, help_heading = "Misc arguments")]
    commit: bool,

    /// Ask for every chart whether to update it
    #[arg(long, short, help_heading = "Misc arguments")]
    interactive: bool,
}

pub(super) async fn run(
    command: HelmUpdate,
    environment: &Environment,
    report: Report,
    cancel: CancellationToken,
) -> Result<(), Failure> {
    if command.upgrade && command.interactive {
        prompt::require_terminal(environment)?;
    }
    let root = releases::project_root(command.charts.project.project_dir.as_deref(), environment)?;
    let releases = releases::find(&root).map_err(Failure::Problems)?;
    if command.commit {
        check_clean(&root, &releases)?;
    }
    let remote = command.charts.remote(environment, &cancel)?;
    let (versions, mut problems) = versions(&releases, &remote).await;
    let mut updates: BTreeMap<Update, Vec<&Release>> = BTreeMap::new();
    for release in &releases {
        let Some(versions) = versions.get(&release.origin.to_string()) else { continue };
        match newer(release, versions) {
            Ok(None) => {}
            Ok(Some(new)) => {
                if command.wants(release, &new, environment, report, &cancel).await {
                    updates.entry(Update::of(release, new)).or_default().push(release);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    for (update, releases) in updates {
        apply(&root, &update, &releases, &remote, command.commit).await?;
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Problems(problems)) }
}

/// One chart that goes from one version to another, in one or several releases.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Update {
    origin: String,
    name: String,
    old: String,
    new: String,
}

impl Update {
    fn of(release: &Release, new: String) -> Self {
        let (origin, name) = (release.origin.to_string(), release.origin.name());
        Self { origin, name, old: current(release), new }
    }
}

/// The version of a release as versions are listed.
fn current(release: &Release) -> String {
    match &release.version {
        Version::Chart(version) => version.clone(),
        Version::Git(reference) => {
            reference.as_ref().and_then(|reference| reference.tag.clone()).unwrap_or_default()
        }
    }
}

impl HelmUpdate {
    /// Tells of a newer version, and whether to update to it.
    async fn wants(
        &self,
        release: &Release,
        new: &str,
        environment: &Environment,
        report: Report,
        cancel: &CancellationToken,
    ) -> bool {
        let (dir, name, old) = (&release.dir, release.origin.name(), current(release));
        if release.chart.skip_update {
            output::to_stderr(&format!("{dir}: skipped the update of {name} to version {new}\n"));
            return false;
        }
        output::to_stderr(&format!(
            "{dir}: chart {name} (old version {old}) has new version {new} available\n"
        ));
        if !self.upgrade || !self.interactive {
            return self.upgrade;
        }
        let question = format!("{dir}: update chart {name} to version {new}?");
        prompt::confirm(&question, environment, report, cancel).await.is_ok()
    }
}

/// The versions of all charts, by origin, and the problems of those that cannot be asked for; the others go on.
async fn versions(
    releases: &[Release],
    remote: &Remote,
) -> (BTreeMap<String, Vec<String>>, Vec<Diagnostic>) {
    let origins: BTreeMap<String, &Origin> =
        releases.iter().map(|release| (release.origin.to_string(), &release.origin)).collect();
    let asked = origins.into_iter().map(|(name, origin)| async move {
        output::to_stderr(&format!("{}: looking for versions\n", origin.name()));
        let found = match origin {
            Origin::Git { address, .. } => {
                let tips = remote.git.tips(address.reveal()).await;
                tips.map(|tips| {
                    let tag = |name: &str| name.strip_prefix("refs/tags/").map(str::to_owned);
                    tips.all.iter().filter_map(|tip| tag(&tip.name)).collect()
                })
            }
            _ => remote.puller.versions(origin, &remote.cancel).await.map_err(|e| e.describe()),
        };
        (name, found)
    });
    let results: Vec<_> = stream::iter(asked).buffer_unordered(PARALLEL).collect().await;
    let (mut versions, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, found) in results {
        match found {
            Ok(found) => drop(versions.insert(name, found)),
            Err(problem) => problems.push(problem),
        }
    }
    (versions, problems)
}

/// The newest version that a release may be updated to, if it is newer than its own.
fn newer(release: &Release, versions: &[String]) -> Result<Option<String>, Diagnostic> {
    let place = |message: String| {
        Diagnostic::new(Class::Project, format!("{}/helm-chart.yaml: {message}", release.dir))
    };
    if matches!(&release.version, Version::Git(_)) && current(release).is_empty() {
        // A branch moves by itself, and a commit is meant.
        return Ok(None);
    }
    let constraint = release.chart.update_constraints.as_deref().map(Constraint::parse).transpose();
    let constraint =
        constraint.map_err(|error| place(format!("helmChart.updateConstraints: {error}")))?;
    let allowed = |version: &SemVer| match &constraint {
        Some(constraint) => constraint.allows(version),
        None => !version.is_pre_release(),
    };
    let newest = versions
        .iter()
        .filter_map(|text| Some((SemVer::parse(text)?, text)))
        .filter(|(version, _)| allowed(version))
        .max_by(|(a, _), (b, _)| a.cmp(b));
    let Some((newest, text)) = newest else {
        let by = release.chart.update_constraints.as_deref();
        let by = by.map_or_else(String::new, |by| format!(" that {by:?} allows"));
        return Err(place(format!("there is no version of {}{by}", release.origin.name())));
    };
    let is_newer = SemVer::parse(&current(release)).is_none_or(|current| newest > current);
    Ok(is_newer.then(|| text.clone()))
}

/// Writes the new version, pulls it, and commits both.
async fn apply(
    root: &Path,
    update: &Update,
    releases: &[&Release],
    remote: &Remote,
    commit: bool,
) -> Result<(), Failure> {
    let mut files: Vec<PathBuf> = vec![root.join(PULLED_DIR)];
    for release in releases {
        write_file(&release.file, release.with_version(&update.new).as_bytes())?;
        output::to_stderr(&format!(
            "{}: updated {} to version {}\n",
            release.dir, update.name, update.new
        ));
        files.push(release.file.clone());
    }
    let now = releases::find(root).map_err(Failure::Problems)?;
    pull(root, &now, remote, Pull::Missing).await?;
    if !commit {
        return Ok(());
    }
    let existing: Vec<&Path> =
        files.iter().map(PathBuf::as_path).filter(|path| path.exists()).collect();
    let mut add = vec!["add".as_ref(), "--all".as_ref(), "--".as_ref()];
    add.extend(existing.iter().map(|path| path.as_os_str()));
    git(root, &add)?;
    let Update { name, old, new, .. } = update;
    let message = format!("Updated helm chart {name} from version {old} to version {new}");
    git(root, &["commit".as_ref(), "--quiet".as_ref(), "--message".as_ref(), message.as_ref()])?;
    output::to_stderr(&format!("committed {name} with version {new}\n"));
    Ok(())
}

/// Commits are only made where nothing else would get into them.
fn check_clean(root: &Path, releases: &[Release]) -> Result<(), Diagnostic> {
    let status =
        git(root, &["status".as_ref(), "--porcelain".as_ref(), "--untracked-files=all".as_ref()])?;
    let is_pulled = |line: &str| line.get(3..).is_some_and(|path| path.contains(".helm-charts/"));
    let changed = status.lines().find(|line| is_pulled(line) || !line.starts_with("??"));
    if let Some(line) = changed {
        let path = line.get(3..).unwrap_or(line);
        let message = format!("--commit needs a clean work tree, and {path} is changed");
        return Err(Diagnostic::new(Class::Project, message).with_hint("commit or stash it first"));
    }
    let missing = place::wanted(releases)?.into_keys().find(|dir| !place::is_there(root, dir));
    let surplus = place::unused(root, releases)?;
    if missing.is_some() || !surplus.is_empty() {
        let message = "--commit needs pulled charts that are up to date, and .helm-charts is not";
        return Err(Diagnostic::new(Class::Project, message)
            .with_hint("run `kluctl helm-pull` and commit what it changes"));
    }
    Ok(())
}

/// Runs git in the project, with the user's configuration, and returns what it prints.
fn git(root: &Path, arguments: &[&std::ffi::OsStr]) -> Result<String, Diagnostic> {
    let fail = |message: String| Diagnostic::new(Class::Project, message);
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| fail(format!("git cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let what = arguments.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let mut problem = fail(format!("`git {what}` does not work here"));
    problem.causes.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    Err(problem)
}
