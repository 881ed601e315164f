//! `kluctl kustomize`

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use clap::ValueEnum;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        Environment, Failure, environment::write_file, flags::GitFlags, git::CommandLineGit,
        output, overrides::Overrides, runtime::runtime,
    },
    diagnostic::{Class, Describe, Diagnostic},
    engine::{HttpVars, RemoteResources},
    kustomize::{self, LoadRestrictor, Options, RemoteFile, Remotes, Reorder, Repository},
    net::Reach,
    object::Object,
    secret::redact_url,
    tree::{DiskTree, SourceTree},
    yaml,
};

/// Work with kustomizations.
#[derive(Debug, clap::Subcommand)]
pub(in crate::cli) enum Kustomize {
    /// Print the objects of a kustomization, as `kustomize build` does
    Build(Box<Build>),
}

/// Builds a kustomization and prints its objects.
///
/// Nothing is run: Helm charts and plug-ins other than kustomize's own are refused. Remote resources come over HTTP and from
/// Git repositories, with the credentials that the other commands use for Git.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Build {
    /// Directory with a kustomization file, or the address of one in a Git repository
    #[arg(value_name = "DIR", default_value = ".")]
    dir: String,

    /// Write to this file or, one file per object, into this directory
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Order of the objects, where the kustomization has no `sortOptions`
    #[arg(long, value_enum, value_name = "ORDER")]
    reorder: Option<Order>,

    /// Which files a kustomization may name
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    load_restrictor: Restrictor,

    /// Label all objects with `app.kubernetes.io/managed-by`, as `buildMetadata: [managedByLabel]` does
    #[arg(long)]
    enable_managedby_label: bool,

    /// Refuse remote resources
    #[arg(long)]
    no_remote_bases: bool,

    #[command(flatten)]
    git: GitFlags,

    #[command(flatten)]
    _without_effect: WithoutEffect,
}

/// Flags of `kustomize build` for functions, plug-ins and Helm, which are not run: a kustomization that needs them is refused,
/// any other is built alike.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
struct WithoutEffect {
    /// Accepted for compatibility; functions are not run
    #[arg(long, hide = true)]
    as_current_user: bool,

    /// Accepted for compatibility; plug-ins other than kustomize's own are not run
    #[arg(long, hide = true)]
    enable_alpha_plugins: bool,

    /// Accepted for compatibility; functions are not run
    #[arg(long, hide = true)]
    enable_exec: bool,

    /// Accepted for compatibility; charts are not inflated
    #[arg(long, hide = true)]
    enable_helm: bool,

    /// Accepted for compatibility; functions are not run
    #[arg(long, short, hide = true, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Accepted for compatibility; charts are not inflated
    #[arg(long, hide = true, value_name = "VERSION")]
    helm_api_versions: Vec<String>,

    /// Accepted for compatibility; charts are not inflated
    #[arg(long, hide = true, value_name = "PROGRAM")]
    helm_command: Option<String>,

    /// Accepted for compatibility; charts are not inflated
    #[arg(long, hide = true)]
    helm_debug: bool,

    /// Accepted for compatibility; charts are not inflated
    #[arg(long, hide = true, value_name = "VERSION")]
    helm_kube_version: Option<String>,

    /// Accepted for compatibility; functions are not run
    #[arg(long, hide = true, value_name = "OPTIONS")]
    mount: Vec<String>,

    /// Accepted for compatibility; functions are not run
    #[arg(long, hide = true)]
    network: bool,

    /// Accepted for compatibility; functions are not run
    #[arg(long, hide = true, value_name = "NAME")]
    network_name: Option<String>,

    /// Accepted for compatibility; errors name what is wrong instead
    #[arg(long, hide = true)]
    stack_trace: bool,
}

/// An order of objects.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    /// Namespaces first, webhooks last, the default
    Legacy,
    /// As the kustomization has them
    None,
}

/// What files may be named.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Restrictor {
    /// Those in or below the kustomization's own directory
    #[default]
    #[value(name = "LoadRestrictionsRootOnly")]
    RootOnly,
    /// All
    #[value(name = "LoadRestrictionsNone", alias = "none")]
    None,
}

impl Build {
    fn options(&self) -> Options {
        Options {
            reorder: match self.reorder {
                Some(Order::None) => Reorder::None,
                Some(Order::Legacy) | None => Reorder::Legacy,
            },
            load_restrictor: match self.load_restrictor {
                Restrictor::RootOnly => LoadRestrictor::RootOnly,
                Restrictor::None => LoadRestrictor::None,
            },
            absolute_paths: true,
            managed_by_label: self.enable_managedby_label,
        }
    }
}

pub(super) fn build(command: &Build, environment: &Environment) -> Result<(), Failure> {
    let objects = objects(command, environment)?;
    let Some(path) = command.output.as_deref().map(|path| environment.path(path)) else {
        return Ok(output::to_stdout(&text(&objects))?);
    };
    if path.is_dir() {
        let names = kustomize::file_names(&objects).map_err(|error| error.describe())?;
        for (name, object) in names.iter().zip(&objects) {
            write_file(&path.join(name), yaml::emit(object.value()).as_bytes())?;
        }
    } else {
        write_file(&path, text(&objects).as_bytes())?;
    }
    Ok(())
}

fn text(objects: &[Object]) -> String {
    yaml::emit_documents(objects.iter().map(Object::value))
}

/// Builds with all files of the machine in reach: bases may be anywhere.
fn objects(command: &Build, environment: &Environment) -> Result<Vec<Object>, Diagnostic> {
    let remotes = LazyRemotes { command, environment, made: OnceLock::new() };
    let remotes = (!command.no_remote_bases).then_some(&remotes as &dyn Remotes);
    if let Some(repository) = Repository::parse(&command.dir) {
        let refused = || {
            let message = format!("{} is a remote kustomization", redact_url(&command.dir));
            Diagnostic::new(Class::Project, message).with_hint("leave out --no-remote-bases")
        };
        let tree = remotes.ok_or_else(refused)?.repository(&repository)?;
        // What is in a repository may not reach out of its directory.
        let options = Options {
            load_restrictor: LoadRestrictor::RootOnly,
            absolute_paths: false,
            ..command.options()
        };
        return kustomize::build_with(&*tree, &repository.dir, options, remotes)
            .map_err(|error| error.describe());
    }
    let given = environment.path(Path::new(&command.dir));
    let dir = given.canonicalize().map_err(|error| {
        let message = format!("{} cannot be built: {error}", command.dir);
        Diagnostic::new(Class::Project, message)
            .with_hint("name a directory, or a repository as in https://host/owner/name//directory")
    })?;
    let tree = DiskTree::new(Path::new("/")).map_err(|error| {
        Diagnostic::new(Class::Internal, "the file system cannot be read").with_cause(&error)
    })?;
    let inside = dir.strip_prefix("/").ok().and_then(Path::to_str).ok_or_else(|| {
        Diagnostic::new(Class::Project, format!("{} is not named in UTF-8", dir.display()))
    })?;
    kustomize::build_with(&tree, inside, command.options(), remotes)
        .map_err(|error| readable(error.describe(), &environment.working_dir))
}

/// Remote resources, for which a runtime and clients are only made when there are any.
struct LazyRemotes<'a> {
    command: &'a Build,
    environment: &'a Environment,
    made: OnceLock<(Runtime, RemoteResources)>,
}

impl LazyRemotes<'_> {
    fn get(&self) -> Result<&RemoteResources, Diagnostic> {
        if let Some((_, remotes)) = self.made.get() {
            return Ok(remotes);
        }
        let made = self.make()?;
        Ok(&self.made.get_or_init(|| made).1)
    }

    fn make(&self) -> Result<(Runtime, RemoteResources), Diagnostic> {
        let runtime = runtime()?;
        let cancel = CancellationToken::new();
        let git = CommandLineGit::with_credentials(
            &self.command.git,
            Overrides::default(),
            self.environment,
            cancel.clone(),
        )?;
        let http = HttpVars::following(self.environment.proxies()?, Reach::Anywhere, cancel)?;
        let handle = runtime.handle().clone();
        Ok((runtime, RemoteResources::new(Arc::new(git), Arc::new(http), handle)))
    }
}

impl Remotes for LazyRemotes<'_> {
    fn repository(&self, repository: &Repository) -> Result<Arc<dyn SourceTree>, Diagnostic> {
        self.get()?.repository(repository)
    }

    fn file(&self, url: &str) -> Result<RemoteFile, Diagnostic> {
        self.get()?.file(url)
    }
}

/// Paths as the user sees them: relative to the working directory where they are below it, else absolute.
fn readable(diagnostic: Diagnostic, working_dir: &Path) -> Diagnostic {
    let Some(prefix) = working_dir.strip_prefix("/").ok().and_then(Path::to_str) else {
        return diagnostic;
    };
    let prefix = format!("{prefix}/");
    let shorter = |text: String| text.replace(&prefix, "");
    let mut diagnostic = diagnostic;
    if let Some(at) = &mut diagnostic.at {
        at.file = match at.file.strip_prefix(&prefix) {
            Some(below) => below.to_owned(),
            None => format!("/{}", at.file),
        };
    }
    diagnostic.message = shorter(diagnostic.message);
    diagnostic.hints = diagnostic.hints.into_iter().map(shorter).collect();
    diagnostic
}
