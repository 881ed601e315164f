//! What is deployed instead of what the project says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image to use wherever a project asks for `image` (and the other fields match).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedImage {
    /// Image that the project asks for, without a tag.
    pub image: String,
    /// Image to use.
    pub result_image: String,
    /// Informational: the image that was deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Deprecated and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_image: Option<String>,
    /// Only in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only in this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<FixedImageObject>,
    /// Only in this object, written `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Only in this container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Deprecated and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_filter: Option<String>,
    /// Informational: tags of the deployment item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Informational: directory of the deployment item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

/// An object, in the form of releases since v0.4.0 (`group` to `namespace`) or before (`id` and `v`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedImageObject {
    /// API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Old form: `<name>_<group>_<kind>`, then `_<namespace>` for namespaced objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Old form: the API version within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<String>,
}

/// What a deployment does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMode {
    /// Applies everything.
    #[default]
    FullDeploy,
    /// Replaces images only.
    PokeImages,
}
