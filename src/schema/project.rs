use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TargetConfig;

/// A `.kluctl.yaml` (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProjectFile {
    /// The environments the project can be deployed to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetConfig>,
    /// The arguments the project takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ArgDeclaration>,
    /// The discriminator of targets that have none of their own; a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// What targets without settings of their own use to reach AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsConfig>,
}

/// An argument that a project or library takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArgDeclaration {
    /// The name; `.` leads into a mapping.
    pub name: String,
    /// The value when none is given. Without it, or with null, the argument is required. Not a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// A `.kluctl-library.yaml`: makes an included project a library with arguments of its own (kluctl 2.28).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LibraryFile {
    /// The arguments that an including item can or must give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<ArgDeclaration>,
}

/// How AWS is reached, for vars from its secrets manager.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AwsConfig {
    /// A profile of the AWS configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A service account in the cluster whose role is taken on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountRef>,
}

/// A service account in the target's cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceAccountRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}
