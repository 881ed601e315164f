//! Changes of values in a YAML text that leave the rest of it as it was written.
//!
//! An edit is a guess from the places of values; the result is parsed, and holds only if it has the content that is wanted.

use serde_json::{Map, Value};

use crate::{
    diagnostic::{FieldPath, Position},
    yaml::{self, Document, Schema},
};

/// The text with `wanted` as its content; `None` when that takes more than other scalars and new fields.
pub(super) fn apply(text: &str, document: &Document, wanted: &Value) -> Option<String> {
    let mut edits = Edits { text, document, list: Vec::new() };
    edits.compare(&document.value, wanted, &FieldPath::root())?;
    edits.list.sort_by_key(|edit| std::cmp::Reverse(edit.start));
    let mut result = text.to_owned();
    let mut untouched = text.len();
    for edit in edits.list {
        // What a merge key brings in has the place of its anchor, which then belongs to several fields.
        if edit.end > untouched {
            return None;
        }
        untouched = edit.start;
        result.replace_range(edit.start..edit.end, &edit.new);
    }
    let parsed = yaml::parse_document("", result.as_bytes(), Schema::Manifest).ok()?;
    (parsed.value == *wanted).then_some(result)
}

/// Bytes to replace.
struct Edit {
    start: usize,
    end: usize,
    new: String,
}

struct Edits<'a> {
    text: &'a str,
    document: &'a Document,
    list: Vec<Edit>,
}

impl Edits<'_> {
    fn compare(&mut self, old: &Value, new: &Value, path: &FieldPath) -> Option<()> {
        match (old, new) {
            (old, new) if old == new => Some(()),
            (Value::Object(old), Value::Object(new)) => {
                if old.keys().any(|key| !new.contains_key(key)) {
                    return None;
                }
                for (key, value) in new {
                    match old.get(key) {
                        Some(own) => self.compare(own, value, &path.child(key.as_str()))?,
                        None => self.insert(old, key, value, path)?,
                    }
                }
                Some(())
            }
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                let mut pairs = old.iter().zip(new).enumerate();
                pairs.try_for_each(|(index, (old, new))| self.compare(old, new, &path.child(index)))
            }
            (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => {
                None
            }
            (old, new) => self.replace(old, new, path),
        }
    }

    /// Another scalar in place of one, in the same quotes.
    fn replace(&mut self, old: &Value, new: &Value, path: &FieldPath) -> Option<()> {
        let start = offset(self.text, self.document.positions.of_value(path)?)?;
        let rest = self.text.get(start..)?.lines().next()?;
        let (length, new) = match rest.chars().next()? {
            '"' => (quoted(rest, '"', '\\')?, serde_json::to_string(&text_of(new)).ok()?),
            '\'' => (quoted(rest, '\'', '\'')?, format!("'{}'", text_of(new).replace('\'', "''"))),
            '|' | '>' | '&' | '*' | '!' => return None,
            _ => {
                let whole = old.as_str().filter(|old| rest.starts_with(old)).map(str::len);
                (whole.unwrap_or_else(|| plain(rest)), yaml::emit(new).trim_end().to_owned())
            }
        };
        self.list.push(Edit { start, end: start + length, new });
        Some(())
    }

    /// A new field at the end of a mapping that has a line for each of its fields.
    fn insert(
        &mut self,
        siblings: &Map<String, Value>,
        key: &str,
        value: &Value,
        path: &FieldPath,
    ) -> Option<()> {
        let place = |key: &String| self.document.positions.of(&path.child(key.as_str()));
        let last = siblings.keys().filter_map(place).max_by_key(|at| at.line)?;
        let indent = last.column.checked_sub(1)?;
        let mut end = 0;
        let mut start = 0;
        for (index, line) in self.text.split_inclusive('\n').enumerate() {
            let content = line.trim_start();
            let depth = line.len() - content.len();
            let belongs =
                index < last.line || depth > indent || depth == indent && content.starts_with("- ");
            if index >= last.line && !content.trim_end().is_empty() && !belongs {
                break;
            }
            start += line.len();
            if !content.trim_end().is_empty() {
                end = start;
            }
        }
        let field = Value::Object([(key.to_owned(), value.clone())].into_iter().collect());
        let margin = " ".repeat(indent);
        let lines = yaml::emit(&field)
            .lines()
            .fold(String::new(), |lines, line| lines + &margin + line + "\n");
        let needs_break = !self.text.get(..end)?.ends_with('\n');
        let new = if needs_break { format!("\n{}", lines.trim_end()) } else { lines };
        self.list.push(Edit { start: end, end, new });
        Some(())
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The byte of a place.
fn offset(text: &str, at: Position) -> Option<usize> {
    let before: usize =
        text.split_inclusive('\n').take(at.line.checked_sub(1)?).map(str::len).sum();
    let line = text.get(before..)?.lines().next()?;
    let (within, _) = line.char_indices().nth(at.column.checked_sub(1)?)?;
    Some(before + within)
}

/// The length of a quoted scalar that ends on its line.
fn quoted(rest: &str, quote: char, escape: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let escapes = if escape == quote { next == Some(quote) } else { true };
        if character == escape && escapes {
            characters.next();
        } else if character == quote {
            return Some(at + quote.len_utf8());
        }
    }
    None
}

/// The length of a plain number or boolean: up to a comment, or to what ends it inside of brackets.
fn plain(rest: &str) -> usize {
    let end = rest.find(" #").unwrap_or(rest.len());
    let end = rest.get(..end).and_then(|rest| rest.find([',', ']', '}'])).unwrap_or(end);
    rest.get(..end).unwrap_or(rest).trim_end().len()
}
