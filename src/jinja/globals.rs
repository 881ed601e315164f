//! Functions that every template can call: Jinja2's, and kluctl's, which hide variables of the same name.

use std::cell::Cell;
use std::rc::Rc;

use super::args::{Bound, Function, Run, Signature};
use super::error::{Raise, Res};
use super::eval::Interp;
use super::eval::scope::Scope;
use super::kluctl::{functions as k, images, time};
use super::value::container::Entries;
use super::value::iter::Walk;
use super::value::object::{Cycler, Joiner};
use super::value::{Dict, Object, Range, Value};

pub(crate) const BUILTIN_NAMES: &[&str] =
    &["range", "dict", "lipsum", "cycler", "joiner", "namespace"];
pub(crate) const KLUCTL_NAMES: &[&str] = &[
    "load_template",
    "load_base64",
    "get_var",
    "merge_dict",
    "update_dict",
    "raise",
    "debug_print",
    "load_sha256",
    "render",
    "load_latest_git_commit",
    "time",
    "images",
    "version",
];

/// One of kluctl's functions or modules.
pub(crate) fn kluctl(name: &str) -> Option<Value> {
    match name {
        "time" => Some(time::module()),
        "images" => Some(images::images()),
        "version" => Some(images::version()),
        _ => function(KLUCTL, name),
    }
}

/// One of Jinja2's own functions.
pub(crate) fn builtin(name: &str) -> Option<Value> {
    function(BUILTIN, name)
}

fn function(table: &'static [(&str, Function)], name: &str) -> Option<Value> {
    let (_, function) = table.iter().find(|(own, _)| *own == name)?;
    Some(Value::object(Object::Function(function)))
}

const fn class(name: &'static str, run: Run) -> Function {
    Function { name, is_type: true, signature: None, run }
}

const fn plain(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: Run,
) -> Function {
    let signature = Some(Signature::new(name, params, required));
    Function { name, is_type: false, signature, run }
}

const fn with_context(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: Run,
) -> Function {
    let signature = Some(Signature::with_environment(name, params, required));
    Function { name, is_type: false, signature, run }
}

static BUILTIN: &[(&str, Function)] = &[
    ("range", class("range", range)),
    ("dict", class("dict", dict)),
    ("namespace", class("jinja2.utils.Namespace", namespace)),
    ("cycler", class("jinja2.utils.Cycler", cycler)),
    ("joiner", class("jinja2.utils.Joiner", joiner)),
    ("lipsum", Function { name: "lipsum", is_type: false, signature: None, run: lipsum }),
];

static KLUCTL: &[(&str, Function)] = &[
    (
        "load_template",
        Function { name: "load_template", is_type: false, signature: None, run: k::load_template },
    ),
    ("load_base64", with_context("load_base64", &["path", "width"], 1, k::load_base64)),
    ("get_var", with_context("get_var", &["path", "default"], 1, k::get_var)),
    ("merge_dict", plain("merge_dict", &["a", "b", "clone"], 2, k::merge_dict)),
    ("update_dict", plain("update_dict", &["a", "b"], 2, k::update_dict)),
    ("raise", plain("raise_helper", &["msg"], 1, k::raise)),
    ("debug_print", plain("debug_print", &["msg"], 1, k::debug_print)),
    ("load_sha256", with_context("load_sha256", &["path", "digest_len"], 1, k::load_sha256)),
    ("render", with_context("render", &["string"], 1, k::render)),
    (
        "load_latest_git_commit",
        with_context("load_latest_git_commit", &["path", "sha_len"], 1, k::load_latest_git_commit),
    ),
];

fn no_keywords(name: &str, args: &Bound) -> Res<()> {
    if args.raw.kw.is_empty() {
        return Ok(());
    }
    Err(Raise::type_error(format!("{name}() takes no keyword arguments")))
}

fn range(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    no_keywords("range", args)?;
    let mut numbers = Vec::new();
    for value in &args.raw.pos {
        numbers.push(value.as_index().ok_or_else(|| {
            let name = value.type_name();
            Raise::type_error(format!("'{name}' object cannot be interpreted as an integer"))
        })?);
    }
    let (start, stop, step) = match *numbers {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        [] => return Err(Raise::type_error("range expected at least 1 argument, got 0")),
        _ => {
            let got = numbers.len();
            let message = format!("range expected at most 3 arguments, got {got}");
            return Err(Raise::type_error(message));
        }
    };
    if step == 0 {
        return Err(Raise::value_error("range() arg 3 must not be zero"));
    }
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

/// The entries `dict(…)` makes of its arguments.
fn entries(it: &Interp<'_>, args: &Bound) -> Res<Dict> {
    let dict = match args.raw.pos.as_slice() {
        [] => Dict::new(Entries::new()),
        [source] => from_source(it, source)?,
        more => {
            let got = more.len();
            let message = format!("dict expected at most 1 argument, got {got}");
            return Err(Raise::type_error(message));
        }
    };
    for (name, value) in &args.raw.kw {
        dict.insert_str(name, value.clone());
    }
    Ok(dict)
}

/// A new dict from a mapping or from pairs.
pub(crate) fn from_source(it: &Interp<'_>, source: &Value) -> Res<Dict> {
    if let Value::Dict(dict) | Value::Namespace(dict) = source {
        it.budget.elements(dict.len())?;
        return Ok(Dict::new(dict.entries().clone()));
    }
    let dict = Dict::new(Entries::new());
    let mut walk = Walk::new(source)?;
    let mut index = 0;
    while let Some(pair) = walk.next()? {
        it.budget.spend(1)?;
        let mut parts = Vec::new();
        let mut inner = Walk::new(&pair).map_err(|_| {
            let message =
                format!("cannot convert dictionary update sequence element #{index} to a sequence");
            Raise::type_error(message)
        })?;
        while let Some(part) = inner.next()? {
            parts.push(part);
        }
        let length = parts.len();
        let (Some(value), Some(key), 2) = (parts.pop(), parts.pop(), length) else {
            return Err(Raise::value_error(format!(
                "dictionary update sequence element #{index} has length {length}; 2 is required"
            )));
        };
        dict.insert(key, value)?;
        index += 1;
    }
    Ok(dict)
}

fn dict(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    entries(it, args).map(Value::dict)
}

fn namespace(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    Ok(Value::Namespace(Rc::new(entries(it, args)?)))
}

fn cycler(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    if args.raw.pos.is_empty() {
        return Err(Raise::new("RuntimeError", "at least one item has to be provided"));
    }
    let cycler = Cycler { items: args.raw.pos.clone(), at: Cell::new(0) };
    Ok(Value::object(Object::Cycler(cycler)))
}

#[expect(clippy::unnecessary_wraps, reason = "the type of all functions in the table")]
fn joiner(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let named = args.raw.kw.iter().find(|(name, _)| **name == *"sep").map(|(_, value)| value);
    let separator = args.raw.pos.first().or(named).cloned().unwrap_or_else(|| Value::str(", "));
    Ok(Value::object(Object::Joiner(Joiner { separator, used: Cell::new(false) })))
}

fn lipsum(_it: &mut Interp<'_>, _scope: &Rc<Scope>, _args: &Bound) -> Res<Value> {
    Err(Raise::runtime(
        "the function 'lipsum' is not supported: a render must give the same result every time",
    ))
}
