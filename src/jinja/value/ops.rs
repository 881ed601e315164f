//! Python's operators on values.

use std::rc::Rc;

use super::iter::Walk;
use super::number::{Num, arithmetic};
use super::repr::to_str;
use super::{Budget, Dict, Key, Value};
use crate::jinja::ast::{BinaryOp, UnaryOp};
use crate::jinja::error::{Raise, Res};
use crate::jinja::filters::html::escape_value;
use crate::jinja::methods::percent;

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::FloorDiv => "//",
        BinaryOp::Mod => "%",
        BinaryOp::Pow => "** or pow()",
    }
}

pub(crate) fn unsupported(op: BinaryOp, left: &Value, right: &Value) -> Raise {
    Raise::type_error(format!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        symbol(op),
        left.type_name(),
        right.type_name()
    ))
}

pub(crate) fn binary(op: BinaryOp, left: &Value, right: &Value, budget: &Budget) -> Res<Value> {
    if let (Some(left), Some(right)) = (Num::of(left), Num::of(right)) {
        return arithmetic(op, &left, &right, budget);
    }
    if let (BinaryOp::Mod, Some(_)) = (op, left.as_str()) {
        return percent::format(left, right, budget);
    }
    if let (BinaryOp::Mod, Value::Bytes(_), false) = (op, left, is_subscriptable(right)) {
        right.require()?;
        return Err(Raise::type_error("not all arguments converted during bytes formatting"));
    }
    for side in [left, right] {
        if let Value::Undefined(undefined) = side {
            return undefined.raise();
        }
    }
    if let Value::Object(object) = left
        && let Some(result) = object.arithmetic(op, right)
    {
        result?;
        return Ok(left.clone());
    }
    match op {
        BinaryOp::Add => add(left, right, budget),
        BinaryOp::Mul => multiply(left, right, budget),
        BinaryOp::Sub => subtract(left, right, budget),
        _ => Err(unsupported(op, left, right)),
    }
}

pub(crate) fn add(left: &Value, right: &Value, budget: &Budget) -> Res<Value> {
    Ok(match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            budget.bytes(a.len() + b.len())?;
            Value::str(format!("{a}{b}"))
        }
        (Value::Markup(_), Value::Str(_) | Value::Markup(_))
        | (Value::Str(_), Value::Markup(_)) => {
            let text = format!("{}{}", escape_value(left, budget)?, escape_value(right, budget)?);
            budget.bytes(text.len())?;
            Value::Markup(text.into())
        }
        (Value::List(a), Value::List(b)) => {
            budget.elements(a.len() + b.len())?;
            let mut items = a.to_vec();
            items.extend(b.items().iter().cloned());
            Value::list(items)
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            budget.elements(a.items.len() + b.items.len())?;
            Value::tuple(a.items.iter().chain(&b.items).cloned().collect())
        }
        (Value::Str(_), _) => {
            let name = right.type_name();
            let message = format!("can only concatenate str (not \"{name}\") to str");
            return Err(Raise::type_error(message));
        }
        (Value::List(_) | Value::Tuple(_), _) => {
            let (own, name) = (left.type_name(), right.type_name());
            let message = format!("can only concatenate {own} (not \"{name}\") to {own}");
            return Err(Raise::type_error(message));
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            budget.bytes(a.len() + b.len())?;
            Value::Bytes(a.iter().chain(b.iter()).copied().collect())
        }
        (Value::Bytes(_), _) => {
            let message = format!("can't concat {} to bytes", right.type_name());
            return Err(Raise::type_error(message));
        }
        _ => return Err(unsupported(BinaryOp::Add, left, right)),
    })
}

/// What `%` takes as a mapping of names, and so never has too much of.
fn is_subscriptable(value: &Value) -> bool {
    matches!(value, Value::Dict(_) | Value::List(_) | Value::Range(_))
}

fn multiply(left: &Value, right: &Value, budget: &Budget) -> Res<Value> {
    let is_sequence = |value: &Value| {
        matches!(
            value,
            Value::Str(_) | Value::Markup(_) | Value::List(_) | Value::Tuple(_) | Value::Bytes(_)
        )
    };
    let (sequence, times) = match (is_sequence(left), is_sequence(right)) {
        (true, _) => (left, right),
        (false, true) => (right, left),
        (false, false) => return Err(unsupported(BinaryOp::Mul, left, right)),
    };
    let Some(times) = times.as_index() else {
        let name = times.type_name();
        let message = match (left, right) {
            // Safe texts have an operator of their own.
            (Value::Markup(_), other) | (other, Value::Markup(_)) => {
                format!("'{}' object cannot be interpreted as an integer", other.type_name())
            }
            _ => format!("can't multiply sequence by non-int of type '{name}'"),
        };
        return Err(Raise::type_error(message));
    };
    if matches!(left, Value::Big(_)) || matches!(right, Value::Big(_)) {
        let message = "cannot fit 'int' into an index-sized integer";
        return Err(Raise::new("OverflowError", message));
    }
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    Ok(match sequence {
        Value::Str(text) => {
            budget.bytes(text.len().saturating_mul(times))?;
            Value::str(text.repeat(times))
        }
        Value::Markup(text) => {
            budget.bytes(text.len().saturating_mul(times))?;
            Value::Markup(text.repeat(times).into())
        }
        Value::Bytes(bytes) => {
            budget.bytes(bytes.len().saturating_mul(times))?;
            Value::Bytes(bytes.repeat(times).into())
        }
        Value::List(list) => Value::list(repeat(&list.items(), times, budget)?),
        Value::Tuple(tuple) => Value::tuple(repeat(&tuple.items, times, budget)?),
        _ => return Err(unsupported(BinaryOp::Mul, left, right)),
    })
}

fn repeat(items: &[Value], times: usize, budget: &Budget) -> Res<Vec<Value>> {
    let len = items.len().saturating_mul(times);
    budget.elements(len.saturating_mul(2).min(usize::MAX - 1))?;
    let mut out = Vec::with_capacity(len);
    for _ in 0..if items.is_empty() { 0 } else { times } {
        out.extend(items.iter().cloned());
    }
    Ok(out)
}

/// Differences of key views; anything else has no `-` beside numbers.
fn subtract(left: &Value, right: &Value, budget: &Budget) -> Res<Value> {
    if let Value::View(super::View::Keys, dict) = left {
        let mut gone = Vec::new();
        let mut walk = Walk::new(right)?;
        while let Some(item) = walk.next()? {
            budget.spend(1)?;
            gone.push(Key::new(&item)?);
        }
        let entries = dict.entries();
        let kept = entries.iter().filter(|(key, _)| !gone.contains(key));
        return Ok(Value::list(kept.map(|(_, (key, _))| key.clone()).collect()));
    }
    Err(unsupported(BinaryOp::Sub, left, right))
}

pub(crate) fn unary(op: UnaryOp, value: &Value, budget: &Budget) -> Res<Value> {
    let symbol = match op {
        UnaryOp::Not => return Ok(Value::Bool(!value.is_true()?)),
        UnaryOp::Neg => "-",
        UnaryOp::Pos => "+",
    };
    if let Value::Undefined(undefined) = value {
        return undefined.raise();
    }
    match Num::of(value) {
        Some(Num::Float(float)) if op == UnaryOp::Neg => Ok(Value::Float(-float)),
        Some(number) if op == UnaryOp::Neg => {
            arithmetic(BinaryOp::Sub, &Num::Int(0), &number, budget)
        }
        Some(number) => Ok(number.into_value()),
        None => {
            let name = value.type_name();
            Err(Raise::type_error(format!("bad operand type for unary {symbol}: '{name}'")))
        }
    }
}

/// `needle in container`.
pub(crate) fn contains(container: &Value, needle: &Value, budget: &Budget) -> Res<bool> {
    match container {
        Value::Undefined(undefined) if !undefined.lenient => undefined.raise(),
        Value::Str(text) | Value::Markup(text) => {
            if let Some(needle) = needle.as_str() {
                budget.spend(text.len() as u64 / 64)?;
                Ok(text.contains(&**needle))
            } else {
                let name = needle.type_name();
                let message = format!("'in <string>' requires string as left operand, not {name}");
                Err(Raise::type_error(message))
            }
        }
        Value::Dict(dict) | Value::View(super::View::Keys, dict) => {
            Ok(dict.contains(&Key::new(needle)?))
        }
        Value::Bytes(bytes) if matches!(needle, Value::Bytes(_)) => {
            let Value::Bytes(part) = needle else { return Ok(false) };
            budget.spend(bytes.len() as u64 / 64)?;
            Ok(part.is_empty() || bytes.windows(part.len()).any(|window| *window == **part))
        }
        Value::Bytes(_) if !matches!(needle, Value::Int(_) | Value::Bool(_) | Value::Bytes(_)) => {
            needle.require()?;
            let name = needle.type_name();
            Err(Raise::type_error(format!("a bytes-like object is required, not '{name}'")))
        }
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Big(_)
        | Value::Float(_)
        | Value::Namespace(_)
        | Value::Object(_) => Err(not_container(container)),
        _ => {
            let mut walk = Walk::new(container)?;
            while let Some(item) = walk.next()? {
                budget.spend(1)?;
                if item.is_same(needle) || super::compare::equals(&item, needle, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

fn not_container(value: &Value) -> Raise {
    Raise::type_error(format!("argument of type '{}' is not iterable", value.type_name()))
}

/// The `~` operator: everything as text. In a template with automatic escaping the result is safe.
pub(crate) fn concat(parts: &[Value], escapes: bool, budget: &Budget) -> Res<Value> {
    let markup = escapes && parts.iter().any(|part| matches!(part, Value::Markup(_)));
    let mut out = String::new();
    for part in parts {
        if markup {
            out.push_str(&escape_value(part, budget)?);
        } else {
            out.push_str(&to_str(part, budget)?);
        }
        budget.size(out.len())?;
    }
    budget.bytes(out.len())?;
    Ok(if markup { Value::Markup(out.into()) } else { Value::str(out) })
}

/// A copy in which lists, dicts and everything else that can be walked are new, as kluctl copies variables.
pub(crate) fn deep_copy(value: &Value, budget: &Budget, depth: usize) -> Res<Value> {
    if depth > 100 {
        return Err(Raise::recursion("maximum recursion depth exceeded"));
    }
    budget.spend(1)?;
    Ok(match value {
        Value::Dict(dict) => {
            let copy = Dict::new(dict.entries().clone());
            for (_, value) in copy.entries_mut().values_mut() {
                *value = deep_copy(value, budget, depth + 1)?;
            }
            Value::Dict(Rc::new(copy))
        }
        Value::List(_) | Value::Tuple(_) | Value::Range(_) | Value::View(..) | Value::Iter(_) => {
            let mut items = Vec::new();
            let mut walk = Walk::new(value)?;
            while let Some(item) = walk.next()? {
                items.push(deep_copy(&item, budget, depth + 1)?);
            }
            Value::list(items)
        }
        other => other.clone(),
    })
}
