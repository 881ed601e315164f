//! Who owns which field: the `metadata.managedFields` of a live object in the notation that the API server also uses in
//! conflicts (`.spec.containers[name="web"].image`).

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{
    diagnostic::{FieldPath, Segment},
    object::Object,
};

/// One step of a managed field's path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Element {
    /// `f:name`: a mapping's key.
    Field(String),
    /// `k:{…}`: the list entry with these values in its key fields.
    Key(Map<String, Value>),
    /// `v:…`: the entry of a set.
    Value(Value),
    /// `i:n`: a list position.
    Index(usize),
}

impl Element {
    /// Reads a key of `fieldsV1`; unknown kinds of elements, which newer servers may have, give `None`.
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => serde_json::from_str(rest).ok().map(Self::Key),
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        match self {
            Self::Field(name) => {
                let _ignored = write!(out, ".{name}");
            }
            Self::Key(fields) => {
                out.push('[');
                for (position, (name, value)) in fields.iter().enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    let _ignored = write!(out, "{comma}{name}={value}");
                }
                out.push(']');
            }
            Self::Value(value) => {
                let _ignored = write!(out, "[={value}]");
            }
            Self::Index(index) => {
                let _ignored = write!(out, "[{index}]");
            }
        }
    }
}

/// The path in the API server's notation.
pub(super) fn notation(path: &[Element]) -> String {
    let mut out = String::new();
    for element in path {
        element.write(&mut out);
    }
    out
}

/// Calls `visit` with the manager and the path of every managed field of a live object.
pub(super) fn for_each_field<'a>(live: &'a Object, mut visit: impl FnMut(&'a str, &[Element])) {
    let entries = live.value()["metadata"]["managedFields"].as_array().into_iter().flatten();
    for entry in entries {
        let manager = entry["manager"].as_str().unwrap_or_default();
        walk(&entry["fieldsV1"], &mut Vec::new(), &mut |path| visit(manager, path));
    }
}

fn walk(fields: &Value, path: &mut Vec<Element>, visit: &mut dyn FnMut(&[Element])) {
    let Some(map) = fields.as_object() else { return };
    // An element without children is owned itself; one with children only if it says so with ".".
    if !path.is_empty() && (map.is_empty() || map.contains_key(".")) {
        visit(path);
    }
    for (key, children) in map {
        if let Some(element) = Element::parse(key) {
            path.push(element);
            walk(children, path, visit);
            path.pop();
        }
    }
}

/// The concrete path of a managed field in an object that may have its list entries elsewhere.
pub(super) fn locate(root: &Value, path: &[Element]) -> Option<FieldPath> {
    let mut value = root;
    let mut segments = Vec::with_capacity(path.len());
    for element in path {
        let segment = match element {
            Element::Field(name) => Segment::Key(name.clone()),
            Element::Key(fields) => position(value, |entry| has_key(entry, fields))?,
            Element::Value(wanted) => position(value, |entry| is_same(entry, wanted))?,
            Element::Index(index) => Segment::Index(*index),
        };
        value = match &segment {
            Segment::Key(key) => value.as_object()?.get(key)?,
            Segment::Index(index) => value.as_array()?.get(*index)?,
        };
        segments.push(segment);
    }
    Some(FieldPath(segments))
}

fn position(list: &Value, is_meant: impl Fn(&Value) -> bool) -> Option<Segment> {
    list.as_array()?.iter().position(is_meant).map(Segment::Index)
}

fn has_key(entry: &Value, fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, wanted)| match entry.get(name) {
        Some(found) => is_same(found, wanted),
        // The API server fills in this default before it compares.
        None => name == "protocol" && wanted == "TCP",
    })
}

fn is_same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < f64::EPSILON)
}
