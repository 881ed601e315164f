//! Methods of strings.

use std::sync::Arc;

use super::str_format;
use crate::jinja::args::{Args, Bound, Signature};
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::filters::html::escape_value;
use crate::jinja::value::index::wrap;
use crate::jinja::value::iter::Walk;
use crate::jinja::value::{Budget, Value, char_count};

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

/// The parameters of each method and how many are required.
fn signature(name: &str) -> Signature {
    let (own, params, required): (_, &'static [&'static str], usize) = match name {
        "center" => ("center", &["width", "fillchar"], 1),
        "ljust" => ("ljust", &["width", "fillchar"], 1),
        "rjust" => ("rjust", &["width", "fillchar"], 1),
        "zfill" => ("zfill", &["width"], 1),
        "count" => ("count", &["sub", "start", "end"], 1),
        "find" | "rfind" | "index" | "rindex" => ("find", &["sub", "start", "end"], 1),
        "startswith" => ("startswith", &["prefix", "start", "end"], 1),
        "endswith" => ("endswith", &["suffix", "start", "end"], 1),
        "encode" => ("encode", &["encoding", "errors"], 0),
        "expandtabs" => ("expandtabs", &["tabsize"], 0),
        "join" => ("join", &["iterable"], 1),
        "partition" | "rpartition" => ("partition", &["sep"], 1),
        "removeprefix" => ("removeprefix", &["prefix"], 1),
        "removesuffix" => ("removesuffix", &["suffix"], 1),
        "replace" => ("replace", &["old", "new", "count"], 2),
        "split" | "rsplit" => ("split", &["sep", "maxsplit"], 0),
        "splitlines" => ("splitlines", &["keepends"], 0),
        "strip" | "lstrip" | "rstrip" => ("strip", &["chars"], 0),
        _ => ("str", &[], 0),
    };
    Signature::new(own, params, required)
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
    if signature.params.is_empty() && !(args.pos.is_empty() && args.kw.is_empty()) {
        let given = args.pos.len();
        let message = format!("str.{name}() takes no arguments ({given} given)");
        return Err(Raise::type_error(message));
    }
    let args = args.bind(Some(&signature))?;
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
            let chars = optional_text(&args, 0, "strip arg must be None or str")?;
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
        "encode" => Value::Bytes(text.as_bytes().into()),
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

fn optional_text(args: &Bound, index: usize, message: &str) -> Res<Option<Arc<str>>> {
    match args.optional(index) {
        None => Ok(None),
        Some(value) => {
            if let Some(text) = value.as_str() {
                Ok(Some(Arc::clone(text)))
            } else {
                value.require()?;
                Err(Raise::type_error(message))
            }
        }
    }
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars.as_str().to_lowercase().chars()).collect(),
        None => String::new(),
    }
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_alphabetic();
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

/// `strip`, `lstrip`, `rstrip`.
pub(crate) fn strip<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let matches = |c: char| match chars {
        Some(chars) => chars.contains(c),
        None => is_space(c),
    };
    let text = if left { text.trim_start_matches(matches) } else { text };
    if right { text.trim_end_matches(matches) } else { text }
}

/// What Python counts as white space: also the four ASCII separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `splitlines`, at all of Python's line ends.
pub(crate) fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        let ends = matches!(
            c,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        );
        if !ends {
            continue;
        }
        let mut end = index + c.len_utf8();
        if c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(&text[start..if keep_ends { end } else { index }]);
        start = end;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// `center`, with Python's choice of the side that gets the odd one.
pub(crate) fn center(text: &str, width: usize, fill: char) -> String {
    let length = char_count(text);
    let Some(space) = width.checked_sub(length).filter(|space| *space > 0) else {
        return text.to_owned();
    };
    let left = space / 2 + (space & width & 1);
    let pad = |count: usize| std::iter::repeat_n(fill, count);
    pad(left).chain(text.chars()).chain(pad(space - left)).collect()
}

fn width(it: &Interp<'_>, args: &Bound) -> Res<usize> {
    let width = usize::try_from(args.int(0, 0)?.max(0)).unwrap_or(0);
    it.budget.bytes(width)?;
    Ok(width)
}

fn justify(it: &Interp<'_>, text: &str, name: &str, args: &Bound) -> Res<String> {
    let width = width(it, args)?;
    let fill = match args.given(1) {
        None => ' ',
        Some(value) => {
            let mut chars = value.as_str().map(|text| text.chars());
            if let (Some(fill), None) =
                (chars.as_mut().and_then(Iterator::next), chars.and_then(|mut rest| rest.next()))
            {
                fill
            } else {
                let message = "The fill character must be exactly one character long";
                return Err(Raise::type_error(message));
            }
        }
    };
    let pad = std::iter::repeat_n(fill, width.saturating_sub(char_count(text)));
    Ok(match name {
        "center" => center(text, width, fill),
        "ljust" => text.chars().chain(pad).collect(),
        _ => pad.chain(text.chars()).collect(),
    })
}

/// `replace` with a count; negative means all.
pub(crate) fn replace(
    text: &str,
    old: &str,
    new: &str,
    count: i64,
    budget: &Budget,
) -> Res<String> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = if old.is_empty() { char_count(text) + 1 } else { text.matches(old).count() };
    budget.bytes(text.len() + found.min(limit).saturating_mul(new.len()))?;
    Ok(if count < 0 { text.replace(old, new) } else { text.replacen(old, new, limit) })
}

fn split(it: &Interp<'_>, value: &Value, text: &str, from_right: bool, args: &Bound) -> Res<Value> {
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

fn join(it: &Interp<'_>, value: &Value, separator: &str, items: &Value) -> Res<Value> {
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
        let at = if args.optional(index).is_some() { args.int(index, default)? } else { default };
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

fn affix(text: &str, name: &str, args: &Bound) -> Res<Value> {
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

fn find(text: &str, name: &str, args: &Bound) -> Res<Value> {
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

fn count(text: &str, args: &Bound) -> Res<Value> {
    let wanted = required_text(args, 0, "count()")?;
    let Some((part, _)) = window(text, args)? else { return Ok(Value::Int(0)) };
    let count =
        if wanted.is_empty() { char_count(part) + 1 } else { part.matches(&*wanted).count() };
    Ok(Value::len_of(count))
}

fn partition(value: &Value, text: &str, name: &str, args: &Bound) -> Res<Value> {
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

fn expand_tabs(text: &str, size: i64) -> String {
    let size = usize::try_from(size.clamp(0, 1024)).unwrap_or(8);
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                out.push_str(&" ".repeat(spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}
