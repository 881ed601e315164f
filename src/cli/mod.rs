//! The `kluctl` command: reads what the user typed and where, calls the engine, shows what came of it.

mod advice;
mod commands;
mod defaults;
mod environment;
mod flags;
mod git;
mod helm;
mod operation;
mod output;
mod overrides;
mod progress;
mod prompt;
mod rendered;
mod report;
mod result_text;
mod runtime;
mod session;
mod summary;

use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use crate::{
    diagnostic::{Class, Diagnostic},
    object::annotations::parse_bool,
};
use environment::Environment;
use progress::Display;
use report::Report;

/// Deploy Kluctl projects to Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "kluctl", version, disable_version_flag = false, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    global: GlobalFlags,

    #[command(subcommand)]
    command: commands::Command,
}

/// The command line of the commands that start at once.
#[derive(Debug, Parser)]
#[command(name = "kluctl", version, disable_version_flag = false, args_override_self = true)]
struct QuickCli {
    #[command(flatten)]
    global: GlobalFlags,

    #[command(subcommand)]
    command: commands::Quick,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global arguments")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for the user")]
struct GlobalFlags {
    /// Tell of every object what is done with it
    #[arg(long, global = true)]
    debug: bool,

    /// Tell nothing of what goes on but warnings and errors
    #[arg(long, short, global = true)]
    quiet: bool,

    /// Do not colour anything; the variable `NO_COLOR` does the same
    #[arg(long, global = true)]
    no_color: bool,

    /// Accepted for compatibility; there is no update check
    #[arg(long, global = true, hide = true)]
    no_update_check: bool,

    /// Accepted for compatibility; no Python is used
    #[arg(long, global = true, hide = true)]
    use_system_python: bool,

    /// Accepted for compatibility; no profile is written
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    cpu_profile: Option<String>,

    /// Accepted for compatibility; there is no Go runtime to look into
    #[arg(long, global = true, hide = true)]
    gops_agent: bool,

    /// Accepted for compatibility
    #[arg(long, global = true, hide = true, value_name = "ADDRESS")]
    gops_agent_addr: Option<String>,
}

/// A command that did not succeed.
#[derive(Debug)]
enum Failure {
    /// These problems have not been shown yet.
    Problems(Vec<Diagnostic>),
    /// The result was shown, with the errors in it.
    Shown,
    /// Everything was told.
    Told,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Problems(vec![diagnostic])
    }
}

impl From<crate::engine::EngineError> for Failure {
    fn from(error: crate::engine::EngineError) -> Self {
        Self::Problems(error.diagnostics())
    }
}

/// Runs the command with the words and the environment of this process.
pub fn main() -> ExitCode {
    let plain = Report::PLAIN;
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(error) => {
            let message = format!("the working directory cannot be used: {error}");
            let diagnostic = Diagnostic::new(Class::Project, message);
            output::to_stderr(&plain.errors(&[diagnostic]));
            return ExitCode::FAILURE;
        }
    };
    let configured = match environment.configured_flags() {
        Ok(configured) => configured,
        Err(diagnostic) => {
            output::to_stderr(&plain.errors(&[diagnostic]));
            return ExitCode::FAILURE;
        }
    };
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = command_for(&words);
    let words = defaults::with_defaults(&words, &command, &configured, &environment.variables);
    let parsed = command.try_get_matches_from(words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return show_usage(&error),
    };
    let allows_colour = !cli.global.no_color && environment.get("NO_COLOR").is_none();
    let display = match cli.global {
        GlobalFlags { quiet: true, .. } => Display::Quiet,
        GlobalFlags { debug: true, .. } => Display::Everything,
        _ if environment.is_terminal => Display::Live,
        _ => Display::Lines,
    };
    let colour = environment.is_terminal && allows_colour;
    let report = Report { colour, allows_colour, display };
    match commands::run(cli.command, &environment, report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(Failure::Shown) => {
            output::to_stderr("command failed\n");
            ExitCode::FAILURE
        }
        Err(Failure::Problems(problems)) => {
            output::to_stderr(&report.errors(&problems));
            ExitCode::FAILURE
        }
    }
}

/// The command line with all its flags. Switches take `=false`, too.
fn command() -> clap::Command {
    with_values_for_switches(Cli::command())
}

/// What is needed of the command line to parse these words. To build all of it takes longer than a quick command does.
fn command_for(words: &[String]) -> clap::Command {
    let is_quick = words.get(1).is_some_and(|word| commands::Quick::has_subcommand(word));
    if is_quick { with_values_for_switches(QuickCli::command()) } else { command() }
}

fn with_values_for_switches(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| match arg.get_action() {
            ArgAction::SetTrue => arg
                .action(ArgAction::Set)
                .value_parser(switch)
                .num_args(0..=1)
                .require_equals(true)
                .default_value("false")
                .default_missing_value("true")
                .hide_default_value(true)
                .hide_possible_values(true)
                .value_name("BOOL"),
            _ => arg,
        })
        .mut_subcommands(with_values_for_switches)
}

/// A switch's value, as Go's flags take it.
fn switch(text: &str) -> Result<bool, &'static str> {
    parse_bool(text).ok_or("expected true or false")
}

/// Help and version are data; anything else was typed wrongly, which exits with 1 as all failures do.
fn show_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let shown = output::to_stdout(&error.to_string());
            if shown.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            output::to_stderr(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;
