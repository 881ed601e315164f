use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Violations, git::check_sub_dir};
use crate::diagnostic::FieldPath;

/// Which version of an OCI artifact; the digest wins over the tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciRef {
    /// `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Tag; left out, `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A directory of an OCI artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OciProject {
    /// `oci://host/repository`, without a tag.
    pub url: String,
    /// Version; left out, the tag `latest`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<OciRef>,
    /// Directory in the artifact; left out, its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_dir: Option<String>,
}

impl OciProject {
    pub(super) fn check(&self, path: &FieldPath, violations: &mut Violations) {
        if !self.url.starts_with("oci://") {
            violations.add(path.child("url"), "is no OCI repository", "oci://host/repository");
        }
        check_sub_dir(self.sub_dir.as_deref(), path, violations);
    }
}
