//! The `pprint` filter: Python's `pprint.pformat`.

use std::rc::Rc;

use crate::jinja::args::Bound;
use crate::jinja::error::Res;
use crate::jinja::eval::Interp;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::repr::repr;
use crate::jinja::value::{Budget, Dict, Value, char_count, compare};

const WIDTH: usize = 80;

pub(super) fn pprint(it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let mut out = String::new();
    format(args.get(0), 0, 0, &mut out, &it.budget)?;
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

fn sorted_pairs(dict: &Dict, budget: &Budget) -> Vec<(Value, Value)> {
    let keyed =
        dict.pairs().into_iter().map(|(key, value)| (key.clone(), Value::tuple(vec![key, value])));
    // Keys that cannot be compared stay in their order, as Python's fallback keeps them apart by type.
    let Ok(pairs) = compare::sort(keyed.collect(), false, budget) else {
        return dict.pairs();
    };
    pairs
        .into_iter()
        .filter_map(|(_, pair)| match pair {
            Value::Tuple(pair) => Some((pair.items[0].clone(), pair.items[1].clone())),
            _ => None,
        })
        .collect()
}

/// Writes a value at a column, leaving `allowance` characters at its end.
fn format(
    value: &Value,
    indent: usize,
    allowance: usize,
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
                format(value, column, if last { allowance + 1 } else { 1 }, out, budget)?;
                if !last {
                    out.push_str(",\n");
                    out.push_str(&" ".repeat(indent + 1));
                }
            }
            out.push('}');
        }
        Value::List(list) => {
            out.push('[');
            items(&list.to_vec(), indent + 1, allowance + 1, out, budget)?;
            out.push(']');
        }
        Value::Tuple(tuple) => {
            let end = if tuple.items.len() == 1 { ",)" } else { ")" };
            out.push('(');
            items(&tuple.items, indent + 1, allowance + end.len(), out, budget)?;
            out.push_str(end);
        }
        _ => out.push_str(&flat),
    }
    Ok(())
}

fn items(
    values: &[Value],
    indent: usize,
    allowance: usize,
    out: &mut String,
    budget: &Budget,
) -> Res<()> {
    for (index, item) in values.iter().enumerate() {
        let last = index + 1 == values.len();
        format(item, indent, if last { allowance } else { 1 }, out, budget)?;
        if !last {
            out.push_str(",\n");
            out.push_str(&" ".repeat(indent));
        }
    }
    Ok(())
}
