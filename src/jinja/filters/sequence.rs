//! Filters on sequences and mappings.

use std::rc::Rc;

use num_traits::ToPrimitive;

use super::attribute::Getter;
use super::html::escape_value;
use crate::jinja::args::Bound;
use crate::jinja::ast::{BinaryOp, CompareOp};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::number::Num;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Iter, Value, View, compare, ops};

/// All elements of a value.
pub(crate) fn collect(it: &Interp<'_>, value: &Value) -> Res<Vec<Value>> {
    let mut walk = Walk::new(value)?;
    let mut items = Vec::new();
    while let Some(item) = walk.next()? {
        it.budget.spend(1)?;
        items.push(item);
    }
    Ok(items)
}

pub(super) fn length(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    Ok(Value::len_of(args.get(0).len()?))
}

pub(super) fn list(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    collect(it, args.get(0)).map(Value::list)
}

pub(super) fn first(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let first = Walk::new(args.get(0))?.next()?;
    Ok(first.unwrap_or_else(|| Value::undefined_hint("No first item, sequence was empty.")))
}

/// The elements backwards, for what `reversed` accepts.
fn reversed(it: &Interp<'_>, value: &Value) -> Res<Option<Vec<Value>>> {
    value.require()?;
    if !matches!(
        value,
        Value::List(_)
            | Value::Tuple(_)
            | Value::Str(_)
            | Value::Markup(_)
            | Value::Bytes(_)
            | Value::Dict(_)
            | Value::View(..)
            | Value::Range(_)
    ) {
        return Ok(None);
    }
    let mut items = collect(it, value)?;
    items.reverse();
    Ok(Some(items))
}

pub(super) fn last(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let quick = match value {
        Value::List(list) => list.items().last().cloned(),
        Value::Tuple(tuple) => tuple.items.last().cloned(),
        _ => None,
    };
    if let Some(last) = quick {
        return Ok(last);
    }
    if let Some(items) = reversed(it, value)? {
        Ok(items
            .into_iter()
            .next()
            .unwrap_or_else(|| Value::undefined_hint("No last item, sequence was empty.")))
    } else {
        let name = value.type_name();
        Err(Raise::type_error(format!("'{name}' object is not reversible")))
    }
}

pub(super) fn reverse(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    if let Some(text) = value.as_str() {
        let text: String = text.chars().rev().collect();
        return Ok(crate::jinja::value::index::wrap(value, &text));
    }
    let name = match value {
        Value::List(_) => "list_reverseiterator",
        Value::Range(_) => "range_iterator",
        Value::Dict(_) | Value::View(View::Keys, _) => "dict_reversekeyiterator",
        Value::View(View::Values, _) => "dict_reversevalueiterator",
        Value::View(View::Items, _) => "dict_reverseitemiterator",
        _ => "reversed",
    };
    if let Some(items) = reversed(it, value)? {
        return Ok(Value::Iter(Rc::new(Iter::named(name, items))));
    }
    let not_iterable = |_| Raise::new("FilterArgumentError", "argument must be iterable");
    Walk::new(value).map_err(not_iterable)?;
    let mut items = collect(it, value)?;
    items.reverse();
    Ok(Value::list(items))
}

pub(super) fn random(_it: &mut Interp<'_>, _scope: &Rc<Scope>, _args: &Bound) -> Res<Value> {
    Err(Raise::runtime(
        "the filter 'random' is not supported: a render must give the same result every time",
    ))
}

pub(super) fn items(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    match args.get(0) {
        Value::Undefined(_) => Ok(Value::generator(Vec::new())),
        Value::Dict(dict) => {
            let items = collect(it, &Value::View(View::Items, Rc::clone(dict)))?;
            Ok(Value::generator(items))
        }
        _ => Err(Raise::type_error("Can only get item pairs from a mapping.")),
    }
}

pub(super) fn join(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let escapes = scope.ctx.autoescape.get();
    let separator = match args.given(1) {
        Some(separator) if escapes => escape_value(separator, &it.budget)?,
        Some(separator) => to_str(separator, &it.budget)?,
        None => "".into(),
    };
    let getter = Getter::new(args.optional(2), None)?;
    let mut out = String::new();
    let mut walk = Walk::new(args.get(0))?;
    let mut first = true;
    while let Some(item) = walk.next()? {
        it.budget.spend(1)?;
        if !first {
            out.push_str(&separator);
        }
        first = false;
        let value = getter.get(it, &item)?;
        let text =
            if escapes { escape_value(&value, &it.budget)? } else { to_str(&value, &it.budget)? };
        out.push_str(&text);
        it.budget.size(out.len())?;
    }
    it.budget.bytes(out.len())?;
    Ok(if escapes { Value::Markup(out.into()) } else { Value::str(out) })
}

pub(super) fn sum(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let getter = Getter::new(args.optional(1), None)?;
    let mut total = args.given(2).cloned().unwrap_or(Value::Int(0));
    if total.as_str().is_some() {
        return Err(Raise::type_error("sum() can't sum strings [use ''.join(seq) instead]"));
    }
    let mut walk = Walk::new(args.get(0))?;
    while let Some(item) = walk.next()? {
        it.budget.spend(1)?;
        let value = getter.get(it, &item)?;
        total = ops::binary(BinaryOp::Add, &total, &value, &it.budget)?;
    }
    Ok(total)
}

pub(super) fn batch(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let items = collect(it, args.get(0))?;
    // The count is only ever compared: with what is no number, all is one row.
    let wanted = args.get(1);
    if !items.is_empty() {
        wanted.require()?;
    }
    let count = Num::of(wanted).map_or(Ok(f64::NAN), |count| count.to_f64())?;
    let mut rows: Vec<Value> = Vec::new();
    let mut row: Vec<Value> = Vec::new();
    for item in items {
        if row.len().to_f64() == Some(count) {
            rows.push(Value::list(std::mem::take(&mut row)));
        }
        row.push(item);
    }
    if !row.is_empty() {
        if let Some(fill) = args.optional(2) {
            compare::order(CompareOp::Lt, &Value::len_of(row.len()), wanted, &it.budget)?;
            let count = count.ceil().to_usize().unwrap_or(0);
            it.budget.elements(count)?;
            row.resize(count.max(row.len()), fill.clone());
        }
        rows.push(Value::list(row));
    }
    Ok(Value::generator(rows))
}

pub(super) fn slice(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let items = collect(it, args.get(0))?;
    let wanted = args.get(1);
    if Num::of(wanted).is_none() {
        wanted.require()?;
        return Err(ops::unsupported(BinaryOp::FloorDiv, &Value::Int(0), wanted));
    }
    let slices = args.int(1, 1)?;
    if slices == 0 {
        return Err(Raise::new("ZeroDivisionError", "integer division or modulo by zero"));
    }
    let slices = usize::try_from(slices).unwrap_or(0);
    it.budget.elements(slices)?;
    let mut columns = Vec::new();
    let mut start = 0;
    for index in 0..slices {
        let extra = usize::from(index < items.len() % slices);
        let end = start + items.len() / slices + extra;
        let mut column = items[start..end].to_vec();
        if let (0, Some(fill)) = (extra, args.optional(2)) {
            column.push(fill.clone());
        }
        columns.push(Value::list(column));
        start = end;
    }
    Ok(Value::generator(columns))
}
