//! `default`, and filters that apply other filters and tests to each element.

use std::rc::Rc;
use std::sync::Arc;

use super::attribute::Getter;
use super::sequence::collect;
use crate::jinja::args::{Args, Bound};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::repr::{repr, str_repr};
use crate::jinja::value::{Key, Value};

pub(super) fn default(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let fallback = || args.given(1).cloned().unwrap_or_else(|| Value::str(""));
    if value.is_undefined() || (args.flag(2)? && !value.is_true()?) {
        return Ok(fallback());
    }
    Ok(value.clone())
}

fn argument_error(message: impl Into<String>) -> Raise {
    Raise::new("FilterArgumentError", message)
}

/// The name of a filter or test given as a value, and the function to call for it.
fn callable_name(
    it: &Interp<'_>,
    kind: &str,
    name: &Value,
    known: fn(&str) -> bool,
) -> Res<Arc<str>> {
    if let Some(text) = name.as_str()
        && known(text)
    {
        return Ok(Arc::clone(text));
    }
    // It is looked up in a dict.
    Key::new(name)?;
    Err(Raise::runtime(format!("No {kind} named {}.", repr(name, &it.budget)?)))
}

pub(super) fn map(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let Args { pos, kw } = &args.raw;
    let Some((value, rest)) = pos.split_first() else {
        return Err(Raise::type_error(
            "sync_do_map() missing 1 required positional argument: 'value'",
        ));
    };
    if !value.is_true()? {
        return Ok(Value::generator(Vec::new()));
    }
    let mut out = Vec::new();
    let keyword = |name: &str| kw.iter().find(|(key, _)| **key == *name).map(|(_, value)| value);
    if let (true, Some(attribute)) = (rest.is_empty(), keyword("attribute")) {
        let unknown = kw.iter().find(|(key, _)| !matches!(&**key, "attribute" | "default"));
        if let Some((key, _)) = unknown {
            let key = str_repr(key);
            return Err(argument_error(format!("Unexpected keyword argument {key}")));
        }
        let default = keyword("default").filter(|value| !matches!(value, Value::None));
        let getter = Getter::new(Some(attribute), default.cloned())?;
        for item in collect(it, value)? {
            out.push(getter.get(it, &item)?);
        }
        return Ok(Value::generator(out));
    }
    let Some((name, rest)) = rest.split_first() else {
        return Err(argument_error("map requires a filter argument"));
    };
    let items = collect(it, value)?;
    if items.is_empty() {
        return Ok(Value::generator(out));
    }
    let name = callable_name(it, "filter", name, super::exists)?;
    let arguments = Args { pos: rest.to_vec(), kw: kw.clone() };
    for item in items {
        out.push(it.apply_filter(scope, &name, item, arguments.clone())?);
    }
    Ok(Value::generator(out))
}

fn select_or_reject(
    it: &mut Interp<'_>,
    scope: &Rc<Scope>,
    args: &Bound,
    keep: bool,
    by_attribute: bool,
) -> Res<Value> {
    let Args { pos, kw } = &args.raw;
    let Some((value, mut rest)) = pos.split_first() else {
        return Err(Raise::type_error("missing 1 required positional argument: 'value'"));
    };
    if !value.is_true()? {
        return Ok(Value::generator(Vec::new()));
    }
    let getter = if by_attribute {
        let Some((attribute, others)) = rest.split_first() else {
            return Err(argument_error("Missing parameter for attribute name"));
        };
        rest = others;
        Getter::new(Some(attribute), None)?
    } else {
        Getter::new(None, None)?
    };
    let items = collect(it, value)?;
    let mut out = Vec::new();
    let test = match rest.split_first() {
        Some((name, rest)) if !items.is_empty() => {
            let name = callable_name(it, "test", name, crate::jinja::predicates::exists)?;
            Some((name, Args { pos: rest.to_vec(), kw: kw.clone() }))
        }
        _ => None,
    };
    for item in items {
        let subject = getter.get(it, &item)?;
        let passes = match &test {
            Some((name, arguments)) => {
                it.apply_test(scope, name, subject, arguments.clone())?.is_true()?
            }
            None => subject.is_true()?,
        };
        if passes == keep {
            out.push(item);
        }
    }
    Ok(Value::generator(out))
}

pub(super) fn select(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    select_or_reject(it, scope, args, true, false)
}

pub(super) fn reject(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    select_or_reject(it, scope, args, false, false)
}

pub(super) fn selectattr(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    select_or_reject(it, scope, args, true, true)
}

pub(super) fn rejectattr(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    select_or_reject(it, scope, args, false, true)
}
