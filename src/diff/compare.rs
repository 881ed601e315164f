use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::unified::unified;
use crate::{
    diagnostic::{FieldPath, Segment},
    results::{Change, ChangeKind},
};

/// The changes from `before` to `after`, sorted by path. Mappings are compared key by key. Lists whose entries are mappings
/// with names of their own are compared by name, a mere change of order being one change of the list; other lists by
/// position, after what is equal at both ends.
pub fn compare(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    Walk { at: Vec::new(), changes: &mut changes }.values(before, after);
    changes.sort_by(|a, b| (&a.json_path, a.kind).cmp(&(&b.json_path, b.kind)));
    changes
}

struct Walk<'a> {
    at: Vec<Segment>,
    changes: &'a mut Vec<Change>,
}

impl Walk<'_> {
    fn values(&mut self, before: &Value, after: &Value) {
        match (before, after) {
            (before, after) if before == after => {}
            (Value::Object(before), Value::Object(after)) => self.mappings(before, after),
            (Value::Array(before), Value::Array(after)) => match (names(before), names(after)) {
                (Some(old), Some(new)) => self.named_lists(before, after, &old, &new),
                _ => self.lists(before, after),
            },
            (before, after) => self.record(Some(before), Some(after)),
        }
    }

    fn below(&mut self, segment: impl Into<Segment>, visit: impl FnOnce(&mut Self)) {
        self.at.push(segment.into());
        visit(self);
        self.at.pop();
    }

    fn mappings(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        for (key, old) in before {
            match after.get(key) {
                Some(new) => self.below(key.as_str(), |walk| walk.values(old, new)),
                None => self.below(key.as_str(), |walk| walk.record(Some(old), None)),
            }
        }
        for (key, new) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            self.below(key.as_str(), |walk| walk.record(None, Some(new)));
        }
    }

    fn named_lists(
        &mut self,
        before: &[Value],
        after: &[Value],
        old: &BTreeMap<&str, usize>,
        new: &BTreeMap<&str, usize>,
    ) {
        let known = self.changes.len();
        for (name, index) in old {
            match new.get(name) {
                Some(now) => self.below(*now, |walk| walk.values(&before[*index], &after[*now])),
                None => self.below(*index, |walk| walk.record(Some(&before[*index]), None)),
            }
        }
        for (_, index) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.below(*index, |walk| walk.record(None, Some(&after[*index])));
        }
        if self.changes.len() == known {
            let (before, after) = (before.to_vec().into(), after.to_vec().into());
            self.record(Some(&before), Some(&after));
        }
    }

    fn lists(&mut self, before: &[Value], after: &[Value]) {
        let start = before.iter().zip(after).take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) = (&before[start..], &after[start..]);
        let end = old_rest.iter().rev().zip(new_rest.iter().rev());
        let end = end.take_while(|(old, new)| old == new).count();
        let old_rest = &old_rest[..old_rest.len() - end];
        let new_rest = &new_rest[..new_rest.len() - end];
        for offset in 0..old_rest.len().max(new_rest.len()) {
            self.below(start + offset, |walk| match (old_rest.get(offset), new_rest.get(offset)) {
                (Some(old), Some(new)) => walk.values(old, new),
                (old, new) => walk.record(old, new),
            });
        }
    }

    fn record(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let kind = match (before, after) {
            (None, _) => ChangeKind::Insert,
            (_, None) => ChangeKind::Delete,
            _ => ChangeKind::Update,
        };
        self.changes.push(Change {
            kind,
            json_path: FieldPath(self.at.clone()).to_string(),
            old_value: before.cloned(),
            new_value: after.cloned(),
            unified_diff: unified(before, after),
        });
    }
}

/// The positions of a list's entries by `name`; `None` when an entry has none or shares it.
fn names(list: &[Value]) -> Option<BTreeMap<&str, usize>> {
    let named = list.iter().enumerate();
    let named: Option<BTreeMap<&str, usize>> =
        named.map(|(index, entry)| Some((entry.get("name")?.as_str()?, index))).collect();
    named.filter(|named| named.len() == list.len() && !list.is_empty())
}
