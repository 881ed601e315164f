//! Filters that order and compare elements.

use std::collections::HashSet;
use std::rc::Rc;

use super::attribute::{Getter, ignore_case, multi};
use super::sequence::collect;
use crate::jinja::args::Bound;
use crate::jinja::ast::CompareOp;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::{Key, Tuple, Value, compare, no_attribute};

pub(super) fn sort(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let (reverse, case_sensitive) = (args.flag(1)?, args.flag(2)?);
    let getters = multi(args.optional(3))?;
    let mut keyed = Vec::new();
    for item in collect(it, args.get(0))? {
        let mut keys = Vec::with_capacity(getters.len());
        for getter in &getters {
            keys.push(getter.key(it, &item, case_sensitive)?);
        }
        // As lists, of which equal elements need no order.
        keyed.push((Value::list(keys), item));
    }
    let sorted = compare::sort(keyed, reverse, &it.budget)?;
    Ok(Value::list(sorted.into_iter().map(|(_, item)| item).collect()))
}

pub(super) fn dictsort(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let by_value = match args.given(2).and_then(Value::as_str).map(|text| &**text) {
        Some("value") => true,
        Some("key") => false,
        None if args.given(2).is_none() => false,
        _ => {
            let message = "You can only sort by either \"key\" or \"value\"";
            return Err(Raise::new("FilterArgumentError", message));
        }
    };
    let case_sensitive = args.flag(1)?;
    let Value::Dict(dict) = args.get(0) else {
        args.get(0).require()?;
        return Err(no_attribute(args.get(0), "items"));
    };
    let keyed = dict
        .pairs()
        .into_iter()
        .map(|(key, value)| {
            let sort_key = if by_value { value.clone() } else { key.clone() };
            let sort_key = if case_sensitive { sort_key } else { ignore_case(sort_key) };
            (sort_key, Value::tuple(vec![key, value]))
        })
        .collect();
    let sorted = compare::sort(keyed, args.flag(3)?, &it.budget)?;
    Ok(Value::list(sorted.into_iter().map(|(_, item)| item).collect()))
}

pub(super) fn unique(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let case_sensitive = args.flag(1)?;
    let getter = Getter::new(args.optional(2), None)?;
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for item in collect(it, args.get(0))? {
        let key = getter.key(it, &item, case_sensitive)?;
        if seen.insert(Key::new(&key)?) {
            out.push(item);
        }
    }
    Ok(Value::generator(out))
}

fn extreme(it: &mut Interp<'_>, args: &Bound, op: CompareOp) -> Res<Value> {
    let case_sensitive = args.flag(1)?;
    let getter = Getter::new(args.optional(2), None)?;
    let mut best: Option<(Value, Value)> = None;
    for item in collect(it, args.get(0))? {
        let key = getter.key(it, &item, case_sensitive)?;
        let better = match &best {
            None => true,
            Some((best, _)) => compare::order(op, &key, best, &it.budget)?,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(match best {
        Some((_, item)) => item,
        None => Value::undefined_hint("No aggregated item, sequence was empty."),
    })
}

pub(super) fn min(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    extreme(it, args, CompareOp::Lt)
}

pub(super) fn max(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    extreme(it, args, CompareOp::Gt)
}

pub(super) fn groupby(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let case_sensitive = args.flag(3)?;
    let getter = Getter::new(Some(args.get(1)), args.optional(2).cloned())?;
    let mut keyed = Vec::new();
    for item in collect(it, args.get(0))? {
        keyed.push((getter.key(it, &item, case_sensitive)?, item));
    }
    let sorted = compare::sort(keyed, false, &it.budget)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in sorted {
        match groups.last_mut() {
            Some((last, items)) if compare::equals(last, &key, &it.budget)? => items.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    let mut out = Vec::new();
    for (key, items) in groups {
        let key = match items.first() {
            Some(first) if !case_sensitive => getter.get(it, first)?,
            _ => key,
        };
        let items = vec![key, Value::list(items)];
        out.push(Value::Tuple(Rc::new(Tuple { items, grouped: true })));
    }
    Ok(Value::list(out))
}
