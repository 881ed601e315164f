//! One file per command.

mod controller_run;
mod delete;
mod deploy;
mod diff;
mod kustomize;
pub(super) mod lint;
mod list_images;
mod list_targets;
mod poke_images;
mod prune;
mod render;
mod schema;
mod validate;

use super::{Environment, Failure, Report, output, session};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Run the controller
    #[command(subcommand)]
    Controller(controller_run::Controller),
    /// Delete all objects of a target
    Delete(Box<delete::Delete>),
    /// Render a target and deploy it
    Deploy(Box<deploy::Deploy>),
    /// Show what a deployment would change
    Diff(Box<diff::Diff>),
    /// Tell all that is wrong with a project
    Lint(Box<lint::Lint>),
    /// List the images that `images.get_image` was asked for
    ListImages(Box<list_images::ListImages>),
    /// List the targets of a project
    ListTargets(list_targets::ListTargets),
    /// Replace images in what is deployed
    PokeImages(Box<poke_images::PokeImages>),
    /// Delete objects that are no longer part of a target
    Prune(Box<prune::Prune>),
    /// Render a target without deploying it
    Render(Box<render::Render>),
    /// Print JSON Schemas of the files of a project
    Schema(schema::Schema),
    /// Check that all objects of a target are there and ready
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

/// Runs a command to its end.
pub(super) fn run(
    command: Command,
    environment: &Environment,
    report: Report,
) -> Result<(), Failure> {
    match command {
        Command::Controller(controller_run::Controller::Run(command)) => {
            controller_run::run(*command, environment)
        }
        Command::Quick(Quick::Kustomize(kustomize::Kustomize::Build(command))) => {
            kustomize::build(&command, environment)
        }
        Command::Quick(Quick::Version) => {
            Ok(output::to_stdout(concat!(env!("CARGO_PKG_VERSION"), "\n"))?)
        }
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
