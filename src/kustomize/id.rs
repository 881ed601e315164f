use std::fmt;

use serde_json::Value;

/// Namespace part of identities of objects that cannot be in a namespace.
const NOT_NAMESPACED: &str = "_non_namespaceable_";
const DEFAULT_NAMESPACE: &str = "default";

/// Group, version and kind. As a selector, empty parts select everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Gvk {
    /// API group, empty for the core group.
    pub group: String,
    /// Version within the group.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// From `apiVersion` and `kind`.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// Whether this kind is what `selector` asks for.
    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        fits(&selector.group, &self.group)
            && fits(&selector.version, &self.version)
            && fits(&selector.kind, &self.kind)
    }
}

impl fmt::Display for Gvk {
    /// `Kind.version.group`, without the parts that are not given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.kind, &self.version, &self.group];
        let given: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&given.join("."))
    }
}

/// What kustomize identifies an object by. An object collects former identities while transformers rename it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Name.
    pub name: String,
    /// Namespace as far as identity goes: `default` when none is set, a constant for cluster-scoped kinds.
    pub effective_namespace: String,
}

impl Id {
    pub(crate) fn new(gvk: Gvk, name: &str, namespace: &str, cluster_scoped: bool) -> Self {
        let effective_namespace = effective_namespace(namespace, cluster_scoped).to_owned();
        Self { gvk, name: name.to_owned(), effective_namespace }
    }

    /// Whether objects with this identity are known not to be in a namespace.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        is_no_namespace(&self.effective_namespace)
    }
}

/// Whether this is what stands for the namespace of cluster-scoped objects.
pub(crate) fn is_no_namespace(effective_namespace: &str) -> bool {
    effective_namespace == NOT_NAMESPACED
}

/// The namespace that counts for identity.
pub(crate) fn effective_namespace(namespace: &str, cluster_scoped: bool) -> &str {
    if cluster_scoped {
        NOT_NAMESPACED
    } else if namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        namespace
    }
}

impl fmt::Display for Id {
    /// `namespace/Kind/name`; the namespace only when it is neither the default nor meaningless.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_cluster_scoped() && self.effective_namespace != DEFAULT_NAMESPACE {
            write!(f, "{}/", self.effective_namespace)?;
        }
        write!(f, "{}/{}", self.gvk.kind, self.name)
    }
}

/// The text of a scalar, as YAML would write it plain; `None` for lists and mappings.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}
