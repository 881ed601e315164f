//! Helm on the command line: the program, credentials for charts, and what was fetched and rendered before, in the user's
//! cache directory.

mod access;
pub(super) mod place;
pub(super) mod releases;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::{
    environment::{Environment, now},
    flags::{HelmFlags, RegistryFlags},
};
use crate::{
    diagnostic::Diagnostic,
    engine::{Charts, PulledCharts},
    helm::{
        CacheLimits, ChartCache, ProgramChoice, PullOptions, Puller, Renderer, RendererOptions,
    },
    vars::GitSource,
};

/// The way in which a command renders charts.
///
/// # Errors
/// When credentials cannot be read.
pub(super) fn charts(
    flags: &HelmFlags,
    registries: &RegistryFlags,
    git: &Arc<dyn GitSource>,
    environment: &Environment,
    cancel: &CancellationToken,
) -> Result<Charts, Diagnostic> {
    let source = PulledCharts {
        puller: puller(flags, registries, environment)?,
        cache: ChartCache::new(environment.cache_dir().join("helm/charts")),
        now: now(),
        git: Some(git.clone()),
        cancel: cancel.clone(),
    };
    Ok(Charts {
        renderer: renderer(flags.helm_binary.as_deref(), environment),
        source: Some(Arc::new(source)),
        kube_version: None,
    })
}

/// Fetches charts with the user's credentials.
///
/// # Errors
/// When they cannot be read.
pub(super) fn puller(
    flags: &HelmFlags,
    registries: &RegistryFlags,
    environment: &Environment,
) -> Result<Puller, Diagnostic> {
    Ok(Puller::new(PullOptions {
        repositories: access::repositories(flags, environment)?,
        registries: access::registries(registries, environment)?,
        proxies: environment.proxies()?,
        // Beside the cache, so that charts can be moved there.
        ..PullOptions::new(environment.cache_dir().join("helm/downloads"))
    }))
}

/// A renderer with the program that the user names.
pub(super) fn renderer(flag: Option<&Path>, environment: &Environment) -> Renderer {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Renderer::new(RendererOptions {
        program: program(flag, environment),
        work_dir: PathBuf::from(environment.get("TMPDIR").unwrap_or("/tmp")),
        cache_dir: Some(environment.cache_dir().join("helm/renders")),
        cache_limits: CacheLimits::default(),
        parallel: cores,
    })
}

/// The program that the user names, or the first one in `PATH`, or the one beside this program.
pub(super) fn program(flag: Option<&Path>, environment: &Environment) -> ProgramChoice {
    if let Some(path) = flag.filter(|path| !path.as_os_str().is_empty()) {
        return ProgramChoice::Path(environment.path(path));
    }
    let mut dirs: Vec<PathBuf> =
        std::env::split_paths(environment.get("PATH").unwrap_or_default()).collect();
    dirs.extend(environment.program_dir.clone());
    ProgramChoice::Search(dirs)
}
