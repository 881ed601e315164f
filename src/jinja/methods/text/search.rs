//! Methods of strings that look for something in them, take them apart or put them together.

use std::sync::Arc;

use super::change::is_space;
use super::required_text;
use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::filters::html::escape_value;
use crate::jinja::value::index::wrap;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::{Value, char_count};

pub(super) fn split(
    it: &Interp<'_>,
    value: &Value,
    text: &str,
    from_right: bool,
    args: &Bound,
) -> Res<Value> {
    let limit = match args.given(1) {
        Some(_) => usize::try_from(args.int(1, -1)?).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let separator = match args.optional(0) {
        None => None,
        Some(value) => match value.as_str() {
            Some(separator) if separator.is_empty() => {
                return Err(Raise::value_error("empty separator"));
            }
            Some(separator) => Some(Arc::clone(separator)),
            None => {
                value.require()?;
                let name = value.type_name();
                return Err(Raise::type_error(format!("must be str or None, not {name}")));
            }
        },
    };
    let pieces = limit.saturating_add(1);
    let parts: Vec<&str> = match (&separator, from_right) {
        (Some(separator), false) => text.splitn(pieces, &**separator).collect(),
        (Some(separator), true) => {
            let mut parts: Vec<&str> = text.rsplitn(pieces, &**separator).collect();
            parts.reverse();
            parts
        }
        (None, from_right) => split_space(text, limit, from_right),
    };
    it.budget.elements(parts.len())?;
    Ok(Value::list(parts.into_iter().map(|part| wrap(value, part)).collect()))
}

fn split_space(text: &str, limit: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() < limit {
        rest = if from_right {
            rest.trim_end_matches(is_space)
        } else {
            rest.trim_start_matches(is_space)
        };
        if rest.is_empty() {
            break;
        }
        let cut = if from_right {
            rest.rfind(is_space).map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8))
        } else {
            rest.find(is_space)
        };
        let Some(cut) = cut else {
            parts.push(rest);
            rest = "";
            break;
        };
        let (head, tail) = rest.split_at(cut);
        let (part, left) = if from_right { (tail, head) } else { (head, tail) };
        parts.push(part);
        rest = left;
    }
    let rest = if from_right {
        rest.trim_end_matches(is_space)
    } else {
        rest.trim_start_matches(is_space)
    };
    if !rest.is_empty() {
        parts.push(rest);
    }
    if from_right {
        parts.reverse();
    }
    parts
}

pub(super) fn join(it: &Interp<'_>, value: &Value, separator: &str, items: &Value) -> Res<Value> {
    if Walk::new(items).is_err() {
        items.require()?;
        return Err(Raise::type_error("can only join an iterable"));
    }
    let mut out = String::new();
    let mut walk = Walk::new(items)?;
    let mut index = 0;
    while let Some(item) = walk.next()? {
        it.budget.spend(1)?;
        if index > 0 {
            out.push_str(separator);
        }
        match (value, item.as_str()) {
            (Value::Markup(_), _) => out.push_str(&escape_value(&item, &it.budget)?),
            (_, Some(text)) => out.push_str(text),
            (_, None) => {
                let name = item.type_name();
                return Err(Raise::type_error(format!(
                    "sequence item {index}: expected str instance, {name} found"
                )));
            }
        }
        index += 1;
        it.budget.size(out.len())?;
    }
    it.budget.bytes(out.len())?;
    Ok(wrap(value, &out))
}

/// The part of the text between the optional `start` and `end`, and where it begins in characters.
fn window<'a>(text: &'a str, args: &Bound) -> Res<Option<(&'a str, usize)>> {
    if args.optional(1).is_none() && args.optional(2).is_none() {
        return Ok(Some((text, 0)));
    }
    let length = i64::try_from(char_count(text)).unwrap_or(i64::MAX);
    let bound = |index: usize, default: i64| -> Res<i64> {
        let at = match args.optional(index) {
            None => default,
            Some(value) => value.as_index().ok_or_else(|| {
                Raise::type_error(
                    "slice indices must be integers or None or have an __index__ method",
                )
            })?,
        };
        Ok(if at < 0 { (at + length).max(0) } else { at })
    };
    let (start, end) = (bound(1, 0)?, bound(2, length)?.min(length));
    if start > end {
        return Ok(None);
    }
    let offset = |chars: i64| {
        let chars = usize::try_from(chars).unwrap_or(0);
        text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index)
    };
    Ok(Some((&text[offset(start)..offset(end)], usize::try_from(start).unwrap_or(0))))
}

pub(super) fn affix(text: &str, name: &str, args: &Bound) -> Res<Value> {
    let Some((text, _)) = window(text, args)? else { return Ok(Value::Bool(false)) };
    let matches = |affix: &str| {
        if name == "startswith" { text.starts_with(affix) } else { text.ends_with(affix) }
    };
    let wanted = args.get(0);
    if let Some(affix) = wanted.as_str() {
        return Ok(Value::Bool(matches(affix)));
    }
    let wrong = |value: &Value, place: &str| {
        let kind = value.type_name();
        Raise::type_error(match place {
            "first" => format!("{name} first arg must be str or a tuple of str, not {kind}"),
            _ => format!("tuple for {name} must only contain str, not {kind}"),
        })
    };
    wanted.require()?;
    let Value::Tuple(tuple) = wanted else { return Err(wrong(wanted, "first")) };
    for item in &tuple.items {
        match item.as_str() {
            Some(affix) if matches(affix) => return Ok(Value::Bool(true)),
            Some(_) => {}
            None => return Err(wrong(item, "tuple")),
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn find(text: &str, name: &str, args: &Bound) -> Res<Value> {
    let wanted = required_text(args, 0, name)?;
    let found = window(text, args)?.and_then(|(part, start)| {
        let index = if name.starts_with('r') { part.rfind(&*wanted) } else { part.find(&*wanted) };
        index.map(|index| start + char_count(&part[..index]))
    });
    match found {
        Some(index) => Ok(Value::len_of(index)),
        None if name.ends_with("index") => Err(Raise::value_error("substring not found")),
        None => Ok(Value::Int(-1)),
    }
}

pub(super) fn count(text: &str, args: &Bound) -> Res<Value> {
    let wanted = required_text(args, 0, "count()")?;
    let Some((part, _)) = window(text, args)? else { return Ok(Value::Int(0)) };
    let count =
        if wanted.is_empty() { char_count(part) + 1 } else { part.matches(&*wanted).count() };
    Ok(Value::len_of(count))
}

pub(super) fn partition(value: &Value, text: &str, name: &str, args: &Bound) -> Res<Value> {
    let separator = required_text(args, 0, name)?;
    if separator.is_empty() {
        return Err(Raise::value_error("empty separator"));
    }
    let parts = if name == "partition" {
        text.split_once(&*separator).map_or([text, "", ""], |(a, b)| [a, &separator, b])
    } else {
        text.rsplit_once(&*separator).map_or(["", "", text], |(a, b)| [a, &separator, b])
    };
    Ok(Value::tuple(parts.iter().map(|part| wrap(value, part)).collect()))
}
