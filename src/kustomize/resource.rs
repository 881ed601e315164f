use serde_json::{Map, Value};

use super::{
    id::{Gvk, Id},
    origin::Origin,
    schema::Schema,
    styles::Source,
};
use crate::diagnostic::SourceLocation;

/// How a generated object meets one of the same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Behavior {
    /// It must not exist yet.
    #[default]
    Create,
    /// It takes the place of the existing one.
    Replace,
    /// Its data is laid over the existing one's.
    Merge,
}

/// A former identity; group and version never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Former {
    pub kind: String,
    pub name: String,
    pub effective_namespace: String,
}

/// An object on its way through the build.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// The tree; always a mapping.
    pub value: Value,
    /// Where it was read, or the kustomization that generates it.
    pub at: SourceLocation,
    /// The text it was read from; `None` when generated, or changed as a whole since.
    pub source: Option<Source>,
    /// Identities it had before, oldest first.
    pub former: Vec<Former>,
    /// Name prefixes put on it, innermost first.
    pub prefixes: Vec<String>,
    /// Name suffixes put on it, innermost first.
    pub suffixes: Vec<String>,
    /// Behaviour, for generated objects.
    pub behavior: Behavior,
    /// Whether a generator made it.
    pub generated: bool,
    /// Whether the name gets a hash of the content at the end.
    pub needs_hash: bool,
    /// Names of the vars that read from it.
    pub vars: Vec<String>,
    /// Where it comes from, if that is recorded.
    pub origin: Option<Origin>,
    /// What changed it, if that is recorded.
    pub transformations: Vec<Origin>,
    cluster_scoped: bool,
}

impl Resource {
    pub(crate) fn new(value: Value, at: SourceLocation, schema: &Schema) -> Self {
        let mut resource = Self {
            value,
            at,
            source: None,
            former: Vec::new(),
            prefixes: Vec::new(),
            suffixes: Vec::new(),
            behavior: Behavior::default(),
            generated: false,
            needs_hash: false,
            vars: Vec::new(),
            origin: None,
            transformations: Vec::new(),
            cluster_scoped: false,
        };
        resource.update_scope(schema);
        resource
    }

    /// To be called when `apiVersion` or `kind` changed.
    pub(crate) fn update_scope(&mut self, schema: &Schema) {
        self.cluster_scoped = schema.is_cluster_scoped(self.api_version(), self.kind());
    }

    fn text(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn metadata_text(&self, key: &str) -> &str {
        self.value.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("kind")
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata_text("name")
    }

    /// Namespace, empty for none.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata_text("namespace")
    }

    /// Whether the kind is known not to live in namespaces.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.cluster_scoped
    }

    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    /// The present identity.
    pub(crate) fn id(&self) -> Id {
        Id::new(self.gvk(), self.name(), self.namespace(), self.cluster_scoped)
    }

    /// Former identities, oldest first.
    pub(crate) fn former_ids(&self) -> impl DoubleEndedIterator<Item = Id> {
        let gvk = self.gvk();
        self.former.iter().map(move |former| Id {
            gvk: Gvk { kind: former.kind.clone(), ..gvk.clone() },
            name: former.name.clone(),
            effective_namespace: former.effective_namespace.clone(),
        })
    }

    /// The identity in the file it comes from.
    pub(crate) fn original_id(&self) -> Id {
        self.former_ids().next().unwrap_or_else(|| self.id())
    }

    /// Whether the present or a former identity is `id`.
    pub(crate) fn was(&self, id: &Id) -> bool {
        self.id() == *id || self.former_ids().any(|former| former == *id)
    }

    /// Remembers the present identity before a change to it.
    pub(crate) fn remember_id(&mut self) {
        let id = self.id();
        self.former.push(Former {
            kind: id.gvk.kind,
            name: id.name,
            effective_namespace: id.effective_namespace,
        });
    }

    /// `metadata`, created when missing.
    pub(crate) fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        map_at(&mut self.value, "metadata")
    }

    pub(crate) fn set_name(&mut self, name: &str) {
        self.metadata_mut().insert("name".to_owned(), name.into());
    }

    /// Sets the namespace; an empty one removes the field.
    pub(crate) fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            self.metadata_mut().remove("namespace");
        } else {
            self.metadata_mut().insert("namespace".to_owned(), namespace.into());
        }
    }

    /// Labels or annotations, for reading.
    pub(crate) fn metadata_map(&self, field: &str) -> Option<&Map<String, Value>> {
        self.value.get("metadata")?.get(field)?.as_object()
    }

    /// An annotation's text.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata_map("annotations")?.get(key)?.as_str()
    }

    /// Sets an annotation.
    pub(crate) fn set_annotation(&mut self, key: &str, value: &str) {
        let metadata = self.metadata_mut();
        let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(key.to_owned(), value.into());
        }
    }

    /// Notes a transformer, which made the object if it has no origin yet.
    pub(crate) fn record(&mut self, by: &Origin) {
        if self.origin.is_none() {
            self.origin = Some(by.clone());
        } else {
            self.transformations.push(by.clone());
        }
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.value.as_object().is_none_or(Map::is_empty)
    }
}

/// The mapping at `key`, created (or put in place of another type) when needed. `value` must be a mapping.
pub(crate) fn map_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value[key].is_object() {
        value[key] = Value::Object(Map::new());
    }
    match &mut value[key] {
        Value::Object(map) => map,
        _ => unreachable!("just made a mapping"),
    }
}
