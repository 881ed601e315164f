//! Methods of lists.

use std::rc::Rc;

use super::search;
use crate::jinja::args::{Args, Signature};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::filters::elements_of;
use crate::jinja::value::{ListRef, Value, compare};

pub(super) const METHODS: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];

fn position(index: i64, len: usize) -> usize {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 { (index + len).max(0) } else { index.min(len) };
    usize::try_from(at).unwrap_or(0)
}

pub(super) fn call(
    it: &mut Interp<'_>,
    scope: &Rc<Scope>,
    list: &ListRef,
    name: &str,
    args: Args,
) -> Res<Value> {
    if !matches!(name, "copy" | "count" | "index") {
        it.budget.list_changed(list);
    }
    let exactly = |count: usize| -> Res<()> {
        if args.pos.len() == count && (args.kw.is_empty() || name == "sort") {
            return Ok(());
        }
        let given = args.pos.len();
        Err(Raise::type_error(match count {
            0 => format!("list.{name}() takes no arguments ({given} given)"),
            1 => format!("list.{name}() takes exactly one argument ({given} given)"),
            _ => format!("{name} expected {count} arguments, got {given}"),
        }))
    };
    match name {
        "append" => {
            exactly(1)?;
            it.budget.elements(1)?;
            list.items_mut().push(args.pos[0].clone());
        }
        "extend" => {
            exactly(1)?;
            let more = elements_of(it, &args.pos[0])?;
            list.items_mut().extend(more);
        }
        "insert" => {
            exactly(2)?;
            it.budget.elements(list.len() / 16)?;
            let Some(index) = args.pos[0].as_index() else {
                args.pos[0].require()?;
                let name = args.pos[0].type_name();
                let message = format!("'{name}' object cannot be interpreted as an integer");
                return Err(Raise::type_error(message));
            };
            let at = position(index, list.len());
            list.items_mut().insert(at, args.pos[1].clone());
        }
        "pop" => return pop(list, &args),
        "remove" => {
            exactly(1)?;
            let items = list.to_vec();
            for (index, item) in items.iter().enumerate() {
                if item.is_same(&args.pos[0]) || compare::equals(item, &args.pos[0], &it.budget)? {
                    list.items_mut().remove(index);
                    return Ok(Value::None);
                }
            }
            return Err(Raise::value_error("list.remove(x): x not in list"));
        }
        "clear" => {
            exactly(0)?;
            let _old = std::mem::take(&mut *list.items_mut());
        }
        "reverse" => {
            exactly(0)?;
            list.items_mut().reverse();
        }
        "copy" => {
            exactly(0)?;
            it.budget.elements(list.len())?;
            return Ok(Value::list(list.to_vec()));
        }
        "sort" => sort(it, scope, list, args)?,
        _ => {
            let items = list.to_vec();
            return search(it, &items, name, "list", &args);
        }
    }
    Ok(Value::None)
}

fn pop(list: &ListRef, args: &Args) -> Res<Value> {
    let len = list.len();
    if len == 0 {
        return Err(Raise::new("IndexError", "pop from empty list"));
    }
    let Some(index) = args.pos.first() else {
        return Ok(list.items_mut().pop().unwrap_or(Value::None));
    };
    let Some(index) = index.as_index() else {
        let name = index.type_name();
        return Err(Raise::type_error(format!(
            "'{name}' object cannot be interpreted as an integer"
        )));
    };
    let length = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 { index + length } else { index };
    match usize::try_from(at) {
        Ok(at) if at < len => Ok(list.items_mut().remove(at)),
        _ => Err(Raise::new("IndexError", "pop index out of range")),
    }
}

fn sort(it: &mut Interp<'_>, scope: &Rc<Scope>, list: &ListRef, args: Args) -> Res<()> {
    const SIGNATURE: Signature = Signature::new("sort", &["key", "reverse"], 0);
    if !args.pos.is_empty() {
        return Err(Raise::type_error("sort() takes no positional arguments"));
    }
    let bound = args.bind(Some(&SIGNATURE))?;
    let mut keyed = Vec::new();
    for item in list.to_vec() {
        let key = match bound.optional(0) {
            Some(function) => it.call(scope, function, Args::of(vec![item.clone()]))?,
            None => item.clone(),
        };
        keyed.push((key, item));
    }
    let sorted = compare::sort(keyed, bound.flag(1)?, &it.budget)?;
    *list.items_mut() = sorted.into_iter().map(|(_, item)| item).collect();
    Ok(())
}
