use std::collections::BTreeMap;

use crate::schema::{ConflictRule, DeploymentFile, IgnoreRule};

/// What a deployment project hands down to its items and to included projects (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Inherited {
    /// Tags of the project, of the item that includes it, of the parent project, and so on up; the first use decides the
    /// place.
    pub(crate) tags: Vec<String>,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) override_namespace: Option<String>,
    pub(crate) ignore_for_diff: Vec<IgnoreRule>,
    /// Lowest precedence first: a parent overrides its children.
    pub(crate) conflict_resolution: Vec<ConflictRule>,
}

impl Inherited {
    /// What a project hands down, given what it inherits itself and the tags of the item that includes it.
    pub(crate) fn below(parent: &Self, include_tags: &[String], file: &DeploymentFile) -> Self {
        let merged = |base: &BTreeMap<String, String>, own: &BTreeMap<String, String>| {
            let mut merged = base.clone();
            merged.extend(own.clone());
            merged
        };
        Self {
            tags: unique([file.tags.as_slice(), include_tags, &parent.tags]),
            common_labels: merged(&parent.common_labels, &file.common_labels),
            common_annotations: merged(&parent.common_annotations, &file.common_annotations),
            override_namespace: file
                .override_namespace
                .clone()
                .or_else(|| parent.override_namespace.clone()),
            ignore_for_diff: [&file.ignore_for_diff[..], &parent.ignore_for_diff].concat(),
            conflict_resolution: [&file.conflict_resolution[..], &parent.conflict_resolution]
                .concat(),
        }
    }

    /// The tags of an item: those inherited, then its own.
    pub(crate) fn item_tags(&self, own: &[String]) -> Vec<String> {
        unique([self.tags.as_slice(), own])
    }
}

/// The tags of an item that gives none: the last part of its path or include, if that is a name.
pub(crate) fn default_tag(path: &str) -> Option<String> {
    let last = path.split('/').rfind(|part| !part.is_empty())?;
    (last != "." && last != "..").then(|| last.to_owned())
}

fn unique<'a>(lists: impl IntoIterator<Item = &'a [String]>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in lists.into_iter().flatten() {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    tags
}
