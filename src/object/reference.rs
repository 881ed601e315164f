use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identifies one object in a cluster.
///
/// The version is part of the value but two references that differ only in it name the same object; use
/// [`ObjectRef::key`] to compare.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ObjectRef {
    /// API group, empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version within the group, for example `v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, `None` for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ObjectRef {
    /// Builds a reference from an `apiVersion` (`group/version`, or `version` for the core group).
    pub fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// What identifies the object whatever the version: group, kind, namespace, name.
    pub fn key(&self) -> (&str, &str, Option<&str>, &str) {
        (&self.group, &self.kind, self.namespace.as_deref(), &self.name)
    }
}

impl fmt::Display for ObjectRef {
    /// `namespace/Kind/name`, or `Kind/name` without a namespace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}/{}", self.kind, self.name)
    }
}
