//! The parts of values: items of lists, entries of mappings, variants of enums.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess,
    Visitor, value::BorrowedStrDeserializer,
};
use serde_json::Value;

use super::{Path, Reader, field_of};
use crate::diagnostic::Position;
use crate::yaml::{YamlError, positions::Node};

pub(super) struct Items<'de, 'p> {
    pub(super) parent: Reader<'de, 'p>,
    pub(super) values: &'de [Value],
    pub(super) next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = YamlError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, YamlError> {
        let index = self.next;
        let Some(value) = self.values.get(index) else { return Ok(None) };
        self.next += 1;
        let node = self.parent.node.and_then(|node| node.item(index));
        let at = node.map(|node| node.at).or(self.parent.at);
        let path = Path::Index(self.parent.path, index);
        let reader = Reader { value, node, at, path: &path };
        reader.locate(seed.deserialize(reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len() - self.next)
    }
}

pub(super) struct Entries<'de, 'p> {
    pub(super) parent: Reader<'de, 'p>,
    pub(super) iter: Option<serde_json::map::Iter<'de>>,
    /// The fields of the struct that is read; `None` for maps.
    pub(super) fields: Option<&'static [&'static str]>,
    pub(super) seen: BTreeSet<&'static str>,
    pub(super) value: Option<(&'de str, &'de Value)>,
}

impl<'de> Entries<'de, '_> {
    /// The struct's field that a key means.
    fn field(
        &mut self,
        fields: &'static [&'static str],
        key: &'de str,
    ) -> Result<&'static str, YamlError> {
        let Some(field) = field_of(fields, key) else {
            return Err(YamlError::unknown_field(key, fields));
        };
        if self.seen.insert(field) { Ok(field) } else { Err(YamlError::duplicate_field(field)) }
    }

    /// What belongs to the entry of `key`: its node and where the key is.
    fn place(&self, key: &str) -> (Option<&'de Node>, Option<Position>) {
        match self.parent.node.and_then(|node| node.entry(key)) {
            Some((at, node)) => (Some(node), Some(*at)),
            None => (None, self.parent.at),
        }
    }

    fn locate_key<T>(&self, key: &str, result: Result<T, YamlError>) -> Result<T, YamlError> {
        result.map_err(|error| {
            let path = Path::Key(self.parent.path, key);
            error.at_field(path.to_field()).at_position(self.place(key).1)
        })
    }
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = YamlError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, YamlError> {
        while let Some((key, value)) = self.iter.as_mut().and_then(Iterator::next) {
            self.value = Some((key, value));
            let name = match self.fields {
                None => key.as_str(),
                Some(fields) => {
                    let field = self.field(fields, key);
                    let field = self.locate_key(key, field)?;
                    // As in Go, null for a field means that it is not given.
                    if value.is_null() {
                        continue;
                    }
                    field
                }
            };
            let result = seed.deserialize(BorrowedStrDeserializer::new(name));
            return self.locate_key(key, result).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, YamlError> {
        let Some((key, value)) = self.value.take() else {
            return Err(YamlError::custom("a value was asked for before its key"));
        };
        let (node, at) = self.place(key);
        let path = Path::Key(self.parent.path, key);
        let reader = Reader { value, node, at, path: &path };
        reader.locate(seed.deserialize(reader))
    }
}

/// A mapping with one key as an enum: the key is the variant, the value its content.
pub(super) struct Variant<'de, 'p>(pub(super) Reader<'de, 'p>);

impl<'de, 'p> EnumAccess<'de> for Variant<'de, 'p> {
    type Error = YamlError;
    type Variant = Content<'de, 'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'de, 'p>), YamlError> {
        let entry = self.0.value.as_object().and_then(|map| map.iter().next());
        let Some((key, value)) = entry else {
            return self.0.mismatch(&"a mapping with exactly one key");
        };
        let variant = seed.deserialize(BorrowedStrDeserializer::<YamlError>::new(key))?;
        Ok((variant, Content { parent: self.0, key, value }))
    }
}

pub(super) struct Content<'de, 'p> {
    parent: Reader<'de, 'p>,
    key: &'de str,
    value: &'de Value,
}

impl<'de> Content<'de, '_> {
    fn read<T>(
        &self,
        read: impl FnOnce(Reader<'de, '_>) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        let (at, node) = match self.parent.node.and_then(|node| node.entry(self.key)) {
            Some((at, node)) => (Some(*at), Some(node)),
            None => (self.parent.at, None),
        };
        let path = Path::Key(self.parent.path, self.key);
        let reader = Reader { value: self.value, node, at, path: &path };
        reader.locate(read(reader))
    }
}

impl<'de> VariantAccess<'de> for Content<'de, '_> {
    type Error = YamlError;

    fn unit_variant(self) -> Result<(), YamlError> {
        self.read(|reader| <()>::deserialize(reader))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, YamlError> {
        self.read(|reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.read(|reader| reader.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, YamlError> {
        self.read(|reader| reader.deserialize_struct("", fields, visitor))
    }
}
