//! JSON paths as kluctl's configuration has them (kluctl 2.28): `a.b[0]`, `a.*`, `a..b`, `$["x.y"]`, slices,
//! unions and filters such as `containers[?(@.name == "web")].image`.

mod filter;
mod parse;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::diagnostic::{FieldPath, Segment};
use filter::Filter;

/// Why a text is not a JSON path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a JSON path: {problem} at character {at}")]
pub struct JsonPathError {
    /// The whole text.
    pub path: String,
    /// What is wrong.
    pub problem: &'static str,
    /// Where, counted from 1.
    pub at: usize,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(i64),
    Every,
    /// The value itself and everything below it.
    Descent,
    Union(Vec<Step>),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Filter),
}

/// A parsed JSON path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Parses a path. A leading `$` or `@` is optional.
    ///
    /// # Errors
    /// When the text is not a path; the error tells where.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::parse(text).map(Self)
    }

    /// The one field that the path names, when it has only keys and non-negative indexes.
    pub fn as_field_path(&self) -> Option<FieldPath> {
        let segment = |step: &Step| match step {
            Step::Key(key) => Some(Segment::Key(key.clone())),
            Step::Index(index) => usize::try_from(*index).ok().map(Segment::Index),
            _ => None,
        };
        self.0.iter().map(segment).collect::<Option<Vec<_>>>().map(FieldPath)
    }

    /// The concrete paths of everything in `root` that matches, without the root itself, in document order (sorted keys).
    pub fn locate(&self, root: &Value) -> Vec<FieldPath> {
        let mut found = Vec::new();
        walk(root, &self.0, &mut Vec::new(), &mut found);
        found.sort();
        found.dedup();
        found
    }
}

/// Follows the remaining `steps` from `value`, which stands at `at`.
fn walk(value: &Value, steps: &[Step], at: &mut Vec<Segment>, found: &mut Vec<FieldPath>) {
    let Some((step, rest)) = steps.split_first() else {
        if !at.is_empty() {
            found.push(FieldPath(at.clone()));
        }
        return;
    };
    if *step == Step::Descent {
        walk(value, rest, at, found);
        for_children(value, |segment, child| {
            at.push(segment);
            walk(child, steps, at, found);
            at.pop();
        });
        return;
    }
    for_matches(value, step, &mut |segment, child| {
        at.push(segment);
        walk(child, rest, at, found);
        at.pop();
    });
}

/// Calls `visit` for every child.
fn for_children<'a>(value: &'a Value, mut visit: impl FnMut(Segment, &'a Value)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, child)| visit(key.as_str().into(), child)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, child)| visit(index.into(), child));
        }
        _ => {}
    }
}

/// Calls `visit` for every child that one step selects.
fn for_matches<'a>(value: &'a Value, step: &Step, visit: &mut dyn FnMut(Segment, &'a Value)) {
    match step {
        Step::Key(key) => {
            if let Some(child) = value.as_object().and_then(|map| map.get(key)) {
                visit(key.as_str().into(), child);
            }
        }
        Step::Index(index) => {
            let Some(list) = value.as_array() else { return };
            if let Some(index) = position(*index, list.len()) {
                visit(index.into(), &list[index]);
            }
        }
        Step::Every | Step::Descent => for_children(value, visit),
        Step::Union(steps) => steps.iter().for_each(|step| for_matches(value, step, visit)),
        Step::Slice { start, end, step } => {
            let Some(list) = value.as_array() else { return };
            for index in slice(*start, *end, *step, list.len()) {
                visit(index.into(), &list[index]);
            }
        }
        Step::Filter(filter) => for_children(value, |segment, child| {
            if filter.matches(child) {
                visit(segment, child);
            }
        }),
    }
}

/// A possibly negative index as a position in a list.
fn position(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    let index = if index < 0 { index + len } else { index };
    (0..len).contains(&index).then(|| usize::try_from(index).ok()).flatten()
}

/// The positions of `[start:end:step]`.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, len: usize) -> Vec<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let clamp = |index: i64| if index < 0 { (index + len).max(0) } else { index.min(len) };
    let step_by = usize::try_from(step).unwrap_or(1).max(1);
    (clamp(start.unwrap_or(0))..clamp(end.unwrap_or(len)))
        .step_by(step_by)
        .filter_map(|index| usize::try_from(index).ok())
        .collect()
}
