//! `'{}'.format(…)`.

use std::sync::Arc;

use super::spec::Spec;
use crate::jinja::args::Args;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::access::get_attribute;
use crate::jinja::filters::html::escape_value;
use crate::jinja::value::index::{item, wrap};
use crate::jinja::value::repr::{ascii, repr, str_repr, to_str};
use crate::jinja::value::{Dict, Value};

pub(super) fn call(
    it: &mut Interp<'_>,
    value: &Value,
    text: &Arc<str>,
    name: &str,
    args: Args,
) -> Res<Value> {
    let safe = matches!(value, Value::Markup(_));
    let (args, mapping) = if name == "format_map" {
        let mapping =
            args.pos.first().cloned().unwrap_or_else(|| Value::dict(Dict::from_pairs([])));
        (Args::default(), Some(mapping))
    } else {
        (args, None)
    };
    let mut fields = Fields { args, mapping, automatic: 0, manual: false, safe };
    let out = fields.format(it, text, 2)?;
    it.budget.bytes(out.len())?;
    Ok(wrap(value, &out))
}

struct Fields {
    args: Args,
    mapping: Option<Value>,
    automatic: usize,
    manual: bool,
    safe: bool,
}

impl Fields {
    fn format(&mut self, it: &mut Interp<'_>, text: &str, depth: usize) -> Res<String> {
        if depth == 0 {
            return Err(Raise::value_error("Max string recursion exceeded"));
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(index) = rest.find(['{', '}']) {
            out.push_str(&rest[..index]);
            let brace = &rest[index..=index];
            rest = &rest[index + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                let message = "Single '}' encountered in format string";
                return Err(Raise::value_error(message));
            }
            let Some(end) = field_end(rest) else {
                return Err(Raise::value_error(if rest.is_empty() {
                    "Single '{' encountered in format string"
                } else {
                    "expected '}' before end of string"
                }));
            };
            let text = self.field(it, &rest[..end], depth)?;
            out.push_str(&text);
            rest = &rest[end + 1..];
            it.budget.size(out.len())?;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn field(&mut self, it: &mut Interp<'_>, field: &str, depth: usize) -> Res<String> {
        let (name, conversion, spec) = split_field(field)?;
        let mut value = self.lookup(it, name)?;
        match conversion {
            None => {}
            Some('s') => value = Value::Str(to_str(&value, &it.budget)?),
            Some('r') => value = Value::str(repr(&value, &it.budget)?),
            Some('a') => value = Value::str(ascii(&repr(&value, &it.budget)?)),
            Some(other) => {
                let message = format!("Unknown conversion specifier {other}");
                return Err(Raise::value_error(message));
            }
        }
        let spec =
            if spec.contains('{') { self.format(it, spec, depth - 1)? } else { spec.to_owned() };
        if spec.is_empty() {
            let text = if self.safe {
                escape_value(&value, &it.budget)?
            } else {
                to_str(&value, &it.budget)?
            };
            return Ok(text.to_string());
        }
        Spec::check_type(&value)?;
        Spec::parse(&spec, value.type_name())?.apply(&value, &it.budget)
    }

    fn lookup(&mut self, it: &mut Interp<'_>, name: &str) -> Res<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut path) = name.split_at(end);
        let mut value = self.argument(first)?;
        while !path.is_empty() {
            if let Some(rest) = path.strip_prefix('.') {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let attribute: Arc<str> = rest[..end].into();
                if matches!(value, Value::Dict(_)) {
                    let message =
                        format!("'dict' object has no attribute {}", str_repr(&attribute));
                    return Err(Raise::new("AttributeError", message));
                }
                value = match get_attribute(&value, &attribute)? {
                    Value::Undefined(_) => {
                        let (name, attribute) = (value.type_name(), str_repr(&attribute));
                        let message = format!("'{name}' object has no attribute {attribute}");
                        return Err(Raise::new("AttributeError", message));
                    }
                    found => found,
                };
                path = &rest[end..];
            } else {
                let rest = &path[1..];
                let Some(end) = rest.find(']') else {
                    return Err(Raise::value_error("Missing ']' in format string"));
                };
                let key = &rest[..end];
                let index = key.parse().map_or_else(|_| Value::str(key), Value::Int);
                value = match item(&value, &index)? {
                    Some(value) => value,
                    None if matches!(value, Value::Dict(_)) => {
                        return Err(Raise::new("KeyError", repr(&index, &it.budget)?));
                    }
                    None => {
                        let kind = value.type_name();
                        let message = format!("{kind} index out of range");
                        return Err(Raise::new("IndexError", message));
                    }
                };
                path = &rest[end + 1..];
            }
        }
        Ok(value)
    }

    fn argument(&mut self, name: &str) -> Res<Value> {
        let index = if name.is_empty() {
            if self.manual {
                return Err(Raise::value_error(
                    "cannot switch from manual field specification to automatic field numbering",
                ));
            }
            self.automatic += 1;
            Some(self.automatic - 1)
        } else {
            let index: Option<usize> = name.parse().ok();
            if index.is_some() {
                if self.automatic > 0 {
                    return Err(Raise::value_error(
                        "cannot switch from automatic field numbering to manual field specification",
                    ));
                }
                self.manual = true;
            }
            index
        };
        if let Some(index) = index {
            return self.args.pos.get(index).cloned().ok_or_else(|| {
                let message =
                    format!("Replacement index {index} out of range for positional args tuple");
                Raise::new("IndexError", message)
            });
        }
        let found = match &self.mapping {
            Some(Value::Dict(dict)) => dict.get_str(name),
            _ => {
                self.args.kw.iter().find(|(key, _)| **key == *name).map(|(_, value)| value.clone())
            }
        };
        found.ok_or_else(|| Raise::new("KeyError", str_repr(name)))
    }
}

/// Where the field that has just begun ends; braces nest.
fn field_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `name!conversion:spec`.
fn split_field(field: &str) -> Res<(&str, Option<char>, &str)> {
    let mut in_brackets = false;
    for (index, c) in field.char_indices() {
        match c {
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            ':' if !in_brackets => return Ok((&field[..index], None, &field[index + 1..])),
            '!' if !in_brackets => {
                let mut rest = field[index + 1..].chars();
                let conversion = rest.next();
                let rest = rest.as_str();
                return match rest.strip_prefix(':') {
                    Some(spec) => Ok((&field[..index], conversion, spec)),
                    None if rest.is_empty() && conversion.is_some() => {
                        Ok((&field[..index], conversion, ""))
                    }
                    None => Err(Raise::value_error("expected ':' after conversion specifier")),
                };
            }
            _ => {}
        }
    }
    Ok((field, None, ""))
}
