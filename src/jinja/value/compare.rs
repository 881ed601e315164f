//! Equality and order.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use super::number::Num;
use super::{Budget, Value, View};
use crate::jinja::ast::CompareOp;
use crate::jinja::error::{Raise, Res};

const MAX_DEPTH: usize = 100;

/// `left == right`.
pub(crate) fn equals(left: &Value, right: &Value, budget: &Budget) -> Res<bool> {
    nested_equals(left, right, budget, 0)
}

fn nested_equals(left: &Value, right: &Value, budget: &Budget, depth: usize) -> Res<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return Err(Raise::recursion("maximum recursion depth exceeded in comparison"));
    }
    let all = |a: &[Value], b: &[Value]| -> Res<bool> {
        for (a, b) in a.iter().zip(b) {
            if !a.is_same(b) && !nested_equals(a, b, budget, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(a.len() == b.len())
    };
    for side in [left, right] {
        side.require()?;
    }
    if let (Some(a), Some(b)) = (Num::of(left), Num::of(right)) {
        return Ok(compare_numbers(&a, &b) == Some(Ordering::Equal));
    }
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return Ok(a == b);
    }
    match (left, right) {
        (Value::None, Value::None) | (Value::Undefined(_), Value::Undefined(_)) => Ok(true),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a == b),
        (Value::List(a), Value::List(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            let (a, b) = (a.to_vec(), b.to_vec());
            all(&a, &b)
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            Ok(a.items.len() == b.items.len() && all(&a.items, &b.items)?)
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            let entries = a.entries().clone();
            for (key, (_, value)) in &entries {
                let Some(other) = b.get(key) else { return Ok(false) };
                if !value.is_same(&other) && !nested_equals(value, &other, budget, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::View(View::Keys, a), Value::View(View::Keys, b)) => {
            let (a, b) = (a.entries(), b.entries());
            Ok(a.len() == b.len() && a.keys().all(|key| b.contains_key(key)))
        }
        (Value::Range(a), Value::Range(b)) => {
            let same_start = a.len() == 0 || a.start == b.start;
            Ok(a.len() == b.len() && same_start && (a.len() < 2 || a.step == b.step))
        }
        (Value::Object(a), Value::Object(b)) if a.compare(b).is_some() => {
            Ok(a.compare(b).unwrap_or(Ok(Ordering::Equal))? == Ordering::Equal)
        }
        (Value::Object(object), _) | (_, Value::Object(object)) if object.refuses_comparison() => {
            Err(Raise::value_error("value is not a SimpleTime"))
        }
        _ => Ok(left.is_same(right)),
    }
}

pub(crate) fn compare_numbers(left: &Num, right: &Num) -> Option<Ordering> {
    let with_float = |big: &BigInt, float: f64| -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        match BigInt::from_f64(float.floor()) {
            Some(floor) => Some(match big.cmp(&floor) {
                Ordering::Equal if float.fract() != 0.0 => Ordering::Less,
                other => other,
            }),
            None => Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater }),
        }
    };
    match (left, right) {
        (Num::Int(a), Num::Int(b)) => Some(a.cmp(b)),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(b),
        (Num::Big(a), Num::Big(b)) => Some(a.cmp(b)),
        (Num::Int(a), Num::Big(b)) => Some(BigInt::from(*a).cmp(b)),
        (Num::Big(a), Num::Int(b)) => Some(a.cmp(&BigInt::from(*b))),
        (Num::Int(a), Num::Float(b)) => with_float(&BigInt::from(*a), *b),
        (Num::Big(a), Num::Float(b)) => with_float(a, *b),
        (Num::Float(_), _) => compare_numbers(right, left).map(Ordering::reverse),
    }
}

/// One of the four order operators.
pub(crate) fn order(op: CompareOp, left: &Value, right: &Value, budget: &Budget) -> Res<bool> {
    nested_order(op, left, right, budget, 0)
}

fn nested_order(
    op: CompareOp,
    left: &Value,
    right: &Value,
    budget: &Budget,
    depth: usize,
) -> Res<bool> {
    budget.spend(1)?;
    if depth > MAX_DEPTH {
        return Err(Raise::recursion("maximum recursion depth exceeded in comparison"));
    }
    for side in [left, right] {
        if let Value::Undefined(undefined) = side {
            return undefined.raise();
        }
    }
    let ordering = if let (Some(a), Some(b)) = (Num::of(left), Num::of(right)) {
        match compare_numbers(&a, &b) {
            Some(ordering) => ordering,
            None => return Ok(false),
        }
    } else if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        a.cmp(b)
    } else {
        match (left, right) {
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => {
                let (a, b) = (a.to_vec(), b.to_vec());
                return sequences(op, &a, &b, budget, depth);
            }
            (Value::Tuple(a), Value::Tuple(b)) => {
                return sequences(op, &a.items, &b.items, budget, depth);
            }
            (Value::Object(a), Value::Object(b)) if a.compare(b).is_some() => {
                a.compare(b).unwrap_or(Ok(Ordering::Equal))?
            }
            (Value::Object(object), _) | (_, Value::Object(object))
                if object.refuses_comparison() =>
            {
                return Err(Raise::value_error("value is not a SimpleTime"));
            }
            _ => return Err(unorderable(op, left, right)),
        }
    };
    Ok(holds(op, ordering))
}

fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::Le => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::Ge => ordering.is_ge(),
        CompareOp::Eq | CompareOp::In => ordering.is_eq(),
        CompareOp::Ne | CompareOp::NotIn => ordering.is_ne(),
    }
}

fn sequences(
    op: CompareOp,
    left: &[Value],
    right: &[Value],
    budget: &Budget,
    depth: usize,
) -> Res<bool> {
    for (a, b) in left.iter().zip(right) {
        if !a.is_same(b) && !nested_equals(a, b, budget, depth + 1)? {
            return nested_order(op, a, b, budget, depth + 1);
        }
    }
    Ok(holds(op, left.len().cmp(&right.len())))
}

fn unorderable(op: CompareOp, left: &Value, right: &Value) -> Raise {
    let symbol = match op {
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        _ => ">=",
    };
    Raise::type_error(format!(
        "'{symbol}' not supported between instances of '{}' and '{}'",
        left.type_name(),
        right.type_name()
    ))
}

/// Sorts like `sorted`: stable, by `<` alone. `keys` decide, `items` follow.
pub(crate) fn sort(
    keyed: Vec<(Value, Value)>,
    reverse: bool,
    budget: &Budget,
) -> Res<Vec<(Value, Value)>> {
    let mut failure = None;
    let mut keyed = keyed;
    if reverse {
        keyed.reverse();
    }
    keyed.sort_by(|(a, _), (b, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        let mut less = |left: &Value, right: &Value| match order(CompareOp::Lt, left, right, budget)
        {
            Ok(less) => less,
            Err(error) => {
                failure.get_or_insert(error);
                false
            }
        };
        if less(a, b) {
            Ordering::Less
        } else if less(b, a) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
    if reverse {
        keyed.reverse();
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(keyed),
    }
}
