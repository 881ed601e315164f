//! `kluctl completion`

use clap_complete::Shell;

use crate::cli::{Failure, output};

/// Prints a script that completes commands and flags.
///
/// For example `kluctl completion bash > /etc/bash_completion.d/kluctl`, or `source <(kluctl completion zsh)`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Completion {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell"])]
    shell: String,

    /// Accepted for compatibility
    #[arg(long, hide = true)]
    no_descriptions: bool,
}

pub(super) fn run(command: &Completion) -> Result<(), Failure> {
    let shell = match command.shell.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::cli::command(), "kluctl", &mut script);
    Ok(output::to_stdout(&String::from_utf8_lossy(&script))?)
}
