use std::collections::{HashMap, hash_map::Entry};

use super::{
    error::{KustomizeError, duplicate},
    id::Id,
    resource::Resource,
};

/// The objects of a build in order of accumulation. No two have the same identity after a change that may rename.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResMap {
    list: Vec<Resource>,
    /// Index of each identity; `None` when a change may have outdated it.
    index: Option<HashMap<Id, usize>>,
}

impl ResMap {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Resource> {
        self.list.iter()
    }

    pub(crate) fn as_slice(&self) -> &[Resource] {
        &self.list
    }

    /// All objects, for any change; changed identities are checked by [`ResMap::check_unique`].
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Resource> {
        self.index = None;
        self.list.iter_mut()
    }

    /// One object, for any change.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Resource> {
        self.index = None;
        self.list.get_mut(at)
    }

    pub(crate) fn into_vec(self) -> Vec<Resource> {
        self.list
    }

    /// Removes what nothing is left of.
    pub(crate) fn drop_empty(&mut self) {
        self.retain(|resource| !resource.is_empty());
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Resource) -> bool) {
        let before = self.list.len();
        self.list.retain(keep);
        if self.list.len() != before {
            self.index = None;
        }
    }

    /// Reorders, stable for equal keys.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&Resource) -> K) {
        self.index = None;
        self.list.sort_by_cached_key(key);
    }

    /// Replaces the object at `at`.
    pub(crate) fn replace(&mut self, at: usize, resource: Resource) {
        self.index = None;
        if let Some(slot) = self.list.get_mut(at) {
            *slot = resource;
        }
    }

    /// Adds an object at the end.
    ///
    /// # Errors
    /// When one of the same identity is there.
    pub(crate) fn append(&mut self, resource: Resource) -> Result<(), KustomizeError> {
        let id = resource.id();
        let next = self.list.len();
        match self.index_by_id().entry(id) {
            Entry::Occupied(slot) => {
                let first = *slot.get();
                let id = slot.key().clone();
                Err(duplicate(&id, self.list.get(first).map(|r| &r.at), &resource.at))
            }
            Entry::Vacant(slot) => {
                slot.insert(next);
                self.list.push(resource);
                Ok(())
            }
        }
    }

    /// Adds all of another map.
    ///
    /// # Errors
    /// As [`ResMap::append`].
    pub(crate) fn append_all(&mut self, other: Self) -> Result<(), KustomizeError> {
        if self.list.is_empty() {
            *self = other;
            return Ok(());
        }
        other.list.into_iter().try_for_each(|resource| self.append(resource))
    }

    /// # Errors
    /// When two objects have the same identity.
    pub(crate) fn check_unique(&mut self) -> Result<(), KustomizeError> {
        let mut index = HashMap::with_capacity(self.list.len());
        for (at, resource) in self.list.iter().enumerate() {
            if let Some(first) = index.insert(resource.id(), at) {
                let first = self.list.get(first).map(|r| &r.at);
                return Err(duplicate(&resource.id(), first, &resource.at));
            }
        }
        self.index = Some(index);
        Ok(())
    }

    /// Indexes of the objects that have or had the identity.
    pub(crate) fn find_by_any_id(&self, id: &Id) -> Vec<usize> {
        let matches = self.list.iter().enumerate().filter(|(_, resource)| {
            // Names differ mostly: look at them before identities are built.
            let names = resource.former.iter().map(|former| former.name.as_str());
            names.chain([resource.name()]).any(|name| name == id.name) && resource.was(id)
        });
        matches.map(|(at, _)| at).collect()
    }

    fn index_by_id(&mut self) -> &mut HashMap<Id, usize> {
        self.index.get_or_insert_with(|| {
            self.list.iter().enumerate().map(|(at, resource)| (resource.id(), at)).collect()
        })
    }
}
