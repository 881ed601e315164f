//! Methods of Python's built-in types.

mod dict;
mod list;
pub(super) mod percent;
mod spec;
mod str_format;
pub(super) mod text;

use std::rc::Rc;

use super::args::{Args, Signature};
use super::error::{Raise, Res};
use super::eval::Interp;
use super::eval::scope::Scope;
use super::value::number::Num;
use super::value::{Value, compare};

const TUPLE: &[&str] = &["count", "index"];
const BYTES: &[&str] = &["decode", "hex"];

/// True when the type of `value` has a method of this name.
pub(crate) fn exists(value: &Value, name: &str) -> bool {
    let names = match value {
        Value::Str(_) | Value::Markup(_) => text::METHODS,
        Value::List(_) => list::METHODS,
        Value::Dict(_) => dict::METHODS,
        Value::Tuple(_) | Value::Range(_) => TUPLE,
        Value::Bytes(_) => BYTES,
        Value::Int(_) | Value::Big(_) | Value::Bool(_) => &["bit_length"],
        Value::Float(_) => &["is_integer"],
        Value::View(super::value::View::Keys | super::value::View::Items, _) => &["isdisjoint"],
        _ => return false,
    };
    names.contains(&name)
}

/// An attribute that is no method.
pub(crate) fn property(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Tuple(tuple), "grouper") if tuple.grouped => tuple.items.first().cloned(),
        (Value::Tuple(tuple), "list") if tuple.grouped => tuple.items.get(1).cloned(),
        (Value::Int(_) | Value::Big(_), "real" | "numerator") | (Value::Float(_), "real") => {
            Some(value.clone())
        }
        (Value::Int(_) | Value::Big(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Big(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        _ => None,
    }
}

/// Calls a method that [`exists`].
pub(crate) fn call(
    it: &mut Interp<'_>,
    scope: &Rc<Scope>,
    value: &Value,
    name: &str,
    args: Args,
) -> Res<Value> {
    match value {
        Value::Str(own) | Value::Markup(own) => text::call(it, value, own, name, args),
        Value::List(own) => list::call(it, scope, own, name, args),
        Value::Dict(own) => dict::call(it, own, name, args),
        Value::Tuple(own) => search(it, &own.items, name, "tuple", &args),
        Value::Range(range) => {
            let items: Vec<Value> = (0..range.len().min(1 << 20)).map(|at| range.get(at)).collect();
            it.budget.elements(items.len())?;
            search(it, &items, name, "range", &args)
        }
        Value::Bytes(bytes) if name == "decode" => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::str(text)),
            Err(_) => Err(Raise::new("UnicodeDecodeError", "'utf-8' codec can't decode bytes")),
        },
        Value::Bytes(bytes) => Ok(Value::str(hex(bytes))),
        Value::Float(float) => Ok(Value::Bool(float.is_finite() && float.fract() == 0.0)),
        Value::View(_, own) => {
            let other = args.bind(Some(&Signature::new("isdisjoint", &["other"], 1)))?;
            for item in super::filters::elements_of(it, other.get(0))? {
                if own.contains(&super::value::Key::new(&item)?) {
                    return Ok(Value::Bool(false));
                }
            }
            Ok(Value::Bool(true))
        }
        other => match Num::of(other) {
            Some(Num::Int(number)) => {
                Ok(Value::Int(64 - i64::from(number.unsigned_abs().leading_zeros())))
            }
            Some(Num::Big(number)) => Ok(Value::Int(i64::try_from(number.bits()).unwrap_or(0))),
            _ => Err(Raise::type_error(format!("'{}' object is not callable", value.type_name()))),
        },
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `index` and `count` of sequences.
fn search(it: &Interp<'_>, items: &[Value], name: &str, kind: &str, args: &Args) -> Res<Value> {
    let Some(wanted) = args.pos.first() else {
        let full = format!("{kind}.{name}()");
        return Err(Raise::type_error(format!("{full} takes exactly one argument (0 given)")));
    };
    let bound = |index: usize, default: usize| -> usize {
        let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let Some(at) = args.pos.get(index).and_then(Value::as_index) else { return default };
        let at = if at < 0 { (at + len).max(0) } else { at.min(len) };
        usize::try_from(at).unwrap_or(0)
    };
    let (start, stop) =
        if name == "index" { (bound(1, 0), bound(2, items.len())) } else { (0, items.len()) };
    let mut count = 0;
    for (index, item) in items.iter().enumerate().take(stop).skip(start) {
        if item.is_same(wanted) || compare::equals(item, wanted, &it.budget)? {
            if name == "index" {
                return Ok(Value::len_of(index));
            }
            count += 1;
        }
    }
    if name == "index" {
        let message = match kind {
            "tuple" => "tuple.index(x): x not in tuple".to_owned(),
            _ => format!("{} is not in {kind}", super::value::repr::repr(wanted, &it.budget)?),
        };
        return Err(Raise::value_error(message));
    }
    Ok(Value::len_of(count))
}
