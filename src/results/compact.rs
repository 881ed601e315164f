//! The compacted form of objects in printed and stored results (kluctl 2.28): of the rendered, remote and applied object the
//! first is written as JSON, the others as differences to the one before.

use std::{fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{BaseObject, CommandResult, ResultObject};
use crate::object::Object;

const FULL: &str = "full: ";
const DELTA: &str = "delta: ";
/// Texts of more pieces than this are compared at their ends only, which takes no time.
const MOST_PIECES: usize = 20_000;
/// What stays as it is in inserted text, besides letters and digits.
const UNESCAPED: &str = "-_.~ !'();/?:@&=+$,#*";

/// Why compacted objects cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// The JSON has another shape.
    #[error("no list of compacted objects: {0}")]
    Shape(String),
    /// A text that is neither complete nor a difference, or that does not fit what is before it.
    #[error("{object}: {problem}")]
    Text {
        /// The object.
        object: String,
        /// What is wrong.
        problem: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
struct CompactedObject {
    #[serde(flatten)]
    base: BaseObject,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    rendered: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    remote: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    applied: String,
}

impl CommandResult {
    /// The result as it is printed and stored: with `compactedObjects` instead of `objects`.
    pub fn compacted(&self) -> Value {
        let mut head = self.clone();
        let objects = std::mem::take(&mut head.objects);
        let mut tree = serde_json::to_value(&head).unwrap_or_default();
        if let Some(map) = tree.as_object_mut().filter(|_| !objects.is_empty()) {
            map.insert("compactedObjects".to_owned(), compact_objects(&objects));
        }
        tree
    }
}

/// The compacted form of objects, a list.
pub fn compact_objects(objects: &[ResultObject]) -> Value {
    let compacted = objects.iter().map(|object| {
        let mut before = None;
        CompactedObject {
            base: object.base.clone(),
            rendered: compact(&mut before, object.rendered.as_deref()),
            remote: compact(&mut before, object.remote.as_deref()),
            applied: compact(&mut before, object.applied.as_deref()),
        }
    });
    let compacted: Vec<_> = compacted.collect();
    serde_json::to_value(compacted).unwrap_or_default()
}

/// Reads what [`compact_objects`] writes, and what kluctl does.
///
/// # Errors
/// [`CompactError`]
pub fn expand_objects(list: Value) -> Result<Vec<ResultObject>, CompactError> {
    let compacted: Vec<CompactedObject> =
        serde_json::from_value(list).map_err(|error| CompactError::Shape(error.to_string()))?;
    let objects = compacted.into_iter().map(|object| {
        let mut before = String::new();
        let name = object.base.reference.to_string();
        let mut expand = |text: &str| {
            expand(&mut before, text)
                .map_err(|problem| CompactError::Text { object: name.clone(), problem })
        };
        Ok(ResultObject {
            rendered: expand(&object.rendered)?,
            remote: expand(&object.remote)?,
            applied: expand(&object.applied)?,
            base: object.base,
        })
    });
    objects.collect()
}

fn compact(before: &mut Option<String>, object: Option<&Object>) -> String {
    let Some(object) = object else { return String::new() };
    let text = object.value().to_string();
    let delta = before.as_ref().map(|before| delta(before, &text));
    let compacted = match delta {
        Some(delta) if delta.len() < text.len() => format!("{DELTA}{delta}"),
        _ => format!("{FULL}{text}"),
    };
    *before = Some(text);
    compacted
}

fn expand(before: &mut String, text: &str) -> Result<Option<Arc<Object>>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let text = match (text.strip_prefix(FULL), text.strip_prefix(DELTA)) {
        (Some(full), _) => full.to_owned(),
        (None, Some(delta)) => patched(before, delta)?,
        (None, None) => return Err("neither a text nor a difference"),
    };
    let value = serde_json::from_str(&text).map_err(|_| "not JSON")?;
    *before = text;
    Object::new(value).map(|object| Some(Arc::new(object))).map_err(|_| "not an object")
}

/// The difference in the notation of diff-match-patch: `=n` keeps, `-n` drops, `+text` adds; counts are of code points.
fn delta(before: &str, after: &str) -> String {
    let (old, new) = (pieces(before), pieces(after));
    let (head, tail) = equal_ends(&old, &new);
    let mut steps = Steps::default();
    steps.keep(&old[..head]);
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if old_middle.len().max(new_middle.len()) > MOST_PIECES {
        steps.replace(old_middle, new_middle);
    } else {
        for op in capture_diff_slices(Algorithm::Patience, old_middle, new_middle) {
            let (was, is) = (&old_middle[op.old_range()], &new_middle[op.new_range()]);
            match op {
                DiffOp::Equal { .. } => steps.keep(was),
                _ => steps.replace(was, is),
            }
        }
    }
    steps.keep(&old[old.len() - tail..]);
    steps.finish()
}

/// The text in pieces that end where a value or a key does.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(['{', '}', '[', ']', ',', ':', ' ']).collect()
}

fn equal_ends(old: &[&str], new: &[&str]) -> (usize, usize) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    (head, rest.take_while(|(a, b)| a == b).count())
}

#[derive(Default)]
struct Steps {
    text: String,
    kept: usize,
}

impl Steps {
    fn keep(&mut self, pieces: &[&str]) {
        self.kept += count(pieces);
    }

    fn replace(&mut self, was: &[&str], is: &[&str]) {
        if was.is_empty() && is.is_empty() {
            return;
        }
        self.flush();
        if !was.is_empty() {
            let _ = write!(self.text, "-{}\t", count(was));
        }
        if !is.is_empty() {
            let _ = write!(self.text, "+{}\t", escaped(&is.concat()));
        }
    }

    fn flush(&mut self) {
        if self.kept > 0 {
            let _ = write!(self.text, "={}\t", self.kept);
            self.kept = 0;
        }
    }

    fn finish(mut self) -> String {
        self.flush();
        self.text.truncate(self.text.trim_end_matches('\t').len());
        self.text
    }
}

fn count(pieces: &[&str]) -> usize {
    pieces.iter().map(|piece| piece.chars().count()).sum()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if byte.is_ascii_alphanumeric() || UNESCAPED.contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first == b'%' {
            let digits = std::str::from_utf8(more.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &more[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

fn patched(before: &str, delta: &str) -> Result<String, &'static str> {
    const MISFIT: &str = "the difference does not fit the text before";
    let mut rest = before.chars();
    let mut out = String::new();
    for step in delta.split('\t').filter(|step| !step.is_empty()) {
        let (kind, value) = step.split_at_checked(1).ok_or("an unknown step")?;
        if kind == "+" {
            out.push_str(&unescaped(value).ok_or("added text is badly escaped")?);
            continue;
        }
        let count: usize = value.parse().map_err(|_| "a count that is no number")?;
        let taken: String = rest.by_ref().take(count).collect();
        if taken.chars().count() != count {
            return Err(MISFIT);
        }
        match kind {
            "=" => out.push_str(&taken),
            "-" => {}
            _ => return Err("an unknown step"),
        }
    }
    if rest.next().is_some() { Err(MISFIT) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::object::ObjectRef;

    fn object(data: &Value) -> Option<Arc<Object>> {
        let tree = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data});
        Object::new(tree).ok().map(Arc::new)
    }

    fn result_object(rendered: &Value, remote: &Value, applied: &Value) -> ResultObject {
        ResultObject {
            base: BaseObject {
                reference: ObjectRef::new("v1", "ConfigMap", Some("ns"), "x"),
                changes: Vec::new(),
                new: false,
                orphan: false,
                deleted: false,
                hook: false,
            },
            rendered: object(rendered),
            remote: object(remote),
            applied: object(applied),
        }
    }

    #[test]
    fn the_first_object_is_complete_and_the_others_are_differences() {
        let one = json!({"a": "1"});
        let compacted =
            compact_objects(&[result_object(&one, &json!({"a": "2", "b": "ä + 1%"}), &one)]);
        let expected = json!([{
            "ref": {"kind": "ConfigMap", "name": "x", "namespace": "ns", "version": "v1"},
            "rendered": r#"full: {"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}"#,
            "remote": "delta: =31\t-4\t+%222%22,%22b%22:%22%C3%A4 + 1%25%22%7D\t=44",
            "applied": "delta: =31\t-17\t+%221%22%7D\t=44",
        }]);
        assert_eq!(compacted, expected);
    }

    #[test]
    fn differences_of_the_reference_are_read() {
        // As kluctl wrote them for texts that share most of their letters.
        let full = r#"full: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#;
        let list = json!([{"ref": {"kind": "ConfigMap", "name": "x", "version": "v1"},
            "rendered": full, "remote": "delta: =58\t-1\t+y%22,%22namespace%22:%22n s\t=3", "applied": "delta: =80"}]);
        let objects = expand_objects(list).unwrap();
        let remote = objects[0].remote.as_ref().unwrap().value();
        assert_eq!(remote["metadata"], json!({"name": "y", "namespace": "n s"}));
        assert_eq!(objects[0].applied.as_ref().unwrap().value(), remote);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let read = |text: &str| {
            let object = json!({"ref": {"kind": "K", "name": "x"},
                "rendered": r#"full: {"apiVersion":"v1","kind":"K","metadata":{"name":"x"}}"#, "remote": text});
            expand_objects(json!([object])).unwrap_err().to_string()
        };
        for wrong in ["delta: =1000", "delta: =3", "delta: x1", "delta: =a", "delta: +%zz", "other"]
        {
            assert!(read(wrong).starts_with("K/x: "), "{wrong}: {}", read(wrong));
        }
    }

    proptest! {
        #[test]
        fn every_text_is_read_as_it_was_written(
            before in r#"[a-c{},: "ä😀%+\t\n]{0,60}"#, after in r#"[a-c{},: "ä😀%+\t\n]{0,60}"#,
        ) {
            prop_assert_eq!(patched(&before, &delta(&before, &after)).unwrap(), after);
        }
    }
}
