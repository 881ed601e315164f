//! Looking up attributes by dotted names, as many filters do.

use std::rc::Rc;

use crate::jinja::args::Bound;
use crate::jinja::error::{Raise, Res};
use crate::jinja::eval::Interp;
use crate::jinja::eval::access::get_attribute;
use crate::jinja::eval::scope::Scope;
use crate::jinja::value::{Missing, Value};

/// A path such as `address.0.city`.
pub(crate) struct Getter {
    parts: Vec<Value>,
    default: Option<Value>,
}

impl Getter {
    /// `None` and missing attributes give the element itself.
    pub(crate) fn new(attribute: Option<&Value>, default: Option<Value>) -> Res<Self> {
        let parts = match attribute {
            None | Some(Value::None) => Vec::new(),
            Some(value) => {
                if let Some(path) = value.as_str() {
                    path.split('.').map(part).collect()
                } else {
                    value.require()?;
                    vec![value.clone()]
                }
            }
        };
        Ok(Self { parts, default })
    }

    pub(crate) fn get(&self, it: &mut Interp<'_>, item: &Value) -> Res<Value> {
        let mut value = item.clone();
        for part in &self.parts {
            value = it.get_item(&value, part)?;
            if let (true, Some(default)) = (value.is_undefined(), &self.default) {
                value = default.clone();
            }
        }
        Ok(value)
    }

    /// The attribute in lower case when it is text and case does not matter.
    pub(crate) fn key(
        &self,
        it: &mut Interp<'_>,
        item: &Value,
        case_sensitive: bool,
    ) -> Res<Value> {
        let value = self.get(it, item)?;
        Ok(if case_sensitive { value } else { ignore_case(value) })
    }
}

fn part(text: &str) -> Value {
    let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(index) if number => Value::Int(index),
        _ => Value::str(text),
    }
}

pub(crate) fn ignore_case(value: Value) -> Value {
    match value.as_str() {
        Some(text) => Value::str(text.to_lowercase()),
        None => value,
    }
}

/// Several comma separated paths.
pub(crate) fn multi(attribute: Option<&Value>) -> Res<Vec<Getter>> {
    match attribute.and_then(Value::as_str) {
        Some(paths) => {
            paths.split(',').map(|path| Getter::new(Some(&Value::str(path)), None)).collect()
        }
        None => Ok(vec![Getter::new(attribute, None)?]),
    }
}

/// `value|attr("name")`: the attribute, never the element.
pub(super) fn attr(_it: &mut Interp<'_>, _scope: &Rc<Scope>, args: &Bound) -> Res<Value> {
    let (value, name_value) = (args.get(0), args.get(1));
    let Some(name) = name_value.as_str() else {
        name_value.require()?;
        let kind = name_value.type_name();
        return Err(Raise::type_error(format!("attribute name must be string, not '{kind}'")));
    };
    if let Value::Dict(_) = value
        && !crate::jinja::methods::exists(value, name)
    {
        let missing = Missing::attribute(value, name);
        return Ok(Value::undefined(missing));
    }
    get_attribute(value, name)
}
