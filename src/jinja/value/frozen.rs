//! The context of a render: an immutable tree that many renders on many threads share.

use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;

use super::{Dict, List, Value};

#[derive(Debug, Clone)]
pub(crate) enum Frozen {
    None,
    Bool(bool),
    Int(i64),
    Big(Arc<BigInt>),
    Float(f64),
    Str(Arc<str>),
    List(Arc<[Frozen]>),
    Map(Arc<FrozenMap>),
}

/// A map with sorted keys.
#[derive(Debug, Default)]
pub(crate) struct FrozenMap {
    pub(crate) entries: Vec<(Arc<str>, Frozen)>,
}

impl FrozenMap {
    pub(crate) fn get(&self, key: &str) -> Option<&Frozen> {
        let index = self.entries.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        Some(&self.entries[index].1)
    }
}

impl Frozen {
    pub(crate) fn new(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Frozen::None,
            serde_json::Value::Bool(value) => Frozen::Bool(*value),
            serde_json::Value::Number(number) => from_number(number),
            serde_json::Value::String(text) => Frozen::Str(text.as_str().into()),
            serde_json::Value::Array(items) => Frozen::List(items.iter().map(Self::new).collect()),
            serde_json::Value::Object(map) => Frozen::Map(Arc::new(FrozenMap::new(map))),
        }
    }

    /// A value of one render. Containers are filled when they are first looked into.
    pub(crate) fn thaw(&self) -> Value {
        match self {
            Frozen::None => Value::None,
            Frozen::Bool(value) => Value::Bool(*value),
            Frozen::Int(value) => Value::Int(*value),
            Frozen::Big(value) => Value::Big(Rc::new((**value).clone())),
            Frozen::Float(value) => Value::Float(*value),
            Frozen::Str(text) => Value::Str(Arc::clone(text)),
            Frozen::List(items) => Value::List(Rc::new(List::frozen(items))),
            Frozen::Map(map) => Value::Dict(Rc::new(Dict::frozen(map))),
        }
    }

    pub(crate) fn is_container(&self) -> bool {
        matches!(self, Frozen::List(_) | Frozen::Map(_))
    }
}

impl FrozenMap {
    pub(crate) fn new(map: &serde_json::Map<String, serde_json::Value>) -> Self {
        let mut entries: Vec<(Arc<str>, Frozen)> =
            map.iter().map(|(key, value)| (key.as_str().into(), Frozen::new(value))).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Self { entries }
    }
}

/// Numbers travel as JSON between kluctl and Python, so that whole floats below 1e21 arrive as integers.
fn from_number(number: &serde_json::Number) -> Frozen {
    if let Some(value) = number.as_i64() {
        return Frozen::Int(value);
    }
    if let Some(value) = number.as_u64() {
        return Frozen::Big(Arc::new(BigInt::from(value)));
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    if value.fract() != 0.0 || value.abs() >= 1e21 {
        return Frozen::Float(value);
    }
    let digits = format!("{value}");
    match digits.parse::<i64>() {
        Ok(small) => Frozen::Int(small),
        Err(_) => match BigInt::parse_bytes(digits.as_bytes(), 10) {
            Some(big) => Frozen::Big(Arc::new(big)),
            None => Frozen::Float(value),
        },
    }
}
