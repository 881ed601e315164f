//! Questions, which are only asked where somebody can answer.

use std::io::{self, BufRead};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Environment, output::to_stderr, report::Report};
use crate::diagnostic::{Class, Diagnostic};

/// Refuses to go on where nobody can be asked.
///
/// # Errors
/// Says how to do without the question.
pub(super) fn require_terminal(environment: &Environment) -> Result<(), Diagnostic> {
    if environment.can_ask {
        return Ok(());
    }
    let message = "this needs a confirmation, and there is no terminal to ask at";
    Err(Diagnostic::new(Class::Project, message)
        .with_hint("--yes answers all questions with yes")
        .with_hint("--dry-run shows what would happen, and does nothing"))
}

/// Asks on standard error and reads the answer from standard input.
///
/// # Errors
/// When the answer is no, nobody can be asked, or the command is cancelled meanwhile.
pub(super) async fn confirm(
    question: &str,
    environment: &Environment,
    report: Report,
    cancel: &CancellationToken,
) -> Result<(), Diagnostic> {
    require_terminal(environment)?;
    loop {
        to_stderr(&format!("{question} (y/N) "));
        let answer = tokio::select! {
            () = cancel.cancelled() => None,
            line = next_line() => line,
        };
        let Some(answer) = answer else {
            to_stderr("\n");
            return Err(aborted());
        };
        match is_yes(&answer) {
            Some(true) => return Ok(()),
            Some(false) => return Err(aborted()),
            None => to_stderr(&report.warning("please answer yes or no")),
        }
    }
}

fn aborted() -> Diagnostic {
    Diagnostic::new(Class::Cancelled, "aborted")
}

/// Whether the answer is yes or no; `None` for anything else.
fn is_yes(answer: &str) -> Option<bool> {
    match answer.trim() {
        "y" | "Y" | "yes" | "Yes" | "YES" => Some(true),
        "" | "n" | "N" | "no" | "No" | "NO" => Some(false),
        _ => None,
    }
}

/// The next line of standard input; `None` at its end. The thread that reads is left behind when nobody waits any longer,
/// for nothing ends a read.
async fn next_line() -> Option<String> {
    let (send, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Nobody waits when the command is over.
        let _unheard = send.send(matches!(read, Ok(length) if length > 0).then_some(line));
    });
    answer.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn answers_are_yes_or_no_or_asked_again() {
        for yes in ["y\n", "Y", "yes", "Yes\r\n", "YES"] {
            assert_eq!(is_yes(yes), Some(true), "{yes:?}");
        }
        for no in ["\n", "", "n", "No", "NO\n"] {
            assert_eq!(is_yes(no), Some(false), "{no:?}");
        }
        for other in ["ja", "yess", "yES", "1"] {
            assert_eq!(is_yes(other), None, "{other:?}");
        }
    }
}
