//! Filters on text.

use std::rc::Rc;
use std::sync::Arc;

use crate::jinja::args::Bound;
use crate::jinja::ast::{BinaryOp, CompareOp};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::methods::{percent, text as methods};
use crate::jinja::value::index::wrap;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Dict, Value, char_count, compare, no_attribute, ops};

/// `str(value)`, which leaves safe strings safe.
pub(super) fn soft_str(it: &Interp<'_>, value: &Value) -> Res<Value> {
    match value {
        Value::Str(_) | Value::Markup(_) => Ok(value.clone()),
        other => Ok(Value::Str(to_str(other, &it.budget)?)),
    }
}

/// Applies `change` to the text of a value.
fn changed(it: &Interp<'_>, value: &Value, change: impl FnOnce(&str) -> String) -> Res<Value> {
    let text = to_str(value, &it.budget)?;
    it.budget.bytes(text.len())?;
    Ok(wrap(value, &change(&text)))
}

pub(super) fn string(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    soft_str(it, args.get(0))
}

pub(super) fn lower(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    changed(it, args.get(0), str::to_lowercase)
}

pub(super) fn upper(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    changed(it, args.get(0), str::to_uppercase)
}

pub(super) fn capitalize(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    changed(it, args.get(0), methods::capitalize)
}

pub(super) fn title(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    changed(it, args.get(0), |text| {
        let mut out = String::with_capacity(text.len());
        let mut start = true;
        for c in text.chars() {
            if c.is_whitespace() || "-({[<".contains(c) {
                out.push(c);
                start = true;
            } else if start {
                out.extend(c.to_uppercase());
                start = false;
            } else {
                out.extend(c.to_lowercase());
            }
        }
        out
    })
}

pub(super) fn trim(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let chars = match args.optional(1) {
        None => None,
        Some(value) => {
            if let Some(chars) = value.as_str() {
                Some(Arc::clone(chars))
            } else {
                value.require()?;
                return Err(Raise::type_error("strip arg must be None or str"));
            }
        }
    };
    changed(it, args.get(0), |text| methods::strip(text, chars.as_deref(), true, true).to_owned())
}

pub(super) fn center(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let width = usize::try_from(args.int(1, 80)?).unwrap_or(0);
    it.budget.bytes(width)?;
    changed(it, args.get(0), |text| methods::center(text, width, ' '))
}

pub(super) fn replace(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let count = match args.optional(3) {
        Some(_) => args.int(3, -1)?,
        None => -1,
    };
    if scope.ctx.autoescape.get() {
        let text = soft_str(it, args.get(0))?;
        let old = to_str(args.get(1), &it.budget)?;
        let new = super::html::escape_value(args.get(2), &it.budget)?;
        let text_value = super::html::escape_value(&text, &it.budget)?;
        let replaced = methods::replace(&text_value, &old, &new, count, &it.budget)?;
        return Ok(Value::Markup(replaced.into()));
    }
    let text = to_str(args.get(0), &it.budget)?;
    let old = to_str(args.get(1), &it.budget)?;
    let new = to_str(args.get(2), &it.budget)?;
    Ok(Value::str(methods::replace(&text, &old, &new, count, &it.budget)?))
}

pub(super) fn indent(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let width = args.given(1).unwrap_or(&Value::Int(4));
    let indention: Arc<str> = if let Some(text) = width.as_str() {
        Arc::clone(text)
    } else {
        let blanks = ops::binary(BinaryOp::Mul, &Value::str(" "), width, &it.budget)?;
        to_str(&blanks, &it.budget)?
    };
    let (first, blank) = (args.flag(2)?, args.flag(3)?);
    let Some(text) = value.as_str() else {
        value.require()?;
        let name = value.type_name();
        return Err(match value {
            Value::List(_) => no_attribute(value, "splitlines"),
            Value::Tuple(_) | Value::Bytes(_) => {
                let text = Value::str("\n");
                ops::add(value, &text, &it.budget).err().unwrap_or_else(|| no_attribute(value, ""))
            }
            _ => {
                let message = format!("unsupported operand type(s) for +=: '{name}' and 'str'");
                Raise::type_error(message)
            }
        });
    };
    let text = format!("{text}\n");
    let lines = methods::split_lines(&text, false);
    it.budget.bytes(text.len() + lines.len().saturating_mul(indention.len()))?;
    let mut out = String::with_capacity(text.len() + lines.len() * indention.len());
    if first {
        out.push_str(&indention);
    }
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
            if blank || !line.is_empty() {
                out.push_str(&indention);
            }
        }
        out.push_str(line);
    }
    Ok(wrap(value, &out))
}

pub(super) fn truncate(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let wanted = args.given(1).unwrap_or(&Value::Int(255));
    let kill_words = args.flag(2)?;
    let end = match args.given(3) {
        Some(end) => to_str(end, &it.budget)?,
        None => "...".into(),
    };
    let leeway = if args.optional(4).is_some() { args.int(4, 5)? } else { 5 };
    let end_length = i64::try_from(char_count(&end)).unwrap_or(i64::MAX);
    let assertion = |message: String| Err(Raise::new("AssertionError", message));
    if !compare::order(CompareOp::Ge, wanted, &Value::Int(end_length), &it.budget)? {
        let wanted = to_str(wanted, &it.budget)?;
        return assertion(format!("expected length >= {end_length}, got {wanted}"));
    }
    let length = args.int(1, 255)?;
    if leeway < 0 {
        return assertion(format!("expected leeway >= 0, got {leeway}"));
    }
    let size = value.len()?;
    if i64::try_from(size).unwrap_or(i64::MAX) <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let Some(text) = value.as_str() else {
        return Err(Raise::type_error(format!(
            "can only concatenate {0} (not \"str\") to {0}",
            value.type_name()
        )));
    };
    let keep = usize::try_from(length - end_length).unwrap_or(0);
    let kept: String = text.chars().take(keep).collect();
    let kept =
        if kill_words { &*kept } else { kept.rsplit_once(' ').map_or(&*kept, |(head, _)| head) };
    Ok(wrap(value, &format!("{kept}{end}")))
}

pub(super) fn wordcount(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let text = to_str(args.get(0), &it.budget)?;
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    Ok(Value::len_of(words.filter(|word| !word.is_empty()).count()))
}

pub(super) fn format(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let raw = &args.raw;
    let Some((value, rest)) = raw.pos.split_first() else {
        return Err(Raise::type_error(
            "do_format() missing 1 required positional argument: 'value'",
        ));
    };
    if !rest.is_empty() && !raw.kw.is_empty() {
        return Err(Raise::new(
            "FilterArgumentError",
            "can't handle positional and keyword arguments at the same time",
        ));
    }
    let values = if raw.kw.is_empty() {
        Value::tuple(rest.to_vec())
    } else {
        Value::dict(Dict::from_pairs(raw.kw.iter().cloned()))
    };
    let text = soft_str(it, value)?;
    percent::format(&text, &values, &it.budget)
}
