//! The `$` keys of strategic merge patches.

use serde_json::{Map, Value};

use super::{Problem, strategic_merge::Path};
use crate::kustomize::{id::scalar_text, schema::Shape};

/// `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_ITEMS: &str = "$deleteFromPrimitiveList/";

/// Whether a key is a directive and no field.
pub(super) fn is_directive(key: &str) -> bool {
    key == PATCH
        || key == RETAIN_KEYS
        || key.starts_with(SET_ORDER)
        || key.starts_with(DELETE_ITEMS)
}

/// Whether an item of a list is `{$patch: …}` and nothing else, which is about the list.
pub(super) fn is_list_directive(item: &Value) -> bool {
    item.as_object().is_some_and(|map| map.len() == 1 && map.contains_key(PATCH))
}

/// The directive of a mapping.
pub(super) fn of_map(patch: &Map<String, Value>, path: &Path<'_>) -> Result<Directive, Problem> {
    patch.get(PATCH).map_or(Ok(Directive::Merge), |word| read(word, path))
}

/// The directive of a list.
pub(super) fn of_list(patch: &[Value], path: &Path<'_>) -> Result<Directive, Problem> {
    let item = patch.iter().find(|item| is_list_directive(item));
    item.and_then(|item| item.get(PATCH)).map_or(Ok(Directive::Merge), |word| read(word, path))
}

fn read(word: &Value, path: &Path<'_>) -> Result<Directive, Problem> {
    match word.as_str() {
        Some("merge") => Ok(Directive::Merge),
        Some("replace") => Ok(Directive::Replace),
        Some("delete") => Ok(Directive::Delete),
        _ => {
            let found = scalar_text(word).unwrap_or_default();
            let path = path.child(PATCH);
            let message = format!("unknown directive \"{found}\"");
            Err(path.problem(message, Some("merge, replace or delete")))
        }
    }
}

/// Applies the directives of a merged mapping that are about its other fields.
pub(super) fn apply_to_fields(
    map: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<(), Problem> {
    for (key, value) in patch.iter().filter(|(key, _)| key.starts_with('$')) {
        let list = || {
            let list = value.as_array();
            list.ok_or_else(|| path.child(key).problem("this directive takes a list", None))
        };
        if key == RETAIN_KEYS {
            let kept = list()?;
            map.retain(|key, _| kept.iter().any(|own| own == key.as_str()));
        } else if let Some(field) = key.strip_prefix(DELETE_ITEMS) {
            let deleted = list()?;
            if let Some(own) = map.get_mut(field).and_then(Value::as_array_mut) {
                own.retain(|item| !deleted.contains(item));
            }
        } else if let Some(field) = key.strip_prefix(SET_ORDER) {
            let keys = shape.field(field).merge_keys().unwrap_or_default();
            if let Some(own) = map.get_mut(field).and_then(Value::as_array_mut) {
                set_order(own, list()?, keys);
            }
        }
    }
    Ok(())
}

/// Puts the items that an order names into that order; the others keep their places.
fn set_order(list: &mut [Value], order: &[Value], keys: &[String]) {
    let same = |a: &Value, b: &Value| match keys.first() {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    };
    let rank = |item: &Value| order.iter().position(|own| same(own, item));
    let places: Vec<usize> = list
        .iter()
        .enumerate()
        .filter(|(_, item)| rank(item).is_some())
        .map(|(at, _)| at)
        .collect();
    let mut named: Vec<Value> = places.iter().map(|at| list[*at].take()).collect();
    named.sort_by_key(rank);
    for (at, item) in places.into_iter().zip(named) {
        if let Some(slot) = list.get_mut(at) {
            *slot = item;
        }
    }
}
