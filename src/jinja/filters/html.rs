//! Filters for HTML, URLs and JSON in HTML.

use std::rc::Rc;
use std::sync::Arc;

use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::kluctl::json;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::repr::{str_repr, to_str};
use crate::jinja::value::{Budget, Value, no_attribute};

/// The five characters that HTML gives a meaning.
pub(crate) fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The text of a value, escaped unless it is safe already.
pub(crate) fn escape_value(value: &Value, budget: &Budget) -> Res<Arc<str>> {
    match value {
        Value::Markup(text) => Ok(Arc::clone(text)),
        other => Ok(escape_text(&to_str(other, budget)?).into()),
    }
}

pub(super) fn escape(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    escape_value(args.get(0), &it.budget).map(Value::Markup)
}

pub(super) fn forceescape(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let text = to_str(args.get(0), &it.budget)?;
    Ok(Value::Markup(escape_text(&text).into()))
}

pub(super) fn safe(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    to_str(args.get(0), &it.budget).map(Value::Markup)
}

pub(super) fn striptags(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let mut text = to_str(args.get(0), &it.budget)?.to_string();
    text = cut(text, "<!--", "-->");
    text = cut(text, "<", ">");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Value::str(unescape_entities(&text, [true; 3])))
}

/// Removes everything between two marks, again and again.
fn cut(mut text: String, open: &str, close: &str) -> String {
    while let Some(start) = text.find(open) {
        let Some(length) = text[start..].find(close) else { break };
        text.replace_range(start..start + length + close.len(), "");
    }
    text
}

/// Replaces character references: named (those that occur in practice), decimal, hexadecimal.
pub(crate) fn unescape_entities(text: &str, kinds: [bool; 3]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let reference = rest.find(';').filter(|end| *end <= 10).map(|end| &rest[1..end]);
        if let Some((name, c)) = reference.and_then(|name| Some((name, character(name, kinds)?))) {
            out.push(c);
            rest = &rest[name.len() + 2..];
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str, [named, decimal, hex]: [bool; 3]) -> Option<char> {
    if let Some(digits) = name.strip_prefix("#x").or_else(|| name.strip_prefix("#X")) {
        return char::from_u32(u32::from_str_radix(digits, 16).ok().filter(|_| hex)?);
    }
    if let Some(digits) = name.strip_prefix('#') {
        return char::from_u32(digits.parse().ok().filter(|_| decimal)?);
    }
    Some(match name {
        _ if !named => return None,
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "euro" => '€',
        _ => return None,
    })
}

pub(super) fn xmlattr(it: &mut Interp<'_>, scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let Value::Dict(dict) = args.get(0) else {
        args.get(0).require()?;
        return Err(no_attribute(args.get(0), "items"));
    };
    let mut parts = Vec::new();
    for (key, value) in dict.pairs() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let Some(name) = key.as_str() else {
            let name = key.type_name();
            let message = format!("expected string or bytes-like object, got '{name}'");
            return Err(Raise::type_error(message));
        };
        let bad = |c: char| " \t\n\r\x0b\x0c/>=".contains(c);
        if name.contains(bad) {
            let shown = str_repr(name);
            return Err(Raise::value_error(format!(
                "Invalid character in attribute name: {shown}"
            )));
        }
        let (key, value) = (escape_value(&key, &it.budget)?, escape_value(&value, &it.budget)?);
        parts.push(format!("{key}=\"{value}\""));
    }
    let mut out = parts.join(" ");
    let autospace = args.given(1).map_or(Ok(true), Value::is_true)?;
    if autospace && !out.is_empty() {
        out.insert(0, ' ');
    }
    Ok(if scope.ctx.autoescape.get() { Value::Markup(out.into()) } else { Value::str(out) })
}

pub(super) fn tojson(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let indent = match args.optional(1) {
        Some(value) => {
            value.require()?;
            Some(json::indentation(value)?)
        }
        None => None,
    };
    let text = json::dump(args.get(0), indent.as_deref(), true, &it.budget)?;
    let safe = text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\'', "\\u0027");
    Ok(Value::Markup(safe.into()))
}

/// `urllib.parse.quote`; in query strings also slashes are quoted and spaces become `+`.
fn quote(text: &[u8], for_query: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(*byte));
            }
            b'/' if !for_query => out.push('/'),
            b' ' if for_query => out.push('+'),
            other => {
                let text = format!("%{other:02X}");
                out.push_str(&text);
            }
        }
    }
    out
}

fn quote_value(value: &Value, for_query: bool, budget: &Budget) -> Res<String> {
    match value {
        Value::Bytes(bytes) => Ok(quote(bytes, for_query)),
        other => Ok(quote(to_str(other, budget)?.as_bytes(), for_query)),
    }
}

pub(super) fn urlencode(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let value = args.get(0);
    let pairs: Vec<(Value, Value)> = match value {
        Value::Dict(dict) => dict.pairs(),
        Value::List(_) | Value::Tuple(_) | Value::View(..) | Value::Iter(_) | Value::Range(_) => {
            let mut pairs = Vec::new();
            for item in super::sequence::collect(it, value)? {
                let mut walk = Walk::new(&item).map_err(|_| {
                    let name = item.type_name();
                    Raise::type_error(format!("cannot unpack non-iterable {name} object"))
                })?;
                match (walk.next()?, walk.next()?, walk.next()?) {
                    (Some(key), Some(value), None) => pairs.push((key, value)),
                    (Some(_), Some(_), Some(_)) => {
                        let message = "too many values to unpack (expected 2)";
                        return Err(Raise::value_error(message));
                    }
                    (first, ..) => {
                        let got = usize::from(first.is_some());
                        return Err(Raise::value_error(format!(
                            "not enough values to unpack (expected 2, got {got})"
                        )));
                    }
                }
            }
            pairs
        }
        other => return Ok(Value::str(quote_value(other, false, &it.budget)?)),
    };
    let mut parts = Vec::new();
    for (key, value) in pairs {
        let key = quote_value(&key, true, &it.budget)?;
        parts.push(format!("{key}={}", quote_value(&value, true, &it.budget)?));
    }
    Ok(Value::str(parts.join("&")))
}
