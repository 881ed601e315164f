use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AwsConfig, FixedImage};

/// An entry of `targets` in `.kluctl.yaml` (kluctl 2.28). Strings, also keys inside of `args`, are templates.
///
/// Serialized, it is what templates see as `target`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TargetConfig {
    /// The name to select it by. Entries without one are left out.
    pub name: String,
    /// The kubeconfig context; left out, the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Arguments that win over declared defaults and lose against those given from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// How AWS is reached; each setting falls back to the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsConfig>,
    /// Which images `images.get_image` resolves to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,
    /// The label value that marks what this target owns; left out, the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
}
