//! The `kluctl` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    flux_kluctl_controller::cli::main()
}
