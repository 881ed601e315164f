//! Lists, tuples and dicts. Dicts keep insertion order and compare keys as Python does (`1 == 1.0 == True`).

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};
use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use super::frozen::FrozenMap;
use super::{Frozen, Value};
use crate::jinja::error::{Raise, Res};

pub(crate) type ListRef = Rc<List>;
pub(crate) type DictRef = Rc<Dict>;
pub(crate) type Entries = IndexMap<Key, (Value, Value)>;

#[derive(Debug)]
pub(crate) struct List {
    state: RefCell<ListState>,
    pub(super) marked: Cell<bool>,
}

#[derive(Debug)]
enum ListState {
    Frozen(Arc<[Frozen]>),
    Live(Vec<Value>),
}

impl List {
    pub(crate) fn new(items: Vec<Value>) -> Self {
        Self { state: RefCell::new(ListState::Live(items)), marked: Cell::new(false) }
    }

    pub(super) fn frozen(items: &Arc<[Frozen]>) -> Self {
        Self { state: RefCell::new(ListState::Frozen(Arc::clone(items))), marked: Cell::new(false) }
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.state.borrow() {
            ListState::Frozen(items) => items.len(),
            ListState::Live(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value> {
        match &*self.state.borrow() {
            ListState::Live(items) => return items.get(index).cloned(),
            ListState::Frozen(items) => match items.get(index) {
                Some(item) if item.is_container() => {}
                Some(item) => return Some(item.thaw()),
                None => return None,
            },
        }
        self.items().get(index).cloned()
    }

    fn thaw(&self) {
        let thawed = match &*self.state.borrow() {
            ListState::Frozen(items) => items.iter().map(Frozen::thaw).collect(),
            ListState::Live(_) => return,
        };
        *self.state.borrow_mut() = ListState::Live(thawed);
    }

    pub(crate) fn items(&self) -> Ref<'_, Vec<Value>> {
        self.thaw();
        Ref::map(self.state.borrow(), |state| match state {
            ListState::Live(items) => items,
            ListState::Frozen(_) => unreachable!("thawed above"),
        })
    }

    pub(crate) fn items_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.thaw();
        RefMut::map(self.state.borrow_mut(), |state| match state {
            ListState::Live(items) => items,
            ListState::Frozen(_) => unreachable!("thawed above"),
        })
    }

    pub(crate) fn to_vec(&self) -> Vec<Value> {
        self.items().clone()
    }

    pub(super) fn clear(&self) {
        let old = self.state.replace(ListState::Live(Vec::new()));
        if let ListState::Live(items) = old {
            release(items);
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let ListState::Live(items) = self.state.get_mut()
            && items.iter().any(holds_values)
        {
            release(std::mem::take(items));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Tuple {
    pub(crate) items: Vec<Value>,
    /// A group of the `groupby` filter, whose parts are also called `grouper` and `list`.
    pub(crate) grouped: bool,
}

impl Drop for Tuple {
    fn drop(&mut self) {
        if self.items.iter().any(holds_values) {
            release(std::mem::take(&mut self.items));
        }
    }
}

fn holds_values(value: &Value) -> bool {
    matches!(
        value,
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Namespace(_) | Value::View(..)
    )
}

/// Drops values with a loop: the recursion of a plain drop would overflow the stack on deep nesting.
fn release(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => {
                if let Ok(mut list) = Rc::try_unwrap(list)
                    && let ListState::Live(items) = list.state.get_mut()
                {
                    pending.append(items);
                }
            }
            Value::Tuple(tuple) => {
                if let Ok(mut tuple) = Rc::try_unwrap(tuple) {
                    pending.append(&mut tuple.items);
                }
            }
            Value::Dict(dict) | Value::Namespace(dict) | Value::View(_, dict) => {
                if let Ok(mut dict) = Rc::try_unwrap(dict)
                    && let DictState::Live(entries) = dict.state.get_mut()
                {
                    pending.extend(std::mem::take(entries).into_values().map(|(_, value)| value));
                }
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
pub(crate) struct Dict {
    state: RefCell<DictState>,
    pub(super) marked: Cell<bool>,
}

#[derive(Debug)]
enum DictState {
    Frozen(Arc<FrozenMap>),
    Live(Entries),
}

impl Dict {
    pub(crate) fn new(entries: Entries) -> Self {
        Self { state: RefCell::new(DictState::Live(entries)), marked: Cell::new(false) }
    }

    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (Arc<str>, Value)>) -> Self {
        let entries = pairs
            .into_iter()
            .map(|(name, value)| (Key::Str(Arc::clone(&name)), (Value::Str(name), value)));
        Self::new(entries.collect())
    }

    pub(super) fn frozen(map: &Arc<FrozenMap>) -> Self {
        Self { state: RefCell::new(DictState::Frozen(Arc::clone(map))), marked: Cell::new(false) }
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.state.borrow() {
            DictState::Frozen(map) => map.entries.len(),
            DictState::Live(entries) => entries.len(),
        }
    }

    pub(crate) fn get_str(&self, key: &str) -> Option<Value> {
        match &*self.state.borrow() {
            DictState::Live(entries) => {
                return entries.get(&StrKey(key)).map(|(_, value)| value.clone());
            }
            DictState::Frozen(map) => match map.get(key) {
                Some(item) if item.is_container() => {}
                Some(item) => return Some(item.thaw()),
                None => return None,
            },
        }
        self.entries().get(&StrKey(key)).map(|(_, value)| value.clone())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Value> {
        match key {
            Key::Str(text) => self.get_str(text),
            _ => self.entries().get(key).map(|(_, value)| value.clone()),
        }
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        match (&*self.state.borrow(), key) {
            (DictState::Live(entries), key) => entries.contains_key(key),
            (DictState::Frozen(map), Key::Str(text)) => map.get(text).is_some(),
            _ => false,
        }
    }

    /// Key and value at a position in insertion order.
    pub(crate) fn at(&self, index: usize) -> Option<(Value, Value)> {
        self.entries().get_index(index).map(|(_, entry)| entry.clone())
    }

    fn thaw(&self) {
        let thawed = match &*self.state.borrow() {
            DictState::Frozen(map) => map
                .entries
                .iter()
                .map(|(key, value)| {
                    (Key::Str(Arc::clone(key)), (Value::Str(Arc::clone(key)), value.thaw()))
                })
                .collect(),
            DictState::Live(_) => return,
        };
        *self.state.borrow_mut() = DictState::Live(thawed);
    }

    pub(crate) fn entries(&self) -> Ref<'_, Entries> {
        self.thaw();
        Ref::map(self.state.borrow(), |state| match state {
            DictState::Live(entries) => entries,
            DictState::Frozen(_) => unreachable!("thawed above"),
        })
    }

    pub(crate) fn entries_mut(&self) -> RefMut<'_, Entries> {
        self.thaw();
        RefMut::map(self.state.borrow_mut(), |state| match state {
            DictState::Live(entries) => entries,
            DictState::Frozen(_) => unreachable!("thawed above"),
        })
    }

    /// Sets a value; an existing key keeps its spelling and place.
    pub(crate) fn insert(&self, key: Value, value: Value) -> Res<()> {
        insert(&mut self.entries_mut(), key, value)
    }

    pub(crate) fn insert_str(&self, key: &Arc<str>, value: Value) {
        let mut entries = self.entries_mut();
        match entries.get_mut(&StrKey(key)) {
            Some(entry) => entry.1 = value,
            None => {
                entries.insert(Key::Str(Arc::clone(key)), (Value::Str(Arc::clone(key)), value));
            }
        }
    }

    pub(crate) fn pairs(&self) -> Vec<(Value, Value)> {
        self.entries().values().cloned().collect()
    }

    pub(super) fn clear(&self) {
        let old = self.state.replace(DictState::Live(IndexMap::new()));
        if let DictState::Live(entries) = old {
            release(entries.into_values().map(|(_, value)| value).collect());
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        if let DictState::Live(entries) = self.state.get_mut()
            && entries.values().any(|(_, value)| holds_values(value))
        {
            release(std::mem::take(entries).into_values().map(|(_, value)| value).collect());
        }
    }
}

/// Sets a value; an existing key keeps its spelling and place.
pub(crate) fn insert(entries: &mut Entries, key: Value, value: Value) -> Res<()> {
    match entries.entry(Key::new(&key)?) {
        indexmap::map::Entry::Occupied(mut entry) => entry.get_mut().1 = value,
        indexmap::map::Entry::Vacant(entry) => {
            entry.insert((key, value));
        }
    }
    Ok(())
}

/// A hashable value; values that are equal in Python have equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    None,
    Int(i64),
    Big(BigInt),
    Float(u64),
    Str(Arc<str>),
    Bytes(Rc<[u8]>),
    Tuple(Vec<Key>),
    /// Dates and the like, by type and text.
    Text(&'static str, String),
    Identity(usize),
}

impl Key {
    pub(crate) fn new(value: &Value) -> Res<Key> {
        Self::nested(value, 0)
    }

    fn nested(value: &Value, depth: usize) -> Res<Key> {
        Ok(match value {
            Value::Str(text) | Value::Markup(text) => Key::Str(Arc::clone(text)),
            Value::None => Key::None,
            Value::Bool(value) => Key::Int(i64::from(*value)),
            Value::Int(value) => Key::Int(*value),
            Value::Big(value) => Key::Big((**value).clone()),
            Value::Float(value) => Self::float(*value),
            Value::Bytes(bytes) => Key::Bytes(Rc::clone(bytes)),
            Value::Tuple(_) if depth > 100 => {
                return Err(Raise::recursion("maximum recursion depth exceeded"));
            }
            Value::Tuple(tuple) => Key::Tuple(
                tuple.items.iter().map(|item| Self::nested(item, depth + 1)).collect::<Res<_>>()?,
            ),
            Value::Range(range) => {
                Key::Text("range", format!("{} {} {}", range.start, range.stop, range.step))
            }
            Value::Undefined(undefined) => return undefined.raise(),
            Value::Object(object) if matches!(**object, super::Object::Time(_)) => {
                return Err(Raise::type_error("unhashable type: 'SimpleTime'"));
            }
            Value::Object(object) => match object.key_text() {
                Some(text) => Key::Text(object.type_name(), text),
                None => Key::Identity(Rc::as_ptr(object).cast::<()>() as usize),
            },
            Value::Iter(iter) => Key::Identity(Rc::as_ptr(iter).cast::<()>() as usize),
            Value::Namespace(dict) => Key::Identity(Rc::as_ptr(dict).cast::<()>() as usize),
            Value::List(_) | Value::Dict(_) | Value::View(..) => {
                let name = value.type_name();
                return Err(Raise::type_error(format!("unhashable type: '{name}'")));
            }
        })
    }

    fn float(value: f64) -> Key {
        if value.fract() == 0.0
            && let Some(big) = BigInt::from_f64(value)
        {
            return big.to_i64().map_or(Key::Big(big), Key::Int);
        }
        Key::Float(value.to_bits())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::Str(text) => StrKey(text).hash(state),
            Key::None => state.write_u8(0),
            Key::Int(value) => value.hash(state),
            Key::Big(value) => value.hash(state),
            Key::Float(bits) => bits.hash(state),
            Key::Bytes(bytes) => bytes.hash(state),
            Key::Tuple(items) => items.hash(state),
            Key::Text(_, text) => text.hash(state),
            Key::Identity(address) => address.hash(state),
        }
    }
}

/// A borrowed string as key.
struct StrKey<'a>(&'a str);

impl Hash for StrKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(1);
        self.0.hash(state);
    }
}

impl Equivalent<Key> for StrKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(key, Key::Str(text) if **text == *self.0)
    }
}
