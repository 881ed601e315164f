//! Field paths of replacements and vars: `spec.containers.[name=web].image`, `data.[a.b]`, `spec.ports.0.port`, `a.*.b`.

use regex::Regex;
use serde_json::{Map, Value};

use super::{Options, structured};
use crate::{
    kustomize::{config::split_path, id::scalar_text},
    yaml::{self, Schema},
};

/// A path to one field, for reading.
#[derive(Debug, Clone)]
pub(crate) struct FieldLookup(Vec<String>);

impl FieldLookup {
    pub(crate) fn parse(path: &str) -> Self {
        Self(split(path))
    }

    /// As [`FieldLookup::parse`], where `name[0]` is an item too.
    pub(crate) fn parse_indexed(path: &str) -> Self {
        let mut parts = Vec::new();
        for part in split(path) {
            let indexed = part.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
            match indexed {
                Some((name, index)) if index.parse::<usize>().is_ok() => {
                    if !name.is_empty() {
                        parts.push(name.to_owned());
                    }
                    parts.push(index.to_owned());
                }
                _ => parts.push(part),
            }
        }
        Self(parts)
    }

    /// The field, if it is there.
    pub(crate) fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, part| match value {
            Value::Object(map) => map.get(part),
            Value::Array(list) => {
                if part == "-" {
                    return list.last();
                }
                if let Ok(index) = part.parse::<usize>() {
                    return list.get(index);
                }
                let (key, wanted) = condition(part)?;
                list.iter().find(|item| {
                    let field = if key.is_empty() { Some(*item) } else { item.get(key) };
                    field.and_then(scalar_text).is_some_and(|text| text == wanted)
                })
            }
            _ => None,
        })
    }
}

/// A path that may lead to several fields, for writing.
#[derive(Debug, Clone)]
pub(super) struct FieldPattern(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    Field(String),
    Index(usize),
    Every,
    /// Items whose field (or who themselves, if it is empty) match.
    Matching {
        field: String,
        text: String,
        regex: Regex,
    },
}

impl FieldPattern {
    /// Reads a path; the message of an error says what is wrong.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        let parts = split(path).into_iter().map(|part| {
            if part == "*" {
                return Ok(Part::Every);
            }
            if let Ok(index) = part.parse() {
                return Ok(Part::Index(index));
            }
            let Some((field, text)) = condition(&part) else { return Ok(Part::Field(part)) };
            let regex = Regex::new(text)
                .map_err(|_| format!("\"{text}\" in {part} is no regular expression"))?;
            Ok(Part::Matching { field: field.to_owned(), text: text.to_owned(), regex })
        });
        parts.collect::<Result<_, _>>().map(Self)
    }

    /// Writes a value into all fields that match.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn write(
        &self,
        root: &mut Value,
        value: &Value,
        options: &Options,
    ) -> Result<(), String> {
        match write(root, &self.0, value, options)? {
            0 => Err("the field does not exist".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Writes below `target`; returns how many fields were written.
fn write(
    target: &mut Value,
    parts: &[Part],
    value: &Value,
    options: &Options,
) -> Result<usize, String> {
    let Some((part, rest)) = parts.split_first() else {
        set(target, value, options)?;
        return Ok(1);
    };
    if let Value::String(text) = target {
        let written = structured::edit(text, |inner| write(inner, parts, value, options))?;
        return Ok(written.unwrap_or(0));
    }
    match part {
        Part::Field(name) => {
            let Value::Object(map) = target else { return Ok(0) };
            write_field(map, name, rest, value, options)
        }
        Part::Index(index) => {
            if let Value::Object(map) = target {
                return write_field(map, &index.to_string(), rest, value, options);
            }
            let Value::Array(list) = target else { return Ok(0) };
            let len = list.len();
            if len == *index && options.create {
                list.push(missing(rest, value));
            }
            match list.get_mut(*index) {
                Some(item) => write(item, rest, value, options),
                None => Err(format!("there is no item {index} in a list of {len}")),
            }
        }
        Part::Every => {
            let items: Vec<&mut Value> = match target {
                Value::Array(list) => list.iter_mut().collect(),
                Value::Object(map) => map.values_mut().collect(),
                _ => Vec::new(),
            };
            items.into_iter().try_fold(0, |n, item| Ok(n + write(item, rest, value, options)?))
        }
        Part::Matching { field, text, regex } => {
            let Value::Array(list) = target else { return Ok(0) };
            write_matching(list, (field, text, regex), rest, value, options)
        }
    }
}

fn write_field(
    map: &mut Map<String, Value>,
    name: &str,
    rest: &[Part],
    value: &Value,
    options: &Options,
) -> Result<usize, String> {
    if options.create && map.get(name).is_none_or(Value::is_null) {
        map.insert(name.to_owned(), missing(rest, value));
    }
    map.get_mut(name).map_or(Ok(0), |field| write(field, rest, value, options))
}

fn write_matching(
    list: &mut Vec<Value>,
    (field, text, regex): (&str, &str, &Regex),
    rest: &[Part],
    value: &Value,
    options: &Options,
) -> Result<usize, String> {
    let matches = |item: &Value| {
        let own = if field.is_empty() { Some(item) } else { item.get(field) };
        own.and_then(scalar_text).is_some_and(|text| regex.is_match(&text))
    };
    // What follows a condition on scalars has no meaning.
    let rest = if field.is_empty() { &[] } else { rest };
    let mut written = 0;
    for item in list.iter_mut().filter(|item| matches(item)) {
        written += write(item, rest, value, options)?;
    }
    if written == 0 && options.create && !list.iter().any(matches) {
        let mut item = if field.is_empty() {
            Value::String(text.to_owned())
        } else {
            Value::Object([(field.to_owned(), text.into())].into_iter().collect())
        };
        written = write(&mut item, rest, value, options)?;
        list.push(item);
    }
    Ok(written)
}

/// What is created for the parts that remain.
fn missing(rest: &[Part], value: &Value) -> Value {
    match rest.first() {
        None => match value {
            Value::Array(_) => Value::Array(Vec::new()),
            Value::Object(_) => Value::Object(Map::new()),
            _ => Value::Null,
        },
        Some(Part::Field(_)) => Value::Object(Map::new()),
        Some(_) => Value::Array(Vec::new()),
    }
}

/// Writes into a field. A scalar keeps its type as far as the new text allows; in a new field it has the type that YAML
/// gives it without quotes.
fn set(target: &mut Value, value: &Value, options: &Options) -> Result<(), String> {
    let is_container = |value: &Value| value.is_array() || value.is_object();
    let text = if options.delimiter.is_empty() {
        if is_container(target) || is_container(value) {
            *target = value.clone();
            return Ok(());
        }
        scalar_text(value).unwrap_or_default()
    } else {
        let (Some(old), Some(new)) = (scalar_text(target), scalar_text(value)) else {
            return Err("`delimiter` needs a text".to_owned());
        };
        spliced(&old, &new, options)
    };
    *target = retyped(target, text)?;
    Ok(())
}

fn spliced(old: &str, new: &str, options: &Options) -> String {
    let mut parts: Vec<&str> = old.split(options.delimiter.as_str()).collect();
    match usize::try_from(options.index) {
        Err(_) => parts.insert(0, new),
        Ok(index) => match parts.get_mut(index) {
            Some(part) => *part = new,
            None => parts.push(new),
        },
    }
    parts.join(&options.delimiter)
}

/// A text as the type that stood there before, or in a new field as the type that it looks like.
fn retyped(old: &Value, text: String) -> Result<Value, String> {
    match old {
        Value::Null => Ok(plain(&text).unwrap_or(Value::String(text))),
        Value::Number(_) => text
            .parse()
            .map(Value::Number)
            .map_err(|_| format!("the field holds a number, which {text:?} is not")),
        Value::Bool(_) => text
            .parse()
            .map(Value::Bool)
            .map_err(|_| format!("the field is true or false, which {text:?} is not")),
        _ => Ok(Value::String(text)),
    }
}

/// What YAML makes of a text without quotes, if that is not text.
fn plain(text: &str) -> Option<Value> {
    let document = yaml::parse_document("", text.as_bytes(), Schema::Manifest).ok()?;
    (document.value.is_number() || document.value.is_boolean()).then_some(document.value)
}

/// The `field` and `value` of `[field=value]`.
fn condition(part: &str) -> Option<(&str, &str)> {
    part.strip_prefix('[')?.strip_suffix(']')?.split_once('=')
}

/// Splits at dots outside of brackets; brackets without `=` only quote a name with dots.
fn split(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for part in split_path(path, '.') {
        let joined = match open.take() {
            Some(begun) => format!("{begun}.{part}"),
            None => part,
        };
        if joined.starts_with('[') && !joined.ends_with(']') {
            open = Some(joined);
        } else {
            parts.push(joined);
        }
    }
    parts.extend(open);
    let unquoted = parts.into_iter().map(|part| {
        if part.starts_with('[') && !part.contains('=') {
            part.trim_matches(['[', ']']).to_owned()
        } else {
            part
        }
    });
    unquoted.filter(|part| !part.is_empty()).collect()
}
