//! Reading and changing a tree at a concrete [`FieldPath`].

use serde_json::{Map, Value};

use crate::diagnostic::{FieldPath, Segment};

/// The value at `path`, if every step exists.
pub fn get_at<'a>(root: &'a Value, path: &FieldPath) -> Option<&'a Value> {
    path.0.iter().try_fold(root, |value, segment| match segment {
        Segment::Key(key) => value.as_object()?.get(key),
        Segment::Index(index) => value.as_array()?.get(*index),
    })
}

/// The value at `path`, if every step exists, for changing it.
pub fn get_at_mut<'a>(root: &'a mut Value, path: &FieldPath) -> Option<&'a mut Value> {
    path.0.iter().try_fold(root, |value, segment| match segment {
        Segment::Key(key) => value.as_object_mut()?.get_mut(key),
        Segment::Index(index) => value.as_array_mut()?.get_mut(*index),
    })
}

/// Sets the value at `path`. Missing mappings on the way are created; a list is extended by exactly one when the index is
/// its length. Returns `false`, with nothing changed but created mappings, when a step has another type.
pub fn set_at(root: &mut Value, path: &FieldPath, new: Value) -> bool {
    let mut slot = root;
    for segment in &path.0 {
        match segment {
            Segment::Key(key) => {
                if slot.is_null() {
                    *slot = Value::Object(Map::new());
                }
                let Some(map) = slot.as_object_mut() else { return false };
                slot = map.entry(key.clone()).or_insert(Value::Null);
            }
            Segment::Index(index) => {
                let Some(list) = slot.as_array_mut() else { return false };
                if *index == list.len() {
                    list.push(Value::Null);
                }
                let Some(item) = list.get_mut(*index) else { return false };
                slot = item;
            }
        }
    }
    *slot = new;
    true
}

/// Removes the value at `path` and returns it; `None` when it is not there.
pub fn delete_at(root: &mut Value, path: &FieldPath) -> Option<Value> {
    let (last, head) = path.0.split_last()?;
    let parent = get_at_mut(root, &FieldPath(head.to_vec()))?;
    match last {
        Segment::Key(key) => parent.as_object_mut()?.remove(key),
        Segment::Index(index) => {
            let list = parent.as_array_mut()?;
            (*index < list.len()).then(|| list.remove(*index))
        }
    }
}
