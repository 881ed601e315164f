//! The `pprint` filter: Python's `pprint.pformat`.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::jinja::args::Bound;
use crate::jinja::ast::CompareOp;
use crate::jinja::error::Res;
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::methods::text::split_lines;
use crate::jinja::value::repr::{repr, str_repr};
use crate::jinja::value::{Budget, Dict, Value, char_count, compare};

const WIDTH: usize = 80;

pub(super) fn pprint(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let mut out = String::new();
    format(args.get(0), 0, 0, 1, &mut out, &it.budget)?;
    Ok(Value::str(out))
}

/// The value with all dicts sorted by key.
fn sorted(value: &Value, budget: &Budget, depth: usize) -> Res<Value> {
    if depth > 50 {
        return Ok(value.clone());
    }
    Ok(match value {
        Value::Dict(dict) => {
            let copy = Dict::new(crate::jinja::value::container::Entries::new());
            for (key, value) in sorted_pairs(dict, budget) {
                copy.insert(key, sorted(&value, budget, depth + 1)?)?;
            }
            Value::dict(copy)
        }
        Value::List(list) => {
            let items: Res<Vec<Value>> =
                list.to_vec().iter().map(|item| sorted(item, budget, depth + 1)).collect();
            Value::list(items?)
        }
        Value::Tuple(tuple) => {
            let items: Res<Vec<Value>> =
                tuple.items.iter().map(|item| sorted(item, budget, depth + 1)).collect();
            Value::tuple(items?)
        }
        other => other.clone(),
    })
}

/// Entries in the order of their keys; keys that cannot be compared are ordered by type.
fn sorted_pairs(dict: &Dict, budget: &Budget) -> Vec<(Value, Value)> {
    let mut pairs = dict.pairs();
    let less = |a: &Value, b: &Value| match compare::order(CompareOp::Lt, a, b, budget) {
        Ok(less) => less,
        Err(_) => a.type_name() < b.type_name(),
    };
    pairs.sort_by(|(a, _), (b, _)| match (less(a, b), less(b, a)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => Ordering::Equal,
    });
    pairs
}

/// Writes a value at a column, leaving `allowance` characters at its end.
fn format(
    value: &Value,
    indent: usize,
    allowance: usize,
    level: usize,
    out: &mut String,
    budget: &Budget,
) -> Res<()> {
    let flat = repr(&sorted(value, budget, 0)?, budget)?;
    if char_count(&flat) <= WIDTH.saturating_sub(indent + allowance) {
        out.push_str(&flat);
        return Ok(());
    }
    match value {
        Value::Dict(dict) if dict.len() > 0 => {
            out.push('{');
            let pairs = sorted_pairs(dict, budget);
            for (index, (key, value)) in pairs.iter().enumerate() {
                let key = repr(key, budget)?;
                out.push_str(&key);
                out.push_str(": ");
                let last = index + 1 == pairs.len();
                let column = indent + 1 + char_count(&key) + 2;
                format(
                    value,
                    column,
                    if last { allowance + 1 } else { 1 },
                    level + 1,
                    out,
                    budget,
                )?;
                if !last {
                    out.push_str(",\n");
                    out.push_str(&" ".repeat(indent + 1));
                }
            }
            out.push('}');
        }
        Value::List(list) => {
            out.push('[');
            items(&list.to_vec(), (indent + 1, allowance + 1, level + 1), out, budget)?;
            out.push(']');
        }
        Value::Tuple(tuple) => {
            let end = if tuple.items.len() == 1 { ",)" } else { ")" };
            out.push('(');
            items(&tuple.items, (indent + 1, allowance + end.len(), level + 1), out, budget)?;
            out.push_str(end);
        }
        Value::Str(text) => text_lines(text, &flat, (indent, allowance, level), out),
        _ => out.push_str(&flat),
    }
    Ok(())
}

fn items(
    values: &[Value],
    (indent, allowance, level): (usize, usize, usize),
    out: &mut String,
    budget: &Budget,
) -> Res<()> {
    for (index, item) in values.iter().enumerate() {
        let last = index + 1 == values.len();
        format(item, indent, if last { allowance } else { 1 }, level, out, budget)?;
        if !last {
            out.push_str(",\n");
            out.push_str(&" ".repeat(indent));
        }
    }
    Ok(())
}

/// A long string as several literals, broken at lines and after white space.
fn text_lines(
    text: &str,
    flat: &str,
    (indent, allowance, level): (usize, usize, usize),
    out: &mut String,
) {
    let outermost = usize::from(level == 1);
    let (indent, allowance) = (indent + outermost, allowance + outermost);
    let width = WIDTH.saturating_sub(indent);
    let lines = split_lines(text, true);
    let mut chunks: Vec<String> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let last_line = index + 1 == lines.len();
        let room = width.saturating_sub(if last_line { allowance } else { 0 });
        if char_count(&str_repr(line)) <= room {
            chunks.push(str_repr(line));
            continue;
        }
        let parts = words(line);
        let mut current = String::new();
        for (index, part) in parts.iter().enumerate() {
            let last = last_line && index + 1 == parts.len();
            let candidate = format!("{current}{part}");
            if char_count(&str_repr(&candidate)) <= if last { room } else { width } {
                current = candidate;
                continue;
            }
            if !current.is_empty() {
                chunks.push(str_repr(&current));
            }
            (*part).clone_into(&mut current);
        }
        if !current.is_empty() {
            chunks.push(str_repr(&current));
        }
    }
    if chunks.len() <= 1 {
        out.push_str(flat);
        return;
    }
    let (open, close) = if outermost == 1 { ("(", ")") } else { ("", "") };
    let separator = format!("\n{}", " ".repeat(indent));
    out.push_str(open);
    out.push_str(&chunks.join(&separator));
    out.push_str(close);
}

/// Words with the white space after them.
fn words(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let space = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let after = &rest[space..];
        let end = space + after.len() - after.trim_start().len();
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}
