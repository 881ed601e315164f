//! One file per command.

mod completion;
mod controller_install;
mod controller_run;
mod delete;
mod deploy;
mod diff;
mod helm_pull;
mod helm_update;
mod kustomize;
pub(super) mod lint;
mod list_images;
mod list_targets;
mod poke_images;
mod prune;
mod render;
mod schema;
mod validate;

use std::time::Duration;

use super::{Environment, Failure, Report, output, session};

/// The commands; what each does is written at its flags.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    Completion(completion::Completion),
    /// Install or run the controller
    #[command(subcommand)]
    Controller(Controller),
    Delete(Box<delete::Delete>),
    Deploy(Box<deploy::Deploy>),
    Diff(Box<diff::Diff>),
    HelmPull(Box<helm_pull::HelmPull>),
    HelmUpdate(Box<helm_update::HelmUpdate>),
    Lint(Box<lint::Lint>),
    ListImages(Box<list_images::ListImages>),
    ListTargets(list_targets::ListTargets),
    PokeImages(Box<poke_images::PokeImages>),
    Prune(Box<prune::Prune>),
    Render(Box<render::Render>),
    Schema(schema::Schema),
    Validate(Box<validate::Validate>),
    #[command(flatten)]
    Quick(Quick),
}

/// Commands that do little, and start at once: the command line is parsed without the flags of all others.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Quick {
    /// Build kustomizations without a Kluctl project
    #[command(subcommand, display_order = 4)]
    Kustomize(kustomize::Kustomize),
    /// Print the version
    #[command(display_order = 1000)]
    Version,
}

/// The commands about the controller.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Controller {
    Install(Box<controller_install::ControllerInstall>),
    Run(Box<controller_run::ControllerRun>),
}

/// How long installing the controller may take.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(10);

/// Runs a command to its end.
pub(super) fn run(
    command: Command,
    environment: &Environment,
    report: Report,
) -> Result<(), Failure> {
    match command {
        Command::Completion(command) => completion::run(&command),
        Command::Controller(Controller::Install(command)) => {
            session::run(INSTALL_TIMEOUT, |cancel| {
                controller_install::run(*command, environment, report, cancel)
            })
        }
        Command::Controller(Controller::Run(command)) => controller_run::run(*command, environment),
        Command::Quick(Quick::Kustomize(kustomize::Kustomize::Build(command))) => {
            kustomize::build(&command, environment)
        }
        Command::Quick(Quick::Version) => {
            Ok(output::to_stdout(concat!(env!("CARGO_PKG_VERSION"), "\n"))?)
        }
        Command::HelmPull(command) => session::run(command.charts.timeout(), |cancel| {
            helm_pull::run(*command, environment, cancel)
        }),
        Command::HelmUpdate(command) => session::run(command.charts.timeout(), |cancel| {
            helm_update::run(*command, environment, report, cancel)
        }),
        Command::Schema(command) => schema::run(&command, environment),
        Command::Lint(command) => session::run(command.deployment.project.timeout, |cancel| {
            lint::run(*command, environment, report, cancel)
        }),
        Command::Render(command) => session::run(command.deployment.project.timeout, |cancel| {
            render::run(*command, environment, report, cancel)
        }),
        Command::ListTargets(command) => session::run(command.project.timeout, |cancel| {
            list_targets::run(command, environment, report, cancel)
        }),
        Command::ListImages(command) => {
            session::run(command.deployment.project.timeout, |cancel| {
                list_images::run(*command, environment, report, cancel)
            })
        }
        Command::Delete(command) => session::run(command.deployment.project.timeout, |cancel| {
            delete::run(*command, environment, report, cancel)
        }),
        Command::Deploy(command) => session::run(command.deployment.project.timeout, |cancel| {
            deploy::run(*command, environment, report, cancel)
        }),
        Command::Diff(command) => session::run(command.deployment.project.timeout, |cancel| {
            diff::run(*command, environment, report, cancel)
        }),
        Command::PokeImages(command) => {
            session::run(command.deployment.project.timeout, |cancel| {
                poke_images::run(*command, environment, report, cancel)
            })
        }
        Command::Prune(command) => session::run(command.deployment.project.timeout, |cancel| {
            prune::run(*command, environment, report, cancel)
        }),
        Command::Validate(command) => session::run(command.deployment.project.timeout, |cancel| {
            validate::run(*command, environment, report, cancel)
        }),
    }
}
