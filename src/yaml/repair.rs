//! Texts that Go's libraries read and the parser refuses, as YAML 1.2 asks for: templates often render a quoted scalar or a
//! flow collection whose further lines start left of where they should.
//!
//! Where the parser stops for such a reason, blanks that mean nothing are put in and the text is read again.

use std::collections::HashMap;

use crate::diagnostic::Position;

/// Each repair reads the text again, so there is a limit to them.
const MAX_REPAIRS: usize = 100;

/// So many blanks may be inserted altogether.
const MAX_BLANKS: usize = 1 << 20;

/// The blanks inserted so far, by line, so that positions stay those of the original.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    inserted: HashMap<usize, usize>,
    count: usize,
    blanks: usize,
}

impl Repairs {
    /// A position in the original text.
    pub(super) fn original(&self, at: Position) -> Position {
        let inserted = self.inserted.get(&at.line).copied().unwrap_or(0);
        Position { line: at.line, column: at.column.saturating_sub(inserted).max(1) }
    }

    /// The text with the reason of the parser's `info` at `at` removed; `None` when it is a real error. `open` is where
    /// the innermost collection starts. Positions are those of `text`.
    pub(super) fn repair(
        &mut self,
        text: &str,
        info: &str,
        at: Position,
        open: Option<Position>,
    ) -> Option<String> {
        if self.count >= MAX_REPAIRS {
            return None;
        }
        self.count += 1;
        match info {
            "invalid indentation in quoted scalar" => self.indent_quoted(text, at),
            // Block structure only ever ends by indentation; these two come from inside of brackets.
            "invalid indentation in flow construct" | "invalid indentation" => {
                self.indent_flow(text, at, open)
            }
            "comments must be separated from other tokens by whitespace" => insert_blank(text, at),
            "':' must be followed by a valid YAML whitespace" => replace_tabs(text, at),
            "tabs disallowed within this context (block indentation)" => {
                super::text::bracket_at(text, open?)?;
                replace_leading_tabs(text, at)
            }
            // Of a quoted scalar.
            "tab cannot be used as indentation" => replace_leading_tabs(text, at),
            _ => None,
        }
    }

    /// Indents the further lines of the quoted scalar that starts at `at`; their leading blanks are no content.
    fn indent_quoted(&mut self, text: &str, at: Position) -> Option<String> {
        let start = offset(text, at)?;
        let end = start + quoted_length(&text[start..])?;
        // Any block around it begins before the first text of its line.
        let line = &text[offset(text, Position { line: at.line, column: 1 })?..];
        let width = 1 + line.chars().take_while(|c| " \t-?:".contains(*c)).count();
        let mut out = text[..start].to_owned();
        for (i, line) in text[start..end].split_inclusive('\n').enumerate() {
            if i > 0 && !line.trim().is_empty() {
                out.push_str(&self.indentation(at.line + i, width)?);
            }
            out.push_str(line);
        }
        out.push_str(&text[end..]);
        Some(out)
    }

    /// Indents a line inside of a flow collection beyond the block structure around it, which lies somewhere on the lines
    /// since `open`; inside of brackets any indentation will do.
    fn indent_flow(&mut self, text: &str, at: Position, open: Option<Position>) -> Option<String> {
        let first = open.map_or(1, |open| open.line);
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let around = lines.take(at.line - 1).skip(first - 1);
        // A line that was indented for this reason went as far as needed.
        let far_enough = |(number, line): (usize, &str)| {
            self.inserted.get(&number).copied().unwrap_or_else(|| line.chars().count())
        };
        let width = around.map(far_enough).max()?;
        let start = offset(text, Position { line: at.line, column: 1 })?;
        if self.inserted.contains_key(&at.line) || width == 0 {
            return None;
        }
        let blanks = self.indentation(at.line, width)?;
        Some(format!("{}{blanks}{}", &text[..start], &text[start..]))
    }

    /// Blanks to put in front of a line; `None` when it would be too many in all.
    fn indentation(&mut self, line: usize, width: usize) -> Option<String> {
        self.blanks += width;
        if self.blanks > MAX_BLANKS {
            return None;
        }
        *self.inserted.entry(line).or_default() += width;
        Some(" ".repeat(width))
    }
}

/// Puts a blank in front of a comment.
fn insert_blank(text: &str, at: Position) -> Option<String> {
    let (before, comment) = text.split_at(offset(text, at)?);
    let glued = comment.starts_with('#') && !before.ends_with([' ', '\t', '\n']);
    glued.then(|| format!("{before} {comment}"))
}

/// Makes spaces of the tabs between a `:` and `at`.
fn replace_tabs(text: &str, at: Position) -> Option<String> {
    let end = offset(text, at)?;
    let head = text[..end].trim_end_matches(['\t', ' ']);
    let blanks = " ".repeat(end - head.len());
    head.ends_with(':').then(|| format!("{head}{blanks}{}", &text[end..]))
}

/// Makes spaces of the tabs that a line begins with.
fn replace_leading_tabs(text: &str, at: Position) -> Option<String> {
    let start = offset(text, Position { line: at.line, column: 1 })?;
    let rest = text[start..].trim_start_matches(['\t', ' ']);
    let blanks = " ".repeat(text.len() - start - rest.len());
    Some(format!("{}{blanks}{rest}", &text[..start]))
}

/// The byte offset of a position.
fn offset(text: &str, at: Position) -> Option<usize> {
    let mut start = 0;
    for _ in 1..at.line {
        start += text[start..].find('\n')? + 1;
    }
    let line = &text[start..];
    let column = line.char_indices().nth(at.column - 1).map_or(line.len(), |(index, _)| index);
    Some(start + column)
}

/// How many bytes the quoted scalar takes that `text` starts with, quotes included.
fn quoted_length(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            let doubled = quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'');
            if !doubled {
                return Some(index + 1);
            }
            chars.next();
        }
    }
    None
}
