use std::io::{self, BufRead};

use super::{output::to_stderr, report::Report};

/// Asks a question on standard error and reads the answer from standard input. No input means no.
pub(super) fn confirm(question: &str, report: Report) -> bool {
    loop {
        to_stderr(&format!("{question} (y/N) "));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        if !matches!(read, Ok(length) if length > 0) {
            to_stderr("\n");
            return false;
        }
        match answer.trim() {
            "y" | "Y" | "yes" | "Yes" | "YES" => return true,
            "" | "n" | "N" | "no" | "No" | "NO" => return false,
            _ => to_stderr(&report.warning("please answer yes or no")),
        }
    }
}
