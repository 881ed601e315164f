//! Reading values into types, by the rules of Go's JSON decoder.

mod access;

use std::collections::BTreeSet;

use serde::{
    de::{
        DeserializeOwned, Deserializer, IntoDeserializer, Unexpected, Visitor,
        value::StringDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Number, Value};

use access::{Entries, Items, Variant};

use super::{
    YamlError,
    error::Problem,
    number,
    positions::{Node, Written},
};
use crate::diagnostic::{FieldPath, Position, Segment};

pub(in crate::yaml) fn read<T: DeserializeOwned>(
    value: &Value,
    node: Option<&Node>,
) -> Result<T, YamlError> {
    let reader = Reader { value, node, at: node.map(|node| node.at), path: &Path::Root };
    reader.locate(T::deserialize(reader))
}

/// The way to the value being read; a field path is built from it only for errors.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn to_field(&self) -> FieldPath {
        let mut segments = Vec::new();
        let mut path = self;
        loop {
            path = match path {
                Path::Root => break,
                Path::Key(parent, key) => {
                    segments.push(Segment::from(*key));
                    parent
                }
                Path::Index(parent, index) => {
                    segments.push(Segment::from(*index));
                    parent
                }
            };
        }
        segments.reverse();
        FieldPath(segments)
    }
}

#[derive(Clone, Copy)]
struct Reader<'de, 'p> {
    value: &'de Value,
    node: Option<&'de Node>,
    /// Where to point when something is wrong with the value.
    at: Option<Position>,
    path: &'p Path<'p>,
}

impl<'de> Reader<'de, '_> {
    /// Adds this value's field and place to an error that has none yet.
    fn locate<T>(&self, result: Result<T, YamlError>) -> Result<T, YamlError> {
        result.map_err(|error| {
            if error.has_field() {
                return error;
            }
            error.at_field(self.path.to_field()).at_position(self.at)
        })
    }

    fn mismatch<T>(&self, expected: &dyn serde::de::Expected) -> Result<T, YamlError> {
        let found = describe(self.value);
        Err(YamlError::new(Problem::Type { expected: expected.to_string(), found }))
    }

    /// The text that a string field takes from this value.
    fn as_text(&self) -> Option<String> {
        Some(match self.value {
            Value::Null => String::new(),
            Value::Bool(bool) => bool.to_string(),
            Value::Number(number) => match self.node.and_then(Node::written) {
                Some(Written::Signed(integer)) => integer.to_string(),
                Some(Written::Unsigned(integer)) => integer.to_string(),
                Some(Written::Float(float)) => number::format_f32(float),
                None => number_text(number),
            },
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Array(items) => {
                visitor.visit_seq(Items { parent: self, values: items, next: 0 })
            }
            Value::Null => visitor.visit_seq(Items { parent: self, values: &[], next: 0 }),
            _ => self.mismatch(&"a list"),
        }
    }

    fn entries<V: Visitor<'de>>(
        self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        let iter = match self.value {
            Value::Object(map) => Some(map.iter()),
            Value::Null => None,
            _ => return self.mismatch(&"a mapping"),
        };
        visitor.visit_map(Entries {
            parent: self,
            iter,
            fields,
            seen: BTreeSet::new(),
            value: None,
        })
    }
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => number::format_f32(float),
        _ => number.to_string(),
    }
}

macro_rules! integers {
    ($($method:ident => $visit:ident $type:ty, $what:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
            let exact = match (self.value, self.node.and_then(Node::written)) {
                (Value::Null, _) => Some(0),
                (Value::Number(_), Some(Written::Signed(integer))) => <$type>::try_from(integer).ok(),
                (Value::Number(_), Some(Written::Unsigned(integer))) => <$type>::try_from(integer).ok(),
                (Value::Number(number), _) => match (number.as_i64(), number.as_u64()) {
                    (Some(integer), _) => <$type>::try_from(integer).ok(),
                    (_, Some(integer)) => <$type>::try_from(integer).ok(),
                    _ => None,
                },
                _ => None,
            };
            let result = match exact {
                Some(integer) => visitor.$visit(integer),
                None => self.mismatch(&$what),
            };
            self.locate(result)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = YamlError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let result = match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(bool) => visitor.visit_bool(*bool),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(integer), ..) => visitor.visit_i64(integer),
                (_, Some(integer), _) => visitor.visit_u64(integer),
                (.., Some(float)) => visitor.visit_f64(float),
                _ => self.mismatch(&visitor),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.entries(None, visitor),
        };
        self.locate(result)
    }

    integers! {
        deserialize_i8 => visit_i8 i8, "an integer of 8 bits";
        deserialize_i16 => visit_i16 i16, "an integer of 16 bits";
        deserialize_i32 => visit_i32 i32, "an integer of 32 bits";
        deserialize_i64 => visit_i64 i64, "an integer";
        deserialize_u8 => visit_u8 u8, "an integer from 0 to 255";
        deserialize_u16 => visit_u16 u16, "an integer from 0 to 65535";
        deserialize_u32 => visit_u32 u32, "a non-negative integer";
        deserialize_u64 => visit_u64 u64, "a non-negative integer";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let result = match self.value {
            Value::Null => visitor.visit_bool(false),
            Value::Bool(bool) => visitor.visit_bool(*bool),
            _ => self.mismatch(&"true or false"),
        };
        self.locate(result)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let result = match self.value {
            Value::Null => visitor.visit_f64(0.0),
            Value::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            _ => self.mismatch(&"a number"),
        };
        self.locate(result)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        let result = match self.value {
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => match self.as_text() {
                Some(text) => visitor.visit_string(text),
                None => self.mismatch(&"a string"),
            },
        };
        self.locate(result)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.locate(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.locate(self.list(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        self.locate(self.entries(None, visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.locate(self.entries(Some(fields), visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        let result = match self.value {
            Value::Object(map) if map.len() == 1 => visitor.visit_enum(Variant(self)),
            Value::Object(_) => self.mismatch(&"a mapping with exactly one key"),
            _ => match self.as_text() {
                Some(text) => {
                    let name: StringDeserializer<YamlError> = text.into_deserializer();
                    visitor.visit_enum(name)
                }
                None => self.mismatch(&one_of(variants).as_str()),
            },
        };
        self.locate(result)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, YamlError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct identifier }
}

/// The field that a key means: the one of the same spelling, else of the same letters.
pub(in crate::yaml) fn field_of(fields: &[&'static str], key: &str) -> Option<&'static str> {
    let exact = fields.iter().find(|field| **field == key);
    exact.or_else(|| fields.iter().find(|field| field.eq_ignore_ascii_case(key))).copied()
}

/// Words to choose from, in the words of messages.
pub(in crate::yaml) fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("one of {}", words.join(", "))
}

/// A value in the words of messages, short scalars with their content.
pub(in crate::yaml) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(bool) => format!("the boolean {bool}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// As [`describe`], for what serde saw.
pub(in crate::yaml) fn describe_unexpected(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(bool) => format!("the boolean {bool}"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {}", number::format_f64(number)),
        Unexpected::Str(text) => describe(&Value::from(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}
