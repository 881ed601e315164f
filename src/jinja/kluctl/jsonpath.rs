//! Paths of `get_var`: the part of jsonpath-ng that addresses values, with `*` inside of field names.

use std::rc::Rc;
use std::sync::Arc;

use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::scope::Layer;
use crate::jinja::value::{Budget, Value};

#[derive(Debug, Clone)]
enum Step {
    /// Any of these fields; names may contain `*`.
    Fields(Vec<String>),
    Index(i64),
    Slice(Option<i64>, Option<i64>, Option<i64>),
    Descend,
}

/// What a step starts from: all variables, or one value.
#[derive(Clone)]
enum Node {
    Root(Rc<Layer>),
    Value(Value),
}

/// The value at a path; none when the path matches nothing.
///
/// # Errors
/// A path that cannot be read, or that matches several values.
pub(super) fn find(layer: &Rc<Layer>, path: &Value, budget: &Budget) -> Res<Option<Value>> {
    let text = match path {
        Value::Str(text) | Value::Markup(text) => text.to_string(),
        Value::List(list) => from_parts(&list.to_vec())?,
        Value::Tuple(tuple) => from_parts(&tuple.items)?,
        other => {
            other.require()?;
            let name = other.type_name();
            return Err(Raise::type_error(format!("a path must be a string, not '{name}'")));
        }
    };
    if text.starts_with('.') && !text.starts_with("..") {
        let message = format!("Invalid json path '{text}'. Error=it starts with a dot");
        return Err(Raise::new("Exception", message));
    }
    let mut nodes = vec![Node::Root(Rc::clone(layer))];
    for step in parse(&text)? {
        let mut next = Vec::new();
        for node in nodes {
            apply(&step, &node, &mut next, budget, 0)?;
        }
        nodes = next;
    }
    let count = nodes.len();
    match nodes.pop() {
        None => Ok(None),
        Some(_) if count > 1 => {
            Err(Raise::new("Exception", "Only simple jsonpath supported in get_dict_value"))
        }
        Some(Node::Value(value)) => Ok(Some(value)),
        Some(Node::Root(_)) => {
            Err(Raise::new("Exception", "the path `$` stands for all variables; name one of them"))
        }
    }
}

/// A list of keys and indexes as path text.
fn from_parts(parts: &[Value]) -> Res<String> {
    let mut path = String::from("$");
    for part in parts {
        match (part.as_str(), part.as_index()) {
            (Some(name), _) if name.contains('"') => {
                let text = format!("['{name}']");
                path.push_str(&text);
            }
            (Some(name), _) => {
                let text = format!("[\"{name}\"]");
                path.push_str(&text);
            }
            (None, Some(index)) => {
                let text = format!("[{index}]");
                path.push_str(&text);
            }
            (None, None) => return Err(Raise::type_error("a path has strings and integers")),
        }
    }
    Ok(path)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@' | '*')
}

fn parse(text: &str) -> Res<Vec<Step>> {
    let fail = |rest: &str| {
        let at = text.len() - rest.len();
        Raise::new(
            "Exception",
            format!("Invalid json path '{text}'. Error=unexpected text at {at}"),
        )
    };
    let mut steps = Vec::new();
    let mut rest = text.trim();
    if let Some(after) = rest.strip_prefix('$') {
        rest = after;
    } else if !rest.starts_with('[') && !rest.starts_with('.') {
        rest = field(rest, &mut steps).ok_or_else(|| fail(rest))?;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            rest = if after.starts_with('[') {
                after
            } else {
                field(after, &mut steps).ok_or_else(|| fail(after))?
            };
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = if after.starts_with('[') {
                after
            } else {
                field(after, &mut steps).ok_or_else(|| fail(after))?
            };
        } else if let Some(after) = rest.strip_prefix('[') {
            rest = bracket(after, &mut steps).ok_or_else(|| fail(after))?;
        } else {
            return Err(fail(rest));
        }
    }
    Ok(steps)
}

/// A field name, quoted or plain, and what follows it.
fn name(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
        let valid = end > 0 && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        return valid.then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?.1),
            c if c == quote => return Some((out, &text[index + 1..])),
            c => out.push(c),
        }
    }
    None
}

fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let (first, mut rest) = name(text)?;
    let mut names = vec![first];
    while let Some(after) = rest.strip_prefix(',') {
        let (next, after) = name(after.trim_start())?;
        names.push(next);
        rest = after;
    }
    steps.push(Step::Fields(names));
    Some(rest)
}

/// After `[`: an index, a slice, `*` or field names, and the closing bracket.
fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let text = text.trim_start();
    if let Some(after) = text.strip_prefix("*]") {
        steps.push(Step::Slice(None, None, None));
        return Some(after);
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == ':') {
        let end = text.find(']')?;
        let parts: Vec<&str> = text[..end].split(':').map(str::trim).collect();
        let bound = |part: Option<&&str>| match part {
            None | Some(&"") => Some(None),
            Some(part) => part.parse().ok().map(Some),
        };
        steps.push(match parts.as_slice() {
            [index] => Step::Index(index.parse().ok()?),
            parts if parts.len() <= 3 => {
                Step::Slice(bound(parts.first())?, bound(parts.get(1))?, bound(parts.get(2))?)
            }
            _ => return None,
        });
        return Some(&text[end + 1..]);
    }
    field(text, steps)?.trim_start().strip_prefix(']')
}

fn apply(step: &Step, node: &Node, out: &mut Vec<Node>, budget: &Budget, depth: usize) -> Res<()> {
    budget.spend(1)?;
    match (step, node) {
        (Step::Fields(names), Node::Root(layer)) => {
            for name in names {
                if !name.contains('*') {
                    out.extend(layer.get(&Arc::from(&**name)).map(Node::Value));
                    continue;
                }
                for own in layer.names() {
                    if matches(name, &own) {
                        out.extend(layer.get(&own).map(Node::Value));
                    }
                }
            }
        }
        (Step::Fields(names), Node::Value(Value::Dict(dict))) => {
            for name in names {
                if !name.contains('*') {
                    out.extend(dict.get_str(name).map(Node::Value));
                    continue;
                }
                for (key, value) in dict.pairs() {
                    if key.as_str().is_some_and(|key| matches(name, key)) {
                        out.push(Node::Value(value));
                    }
                }
            }
        }
        (Step::Index(index), Node::Value(Value::List(list))) => {
            let len = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let at = if *index < 0 { index + len } else { *index };
            let item = usize::try_from(at).ok().and_then(|at| list.get(at));
            out.extend(item.map(Node::Value));
        }
        (Step::Index(index), Node::Value(Value::Str(text) | Value::Markup(text))) => {
            let len = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let at = if *index < 0 { index + len } else { *index };
            let char = usize::try_from(at).ok().and_then(|at| text.chars().nth(at));
            out.extend(char.map(|char| Node::Value(Value::str(char.to_string()))));
        }
        (Step::Slice(start, stop, step), Node::Value(value)) => {
            let bound = |bound: &Option<i64>| bound.map_or(Value::None, Value::Int);
            let items = match value {
                Value::List(_) => crate::jinja::value::index::slice(
                    value,
                    &bound(start),
                    &bound(stop),
                    &bound(step),
                    budget,
                )?,
                other => Value::list(vec![other.clone()]),
            };
            if let Value::List(items) = items {
                out.extend(items.to_vec().into_iter().map(Node::Value));
            }
        }
        (Step::Descend, node) => descend(node, out, budget, depth)?,
        _ => {}
    }
    Ok(())
}

/// The node and everything below it.
fn descend(node: &Node, out: &mut Vec<Node>, budget: &Budget, depth: usize) -> Res<()> {
    budget.spend(1)?;
    if depth > 100 {
        return Err(Raise::recursion("maximum recursion depth exceeded"));
    }
    out.push(node.clone());
    let children: Vec<Value> = match node {
        Node::Root(layer) => layer.names().iter().filter_map(|name| layer.get(name)).collect(),
        Node::Value(Value::Dict(dict)) => {
            dict.pairs().into_iter().map(|(_, value)| value).collect()
        }
        Node::Value(Value::List(list)) => list.to_vec(),
        Node::Value(_) => Vec::new(),
    };
    for child in children {
        descend(&Node::Value(child), out, budget, depth + 1)?;
    }
    Ok(())
}

/// Shell-style matching with `*` only.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(index) => rest = &rest[index + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
