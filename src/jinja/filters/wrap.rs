//! Python's `textwrap`.

use std::rc::Rc;

use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::methods::text::split_lines;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Value, char_count, no_attribute};

/// Whether words may be broken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breaks {
    pub(crate) long_words: bool,
    pub(crate) hyphens: bool,
}

const SPACE: &[char] = &['\t', '\n', '\x0b', '\x0c', '\r', ' '];

/// `textwrap.wrap` of one paragraph, without touching its white space otherwise.
pub(crate) fn wrap(text: &str, width: usize, breaks: Breaks) -> Vec<String> {
    let mut chunks: Vec<Vec<char>> = chunks(text, breaks.hyphens);
    chunks.reverse();
    let is_space = |chunk: &[char]| chunk.iter().all(|c| SPACE.contains(c));
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        let mut line: Vec<Vec<char>> = Vec::new();
        let mut length = 0;
        if !lines.is_empty() && chunks.last().is_some_and(|chunk| is_space(chunk)) {
            chunks.pop();
        }
        while let Some(chunk) = chunks.pop() {
            if length + chunk.len() <= width {
                length += chunk.len();
                line.push(chunk);
            } else {
                chunks.push(chunk);
                break;
            }
        }
        if chunks.last().is_some_and(|chunk| chunk.len() > width)
            && let Some(chunk) = chunks.pop()
        {
            if breaks.long_words {
                // Without room, as in Python, an empty piece ends the line and keeps its last space.
                let mut room = if width == 0 { 1 } else { width.saturating_sub(length) };
                if breaks.hyphens
                    && chunk.len() > room
                    && let Some(hyphen) = chunk[..room].iter().rposition(|c| *c == '-')
                    && hyphen > 0
                    && chunk[..hyphen].iter().any(|c| *c != '-')
                {
                    room = hyphen + 1;
                }
                let rest = chunk[room.min(chunk.len())..].to_vec();
                line.push(chunk[..room.min(chunk.len())].to_vec());
                if !rest.is_empty() {
                    chunks.push(rest);
                }
            } else if line.is_empty() {
                line.push(chunk);
            } else {
                chunks.push(chunk);
            }
        }
        if line.last().is_some_and(|chunk| is_space(chunk)) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.into_iter().flatten().collect());
        }
    }
    lines
}

/// Runs of white space, words, and parts of hyphenated words.
fn chunks(text: &str, hyphens: bool) -> Vec<Vec<char>> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let space = SPACE.contains(&chars[start]);
        let mut end = start + 1;
        while end < chars.len() && SPACE.contains(&chars[end]) == space {
            if !space && hyphens && breaks_before(&chars, start, end) {
                break;
            }
            end += 1;
        }
        out.push(chars[start..end].to_vec());
        start = end;
    }
    out
}

/// Whether a word that began at `start` ends before `at`: after a hyphen, or before a dash.
fn breaks_before(chars: &[char], start: usize, at: usize) -> bool {
    let get = |index: usize| chars.get(index).copied();
    let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before_dash = |c: char| c.is_alphanumeric() || "_!\"'&.,?".contains(c);
    let dashes = |from: usize| chars[from..].iter().take_while(|c| **c == '-').count();
    if chars[at] == '-' && before_dash(chars[at - 1]) {
        let count = dashes(at);
        return count >= 2 && word(get(at + count));
    }
    if chars[at - 1] != '-' {
        return false;
    }
    let run = chars[start..at].iter().rev().take_while(|c| **c == '-').count();
    if run >= 2 {
        return start + run == at && word(get(at));
    }
    if at < start + 2 {
        return false;
    }
    let two_letters = at >= start + 3 && letter(get(at - 2)) && letter(get(at - 3));
    let letter_hyphen_word =
        at >= start + 4 && word(get(at - 2)) && get(at - 3) == Some('-') && letter(get(at - 4));
    let follows = letter(get(at))
        && (letter(get(at + 1)) || (get(at + 1) == Some('-') && letter(get(at + 2))));
    (two_letters || letter_hyphen_word) && follows
}

pub(super) fn wordwrap(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    value.require()?;
    let Some(text) = value.as_str() else {
        return Err(no_attribute(value, "splitlines"));
    };
    let width = args.int(1, 79)?;
    let Some(width) = usize::try_from(width).ok().filter(|width| *width > 0) else {
        return Err(Raise::value_error(format!("invalid width {width} (must be > 0)")));
    };
    let flag = |index: usize| args.given(index).map_or(Ok(true), Value::is_true);
    let breaks = Breaks { long_words: flag(2)?, hyphens: flag(4)? };
    let joiner = match args.optional(3) {
        Some(joiner) => to_str(joiner, &it.budget)?,
        None => "\n".into(),
    };
    it.budget.bytes(char_count(text).saturating_mul(1 + joiner.len() / width))?;
    let paragraphs: Vec<String> = split_lines(text, false)
        .into_iter()
        .map(|line| wrap(line, width, breaks).join(&joiner))
        .collect();
    Ok(Value::str(paragraphs.join(&joiner)))
}
