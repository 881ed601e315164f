//! End-to-end tests: the built `kluctl` against a real API server, real Flux controllers and a real Git server.
//!
//! One control plane serves the whole run. Every test gets a namespace of its own and a controller process that watches
//! only this namespace, so that tests run side by side and may kill or starve their controller as they like.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(clippy::disallowed_methods)]
#![allow(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "these are names that the tests made up"
)]
#![allow(clippy::format_push_string, clippy::unused_self, clippy::format_collect)]

mod access;
mod claims;
mod command_line;
mod command_line_annotations;
mod command_line_faults;
mod command_line_results;
mod deletion;
mod dependencies;
mod deploy;
mod engine;
mod events;
mod getting_started;
mod git_access;
mod git_command_line;
mod git_includes;
mod helm;
mod helm_commands;
mod install;
mod kubeconfig;
mod limited_accounts;
mod notifications;
mod observability;
mod operations;
mod real_projects;
mod recovery;
mod retarget;
mod rights;
mod rivals;
mod schedule;
mod schema;
mod secrecy;
mod source;
mod spec_fields;
mod start;
mod status;
mod support;
mod variable_sources;
mod variables;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use support::{Case, Suite};

/// A test: its name and what to run.
type Test = (&'static str, for<'a> fn(&'a mut Case) -> support::TestFuture<'a>);

/// Makes a list of tests out of a module's async functions.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::Test] =
            &[$((concat!(module_path!(), "::", stringify!($name)), |case| Box::pin($name(case)))),*];
    };
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The tests wait most of the time, so more of them run side by side than there are cores.
    arguments.test_threads.get_or_insert(6);
    let tests: Vec<Test> = [
        access::TESTS,
        claims::TESTS,
        command_line::TESTS,
        command_line_annotations::TESTS,
        command_line_faults::TESTS,
        command_line_results::TESTS,
        deletion::TESTS,
        dependencies::TESTS,
        deploy::TESTS,
        engine::TESTS,
        events::TESTS,
        getting_started::TESTS,
        git_access::TESTS,
        git_command_line::TESTS,
        git_includes::TESTS,
        helm::TESTS,
        helm_commands::TESTS,
        install::TESTS,
        kubeconfig::TESTS,
        limited_accounts::TESTS,
        notifications::TESTS,
        observability::TESTS,
        operations::TESTS,
        real_projects::TESTS,
        recovery::TESTS,
        retarget::TESTS,
        rights::TESTS,
        rivals::TESTS,
        schedule::TESTS,
        schema::TESTS,
        secrecy::TESTS,
        source::TESTS,
        start::TESTS,
        spec_fields::TESTS,
        status::TESTS,
        variable_sources::TESTS,
        variables::TESTS,
    ]
    .concat();
    if arguments.list {
        let trials =
            tests.into_iter().map(|(name, _)| Trial::test(short(name), || Ok(()))).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    // Children are tied to the thread that starts them, so the suite starts, and ends, in the main thread.
    let suite = match Suite::start() {
        Ok(suite) => Arc::new(suite),
        Err(error) => {
            eprintln!("the control plane did not start: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = tests
        .into_iter()
        .map(|(name, run)| {
            let suite = Arc::clone(&suite);
            let name = short(name);
            Trial::test(name, move || suite.run(name, run).map_err(Into::into))
                .with_ignored_flag(start::is_impossible(name))
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(suite);
    conclusion.exit_code()
}

fn short(name: &'static str) -> &'static str {
    name.trim_start_matches("e2e::")
}
