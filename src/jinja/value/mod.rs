//! Python's values as templates see them.
//!
//! Values live on one thread for one render. Lists and dicts are shared and mutable as in Python; those of the context
//! are taken over from the shared [`Frozen`] tree level by level, when a template first looks into them.

pub(super) mod budget;
pub(super) mod compare;
pub(super) mod container;
pub(super) mod frozen;
pub(super) mod index;
pub(super) mod iter;
pub(super) mod number;
pub(super) mod object;
pub(super) mod ops;
pub(super) mod repr;

use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

pub(crate) use budget::Budget;
pub(crate) use container::{Dict, DictRef, Key, List, ListRef, Tuple};
pub(crate) use frozen::Frozen;
pub(crate) use iter::Iter;
pub(crate) use object::Object;

use super::ast::Const;
use super::error::{Raise, Res};

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Undefined(Rc<Undefined>),
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits.
    Big(Rc<BigInt>),
    Float(f64),
    Str(Arc<str>),
    /// A string that is already safe for HTML.
    Markup(Arc<str>),
    Bytes(Rc<[u8]>),
    List(ListRef),
    Tuple(Rc<Tuple>),
    Dict(DictRef),
    Namespace(DictRef),
    Range(Rc<Range>),
    View(View, DictRef),
    Iter(Rc<Iter>),
    Object(Rc<Object>),
}

/// `dict.keys()` and its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Keys,
    Values,
    Items,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

impl Range {
    pub(crate) fn len(self) -> i64 {
        let (start, stop, step) =
            (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let span = if step > 0 { stop - start } else { start - stop };
        if span <= 0 {
            return 0;
        }
        let step = step.abs();
        i64::try_from((span + step - 1) / step).unwrap_or(i64::MAX)
    }

    pub(crate) fn get(self, index: i64) -> Value {
        Value::Int(self.start + index * self.step)
    }
}

/// Something that is not there, with what to say when it is used.
#[derive(Debug)]
pub(crate) struct Undefined {
    pub(crate) what: Missing,
    /// The result of an `if` expression without `else` prints as nothing instead of failing.
    pub(crate) lenient: bool,
}

#[derive(Debug)]
pub(crate) enum Missing {
    Name(Arc<str>),
    /// Type of the object, attribute name, and the dict when it is one, for what else was meant.
    Attribute(String, Arc<str>, Option<DictRef>),
    /// Type of the object, repr of the subscript.
    Element(String, String),
    Hint(String),
}

impl Missing {
    pub(crate) fn attribute(value: &Value, name: &Arc<str>) -> Self {
        let dict = match value {
            Value::Dict(dict) => Some(Rc::clone(dict)),
            _ => None,
        };
        Self::Attribute(value.object_type(), Arc::clone(name), dict)
    }
}

impl Undefined {
    pub(crate) fn message(&self) -> String {
        match &self.what {
            Missing::Name(name) => format!("{} is undefined", repr::str_repr(name)),
            Missing::Attribute(object, name, _) => {
                format!("{} has no attribute {}", repr::str_repr(object), repr::str_repr(name))
            }
            Missing::Element(object, element) => format!("{object} has no element {element}"),
            Missing::Hint(hint) => hint.clone(),
        }
    }

    pub(crate) fn raise<T>(&self) -> Res<T> {
        let raise = Raise::undefined(self.message());
        Err(match &self.what {
            Missing::Name(name) => raise.about(name),
            Missing::Attribute(_, name, Some(dict)) => {
                let keys: Vec<Value> = dict.pairs().into_iter().map(|(key, _)| key).collect();
                raise.with_near(name, keys.iter().filter_map(Value::as_str).map(|key| &**key))
            }
            _ => raise,
        })
    }
}

/// Python's error for an attribute that a value does not have.
pub(crate) fn no_attribute(value: &Value, name: &str) -> Raise {
    let message = match value {
        Value::Namespace(_) => name.to_owned(),
        Value::Object(object) => match &**object {
            Object::Function(function) if function.is_type => {
                format!("type object '{}' has no attribute '{name}'", function.name)
            }
            _ => format!("'{}' object has no attribute '{name}'", value.type_name()),
        },
        _ => format!("'{}' object has no attribute '{name}'", value.type_name()),
    };
    Raise::new("AttributeError", message)
}

impl Value {
    pub(crate) fn str(text: impl Into<Arc<str>>) -> Self {
        Value::Str(text.into())
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Value::List(Rc::new(List::new(items)))
    }

    pub(crate) fn tuple(items: Vec<Value>) -> Self {
        Value::Tuple(Rc::new(Tuple { items, grouped: false }))
    }

    pub(crate) fn dict(dict: Dict) -> Self {
        Value::Dict(Rc::new(dict))
    }

    pub(crate) fn object(object: Object) -> Self {
        Value::Object(Rc::new(object))
    }

    pub(crate) fn generator(items: Vec<Value>) -> Self {
        Value::Iter(Rc::new(Iter::of(items)))
    }

    pub(crate) fn big(value: BigInt) -> Self {
        match value.to_i64() {
            Some(small) => Value::Int(small),
            None => Value::Big(Rc::new(value)),
        }
    }

    pub(crate) fn len_of(len: usize) -> Self {
        Value::Int(i64::try_from(len).unwrap_or(i64::MAX))
    }

    pub(crate) fn undefined_name(name: &Arc<str>) -> Self {
        Self::undefined(Missing::Name(Arc::clone(name)))
    }

    pub(crate) fn undefined_hint(hint: impl Into<String>) -> Self {
        Self::undefined(Missing::Hint(hint.into()))
    }

    pub(crate) fn undefined(what: Missing) -> Self {
        Value::Undefined(Rc::new(Undefined { what, lenient: false }))
    }

    pub(crate) fn constant(value: &Const) -> Self {
        match value {
            Const::None => Value::None,
            Const::Bool(value) => Value::Bool(*value),
            Const::Int(value) => Value::Int(*value),
            Const::Big(value) => Value::Big(Rc::new(value.clone())),
            Const::Float(value) => Value::Float(*value),
            Const::Str(value) => Value::Str(Arc::clone(value)),
        }
    }

    /// The text of a string, safe or not.
    pub(crate) fn as_str(&self) -> Option<&Arc<str>> {
        match self {
            Value::Str(text) | Value::Markup(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    /// Fails for undefined values, as any real use of them does.
    pub(crate) fn require(&self) -> Res<()> {
        match self {
            Value::Undefined(undefined) if !undefined.lenient => undefined.raise(),
            _ => Ok(()),
        }
    }

    /// Python's truth.
    pub(crate) fn is_true(&self) -> Res<bool> {
        Ok(match self {
            Value::Undefined(undefined) if undefined.lenient => false,
            Value::Undefined(undefined) => return undefined.raise(),
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Big(_) | Value::Namespace(_) | Value::Iter(_) => true,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) | Value::Markup(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(list) => list.len() > 0,
            Value::Tuple(tuple) => !tuple.items.is_empty(),
            Value::Dict(dict) | Value::View(_, dict) => dict.len() > 0,
            Value::Range(range) => range.len() > 0,
            Value::Object(object) => object.is_true()?,
        })
    }

    /// The name of the Python type, as in `type(x).__name__`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(undefined) if undefined.lenient => "Undefined",
            Value::Undefined(_) => "StrictUndefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Big(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Markup(_) => "Markup",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Tuple(tuple) if tuple.grouped => "_GroupTuple",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Namespace(_) => "Namespace",
            Value::Range(_) => "range",
            Value::View(View::Keys, _) => "dict_keys",
            Value::View(View::Values, _) => "dict_values",
            Value::View(View::Items, _) => "dict_items",
            Value::Iter(iter) => iter.type_name,
            Value::Object(object) => object.type_name(),
        }
    }

    /// How messages about missing attributes name the object.
    pub(crate) fn object_type(&self) -> String {
        match self {
            Value::None => "None".to_owned(),
            Value::Undefined(_) => format!("jinja2.runtime.{} object", self.type_name()),
            Value::Markup(_) => "markupsafe.Markup object".to_owned(),
            Value::Namespace(_) => "jinja2.utils.Namespace object".to_owned(),
            Value::Tuple(tuple) if tuple.grouped => "jinja2.filters._GroupTuple object".to_owned(),
            Value::Object(object) => format!("{}{} object", object.module(), object.type_name()),
            other => format!("{} object", other.type_name()),
        }
    }

    /// `len(x)`.
    pub(crate) fn len(&self) -> Res<usize> {
        Ok(match self {
            Value::Undefined(undefined) if undefined.lenient => 0,
            Value::Undefined(undefined) => return undefined.raise(),
            Value::Str(text) | Value::Markup(text) => char_count(text),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Tuple(tuple) => tuple.items.len(),
            Value::Dict(dict) | Value::View(_, dict) => dict.len(),
            Value::Range(range) => usize::try_from(range.len()).unwrap_or(usize::MAX),
            Value::Object(object) => match object.len() {
                Some(len) => len?,
                None => return Err(no_len(self)),
            },
            _ => return Err(no_len(self)),
        })
    }

    /// The value as an index or count; booleans count as 0 and 1.
    pub(crate) fn as_index(&self) -> Option<i64> {
        match self {
            Value::Bool(value) => Some(i64::from(*value)),
            Value::Int(value) => Some(*value),
            Value::Big(value) => {
                Some(if value.sign() == num_bigint::Sign::Minus { i64::MIN } else { i64::MAX })
            }
            _ => None,
        }
    }

    /// Python's `is`.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Str(a), Value::Str(b)) | (Value::Markup(a), Value::Markup(b)) => a == b,
            (Value::List(a), Value::List(b)) => Rc::ptr_eq(a, b),
            (Value::Tuple(a), Value::Tuple(b)) => Rc::ptr_eq(a, b),
            (Value::Dict(a), Value::Dict(b)) | (Value::Namespace(a), Value::Namespace(b)) => {
                Rc::ptr_eq(a, b)
            }
            (Value::Range(a), Value::Range(b)) => Rc::ptr_eq(a, b),
            (Value::Iter(a), Value::Iter(b)) => Rc::ptr_eq(a, b),
            (Value::Object(a), Value::Object(b)) => Rc::ptr_eq(a, b),
            (Value::Undefined(a), Value::Undefined(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

fn no_len(value: &Value) -> Raise {
    Raise::type_error(format!("object of type '{}' has no len()", value.type_name()))
}

/// Length in code points.
pub(crate) fn char_count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}
