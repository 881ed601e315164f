//! How strategic merge patches merge lists, and which kinds are cluster-scoped.
//!
//! The built-in table holds the merge keys of Kubernetes 1.21, which kustomize v5 uses, so that both agree; lists of other
//! kinds are replaced. `openapi.path` of a kustomization puts a user's document in its place.

mod custom;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock, OnceLock},
};

use serde::Deserialize;

/// The built-in table; its types are read when something is merged.
static BUILTIN: LazyLock<Arc<Schema>> = LazyLock::new(Arc::default);

/// Kinds that kustomize knows, as `apiVersion Kind`, and whether they are cluster-scoped.
static SCOPES: LazyLock<HashMap<&str, bool>> = LazyLock::new(|| {
    let kind = |line: &'static str| match line.strip_prefix("cluster ") {
        Some(kind) => (kind, true),
        None => (line.strip_prefix("namespaced ").unwrap_or(line), false),
    };
    include_str!("scopes.txt").lines().map(kind).collect()
});

/// What kustomize calls the version of its built-in document.
pub(crate) const BUILTIN_VERSION: &str = "v1.21.2";

/// Types and kinds; the default is what is built in.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    types: OnceLock<Types>,
    /// `apiVersion Kind` of those that are not built in.
    cluster_scoped: HashSet<String>,
}

/// How lists merge.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Types {
    /// By type name: the fields that matter.
    types: HashMap<String, HashMap<String, Field>>,
    /// By `apiVersion Kind`: the type.
    kinds: HashMap<String, String>,
}

impl Types {
    /// `builtin.json` and `scopes.txt` are written by `hack/kustomize-schema.py`.
    fn builtin() -> Self {
        // A test reads the same text: what is shipped can be read.
        serde_json::from_str(include_str!("builtin.json")).unwrap_or_default()
    }

    fn named(&self, name: &str) -> Known<'_> {
        let found = self.types.get(name).or_else(|| self.types.get(short_name(name)));
        found.map_or(Known::Nothing, Known::Type)
    }
}

/// A field of a type.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Field {
    /// A mapping with fields of its own.
    Type(String),
    /// A list, or a mapping with any keys.
    Container(Container),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Container {
    /// The keys that identify an item, for lists that merge; empty for lists of scalars.
    merge: Option<Vec<String>>,
    /// Type of the items.
    items: Option<String>,
    /// Type of the values.
    values: Option<String>,
}

/// What is known about a value. Copies are cheap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    types: &'a Types,
    known: Known<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Known<'a> {
    Nothing,
    Type(&'a HashMap<String, Field>),
    Container(&'a Container),
}

impl Schema {
    /// The built-in table.
    pub(crate) fn builtin() -> Arc<Self> {
        BUILTIN.clone()
    }

    /// The table of an OpenAPI v2 document, instead of the built-in table or over it, where built-in types win.
    ///
    /// The scopes of built-in kinds stay known.
    pub(crate) fn from_openapi(document: &serde_json::Value, with_builtin: bool) -> Self {
        let (mut types, cluster_scoped) = custom::read(document);
        if with_builtin {
            let builtin = Types::builtin();
            types.types.retain(|name, _| !builtin.types.contains_key(short_name(name)));
            types.types.extend(builtin.types);
            types.kinds.extend(builtin.kinds);
        }
        Self { types: types.into(), cluster_scoped }
    }

    /// Whether the built-in table has a kind.
    pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
        SCOPES.contains_key(format!("{api_version} {kind}").as_str())
    }

    /// Whether a kind is known not to live in namespaces.
    pub(crate) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        let name = format!("{api_version} {kind}");
        match SCOPES.get(name.as_str()) {
            Some(true) => true,
            _ => self.cluster_scoped.contains(&name),
        }
    }

    /// What is known about objects of a kind.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Shape<'_> {
        Shape { types: self.types.get_or_init(Types::builtin), known: Known::Nothing }
            .of_kind(api_version, kind)
    }
}

/// The name of a Kubernetes type in the built-in table, `core.v1.Pod` for `io.k8s.api.core.v1.Pod`.
fn short_name(name: &str) -> &str {
    if !name.starts_with("io.k8s.") {
        return name;
    }
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at + 1);
    dots.nth(2).and_then(|start| name.get(start..)).unwrap_or(name)
}

impl<'a> Shape<'a> {
    /// Whether nothing is known.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self.known, Known::Nothing)
    }

    /// The same schema's knowledge about a kind.
    pub(crate) fn of_kind(self, api_version: &str, kind: &str) -> Self {
        let name = self.types.kinds.get(&format!("{api_version} {kind}"));
        Self { known: name.map_or(Known::Nothing, |name| self.types.named(name)), ..self }
    }

    /// The value of a field.
    pub(crate) fn field(self, name: &str) -> Self {
        let known = match self.known {
            Known::Type(fields) => match fields.get(name) {
                Some(Field::Type(name)) => self.types.named(name),
                Some(Field::Container(container)) => Known::Container(container),
                None => Known::Nothing,
            },
            Known::Container(Container { values: Some(name), .. }) => self.types.named(name),
            Known::Container(_) | Known::Nothing => Known::Nothing,
        };
        Self { known, ..self }
    }

    /// The items of a list.
    pub(crate) fn items(self) -> Self {
        let known = match self.known {
            Known::Container(Container { items: Some(name), .. }) => self.types.named(name),
            _ => Known::Nothing,
        };
        Self { known, ..self }
    }

    /// The keys that identify an item of a merging list, none for scalars; `None` for lists that are replaced.
    pub(crate) fn merge_keys(self) -> Option<&'a [String]> {
        match self.known {
            Known::Container(container) => container.merge.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
