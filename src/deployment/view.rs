use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::item::Item;
use crate::{
    tree::{Entry, EntryKind, MemoryTree, SourceTree, TreeError},
    vars::is_encrypted,
};

/// What kustomize sees while it builds an item: the item's own rendered files first, then those of the items of the same use
/// of its project and of the projects around it, then those of all items of the source. Nothing that no item renders is there.
pub(super) struct View {
    layers: Vec<Arc<MemoryTree>>,
}

impl SourceTree for View {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, TreeError> {
        let has = |layer: &&Arc<MemoryTree>| matches!(layer.kind(path), Ok(Some(_)));
        let layer = self.layers.iter().find(|layer| layer.is_file(path));
        let content = match layer.or_else(|| self.layers.iter().find(has)) {
            Some(layer) => layer.read(path)?,
            None => return Err(TreeError::NotFound { path: path.to_owned() }),
        };
        if is_encrypted(path, &content) {
            let message = "is encrypted with SOPS, which is not supported yet".to_owned();
            return Err(TreeError::Io { path: path.to_owned(), message });
        }
        Ok(content)
    }

    fn kind(&self, path: &str) -> Result<Option<EntryKind>, TreeError> {
        let kinds = self.layers.iter().filter_map(|layer| layer.kind(path).transpose());
        kinds.into_iter().next().transpose()
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let mut entries: BTreeMap<String, EntryKind> = BTreeMap::new();
        let mut is_directory = false;
        for layer in self.layers.iter().filter(|layer| layer.is_dir(path)) {
            is_directory = true;
            for entry in layer.list(path)? {
                entries.entry(entry.name).or_insert(entry.kind);
            }
        }
        match (is_directory, self.layers.first()) {
            (true, _) => Ok(entries.into_iter().map(|(name, kind)| Entry { name, kind }).collect()),
            (false, Some(layer)) => layer.list(path),
            (false, None) => Err(TreeError::NotFound { path: path.to_owned() }),
        }
    }
}

/// The rendered files of all items, arranged so that each item's [`View`] is cheap.
pub(super) struct Views {
    own: Vec<Arc<MemoryTree>>,
    /// Per project, by id.
    projects: Vec<Arc<MemoryTree>>,
    /// Per source.
    sources: Vec<Arc<MemoryTree>>,
}

impl Views {
    /// Arranges the files of `items`, of which `rendered` holds one tree each.
    pub(super) fn new(items: &[Arc<Item>], rendered: Vec<Arc<MemoryTree>>) -> Self {
        let count = |index: fn(&Item) -> usize| items.iter().map(|item| index(item) + 1).max();
        let projects = count(|item| item.project.id).unwrap_or_default();
        let sources = count(|item| item.project.source).unwrap_or_default();
        let mut project_trees = vec![MemoryTree::new(); projects];
        let mut source_trees = vec![MemoryTree::new(); sources];
        // Later insertions win: the item with the longest path knows its files best, and among uses of the same directory
        // the first one.
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|index| {
            let dir = items[*index].dir.as_deref().unwrap_or_default();
            (dir.len(), Reverse(*index))
        });
        for index in order {
            let project = &items[index].project;
            for (path, content) in rendered[index].files() {
                project_trees[project.id].insert(path, content.clone());
                source_trees[project.source].insert(path, content.clone());
            }
        }
        let share = |trees: Vec<MemoryTree>| trees.into_iter().map(Arc::new).collect();
        Self { own: rendered, projects: share(project_trees), sources: share(source_trees) }
    }

    /// The files of the item at this position.
    pub(super) fn own(&self, index: usize) -> Arc<MemoryTree> {
        self.own[index].clone()
    }

    /// The view of the item at this position.
    pub(super) fn of(&self, index: usize, item: &Item) -> View {
        let mut layers = vec![self.own[index].clone()];
        for project in item.project.ancestry() {
            if project.source == item.project.source
                && let Some(tree) = self.projects.get(project.id)
            {
                layers.push(tree.clone());
            }
        }
        layers.extend(self.sources.get(item.project.source).cloned());
        View { layers }
    }
}
