//! Where the project comes from, and what it waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::LocalObjectReference;

/// Kinds of Flux sources.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum SourceKind {
    /// A Git repository.
    GitRepository,
    /// An S3-compatible bucket.
    Bucket,
    /// An artifact in an OCI registry.
    #[serde(rename = "OCIRepository")]
    OciRepository,
    /// An artifact that a third controller offers.
    ExternalArtifact,
}

impl SourceKind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::GitRepository, Self::Bucket, Self::OciRepository, Self::ExternalArtifact];

    /// The kind's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::Bucket => "Bucket",
            Self::OciRepository => "OCIRepository",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }

    /// The resource's name in the API.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::GitRepository => "gitrepositories",
            Self::Bucket => "buckets",
            Self::OciRepository => "ocirepositories",
            Self::ExternalArtifact => "externalartifacts",
        }
    }
}

/// A Flux source, in this or another namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.apiVersion) || self.apiVersion.startsWith('source.toolkit.fluxcd.io/')",
    "message": "apiVersion must belong to the group source.toolkit.fluxcd.io"
}]))]
pub struct SourceReference {
    /// API version of the source. The version that the cluster serves is used, whatever is given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the source. Defaults to the namespace of this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A Git repository that the controller clones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Address of the repository.
    pub url: String,
    /// Branch or tag to deploy. Defaults to the default branch of the repository.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Directory of the project inside the repository. Defaults to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret of this namespace with `username` and `password`, or `bearerToken`, or `identity` and `known_hosts`; optionally
    /// `ca.crt` (or `caFile`), and `tls.crt` with `tls.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A branch or tag. The tag is used when both are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// Name of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// An object to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.apiVersion) == has(self.kind)",
    "message": "apiVersion and kind are given together, or both left out for a KluctlDeployment"
}]))]
pub struct Dependency {
    /// API version of the object. Defaults to the one of KluctlDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub api_version: Option<String>,
    /// Kind of the object, for example Kustomization or HelmRelease. Defaults to KluctlDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object. Defaults to the namespace of this object; ignored for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}
