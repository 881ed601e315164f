//! Typed reading of kustomizations: strict about fields and types, every value knows its place.
//!
//! Field names match in any letter case, `null` means absent, and a number is no string: kustomize refuses
//! `newTag: 1.10` for good reason, it would become `1.1`. In the configurations of plug-ins it is one, as in kustomize.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{KustomizeError, Place, Result};
use crate::{
    diagnostic::{FieldPath, SourceLocation},
    object::type_name,
    yaml::{Document, closest},
};

/// A value of a document, with its path.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    pub value: &'a Value,
    pub path: FieldPath,
    document: &'a Document,
    file: &'a str,
    /// Whether numbers and booleans are texts where a text belongs.
    lenient: bool,
}

impl<'a> Node<'a> {
    pub(crate) fn root(file: &'a str, document: &'a Document) -> Self {
        Self { value: &document.value, path: FieldPath::root(), document, file, lenient: false }
    }

    /// As [`Node::root`], with numbers and booleans for texts.
    pub(crate) fn lenient(file: &'a str, document: &'a Document) -> Self {
        Self { lenient: true, ..Self::root(file, document) }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            at: SourceLocation {
                file: self.file.to_owned(),
                position: self.document.positions.of(&self.path),
            },
            field: if self.path.0.is_empty() { String::new() } else { self.path.to_string() },
        }
    }

    /// The error for a value of another type.
    pub(crate) fn expected(&self, expected: &str) -> KustomizeError {
        let diagnostic = self.place().problem(format!("found {}", type_name(self.value)));
        let diagnostic = diagnostic.with_expected(expected);
        let quotable = matches!(self.value, Value::Number(_) | Value::Bool(_));
        KustomizeError::Kustomization(Box::new(if quotable && expected == "a string" {
            diagnostic.with_hint("write it in quotes")
        } else {
            diagnostic
        }))
    }

    fn child(&self, segment: impl Into<crate::diagnostic::Segment>, value: &'a Value) -> Self {
        Self { value, path: self.path.child(segment), ..*self }
    }

    /// The fields of a mapping, of which only `known` are allowed.
    pub(crate) fn fields(&self, known: &[&str]) -> Result<Fields<'a>> {
        let map = self.value.as_object().ok_or_else(|| self.expected("a mapping"))?;
        for key in map.keys() {
            if !known.iter().any(|name| name.eq_ignore_ascii_case(key)) {
                let place = self.child(key.as_str(), self.value).place();
                let diagnostic = place.problem(format!("unknown field \"{key}\""));
                let hint = match closest(key, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known fields: {}", known.join(", ")),
                };
                return Err(KustomizeError::Kustomization(Box::new(diagnostic.with_hint(hint))));
            }
        }
        Ok(Fields { node: self.clone(), map })
    }

    /// The items of a list.
    fn items(&self) -> Result<impl Iterator<Item = Self>> {
        let list = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        Ok(list.iter().enumerate().map(|(index, value)| self.child(index, value)))
    }
}

/// The entries of a mapping.
pub(crate) struct Fields<'a> {
    pub node: Node<'a>,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The entry of that name, `None` when absent or `null`.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        let exact = self.map.get_key_value(name);
        let (key, value) = exact
            .or_else(|| self.map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)))
            .filter(|(_, value)| !value.is_null())?;
        Some(self.node.child(key.as_str(), value))
    }

    /// The entry of that name, read as `T`; the default when absent.
    pub(crate) fn read<T: Decode + Default>(&self, name: &str) -> Result<T> {
        self.get(name).map_or_else(|| Ok(T::default()), |node| T::decode(&node))
    }
}

/// What can be read from a document.
pub(crate) trait Decode: Sized {
    fn decode(node: &Node<'_>) -> Result<Self>;

    /// As [`Decode::decode`], for an item of a list: `null` is an empty text there.
    fn decode_item(node: &Node<'_>) -> Result<Self> {
        Self::decode(node)
    }
}

/// A type that is read from a mapping with certain fields.
pub(crate) trait Fielded: Sized {
    /// The fields there are.
    const FIELDS: &'static [&'static str];

    /// Reads the fields of a mapping that is known to have no others.
    fn from_fields(fields: &Fields<'_>) -> Result<Self>;
}

impl<T: Fielded> Decode for T {
    fn decode(node: &Node<'_>) -> Result<Self> {
        Self::from_fields(&node.fields(Self::FIELDS)?)
    }
}

impl Decode for String {
    fn decode(node: &Node<'_>) -> Result<Self> {
        match node.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) if node.lenient => Ok(node.value.to_string()),
            _ => Err(node.expected("a string")),
        }
    }

    fn decode_item(node: &Node<'_>) -> Result<Self> {
        if node.value.is_null() { Ok(Self::new()) } else { Self::decode(node) }
    }
}

impl Decode for bool {
    fn decode(node: &Node<'_>) -> Result<Self> {
        node.value.as_bool().ok_or_else(|| node.expected("true or false"))
    }
}

impl Decode for i64 {
    fn decode(node: &Node<'_>) -> Result<Self> {
        node.value.as_i64().ok_or_else(|| node.expected("a whole number"))
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node<'_>) -> Result<Self> {
        T::decode(node).map(Some)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node<'_>) -> Result<Self> {
        node.items()?.map(|item| T::decode_item(&item)).collect()
    }
}

impl Decode for BTreeMap<String, String> {
    fn decode(node: &Node<'_>) -> Result<Self> {
        let map = node.value.as_object().ok_or_else(|| node.expected("a mapping"))?;
        map.iter()
            .map(|(key, value)| {
                let child = node.child(key.as_str(), value);
                let text = if value.is_null() { String::new() } else { String::decode(&child)? };
                Ok((key.clone(), text))
            })
            .collect()
    }
}

/// A value that knows its place, for messages after reading.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub value: T,
    pub place: Place,
}

impl<T: Decode> Decode for Located<T> {
    fn decode(node: &Node<'_>) -> Result<Self> {
        Ok(Self { value: T::decode(node)?, place: node.place() })
    }

    fn decode_item(node: &Node<'_>) -> Result<Self> {
        Ok(Self { value: T::decode_item(node)?, place: node.place() })
    }
}

/// Defines a struct that is read from a mapping with exactly the fields named.
macro_rules! decoded {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $key:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        $visibility struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl crate::kustomize::decode::Fielded for $name {
            const FIELDS: &'static [&'static str] = &[$($key),*];

            fn from_fields(
                fields: &crate::kustomize::decode::Fields<'_>,
            ) -> crate::kustomize::error::Result<Self> {
                Ok(Self { $($field: fields.read($key)?,)* })
            }
        }
    };
}
pub(crate) use decoded;
