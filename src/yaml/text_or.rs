use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, MapAccess, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer},
    },
    forward_to_deserialize_any,
};

use super::typed::field_of;

/// A value that is written as a text or as a mapping with the fields of `T`, for example a Git repository as its URL alone.
///
/// To be preferred over an untagged enum, which loses the places of errors and the conversion of numbers to text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextOr<T> {
    /// The text.
    Text(String),
    /// The mapping.
    Fields(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a mapping")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(Fields(map)).map(TextOr::Fields)
    }
}

/// A mapping that a struct can be read from whatever the case of its fields' names.
struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Fields<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        MapAccessDeserializer::new(self.0).deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(Renamed { map: self.0, fields })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Renamed<A> {
    map: A,
    fields: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Renamed<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let fields = self.fields;
        self.map.next_key_seed(FieldName { fields, seed })
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Turns a key into the name of the field that it means before `seed` sees it; done inside of the key's own reading, so that
/// errors get the key's place.
struct FieldName<S> {
    fields: &'static [&'static str],
    seed: S,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for FieldName<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let key: Cow<'de, str> = Cow::deserialize(deserializer)?;
        let Some(field) = field_of(self.fields, &key) else {
            return Err(D::Error::unknown_field(&key, self.fields));
        };
        self.seed.deserialize(BorrowedStrDeserializer::new(field))
    }
}
