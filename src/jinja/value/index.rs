//! Subscripts and slices.

use std::rc::Rc;

use super::{Budget, Key, Range, Value, char_count};
use crate::jinja::error::{Raise, Res};

/// `value[index]` without any fallback. `None`: Python would raise an error that Jinja turns into undefined.
pub(crate) fn item(value: &Value, index: &Value) -> Res<Option<Value>> {
    match value {
        Value::Undefined(undefined) => return undefined.raise(),
        Value::Dict(dict) => {
            // Unhashable keys are a TypeError, which becomes undefined; undefined keys fail.
            index.require()?;
            return Ok(Key::new(index).ok().and_then(|key| dict.get(&key)));
        }
        Value::List(list) => return Ok(position(index, list.len()).and_then(|at| list.get(at))),
        Value::Tuple(tuple) => {
            return Ok(position(index, tuple.items.len()).map(|at| tuple.items[at].clone()));
        }
        Value::Str(text) | Value::Markup(text) => {
            let found = position(index, char_count(text)).and_then(|at| char_at(text, at));
            return Ok(found.map(|c| wrap(value, &c.to_string())));
        }
        Value::Bytes(bytes) => {
            let found = position(index, bytes.len()).map(|at| Value::Int(i64::from(bytes[at])));
            return Ok(found);
        }
        Value::Range(range) => {
            let len = usize::try_from(range.len()).unwrap_or(usize::MAX);
            let at = position(index, len);
            return Ok(at.and_then(|at| i64::try_from(at).ok()).map(|at| range.get(at)));
        }
        Value::Object(object) => {
            if let Some(text) = index.as_str() {
                return Ok(object.item(text));
            }
        }
        _ => {}
    }
    Ok(None)
}

fn position(index: &Value, len: usize) -> Option<usize> {
    let index = index.as_index()?;
    let len = i64::try_from(len).ok()?;
    let at = if index < 0 { index + len } else { index };
    if (0..len).contains(&at) { usize::try_from(at).ok() } else { None }
}

fn char_at(text: &str, index: usize) -> Option<char> {
    if text.is_ascii() {
        return text.as_bytes().get(index).map(|byte| char::from(*byte));
    }
    text.chars().nth(index)
}

/// Text of the same kind as `like`: what comes out of a safe string is safe.
pub(crate) fn wrap(like: &Value, text: &str) -> Value {
    if matches!(like, Value::Markup(_)) { Value::Markup(text.into()) } else { Value::str(text) }
}

/// `value[start:stop:step]`.
pub(crate) fn slice(
    value: &Value,
    start: &Value,
    stop: &Value,
    step: &Value,
    budget: &Budget,
) -> Res<Value> {
    match value {
        Value::Undefined(undefined) => return undefined.raise(),
        Value::Dict(_) => return Err(Raise::type_error("unhashable type: 'slice'")),
        Value::List(_)
        | Value::Tuple(_)
        | Value::Str(_)
        | Value::Markup(_)
        | Value::Bytes(_)
        | Value::Range(_) => {}
        other => {
            let name = other.type_name();
            return Err(Raise::type_error(format!("'{name}' object is not subscriptable")));
        }
    }
    let bound = |value: &Value| -> Res<Option<i64>> {
        match value {
            Value::None => Ok(None),
            Value::Undefined(undefined) => undefined.raise(),
            other => other.as_index().map(Some).ok_or_else(|| {
                Raise::type_error(
                    "slice indices must be integers or None or have an __index__ method",
                )
            }),
        }
    };
    let step = bound(step)?.unwrap_or(1);
    if step == 0 {
        return Err(Raise::value_error("slice step cannot be zero"));
    }
    let len = value.len()?;
    let (first, last) = span(bound(start)?, bound(stop)?, step, len);
    if let Value::Range(range) = value {
        let (Value::Int(start), Value::Int(stop)) = (range.get(first), range.get(last)) else {
            return Ok(Value::None);
        };
        let step = range.step.saturating_mul(step);
        return Ok(Value::Range(Rc::new(Range { start, stop, step })));
    }
    let picks = picks(first, last, step);
    budget.elements(picks.len())?;
    let pick = |items: &[Value]| picks.iter().map(|at| items[*at].clone()).collect();
    Ok(match value {
        Value::List(list) => Value::list(pick(&list.items())),
        Value::Tuple(tuple) => Value::tuple(pick(&tuple.items)),
        Value::Bytes(bytes) => Value::Bytes(picks.iter().map(|at| bytes[*at]).collect()),
        Value::Str(text) | Value::Markup(text) => {
            let chars: Vec<char> = text.chars().collect();
            let text: String = picks.iter().map(|at| chars[*at]).collect();
            wrap(value, &text)
        }
        _ => Value::None,
    })
}

/// First position and end of a slice, as `slice.indices` computes them.
fn span(start: Option<i64>, stop: Option<i64>, step: i64, len: usize) -> (i64, i64) {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let clamp = |at: i64, low: i64, high: i64| {
        let at = if at < 0 { at.saturating_add(len) } else { at };
        at.clamp(low, high)
    };
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let first = start.map_or(if step > 0 { low } else { high }, |at| clamp(at, low, high));
    let last = stop.map_or(if step > 0 { high } else { low }, |at| clamp(at, low, high));
    (first, last)
}

/// The positions from `first` up to `last`.
fn picks(first: i64, last: i64, step: i64) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = first;
    while if step > 0 { at < last } else { at > last } {
        out.extend(usize::try_from(at));
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    out
}
