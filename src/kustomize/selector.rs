//! Which objects a patch or a replacement is for.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    decode::{Decode, Node, decoded},
    error::{KustomizeError, Place, Result},
    id::{Gvk, scalar_text},
    label_selector::LabelSelector,
    pattern::Pattern,
    resource::Resource,
};

decoded! {
    /// A selector as written.
    pub(crate) struct Written {
        group: String = "group",
        version: String = "version",
        kind: String = "kind",
        name: String = "name",
        namespace: String = "namespace",
        annotation_selector: String = "annotationSelector",
        label_selector: String = "labelSelector",
    }
}

/// A selector: every part given must match. Names and kinds are regular expressions for the whole text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    /// As written, for messages.
    pub written: Written,
    group: Option<Pattern>,
    version: Option<Pattern>,
    kind: Option<Pattern>,
    name: Option<Pattern>,
    namespace: Option<Pattern>,
    annotations: LabelSelector,
    labels: LabelSelector,
}

impl Decode for Selector {
    fn decode(node: &Node<'_>) -> Result<Self> {
        Self::compile(Written::decode(node)?, &node.place())
    }
}

impl Selector {
    fn compile(written: Written, place: &Place) -> Result<Self> {
        let regex = |field: &str, pattern: &str| {
            if pattern.is_empty() {
                return Ok(None);
            }
            Pattern::whole(pattern).map(Some).map_err(|_| {
                let problem =
                    place.child(field).problem(format!("\"{pattern}\" is no regular expression"));
                KustomizeError::Kustomization(Box::new(problem))
            })
        };
        let labels = |field: &str, text: &str| {
            LabelSelector::parse(text).map_err(|message| place.child(field).refuse(message))
        };
        Ok(Self {
            group: regex("group", &written.group)?,
            version: regex("version", &written.version)?,
            kind: regex("kind", &written.kind)?,
            name: regex("name", &written.name)?,
            namespace: regex("namespace", &written.namespace)?,
            annotations: labels("annotationSelector", &written.annotation_selector)?,
            labels: labels("labelSelector", &written.label_selector)?,
            written,
        })
    }

    /// Whether an object is selected, by its present or original name and namespace.
    pub(crate) fn matches(&self, resource: &Resource) -> bool {
        let original = resource.former.first();
        let id = || resource.id().effective_namespace;
        let name_fits = self.name_fits(resource.name())
            || original.is_some_and(|original| self.name_fits(&original.name));
        name_fits
            && self.gvk_fits(&resource.gvk())
            && (self.namespace.is_none()
                || self.namespace_fits(&id())
                || original.is_some_and(|o| self.namespace_fits(&o.effective_namespace)))
            && self.metadata_fits(resource)
    }

    /// Whether labels and annotations are as asked for.
    pub(crate) fn metadata_fits(&self, resource: &Resource) -> bool {
        let map = |field| texts(resource.metadata_map(field));
        (self.labels.is_empty() || self.labels.matches(&map("labels")))
            && (self.annotations.is_empty() || self.annotations.matches(&map("annotations")))
    }

    /// Whether only labels or annotations are asked for.
    pub(crate) fn is_by_metadata_only(&self) -> bool {
        [&self.group, &self.version, &self.kind, &self.name, &self.namespace]
            .iter()
            .all(|part| part.is_none())
    }

    /// Whether labels or annotations are asked for.
    pub(crate) fn asks_for_metadata(&self) -> bool {
        !self.labels.is_empty() || !self.annotations.is_empty()
    }

    pub(crate) fn gvk_fits(&self, gvk: &Gvk) -> bool {
        fits(self.group.as_ref(), &gvk.group)
            && fits(self.version.as_ref(), &gvk.version)
            && fits(self.kind.as_ref(), &gvk.kind)
    }

    pub(crate) fn name_fits(&self, name: &str) -> bool {
        fits(self.name.as_ref(), name)
    }

    pub(crate) fn namespace_fits(&self, namespace: &str) -> bool {
        fits(self.namespace.as_ref(), namespace)
    }
}

fn fits(pattern: Option<&Pattern>, text: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

fn texts(map: Option<&Map<String, Value>>) -> BTreeMap<&str, String> {
    let entries = map.into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), scalar_text(value).unwrap_or_default())).collect()
}
