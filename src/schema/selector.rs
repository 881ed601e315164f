use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry of `deleteObjects` or `waitReadinessObjects`: an object by group and/or kind, name and namespace.
///
/// Group or kind is required; what is left out matches any preferred API resource (kluctl 2.28).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectSelector {
    /// API group; left out, any group that serves `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; left out, every kind of `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Object name.
    pub name: String,
    /// Namespace, left out for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
