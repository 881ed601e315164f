//! Methods of strings.

mod change;
mod search;

use std::sync::Arc;

use super::str_format;
use crate::jinja::args::{Args, Bound, Signature, Words};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::filters::html::escape_value;
use crate::jinja::value::index::wrap;
use crate::jinja::value::{Value, char_count};

pub(crate) use change::{capitalize, center, replace, split_lines, strip};
use change::{encode, expand_tabs, justify, swap_case, title, width};
use search::{affix, count, find, join, partition, split};

pub(super) const METHODS: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

/// The parameters of each method, how many are required, and how Python words mistakes; those without are not listed.
fn signature(name: &str) -> Option<Signature> {
    use Words::{Counted, Keywords, One, Parsed};
    const WINDOW: &[&str] = &["sub", "start", "end"];
    let (own, params, required, words): (_, &'static [&'static str], usize, _) = match name {
        "center" => ("str.center", &["width", "fillchar"], 1, Counted),
        "ljust" => ("str.ljust", &["width", "fillchar"], 1, Counted),
        "rjust" => ("str.rjust", &["width", "fillchar"], 1, Counted),
        "zfill" => ("str.zfill", &["width"], 1, One),
        "count" => ("str.count", WINDOW, 1, Parsed),
        "find" => ("str.find", WINDOW, 1, Parsed),
        "rfind" => ("str.rfind", WINDOW, 1, Parsed),
        "index" => ("str.index", WINDOW, 1, Parsed),
        "rindex" => ("str.rindex", WINDOW, 1, Parsed),
        "startswith" => ("str.startswith", WINDOW, 1, Parsed),
        "endswith" => ("str.endswith", WINDOW, 1, Parsed),
        "encode" => ("str.encode", &["encoding", "errors"], 0, Keywords),
        "expandtabs" => ("str.expandtabs", &["tabsize"], 0, Keywords),
        "join" => ("str.join", &["iterable"], 1, One),
        "partition" => ("str.partition", &["sep"], 1, One),
        "rpartition" => ("str.rpartition", &["sep"], 1, One),
        "removeprefix" => ("str.removeprefix", &["prefix"], 1, One),
        "removesuffix" => ("str.removesuffix", &["suffix"], 1, One),
        "replace" => ("str.replace", &["old", "new", "count"], 2, Counted),
        "split" => ("str.split", &["sep", "maxsplit"], 0, Keywords),
        "rsplit" => ("str.rsplit", &["sep", "maxsplit"], 0, Keywords),
        "splitlines" => ("str.splitlines", &["keepends"], 0, Keywords),
        "strip" => ("str.strip", &["chars"], 0, Counted),
        "lstrip" => ("str.lstrip", &["chars"], 0, Counted),
        "rstrip" => ("str.rstrip", &["chars"], 0, Counted),
        _ => return None,
    };
    Some(Signature::native(own, params, required, words))
}

pub(super) fn call(
    it: &mut Interp<'_>,
    value: &Value,
    text: &Arc<str>,
    name: &str,
    args: Args,
) -> Res<Value> {
    it.budget.bytes(text.len())?;
    if name == "format" || name == "format_map" {
        return str_format::call(it, value, text, name, args);
    }
    let signature = signature(name);
    if signature.is_none() && !args.kw.is_empty() {
        return Err(Raise::type_error(format!("str.{name}() takes no keyword arguments")));
    }
    if signature.is_none() && !args.pos.is_empty() {
        let given = args.pos.len();
        let message = format!("str.{name}() takes no arguments ({given} given)");
        return Err(Raise::type_error(message));
    }
    let args = args.bind(signature.as_ref())?;
    let like = |text: &str| wrap(value, text);
    let all = |test: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(test));
    Ok(match name {
        "upper" => like(&text.to_uppercase()),
        "lower" => like(&text.to_lowercase()),
        "casefold" => like(&text.to_lowercase().replace('ß', "ss").replace('ſ', "s")),
        "capitalize" => like(&capitalize(text)),
        "title" => like(&title(text)),
        "swapcase" => like(&swap_case(text)),
        "strip" | "lstrip" | "rstrip" => {
            let chars = optional_text(&args, 0, || format!("{name} arg must be None or str"))?;
            like(strip(text, chars.as_deref(), name != "rstrip", name != "lstrip"))
        }
        "split" | "rsplit" => split(it, value, text, name == "rsplit", &args)?,
        "splitlines" => {
            let lines = split_lines(text, args.flag(0)?);
            it.budget.elements(lines.len())?;
            Value::list(lines.into_iter().map(like).collect())
        }
        "join" => join(it, value, text, args.get(0))?,
        "replace" => {
            let (old, new) =
                (required_text(&args, 0, "replace()")?, required_text(&args, 1, "replace()")?);
            let new: Arc<str> = match value {
                Value::Markup(_) => escape_value(args.get(1), &it.budget)?,
                _ => new,
            };
            like(&replace(text, &old, &new, args.int(2, -1)?, &it.budget)?)
        }
        "startswith" | "endswith" => affix(text, name, &args)?,
        "find" | "rfind" | "index" | "rindex" => find(text, name, &args)?,
        "count" => count(text, &args)?,
        "partition" | "rpartition" => partition(value, text, name, &args)?,
        "removeprefix" => {
            let prefix = required_text(&args, 0, "removeprefix()")?;
            like(text.strip_prefix(&*prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let suffix = required_text(&args, 0, "removesuffix()")?;
            like(text.strip_suffix(&*suffix).unwrap_or(text))
        }
        "center" | "ljust" | "rjust" => like(&justify(it, text, name, &args)?),
        "zfill" => {
            let width = width(it, &args)?;
            let (sign, digits) = match text.strip_prefix(['+', '-']) {
                Some(digits) => (&text[..1], digits),
                None => ("", &**text),
            };
            let zeros = width.saturating_sub(char_count(text));
            like(&format!("{sign}{}{digits}", "0".repeat(zeros)))
        }
        "expandtabs" => like(&expand_tabs(text, args.int(0, 8)?)),
        "encode" => encode(text, &args)?,
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => Value::Bool(text.is_ascii()),
        "isdecimal" | "isdigit" => all(|c| c.is_ascii_digit()),
        "isnumeric" => all(char::is_numeric),
        "isspace" => all(char::is_whitespace),
        "isidentifier" => {
            let mut chars = text.chars();
            let start = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
            Value::Bool(start && chars.all(|c| c.is_alphanumeric() || c == '_'))
        }
        "isprintable" => Value::Bool(text.chars().all(crate::jinja::value::repr::is_printable)),
        "islower" => cased(text, char::is_uppercase),
        "isupper" => cased(text, char::is_lowercase),
        _ => Value::Bool(text.chars().any(char::is_alphabetic) && title(text) == **text),
    })
}

fn cased(text: &str, wrong: fn(char) -> bool) -> Value {
    let any = text.chars().any(|c| c.is_lowercase() || c.is_uppercase());
    Value::Bool(any && !text.chars().any(wrong))
}

fn required_text(args: &Bound, index: usize, function: &str) -> Res<Arc<str>> {
    let value = args.get(index);
    if let Some(text) = value.as_str() {
        return Ok(Arc::clone(text));
    }
    value.require()?;
    let (position, name) = (index + 1, value.type_name());
    Err(Raise::type_error(match function {
        "replace()" => format!("replace() argument {position} must be str, not {name}"),
        "removeprefix()" | "removesuffix()" => {
            format!("{function} argument must be str, not {name}")
        }
        _ => format!("must be str, not {name}"),
    }))
}

fn optional_text(
    args: &Bound,
    index: usize,
    message: impl Fn() -> String,
) -> Res<Option<Arc<str>>> {
    match args.optional(index) {
        None => Ok(None),
        Some(value) => {
            if let Some(text) = value.as_str() {
                Ok(Some(Arc::clone(text)))
            } else {
                value.require()?;
                Err(Raise::type_error(message()))
            }
        }
    }
}
