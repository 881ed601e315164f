//! From bytes to text, and what to say about texts that are no YAML.

use std::borrow::Cow;

use super::{YamlError, error::Problem};
use crate::diagnostic::Position;

/// The hint for tabs where only spaces may be.
pub(super) const NO_TABS: &str = "indent with spaces: YAML does not allow tabs there";

/// Decodes UTF-8, or UTF-16 with a byte order mark; the mark is dropped.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    let refuse = |message: String| YamlError::new(Problem::Encoding { message });
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest).map(Cow::Borrowed),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes).map(Cow::Owned),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes).map(Cow::Owned),
        _ => utf8(bytes).map(Cow::Borrowed),
    }
    .map_err(|error| error.unwrap_or_else(|| refuse("the text is not valid UTF-16".to_owned())))
}

fn utf8(bytes: &[u8]) -> Result<&str, Option<YamlError>> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let message = format!(
            "byte 0x{:02X} is not valid UTF-8; the file may be binary or in another encoding",
            bytes[error.valid_up_to()]
        );
        Some(YamlError::at(Problem::Encoding { message }, end_of(&valid)))
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Option<YamlError>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(None);
    }
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .collect::<Result<_, _>>()
        .map_err(|_| None)
}

/// The position behind the end of `text`.
fn end_of(text: &str) -> Position {
    let line_start = text.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: text.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: text[line_start..].chars().count() + 1,
    }
}

/// Refuses characters that YAML does not allow to stand unescaped.
pub(super) fn check_characters(text: &str) -> Result<(), YamlError> {
    let allowed = |c: char| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}' | '\u{10000}'..)
            && c != '\u{FEFF}'
    };
    let Some((index, c)) = text.char_indices().find(|(_, c)| !allowed(*c)) else { return Ok(()) };
    let problem = Problem::Syntax {
        message: format!("the character U+{:04X} is not allowed", u32::from(c)),
        hint: Some("write it as an escape in double quotes, or remove it".to_owned()),
    };
    Err(YamlError::at(problem, end_of(&text[..index])))
}

/// The parser's message without its preamble.
pub(super) fn syntax_message(info: &str) -> String {
    let message = match info.split_once(", ") {
        Some((context, message)) if context.starts_with("while ") => {
            format!("{message} {context}")
        }
        _ if info == "recursion limit exceeded" => "nested too deeply".to_owned(),
        _ => info.to_owned(),
    };
    message.replace('\'', "`")
}

/// Without a last line that holds only spaces: it is no content, whatever it follows.
pub(super) fn without_blank_end(text: &str) -> &str {
    let trimmed = text.trim_end_matches(' ');
    if trimmed.ends_with(['\n', '\r']) { trimmed } else { text }
}

/// The opening bracket of a flow collection, if one is at `at`.
pub(super) fn bracket_at(text: &str, at: Position) -> Option<char> {
    let line = text.lines().nth(at.line - 1)?;
    line.chars().nth(at.column - 1).filter(|c| matches!(c, '[' | '{'))
}

/// What to do about frequent mistakes, judged by the line where the parser stopped.
pub(super) fn syntax_hint(text: &str, at: Position, info: &str) -> Option<&'static str> {
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    let indentation: &str = &line[..line.len() - line.trim_start().len()];
    if indentation.contains('\t') || info.contains("tab") {
        return Some(NO_TABS);
    }
    let value = line.split_once(": ").map_or(line, |(_, value)| value).trim_start();
    if value.starts_with(['@', '`', '%']) {
        return Some("quote values that start with `@`, `%` or a backtick");
    }
    if value.starts_with("{{") || value.starts_with("{%") {
        return Some("quote texts that start with a template expression");
    }
    if value.starts_with('*') || value.starts_with('&') {
        return Some("quote values that start with `*` or `&`, unless an alias or anchor is meant");
    }
    if info.contains("mapping values are not allowed") {
        return Some("quote values that contain `: `, and check the indentation");
    }
    None
}
