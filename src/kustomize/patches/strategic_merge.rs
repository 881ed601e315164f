//! Strategic merge: mappings merge by key, `null` deletes, lists merge by the keys their kind declares or are replaced.
//!
//! The rules are those of
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>,
//! with kustomize's order of lists: items of the patch come first. As in kustomize, too, what was quoted stays quoted: a
//! number in place of a quoted text becomes text.

use serde_json::{Map, Value};

use super::{
    Pair, Problem,
    directives::{self, Directive},
    lists,
};
use crate::{
    diagnostic::{FieldPath, Segment},
    kustomize::schema::Shape,
    object::type_name,
};

/// The way to the value at hand, for messages; built only when something is wrong.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: &'a str,
    styles: &'a Pair,
}

impl<'a> Path<'a> {
    pub(super) fn child(&'a self, step: &'a str) -> Self {
        Path { above: Some(self), step, styles: self.styles }
    }

    /// The error for this place.
    pub(super) fn problem(&self, message: impl Into<String>, expected: Option<&str>) -> Problem {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(Path { above: Some(above), step, .. }) = at {
            steps.push(Segment::from(*step));
            at = Some(above);
        }
        steps.reverse();
        Problem {
            field: FieldPath(steps).to_string(),
            message: message.into(),
            expected: expected.map(str::to_owned),
            hint: None,
        }
    }
}

/// Merges a patch into a value. Returns whether anything is left: `$patch: delete` leaves nothing.
pub(crate) fn merge(
    target: &mut Value,
    patch: &Value,
    shape: Shape<'_>,
    styles: &Pair,
) -> Result<bool, Problem> {
    merge_value(target, patch, shape, &Path { above: None, step: "", styles })
}

/// Merges into a value that is there.
pub(super) fn merge_value(
    target: &mut Value,
    patch: &Value,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<bool, Problem> {
    match (&mut *target, patch) {
        (_, Value::Null) => Ok(false),
        (Value::Null, patch) => match added(patch, shape, path)? {
            Some(new) => {
                *target = new;
                Ok(true)
            }
            None => Ok(false),
        },
        (Value::Object(map), Value::Object(patch)) => merge_map(map, patch, shape, path),
        (Value::Array(list), Value::Array(patch)) => match shape.merge_keys() {
            Some(keys) => lists::merge(list, patch, keys, shape.items(), path),
            None => replace_list(list, patch, path),
        },
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => {
            let message = format!("the patch has {}", type_name(patch));
            Err(path.problem(message, Some(type_name(target))))
        }
        (Value::String(text), Value::Number(_) | Value::Bool(_))
            if path.styles.target.is_quoted(path.step, text) =>
        {
            *text = path.styles.patch.written(path.step, patch);
            Ok(true)
        }
        (scalar, patch) => {
            *scalar = patch.clone();
            Ok(true)
        }
    }
}

fn merge_map(
    map: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<bool, Problem> {
    let shape = known_or_embedded(shape, map, patch);
    match directives::of_map(patch, path)? {
        Directive::Delete => return Ok(false),
        Directive::Replace => {
            *map = added_map(patch, shape, path)?;
            return Ok(true);
        }
        Directive::Merge => {}
    }
    for (key, value) in patch.iter().filter(|(key, _)| !directives::is_directive(key)) {
        let path = path.child(key);
        let shape = shape.field(key);
        match map.get_mut(key) {
            Some(own) => {
                if !merge_value(own, value, shape, &path)? {
                    map.remove(key);
                }
            }
            None => {
                if let Some(new) = added(value, shape, &path)? {
                    map.insert(key.clone(), new);
                }
            }
        }
    }
    directives::apply_to_fields(map, patch, shape, path)?;
    Ok(true)
}

/// Objects inside of objects, such as templates of custom resources, merge by their own kind.
fn known_or_embedded<'a>(
    shape: Shape<'a>,
    map: &Map<String, Value>,
    patch: &Map<String, Value>,
) -> Shape<'a> {
    if !shape.is_unknown() {
        return shape;
    }
    let kind_of = |map: &Map<String, Value>| {
        let text = |key: &str| map.get(key)?.as_str().filter(|text| !text.is_empty());
        let found = shape.of_kind(text("apiVersion")?, text("kind")?);
        (!found.is_unknown()).then_some(found)
    };
    kind_of(map).or_else(|| kind_of(patch)).unwrap_or(shape)
}

/// What a patch puts where nothing was: without directives, and without the `null`s of its mappings.
pub(super) fn added(
    patch: &Value,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<Option<Value>, Problem> {
    match patch {
        Value::Null => Ok(None),
        Value::Object(map) => {
            let shape = known_or_embedded(shape, map, map);
            if directives::of_map(map, path)? == Directive::Delete {
                return Ok(None);
            }
            added_map(map, shape, path).map(|map| Some(Value::Object(map)))
        }
        Value::Array(list) => {
            let mut new = Vec::new();
            let kept = match shape.merge_keys() {
                Some(keys) => lists::merge(&mut new, list, keys, shape.items(), path)?,
                None => replace_list(&mut new, list, path)?,
            };
            Ok(kept.then_some(Value::Array(new)))
        }
        scalar => Ok(Some(scalar.clone())),
    }
}

fn added_map(
    patch: &Map<String, Value>,
    shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<Map<String, Value>, Problem> {
    let mut new = Map::new();
    for (key, value) in patch.iter().filter(|(key, _)| !directives::is_directive(key)) {
        if let Some(value) = added(value, shape.field(key), &path.child(key))? {
            new.insert(key.clone(), value);
        }
    }
    Ok(new)
}

/// Replaces a list that does not merge. What it holds is taken as it is, except for `$patch` items.
fn replace_list(list: &mut Vec<Value>, patch: &[Value], path: &Path<'_>) -> Result<bool, Problem> {
    if directives::of_list(patch, path)? == Directive::Delete {
        return Ok(false);
    }
    *list = patch.iter().filter(|item| !directives::is_list_directive(item)).cloned().collect();
    Ok(true)
}
