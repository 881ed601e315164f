//! Credentials, and the way to the target cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::LocalObjectReference;

/// Credentials by host, for what the project refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credentials {
    /// For Git repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<HostCredentials>,
    /// For OCI registries that hold Helm charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oci: Vec<RegistryCredentials>,
    /// For Helm repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HostCredentials>,
}

impl Credentials {
    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.git.is_empty() && self.oci.is_empty() && self.helm.is_empty()
    }
}

/// Credentials for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCredentials {
    /// Host, with port when it is not the scheme's default. `*` stands for every host and counts for ssh only.
    pub host: String,
    /// Glob on the path below the host; `*` matches within one segment, `**` across them. Defaults to every path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret of this namespace with `username` and `password`, or `bearerToken`, or `identity` and `known_hosts`; optionally
    /// `ca.crt` (or `caFile`), and `tls.crt` with `tls.key`.
    pub secret_ref: LocalObjectReference,
}

/// Credentials for one OCI registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryCredentials {
    /// Registry host, with port when it is not the scheme's default.
    pub registry: String,
    /// Glob on the repository. Defaults to every repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Secret of this namespace.
    pub secret_ref: LocalObjectReference,
}

/// Where a kubeconfig is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.secretRef)",
    "message": "kubeConfig needs secretRef"
}]))]
pub struct KubeConfig {
    /// Secret of this namespace that holds the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeyReference>,
}

/// A key of a Secret in the namespace of the referring object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyReference {
    /// Name of the Secret.
    pub name: String,
    /// Key in the Secret. Defaults to `value`, then to `value.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A new name for a kubeconfig context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameContext {
    /// Name of an existing context.
    #[schemars(length(min = 1))]
    pub old_context: String,
    /// Its new name, which no context may have already.
    #[schemars(length(min = 1))]
    pub new_context: String,
}

/// How encrypted files are decrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Name of the decryption engine.
    pub provider: DecryptionProvider,
    /// Secret of this namespace with the private keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Service account of this namespace whose identity is used with a cloud's key service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// Decryption engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecryptionProvider {
    /// SOPS.
    Sops,
}

/// Credentials of one Helm repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmCredentials {
    /// Secret of this namespace with `url` and the credentials: `username` and `password`, `certFile` and `keyFile`, `caFile`,
    /// `insecureSkipTlsVerify`, `passCredentialsAll`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}
