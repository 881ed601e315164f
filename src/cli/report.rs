//! Diagnostics as text for the terminal. This is the one place that formats them.

use std::fmt::{self, Write};

use super::progress::Display;
use crate::diagnostic::Diagnostic;

/// Formats diagnostics, coloured or plain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// Whether to use ANSI colours on standard error.
    pub(super) colour: bool,
    /// Whether the user wants colours wherever there is a terminal.
    pub(super) allows_colour: bool,
    /// How much is told of what goes on.
    pub(super) display: Display,
}

const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const BOLD: &str = "1";

impl Report {
    /// No colours at all.
    pub(super) const PLAIN: Self =
        Self { colour: false, allows_colour: false, display: Display::Lines };

    /// All problems, each with an empty line before the next.
    pub(super) fn errors(self, diagnostics: &[Diagnostic]) -> String {
        self.all(RED, "error", diagnostics)
    }

    /// The same for what does not keep a command from succeeding.
    pub(super) fn warnings(self, diagnostics: &[Diagnostic]) -> String {
        self.all(YELLOW, "warning", diagnostics)
    }

    fn all(self, style: &str, kind: &str, diagnostics: &[Diagnostic]) -> String {
        let mut text = String::new();
        for (index, diagnostic) in diagnostics.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = self.one(&mut text, &self.paint(style, kind), diagnostic);
        }
        text
    }

    /// One line that tells of something unexpected.
    pub(super) fn warning(self, message: &str) -> String {
        format!("{}: {message}\n", self.paint(YELLOW, "warning"))
    }

    fn one(self, out: &mut String, kind: &str, diagnostic: &Diagnostic) -> fmt::Result {
        let message = match &diagnostic.field {
            Some(field) => format!("{field}: {}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        let message = self.paint(BOLD, &message);
        writeln!(out, "{kind}: {message}")?;
        self.place(out, diagnostic)?;
        let mut note = |name: &str, text: &str| {
            writeln!(out, "  {} {name}: {}", self.paint(CYAN, "="), indent(text))
        };
        if let Some(object) = &diagnostic.object {
            note("object", object)?;
        }
        if let Some(expected) = &diagnostic.expected {
            note("expected", expected)?;
        }
        for cause in &diagnostic.causes {
            note("cause", cause)?;
        }
        for hint in &diagnostic.hints {
            note("hint", hint)?;
        }
        Ok(())
    }

    /// The place, and its lines with a caret below the column.
    fn place(self, out: &mut String, diagnostic: &Diagnostic) -> fmt::Result {
        let Some(at) = &diagnostic.at else { return Ok(()) };
        let arrow = self.paint(CYAN, "-->");
        let Some(position) = at.position else {
            return writeln!(out, "  {arrow} {}", at.file);
        };
        writeln!(out, "  {arrow} {}, line {}, column {}", at.file, position.line, position.column)?;
        let Some(excerpt) = &diagnostic.excerpt else { return Ok(()) };
        let last = excerpt.first_line + excerpt.lines.len();
        let width = last.to_string().len();
        let bar = self.paint(CYAN, "|");
        for (number, line) in (excerpt.first_line..).zip(&excerpt.lines) {
            let number_text = self.paint(CYAN, &format!("{number:>width$}"));
            writeln!(out, "  {number_text} {bar} {}", line.replace('\t', " "))?;
            if number == position.line {
                let indent = " ".repeat(position.column.saturating_sub(1));
                let caret = self.paint(RED, "^");
                writeln!(out, "  {:width$} {bar} {indent}{caret}", "")?;
            }
        }
        Ok(())
    }

    fn paint(self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Further lines of a note stand below its text.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}
