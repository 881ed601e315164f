//! Iteration: what can be walked, and Python's generators, which can be walked once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::vec;

use super::{DictRef, ListRef, Range, Tuple, Value, View};
use crate::jinja::error::{Raise, Res};

/// A generator or another iterator as a value.
#[derive(Debug)]
pub(crate) struct Iter {
    pub(crate) type_name: &'static str,
    pub(crate) walk: RefCell<Walk>,
}

impl Iter {
    pub(crate) fn of(items: Vec<Value>) -> Self {
        Self::named("generator", items)
    }

    pub(crate) fn named(type_name: &'static str, items: Vec<Value>) -> Self {
        Self { type_name, walk: RefCell::new(Walk::Items(items.into_iter())) }
    }
}

/// A walk over the elements of a value.
#[derive(Debug)]
pub(crate) enum Walk {
    Items(vec::IntoIter<Value>),
    /// Live, as in Python: elements appended meanwhile are seen.
    List(ListRef, usize),
    Tuple(Rc<Tuple>, usize),
    Chars(Arc<str>, usize),
    Range(Range, i64),
    /// The dict, what of it, the next position, and the size that must not change.
    Dict(DictRef, View, usize, usize),
    Shared(Rc<Iter>),
}

impl Walk {
    /// `iter(value)`.
    pub(crate) fn new(value: &Value) -> Res<Walk> {
        Ok(match value {
            Value::Undefined(undefined) if undefined.lenient => Walk::Items(Vec::new().into_iter()),
            Value::Undefined(undefined) => return undefined.raise(),
            Value::List(list) => Walk::List(Rc::clone(list), 0),
            Value::Tuple(tuple) => Walk::Tuple(Rc::clone(tuple), 0),
            Value::Str(text) | Value::Markup(text) => Walk::Chars(Arc::clone(text), 0),
            Value::Dict(dict) => Walk::Dict(Rc::clone(dict), View::Keys, 0, dict.len()),
            Value::View(view, dict) => Walk::Dict(Rc::clone(dict), *view, 0, dict.len()),
            Value::Range(range) => Walk::Range(**range, 0),
            Value::Iter(iter) => Walk::Shared(Rc::clone(iter)),
            Value::Bytes(bytes) => {
                let items: Vec<Value> =
                    bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect();
                Walk::Items(items.into_iter())
            }
            _ => return Err(not_iterable(value)),
        })
    }

    pub(crate) fn next(&mut self) -> Res<Option<Value>> {
        Ok(match self {
            Walk::Items(items) => items.next(),
            Walk::List(list, index) => {
                let item = list.get(*index);
                *index += usize::from(item.is_some());
                item
            }
            Walk::Tuple(tuple, index) => {
                let item = tuple.items.get(*index).cloned();
                *index += 1;
                item
            }
            Walk::Chars(text, at) => {
                let c = text[*at..].chars().next();
                *at += c.map_or(0, char::len_utf8);
                c.map(|c| Value::str(&*c.encode_utf8(&mut [0; 4])))
            }
            Walk::Range(range, index) => {
                let item = (*index < range.len()).then(|| range.get(*index));
                *index += 1;
                item
            }
            Walk::Dict(dict, view, index, size) => {
                if dict.len() != *size {
                    let message = "dictionary changed size during iteration";
                    return Err(Raise::new("RuntimeError", message));
                }
                let entry = dict.at(*index);
                *index += 1;
                entry.map(|(key, value)| match view {
                    View::Keys => key,
                    View::Values => value,
                    View::Items => Value::tuple(vec![key, value]),
                })
            }
            Walk::Shared(iter) => match iter.walk.try_borrow_mut() {
                Ok(mut walk) => walk.next()?,
                Err(_) => return Err(Raise::value_error("generator already executing")),
            },
        })
    }

    /// How many elements are left, when the value has a length at all.
    pub(crate) fn known_len(&self) -> Option<usize> {
        match self {
            Walk::Items(items) => Some(items.len()),
            Walk::List(list, index) => Some(list.len().saturating_sub(*index)),
            Walk::Tuple(tuple, index) => Some(tuple.items.len().saturating_sub(*index)),
            Walk::Chars(text, at) => Some(super::char_count(&text[*at..])),
            Walk::Range(range, index) => usize::try_from(range.len() - index).ok(),
            Walk::Dict(dict, _, index, _) => Some(dict.len().saturating_sub(*index)),
            Walk::Shared(_) => None,
        }
    }
}

fn not_iterable(value: &Value) -> Raise {
    Raise::type_error(format!("'{}' object is not iterable", value.type_name()))
}
