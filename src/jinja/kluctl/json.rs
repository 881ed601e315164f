//! Python's `json.dumps`.

use std::rc::Rc;

use crate::jinja::error::{Raise, Res};
use crate::jinja::value::number::float_repr;
use crate::jinja::value::repr::to_str;
use crate::jinja::value::{Budget, Value, compare};

/// The text that one level of `indent=` adds.
pub(crate) fn indentation(value: &Value) -> Res<String> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    if let Some(width) = value.as_index() {
        Ok(" ".repeat(usize::try_from(width.clamp(0, 1000)).unwrap_or(0)))
    } else {
        let name = value.type_name();
        let message = format!("can't multiply sequence by non-int of type '{name}'");
        Err(Raise::type_error(message))
    }
}

/// Serialises with Python's separators and ASCII escapes.
pub(crate) fn dump(
    value: &Value,
    indent: Option<&str>,
    sort_keys: bool,
    budget: &Budget,
) -> Res<String> {
    let mut writer = Writer { out: String::new(), indent, sort_keys, open: Vec::new(), budget };
    writer.value(value)?;
    budget.bytes(writer.out.len())?;
    Ok(writer.out)
}

struct Writer<'a> {
    out: String,
    indent: Option<&'a str>,
    sort_keys: bool,
    open: Vec<usize>,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Res<()> {
        self.budget.spend(1)?;
        self.budget.size(self.out.len())?;
        match value {
            Value::None => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(_) | Value::Big(_) => self.out.push_str(&to_str(value, self.budget)?),
            Value::Float(value) => self.out.push_str(&float_text(*value)),
            Value::Str(text) | Value::Markup(text) => push_string(&mut self.out, text),
            Value::List(list) => {
                let address = Rc::as_ptr(list).cast::<()>() as usize;
                self.sequence(address, &list.to_vec())?;
            }
            Value::Tuple(tuple) => {
                self.sequence(Rc::as_ptr(tuple).cast::<()>() as usize, &tuple.items)?;
            }
            Value::Dict(dict) => {
                let mut pairs = dict.pairs();
                if self.sort_keys {
                    let keyed = pairs
                        .into_iter()
                        .map(|(key, value)| (key.clone(), Value::tuple(vec![key, value])));
                    let sorted = compare::sort(keyed.collect(), false, self.budget)?;
                    pairs = sorted
                        .into_iter()
                        .filter_map(|(key, pair)| match pair {
                            Value::Tuple(pair) => Some((key, pair.items.get(1)?.clone())),
                            _ => None,
                        })
                        .collect();
                }
                self.mapping(Rc::as_ptr(dict).cast::<()>() as usize, &pairs)?;
            }
            other => {
                let name = other.type_name().rsplit('.').next().unwrap_or_default();
                return Err(Raise::type_error(format!(
                    "Object of type {name} is not JSON serializable"
                )));
            }
        }
        Ok(())
    }

    fn enter(&mut self, address: usize) -> Res<()> {
        if self.open.contains(&address) {
            return Err(Raise::value_error("Circular reference detected"));
        }
        if self.open.len() > 120 {
            return Err(Raise::recursion("maximum recursion depth exceeded while encoding JSON"));
        }
        self.open.push(address);
        Ok(())
    }

    /// Between elements: what separates them, and a line of its own when indenting.
    fn separate(&mut self, first: bool) {
        if !first {
            self.out.push_str(if self.indent.is_some() { "," } else { ", " });
        }
        self.break_line(self.open.len());
    }

    fn break_line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.push_str(&indent.repeat(depth));
        }
    }

    fn sequence(&mut self, address: usize, items: &[Value]) -> Res<()> {
        if items.is_empty() {
            self.out.push_str("[]");
            return Ok(());
        }
        self.enter(address)?;
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            self.separate(index == 0);
            self.value(item)?;
        }
        self.open.pop();
        self.break_line(self.open.len());
        self.out.push(']');
        Ok(())
    }

    fn mapping(&mut self, address: usize, pairs: &[(Value, Value)]) -> Res<()> {
        if pairs.is_empty() {
            self.out.push_str("{}");
            return Ok(());
        }
        self.enter(address)?;
        self.out.push('{');
        for (index, (key, value)) in pairs.iter().enumerate() {
            self.separate(index == 0);
            let key = self.key(key)?;
            push_string(&mut self.out, &key);
            self.out.push_str(": ");
            self.value(value)?;
        }
        self.open.pop();
        self.break_line(self.open.len());
        self.out.push('}');
        Ok(())
    }

    fn key(&self, key: &Value) -> Res<String> {
        Ok(match key {
            Value::Str(text) | Value::Markup(text) => text.to_string(),
            Value::None => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(_) | Value::Big(_) => to_str(key, self.budget)?.to_string(),
            Value::Float(value) => float_text(*value),
            other => {
                let name = other.type_name();
                return Err(Raise::type_error(format!(
                    "keys must be str, int, float, bool or None, not {name}"
                )));
            }
        })
    }
}

fn float_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        float_repr(value)
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    {
                        let text = format!("\\u{unit:04x}");
                        out.push_str(&text);
                    };
                }
            }
        }
    }
    out.push('"');
}
