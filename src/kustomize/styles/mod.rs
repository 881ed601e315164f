//! How scalars were written, for the rare patches where that decides: a number that a patch puts in place of a quoted text is
//! meant as text.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::id::scalar_text;
use crate::{
    diagnostic::{FieldPath, Position, Segment},
    yaml::{self, Document, Schema as YamlSchema},
};

/// The text that an object was read from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    text: Arc<[u8]>,
    /// Which document of the text; lists are one document.
    index: usize,
}

impl Source {
    pub(crate) fn new(text: Arc<[u8]>, index: usize) -> Self {
        Self { text, index }
    }
}

/// The styles of one object's scalars, found out when they are first asked for.
///
/// Scalars are known by field name and content: places change while objects are transformed.
#[derive(Debug)]
pub(crate) struct Styles {
    source: Option<Source>,
    found: OnceCell<Found>,
}

#[derive(Debug, Default)]
struct Found {
    quoted: HashSet<(String, String)>,
    written: HashMap<(String, String), String>,
}

impl Styles {
    pub(crate) fn new(source: Option<Source>) -> Self {
        Self { source, found: OnceCell::new() }
    }

    /// Whether a text in a field of this name is in quotes, or in a block.
    pub(crate) fn is_quoted(&self, field: &str, text: &str) -> bool {
        // Plain texts have no line ends.
        let cannot_be_plain = text.contains('\n') || needs_quotes(text);
        cannot_be_plain || self.found().quoted.contains(&(field.to_owned(), text.to_owned()))
    }

    /// A number or boolean as it was written: `1.10`, not `1.1`.
    pub(crate) fn written(&self, field: &str, value: &Value) -> String {
        let normal = scalar_text(value).unwrap_or_default();
        let written = self.found().written.get(&(field.to_owned(), normal.clone()));
        written.cloned().unwrap_or(normal)
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| self.source.as_ref().map(find).unwrap_or_default())
    }
}

fn needs_quotes(text: &str) -> bool {
    yaml::emit(&Value::String(text.to_owned())).starts_with(['"', '\''])
}

fn find(source: &Source) -> Found {
    let mut found = Found::default();
    let documents = yaml::parse_documents("", &source.text, YamlSchema::Manifest);
    let Some(document) = documents.ok().and_then(|all| all.into_iter().nth(source.index)) else {
        return found;
    };
    let text = String::from_utf8_lossy(&source.text);
    let lines: Vec<&str> = text.lines().collect();
    visit(&document, &document.value, &FieldPath::root(), &lines, &mut found);
    found
}

fn visit(document: &Document, value: &Value, path: &FieldPath, lines: &[&str], found: &mut Found) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                visit(document, value, &path.child(key.as_str()), lines, found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                visit(document, value, &path.child(index), lines, found);
            }
        }
        scalar => {
            let Some(Segment::Key(field)) = path.0.last() else { return };
            let Some(rest) = document.positions.of_value(path).and_then(|at| rest(lines, at))
            else {
                return;
            };
            let text = scalar_text(scalar).unwrap_or_default();
            let key = (field.clone(), text);
            if scalar.is_string() && rest.starts_with(['"', '\'', '|', '>']) {
                found.quoted.insert(key);
            } else if let Some(word) = plain_word(rest).filter(|_| !scalar.is_string()) {
                found.written.insert(key, word.to_owned());
            }
        }
    }
}

/// The rest of the line from a place on.
fn rest<'a>(lines: &[&'a str], at: Position) -> Option<&'a str> {
    let line = lines.get(at.line.checked_sub(1)?)?;
    let (start, _) = line.char_indices().nth(at.column.checked_sub(1)?)?;
    line.get(start..)
}

/// The plain number, boolean or null at the start of a text.
pub(crate) fn plain_word(text: &str) -> Option<&str> {
    let end = text.find([',', '}', ']', ' ', '\t']).unwrap_or(text.len());
    let word = text.get(..end)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    (!word.is_empty() && word.chars().all(plain)).then_some(word)
}

#[cfg(test)]
mod tests;
