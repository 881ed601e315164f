//! Merging of lists whose items have an identity.

use serde_json::Value;

use super::{
    Problem,
    directives::{self, Directive},
    strategic_merge::{Path, added, merge_value},
};
use crate::{
    kustomize::{id::scalar_text, schema::Shape},
    object::type_name,
};

/// Merges a patch into a list. Without keys the items are scalars, and the list is a set. Returns whether the list stays.
///
/// Order, as in kustomize: with one key in use, items of the patch come first, in its order; with several, only new items
/// come first.
pub(super) fn merge(
    list: &mut Vec<Value>,
    patch: &[Value],
    keys: &[String],
    item_shape: Shape<'_>,
    path: &Path<'_>,
) -> Result<bool, Problem> {
    match directives::of_list(patch, path)? {
        Directive::Delete => return Ok(false),
        Directive::Replace => list.clear(),
        Directive::Merge => {}
    }
    let patch = patch.iter().filter(|item| !directives::is_list_directive(item));
    if keys.is_empty() {
        merge_set(list, patch);
        return Ok(true);
    }
    let mut merge = Merge::new(std::mem::take(list), keys);
    for item in patch {
        merge.item(item, item_shape, path)?;
    }
    *list = merge.finish();
    Ok(true)
}

fn merge_set<'a>(list: &mut Vec<Value>, patch: impl Iterator<Item = &'a Value>) {
    let old = std::mem::take(list);
    for item in patch.cloned().chain(old) {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

struct Merge<'a> {
    keys: &'a [String],
    /// The list's own items; `None` for those deleted or moved.
    own: Vec<Option<Value>>,
    /// Which of the own items the patch names, in the patch's order, between the new ones.
    patched: Vec<Place>,
    /// How many keys are in use.
    used: usize,
}

/// Where an item of the result comes from.
enum Place {
    Own(usize),
    New(Value),
}

impl<'a> Merge<'a> {
    fn new(own: Vec<Value>, keys: &'a [String]) -> Self {
        let used = keys.iter().filter(|key| own.iter().any(|item| key_text(item, key).is_some()));
        let used = used.count();
        Self { keys, own: own.into_iter().map(Some).collect(), patched: Vec::new(), used }
    }

    fn item(&mut self, patch: &Value, shape: Shape<'_>, path: &Path<'_>) -> Result<(), Problem> {
        let primary = self.keys.first().map_or("", String::as_str);
        let Some(fields) = patch.as_object() else {
            let message = format!("an item of the patch is {}", type_name(patch));
            return Err(path.problem(message, Some("a mapping")));
        };
        let Some(name) = key_text(patch, primary) else {
            if self.own.is_empty() {
                self.patched.extend(added(patch, shape, path)?.map(Place::New));
                return Ok(());
            }
            let message = format!("an item of the patch has no `{primary}`");
            let mut problem = path.problem(message, None);
            problem.hint = Some(format!("items of this list are identified by `{primary}`"));
            return Err(problem);
        };
        let in_use = self.keys.iter().filter(|key| key_text(patch, key).is_some()).count();
        self.used = self.used.max(in_use);
        let path = path.child(&name);
        if directives::of_map(fields, &path)? == Directive::Delete {
            let keys = self.keys;
            self.own
                .iter_mut()
                .filter(|own| own.as_ref().is_some_and(|own| same(own, patch, keys)))
                .for_each(|own| *own = None);
            return Ok(());
        }
        if let Some(at) = self.find_own(patch) {
            if let Some(Some(own)) = self.own.get_mut(at)
                && !merge_value(own, patch, shape, &path)?
            {
                self.own[at] = None;
                return Ok(());
            }
            if !self.patched.iter().any(|place| matches!(place, Place::Own(own) if *own == at)) {
                self.patched.push(Place::Own(at));
            }
            return Ok(());
        }
        let keys = self.keys;
        let new = self.patched.iter_mut().find_map(|place| match place {
            Place::New(item) if same(item, patch, keys) => Some(item),
            _ => None,
        });
        match new {
            Some(item) => {
                merge_value(item, patch, shape, &path)?;
            }
            None => self.patched.extend(added(patch, shape, &path)?.map(Place::New)),
        }
        Ok(())
    }

    /// The item that a patch names. Of several with the same keys the last one counts, as for the API server; the others
    /// are dropped.
    fn find_own(&mut self, patch: &Value) -> Option<usize> {
        let candidates = |own: &[Option<Value>], test: &dyn Fn(&Value) -> bool| -> Vec<usize> {
            let items = own.iter().enumerate();
            items.filter(|(_, item)| item.as_ref().is_some_and(test)).map(|(at, _)| at).collect()
        };
        let keys = self.keys;
        let exact =
            |item: &Value| keys.iter().all(|key| key_text(item, key) == key_text(patch, key));
        let mut found = candidates(&self.own, &exact);
        if found.is_empty() {
            // A key that one side leaves out fits everything, if that is not ambiguous.
            found = candidates(&self.own, &|item| same(item, patch, keys));
            found.truncate(1);
        }
        let first = *found.first()?;
        let last = found.pop()?;
        if last != first {
            self.own[first] = self.own[last].take();
            for at in found.into_iter().skip(1) {
                self.own[at] = None;
            }
        }
        Some(first)
    }

    fn finish(mut self) -> Vec<Value> {
        let patch_order = self.used < 2;
        let mut result = Vec::with_capacity(self.own.len() + self.patched.len());
        for place in self.patched {
            match place {
                Place::New(item) => result.push(item),
                Place::Own(at) if patch_order => {
                    result.extend(self.own.get_mut(at).and_then(Option::take));
                }
                Place::Own(_) => {}
            }
        }
        result.extend(self.own.into_iter().flatten());
        result
    }
}

/// The text of a key; `None` when it is missing, `null` or empty.
fn key_text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(scalar_text).filter(|text| !text.is_empty())
}

/// Whether two items have a key in common and contradict each other in none.
fn same(a: &Value, b: &Value, keys: &[String]) -> bool {
    let mut common = false;
    for key in keys {
        match (key_text(a, key), key_text(b, key)) {
            (Some(a), Some(b)) if a == b => common = true,
            (Some(_), Some(_)) => return false,
            _ => {}
        }
    }
    common
}
