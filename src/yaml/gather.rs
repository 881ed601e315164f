use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Document, Problem, YamlError, typed};
use crate::diagnostic::{FieldPath, Segment};

/// How many problems of one document are told.
const MAX_PROBLEMS: usize = 50;

/// As [`super::from_document`], but tells all problems: what cannot be read is mended or taken out, and reading starts again.
///
/// # Errors
/// Every problem, in the order of the file; at least one.
pub fn from_document_gathering<T: DeserializeOwned>(
    file: &str,
    document: &Document,
) -> Result<T, Vec<YamlError>> {
    let first = match super::from_document(file, document) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut mended = Mended { value: document.value.clone(), at: Vec::new() };
    let mut problems = Vec::new();
    let mut next = Some(first);
    while let Some(problem) = next.filter(|_| problems.len() < MAX_PROBLEMS) {
        let is_own = mended.made(&problem);
        let goes_on = mended.mend(&problem, is_own);
        if !is_own {
            problems.push(problem);
        }
        let read = || typed::read::<T>(&mended.value, document.positions.0.as_ref());
        next = if goes_on { read().map_err(|error| error.in_file(file)).err() } else { None };
    }
    problems.sort_by_key(YamlError::position);
    Err(problems)
}

/// A value that was changed so that more of it can be read.
struct Mended {
    value: Value,
    /// What was put in or taken out.
    at: Vec<FieldPath>,
}

impl Mended {
    /// Whether the problem comes from mending.
    fn made(&self, problem: &YamlError) -> bool {
        self.at.contains(&field_of(problem))
    }

    /// Makes the problem go away; `false` when that is not possible.
    fn mend(&mut self, problem: &YamlError, is_own: bool) -> bool {
        let field = field_of(problem);
        let stand_in = match problem.problem() {
            _ if is_own => None,
            Problem::Type { expected, .. } => stand_in(expected),
            // Most of what is required is a text.
            Problem::MissingField { .. } => Some(json!("")),
            _ => None,
        };
        let Some(stand_in) = stand_in else { return self.take_out(field) };
        let (Some(Segment::Key(key)), Some(parent)) = (field.0.last(), self.parent(&field)) else {
            return self.take_out(field);
        };
        parent.insert(key.clone(), stand_in);
        self.at.push(field);
        true
    }

    /// Takes the field out of the mapping that it is in; an element of a list goes with the whole list, as the places of others
    /// would shift.
    fn take_out(&mut self, mut field: FieldPath) -> bool {
        while let Some(Segment::Index(_)) = field.0.last() {
            field.0.pop();
        }
        let Some(Segment::Key(key)) = field.0.last().cloned() else { return false };
        let taken = self.parent(&field).and_then(|parent| parent.remove(&key));
        self.at.push(field);
        taken.is_some()
    }

    fn parent(&mut self, field: &FieldPath) -> Option<&mut serde_json::Map<String, Value>> {
        let (_, above) = field.0.split_last()?;
        let mut value = &mut self.value;
        for segment in above {
            value = match segment {
                Segment::Key(key) => value.get_mut(key)?,
                Segment::Index(index) => value.get_mut(*index)?,
            };
        }
        value.as_object_mut()
    }
}

/// The field that is wrong, or missing.
fn field_of(problem: &YamlError) -> FieldPath {
    let field = problem.field().cloned().unwrap_or_else(FieldPath::root);
    match problem.problem() {
        Problem::MissingField { name } => field.child(name.as_str()),
        _ => field,
    }
}

/// A value of the type that was expected, by its name.
fn stand_in(expected: &str) -> Option<Value> {
    let stand_ins = [
        ("string", json!("")),
        ("true or false", json!(false)),
        ("list", json!([])),
        ("mapping", json!({})),
        ("number", json!(0)),
        ("integer", json!(0)),
    ];
    let found = stand_ins.into_iter().find(|(name, _)| expected.contains(name));
    found.map(|(_, value)| value)
}
