use std::collections::BTreeMap;

use crate::diagnostic::{FieldPath, Position, Segment};

/// Where the parts of a document are in its text. Empty for values that do not come from a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Positions(pub(super) Option<Node>);

/// One value's place; the tree has the same shape as the value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Where the value starts.
    pub(super) at: Position,
    pub(super) children: Children,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Children {
    /// A scalar, with its number as written where [`serde_json::Value`] holds a normalised one.
    Scalar(Option<Written>),
    List(Vec<Node>),
    /// By key: where the key is, and the value's node.
    Map(BTreeMap<String, (Position, Node)>),
}

/// A number before normalisation: needed when a field of type string takes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Written {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Node {
    pub(super) fn scalar(at: Position) -> Self {
        Self { at, children: Children::Scalar(None) }
    }

    pub(super) fn item(&self, index: usize) -> Option<&Self> {
        match &self.children {
            Children::List(items) => items.get(index),
            _ => None,
        }
    }

    pub(super) fn entry(&self, key: &str) -> Option<&(Position, Self)> {
        match &self.children {
            Children::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    pub(super) fn written(&self) -> Option<Written> {
        match self.children {
            Children::Scalar(written) => written,
            _ => None,
        }
    }
}

impl Positions {
    /// Where `path` is: the key for a mapping's entry, the value for a list's item and the root. For a path that leads to
    /// nothing, its nearest ancestor; `None` only when no positions are known at all.
    pub fn of(&self, path: &FieldPath) -> Option<Position> {
        self.walk(path).map(|(key, _)| key)
    }

    /// As [`Positions::of`], but the start of a mapping entry's value in place of its key.
    pub fn of_value(&self, path: &FieldPath) -> Option<Position> {
        self.walk(path).map(|(_, node)| node.at)
    }

    fn walk(&self, path: &FieldPath) -> Option<(Position, &Node)> {
        let mut node = self.0.as_ref()?;
        let mut at = node.at;
        for segment in &path.0 {
            match segment {
                Segment::Key(key) => match node.entry(key) {
                    Some((key_at, child)) => (at, node) = (*key_at, child),
                    None => break,
                },
                Segment::Index(index) => match node.item(*index) {
                    Some(child) => (at, node) = (child.at, child),
                    None => break,
                },
            }
        }
        Some((at, node))
    }
}
