//! Kluctl's functions.

use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::filters::{hex_digest, shortened};
use super::jsonpath;
use crate::jinja::args::{Bound, Signature};
use crate::jinja::error::{MADE_TEXT, Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::{Layer, Names, Scope};
use crate::jinja::filters::wrap;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::ops::deep_copy;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Dict, DictRef, Value, no_attribute};

/// Set while a file is hashed, so that it may contain its own hash.
const HASHING: &str = "__calc_sha256__";

fn path_text(value: &Value) -> Res<&Arc<str>> {
    if let Some(text) = value.as_str() {
        Ok(text)
    } else {
        value.require()?;
        let name = value.type_name();
        Err(Raise::type_error(format!("a path must be a string, not '{name}'")))
    }
}

/// Renders a text with the variables of `layer`.
pub(super) fn render_text(
    it: &mut Interp<'_>,
    scope: &Rc<Scope>,
    text: &Value,
    layer: Rc<Layer>,
) -> Res<Value> {
    let Some(text) = text.as_str() else {
        text.require()?;
        return Err(Raise::type_error("Can't compile non template nodes"));
    };
    let label = format!("{MADE_TEXT}{}>", scope.template.name);
    let template = it.env.compile(&label, false, text, it.has_deep_stack())?;
    it.render_with(&template, layer, Names::default()).map(Value::str)
}

pub(crate) fn render(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    render_text(it, scope, args.get(0), scope.visible_to_functions())
}

fn load(it: &mut Interp<'_>, scope: &Rc<Scope>, path: &Value, extra: Names) -> Res<String> {
    let path = path_text(path)?;
    let parent = scope.ctx.template.id.clone();
    let template = it.template_named(path, parent.as_deref())?;
    // The file works on copies: what it changes does not come back.
    let layer = scope.visible_to_functions().copy(&it.budget)?;
    it.render_with(&template, layer, extra)
}

pub(crate) fn load_template(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let mut extra = Names::default();
    let mut path = args.raw.pos.first();
    for (name, value) in &args.raw.kw {
        if **name == *"path" {
            path = Some(value);
        } else {
            extra.set(name, value.clone());
        }
    }
    if args.raw.pos.len() > 1 {
        let given = args.raw.pos.len() + 1;
        let message =
            format!("load_template() takes 2 positional arguments but {given} were given");
        return Err(Raise::type_error(message));
    }
    let Some(path) = path else {
        const SIGNATURE: Signature = Signature::new("load_template", &["path"], 1);
        args.raw.clone().bind(Some(&SIGNATURE))?;
        return Ok(Value::None);
    };
    load(it, scope, path, extra).map(Value::str)
}

pub(crate) fn load_sha256(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let hashing: Arc<str> = HASHING.into();
    if scope.ctx.resolve(&hashing).is_some() {
        return Ok(Value::str("__self_sha256__"));
    }
    let mut extra = Names::default();
    extra.set(&hashing, Value::Bool(true));
    let text = load(it, scope, args.get(0), extra)?;
    hex_digest(text.as_bytes(), args.optional(1))
}

/// The id of a file. Names are not relative to the running template here, as in kluctl.
fn find(it: &Interp<'_>, path: &Value) -> Res<String> {
    found(it, path_text(path)?, None)
}

fn found(it: &Interp<'_>, path: &str, parent: Option<&str>) -> Res<String> {
    let found = it.env.loader().resolve(path, parent);
    found
        .map_err(|message| Raise::new("TemplateLoadError", message))?
        .ok_or_else(|| Raise::new("TemplateNotFound", format!("template {path} not found")))
}

pub(crate) fn load_base64(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let id = find(it, args.get(0))?;
    let bytes =
        it.env.loader().read(&id).map_err(|message| Raise::new("TemplateLoadError", message))?;
    it.budget.bytes(bytes.len().saturating_mul(2))?;
    let text = STANDARD.encode(&bytes);
    let width = match args.optional(1) {
        Some(width) if width.is_true()? => args.int(1, 0)?,
        _ => return Ok(Value::str(text)),
    };
    let Some(width) = usize::try_from(width).ok().filter(|width| *width > 0) else {
        return Err(Raise::value_error(format!("invalid width {width} (must be > 0)")));
    };
    let breaks = wrap::Breaks { long_words: true, hyphens: true };
    Ok(Value::str(wrap::wrap(&text, width, breaks).join("\n")))
}

pub(crate) fn load_latest_git_commit(
    it: &mut Interp<'_>,
    scope: &Rc<Scope>,
    args: &Bound,
) -> Res<Value> {
    let path = path_text(args.get(0))?;
    let parent = scope.ctx.template.id.clone();
    let id = found(it, path, parent.as_deref())?;
    let unknown = |why: &str| Raise::runtime(format!("the latest commit is not known: {why}"));
    let commit = it.env.loader().latest_commit(&id).map_err(|message| unknown(&message))?;
    let commit =
        commit.ok_or_else(|| unknown(&format!("{path}: the source has no Git history")))?;
    let length = args.optional(1).filter(|length| !matches!(length, Value::Int(0)));
    shortened(&commit, length)
}

pub(crate) fn get_var(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let layer = scope.visible_to_functions();
    let path = args.get(0);
    let paths = match path {
        Value::List(list) => list.to_vec(),
        single => vec![single.clone()],
    };
    for path in paths {
        if let Some(found) = jsonpath::find(&layer, &path, &it.budget)? {
            return Ok(found);
        }
    }
    Ok(args.given(1).cloned().unwrap_or(Value::None))
}

/// Merges `b` into `a`: recursive where both sides are dicts, replaced elsewhere.
fn merge(it: &Interp<'_>, a: &DictRef, b: &DictRef, depth: usize) -> Res<()> {
    if depth > 100 {
        return Err(Raise::recursion("maximum recursion depth exceeded"));
    }
    it.budget.dict_changed(a);
    for (key, value) in b.pairs() {
        it.budget.spend(1)?;
        let own = a.get(&crate::jinja::value::Key::new(&key)?);
        match (&own, &value) {
            (Some(Value::Dict(own)), Value::Dict(other)) => merge(it, own, other, depth + 1)?,
            _ => a.insert(key, value)?,
        }
    }
    Ok(())
}

fn mapping(value: &Value) -> Res<DictRef> {
    match value {
        Value::Dict(dict) => Ok(Rc::clone(dict)),
        Value::None => Ok(Rc::new(Dict::from_pairs([]))),
        other => {
            other.require()?;
            Err(no_attribute(other, "items"))
        }
    }
}

/// The mapping whose keys are walked over.
fn newer(value: &Value) -> Res<DictRef> {
    if !matches!(value, Value::Dict(_) | Value::None) {
        Walk::new(value)?;
    }
    mapping(value)
}

pub(crate) fn merge_dict(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let clones = args.given(2).map_or(Ok(true), Value::is_true)?;
    let target = if clones {
        mapping(&deep_copy(args.get(0), &it.budget, 0)?)?
    } else {
        mapping(args.get(0))?
    };
    merge(it, &target, &newer(args.get(1))?, 0)?;
    Ok(Value::Dict(target))
}

pub(crate) fn update_dict(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    merge(it, &mapping(args.get(0))?, &newer(args.get(1))?, 0)?;
    Ok(Value::str(""))
}

pub(crate) fn raise(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let message = to_str(args.get(0), &it.budget)?;
    Err(Raise::new("TemplateError", message.to_string()))
}

pub(crate) fn debug_print(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let message = to_str(args.get(0), &it.budget)?;
    it.budget.bytes(message.len())?;
    if it.env.options().debug.is_some() {
        it.debug.push(message.to_string());
    }
    Ok(Value::str(""))
}
