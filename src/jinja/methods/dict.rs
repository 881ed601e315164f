//! Methods of dicts.

use std::rc::Rc;

use crate::jinja::args::{Args, Signature};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::filters::elements_of;
use crate::jinja::globals::from_source;
use crate::jinja::value::container::Entries;
use crate::jinja::value::repr::repr;
use crate::jinja::value::{Dict, DictRef, Key, Value, View};

pub(super) const METHODS: &[&str] = &[
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

pub(super) fn call(it: &mut Interp<'_>, dict: &DictRef, name: &str, args: Args) -> Res<Value> {
    let none = |args: &Args| -> Res<()> {
        if args.pos.is_empty() && args.kw.is_empty() {
            return Ok(());
        }
        let given = args.pos.len();
        Err(Raise::type_error(format!("dict.{name}() takes no arguments ({given} given)")))
    };
    match name {
        "items" | "keys" | "values" => {
            none(&args)?;
            let view = match name {
                "items" => View::Items,
                "keys" => View::Keys,
                _ => View::Values,
            };
            Ok(Value::View(view, Rc::clone(dict)))
        }
        "get" => {
            let (key, default) = key_and_default(name, &args)?;
            let found = dict.get(&Key::new(key)?);
            Ok(found.or_else(|| default.cloned()).unwrap_or(Value::None))
        }
        "setdefault" => {
            let (key, default) = key_and_default(name, &args)?;
            if let Some(found) = dict.get(&Key::new(key)?) {
                return Ok(found);
            }
            it.budget.dict_changed(dict);
            it.budget.elements(1)?;
            let value = default.cloned().unwrap_or(Value::None);
            dict.insert(key.clone(), value.clone())?;
            Ok(value)
        }
        "pop" => {
            let (key, default) = key_and_default(name, &args)?;
            it.budget.elements(dict.len() / 16)?;
            let removed = dict.entries_mut().shift_remove(&Key::new(key)?);
            match (removed, default) {
                (Some((_, value)), _) => Ok(value),
                (None, Some(default)) => Ok(default.clone()),
                (None, None) => Err(Raise::new("KeyError", repr(key, &it.budget)?)),
            }
        }
        "popitem" => {
            none(&args)?;
            match dict.entries_mut().pop() {
                Some((_, (key, value))) => Ok(Value::tuple(vec![key, value])),
                None => Err(Raise::new("KeyError", "'popitem(): dictionary is empty'")),
            }
        }
        "clear" => {
            none(&args)?;
            let _old = std::mem::take(&mut *dict.entries_mut());
            Ok(Value::None)
        }
        "copy" => {
            none(&args)?;
            it.budget.elements(dict.len())?;
            Ok(Value::dict(Dict::new(dict.entries().clone())))
        }
        "fromkeys" => {
            const SIGNATURE: Signature = Signature::new("fromkeys", &["iterable", "value"], 1);
            let bound = args.bind(Some(&SIGNATURE))?;
            let made = Dict::new(Entries::new());
            for key in elements_of(it, bound.get(0))? {
                made.insert(key, bound.get(1).clone())?;
            }
            Ok(Value::dict(made))
        }
        _ => update(it, dict, &args),
    }
}

fn key_and_default<'a>(name: &str, args: &'a Args) -> Res<(&'a Value, Option<&'a Value>)> {
    if !args.kw.is_empty() {
        return Err(Raise::type_error(format!("dict.{name}() takes no keyword arguments")));
    }
    let given = args.pos.len();
    match args.pos.as_slice() {
        [key] => Ok((key, None)),
        [key, default] => Ok((key, Some(default))),
        [] => Err(Raise::type_error(format!("{name} expected at least 1 argument, got {given}"))),
        _ => Err(Raise::type_error(format!("{name} expected at most 2 arguments, got {given}"))),
    }
}

fn update(it: &mut Interp<'_>, dict: &DictRef, args: &Args) -> Res<Value> {
    it.budget.dict_changed(dict);
    match args.pos.as_slice() {
        [] => {}
        [source] => {
            let more = from_source(it, source)?;
            for (key, value) in more.pairs() {
                dict.insert(key, value)?;
            }
        }
        more => {
            let got = more.len();
            let message = format!("update expected at most 1 argument, got {got}");
            return Err(Raise::type_error(message));
        }
    }
    it.budget.elements(args.kw.len())?;
    for (name, value) in &args.kw {
        dict.insert_str(name, value.clone());
    }
    Ok(Value::None)
}
