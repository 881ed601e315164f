//! One file per command.

mod controller_run;
mod deploy;
mod kustomize;
pub(super) mod lint;
mod list_images;
mod list_targets;
mod render;
mod schema;

use super::{Environment, Failure, Report, output, session};

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Run the controller
    #[command(subcommand)]
    Controller(controller_run::Controller),
    /// Render a target and deploy it
    Deploy(Box<deploy::Deploy>),
    /// Build kustomizations without a Kluctl project
    #[command(subcommand)]
    Kustomize(kustomize::Kustomize),
    /// Tell all that is wrong with a project
    Lint(Box<lint::Lint>),
    /// List the images that `images.get_image` was asked for
    ListImages(Box<list_images::ListImages>),
    /// List the targets of a project
    ListTargets(list_targets::ListTargets),
    /// Render a target without deploying it
    Render(Box<render::Render>),
    /// Print JSON Schemas of the files of a project
    Schema(schema::Schema),
    /// Print the version
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
        Command::Kustomize(kustomize::Kustomize::Build(command)) => {
            kustomize::build(&command, environment)
        }
        Command::Schema(command) => schema::run(&command, environment),
        Command::Lint(command) => session::run(command.deployment.project.timeout, |cancel| {
            lint::run(*command, environment, report, cancel)
        }),
        Command::Version => Ok(output::to_stdout(concat!(env!("CARGO_PKG_VERSION"), "\n"))?),
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
        Command::Deploy(command) => session::run(command.deployment.project.timeout, |cancel| {
            deploy::run(*command, environment, report, cancel)
        }),
    }
}
