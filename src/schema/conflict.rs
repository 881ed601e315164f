use serde::{Deserialize, Serialize};

/// A string or a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A single value.
    One(String),
    /// Several values.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The values in order.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// An entry of `ignoreForDiff` (engine reference 4.2, 7.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoreRule {
    /// JSON paths of ignored fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<OneOrMany>,
    /// Unanchored regular expressions on the paths of leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path_regex: Option<OneOrMany>,
    /// Only objects of this API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only objects of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only objects of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What to do with a field that another field manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictAction {
    /// Leave the field to its owner, silently.
    Ignore,
    /// Take the field over.
    ForceApply,
}

/// An entry of `conflictResolution` (engine reference 4.2, 7.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConflictRule {
    /// JSON paths of the fields meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<OneOrMany>,
    /// Unanchored regular expressions on the paths of leaves of the rendered object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path_regex: Option<OneOrMany>,
    /// Unanchored regular expressions on the name of the field manager that owns the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<OneOrMany>,
    /// Only objects of this API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only objects of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only objects of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What to do.
    pub action: ConflictAction,
}
