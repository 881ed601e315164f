//! The entries of a mapping while it is read: duplicates and merge keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    YamlError,
    error::Problem,
    positions::{Children, Node},
    typed::describe,
};
use crate::diagnostic::Position;

/// A mapping's entries while it is read. Its own keys win over merged ones, earlier merged mappings over later ones.
#[derive(Default)]
pub(super) struct Entries {
    values: Map<String, Value>,
    nodes: BTreeMap<String, (Position, Node)>,
    merged: Vec<(Map<String, Value>, Node)>,
}

impl Entries {
    /// Makes room for a key that comes again.
    pub(super) fn forget(&mut self, key: &str) {
        self.nodes.remove(key);
    }

    pub(super) fn insert(
        &mut self,
        key: String,
        at: Position,
        value: Value,
        node: Node,
    ) -> Result<(), YamlError> {
        if let Some((first, _)) = self.nodes.get(&key) {
            let problem = Problem::DuplicateKey { key, first: *first };
            return Err(YamlError::at(problem, at));
        }
        self.nodes.insert(key.clone(), (at, node));
        self.values.insert(key, value);
        Ok(())
    }

    /// Takes what `<<` refers to: a mapping or a list of mappings.
    pub(super) fn merge(
        &mut self,
        value: Value,
        node: Node,
        at: Position,
    ) -> Result<(), YamlError> {
        let refuse = |found: &Value| {
            let expected = "a mapping or a list of mappings after `<<`".to_owned();
            let found = describe(found);
            YamlError::at(Problem::Type { expected, found }, at)
        };
        match (value, node.children) {
            (Value::Object(values), children) => {
                self.merged.push((values, Node { at: node.at, children }));
            }
            (Value::Array(values), Children::List(nodes)) => {
                for (value, node) in values.into_iter().zip(nodes) {
                    let Value::Object(values) = value else { return Err(refuse(&value)) };
                    self.merged.push((values, node));
                }
            }
            (other, _) => return Err(refuse(&other)),
        }
        Ok(())
    }

    pub(super) fn finish(mut self, at: Position) -> (Value, Node) {
        for (values, node) in self.merged {
            let Children::Map(mut nodes) = node.children else { continue };
            for (key, value) in values {
                if self.values.contains_key(&key) {
                    continue;
                }
                if let Some(node) = nodes.remove(&key) {
                    self.nodes.insert(key.clone(), node);
                }
                self.values.insert(key, value);
            }
        }
        (Value::Object(self.values), Node { at, children: Children::Map(self.nodes) })
    }
}
