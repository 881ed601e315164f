//! Methods of strings that make another string.

use super::required_text;
use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::value::repr::escaped;
use crate::jinja::value::{Budget, Value, char_count};

pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars.as_str().to_lowercase().chars()).collect(),
        None => String::new(),
    }
}

pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_alphabetic();
    }
    out
}

pub(super) fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

/// `strip`, `lstrip`, `rstrip`.
pub(crate) fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let matches = |c: char| match chars {
        Some(chars) => chars.contains(c),
        None => is_space(c),
    };
    let text = if left { text.trim_start_matches(matches) } else { text };
    if right { text.trim_end_matches(matches) } else { text }
}

/// What Python counts as white space: also the four ASCII separators.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `splitlines`, at all of Python's line ends.
pub(crate) fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        let ends = matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        );
        if !ends {
            continue;
        }
        let mut end = index + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(&text[start..if keep_ends { end } else { index }]);
        start = end;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// `center`, with Python's choice of the side that gets the odd one.
pub(crate) fn center(text: &str, width: usize, fill: char) -> String {
    let length = char_count(text);
    let Some(space) = width.checked_sub(length).filter(|space| *space > 0) else {
        return text.to_owned();
    };
    let left = space / 2 + (space & width & 1);
    let pad = |count: usize| std::iter::repeat_n(fill, count);
    pad(left).chain(text.chars()).chain(pad(space - left)).collect()
}

pub(super) fn width(it: &Interp<'_>, args: &Bound) -> Res<usize> {
    let width = usize::try_from(args.int(0, 0)?.max(0)).unwrap_or(0);
    it.budget.bytes(width)?;
    Ok(width)
}

pub(super) fn justify(it: &Interp<'_>, text: &str, name: &str, args: &Bound) -> Res<String> {
    let width = width(it, args)?;
    let fill = match args.given(1) {
        None => ' ',
        Some(value) => {
            let mut chars = value.as_str().map(|text| text.chars());
            if let (Some(fill), None) =
                (chars.as_mut().and_then(Iterator::next), chars.and_then(|mut rest| rest.next()))
            {
                fill
            } else {
                let message = "The fill character must be exactly one character long";
                return Err(Raise::type_error(message));
            }
        }
    };
    let pad = std::iter::repeat_n(fill, width.saturating_sub(char_count(text)));
    Ok(match name {
        "center" => center(text, width, fill),
        "ljust" => text.chars().chain(pad).collect(),
        _ => pad.chain(text.chars()).collect(),
    })
}

/// `replace` with a count; negative means all.
pub(crate) fn replace(
    text: &str,
    old: &str,
    new: &str,
    count: i64,
    budget: &Budget,
) -> Res<String> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = if old.is_empty() { char_count(text) + 1 } else { text.matches(old).count() };
    budget.bytes(text.len() + found.min(limit).saturating_mul(new.len()))?;
    Ok(if count < 0 { text.replace(old, new) } else { text.replacen(old, new, limit) })
}

pub(super) fn expand_tabs(text: &str, size: i64) -> String {
    let size = usize::try_from(size.clamp(0, 1024)).unwrap_or(8);
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                out.push_str(&" ".repeat(spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}

/// `encode`, for the encodings that hold any text, ASCII and Latin-1.
pub(super) fn encode(text: &str, args: &Bound) -> Res<Value> {
    let option = |index: usize, name: &str, default: &str| match args.given(index) {
        None => Ok(default.to_owned()),
        Some(value) if value.as_str().is_some() => {
            Ok(required_text(args, index, name)?.to_string())
        }
        Some(value) => {
            value.require()?;
            let kind = value.type_name();
            let message = format!("encode() argument '{name}' must be str, not {kind}");
            Err(Raise::type_error(message))
        }
    };
    let (encoding, errors) = (option(0, "encoding", "utf-8")?, option(1, "errors", "strict")?);
    let (name, limit) = match &*encoding.to_lowercase().replace(['_', ' '], "-") {
        "utf-8" | "utf8" | "u8" => return Ok(Value::Bytes(text.as_bytes().into())),
        "ascii" | "us-ascii" | "646" => ("ascii", 128),
        "latin-1" | "latin1" | "iso-8859-1" | "l1" => ("latin-1", 256),
        _ => return Err(Raise::new("LookupError", format!("unknown encoding: {encoding}"))),
    };
    let mut bytes = Vec::with_capacity(text.len());
    let wrong = |c: &char| u32::from(*c) >= limit;
    for (index, c) in text.chars().enumerate() {
        match (u8::try_from(c), &*errors) {
            (Ok(byte), _) if !wrong(&c) => bytes.push(byte),
            (_, "ignore") => {}
            (_, "replace") => bytes.push(b'?'),
            _ => {
                let run = text.chars().skip(index).take_while(wrong).count();
                let what = if run == 1 {
                    format!("character '{}' in position {index}", escaped(c))
                } else {
                    format!("characters in position {index}-{}", index + run - 1)
                };
                return Err(Raise::new(
                    "UnicodeEncodeError",
                    format!("'{name}' codec can't encode {what}: ordinal not in range({limit})"),
                ));
            }
        }
    }
    Ok(Value::Bytes(bytes.into()))
}
