use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::LocalObjectReference;

/// API group of Flux sources.
pub const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";
/// Key of artifact metadata with the revision of the application's source.
pub const ORIGIN_REVISION: &str = "org.opencontainers.image.revision";

/// What this controller reads of a Flux source of any kind and API version.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FluxSource {
    /// Name, namespace, resource version.
    pub metadata: ObjectMeta,
    /// Address and credentials.
    pub spec: FluxSourceSpec,
    /// The artifact.
    pub status: FluxSourceStatus,
}

impl FluxSource {
    /// Reads a source as stored. A part that cannot be read counts as missing.
    pub fn read(object: &serde_json::Value) -> Self {
        fn part<T: serde::de::DeserializeOwned + Default>(value: &serde_json::Value) -> T {
            T::deserialize(value).unwrap_or_default()
        }
        Self {
            metadata: part(&object["metadata"]),
            spec: part(&object["spec"]),
            status: part(&object["status"]),
        }
    }
}

/// The part of a source's spec that helps to reach related repositories.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FluxSourceSpec {
    /// Address of the repository (GitRepository, OCIRepository).
    pub url: Option<String>,
    /// Secret in the source's namespace.
    pub secret_ref: Option<LocalObjectReference>,
    /// Provider of the credentials; only `generic` ones are found in a Secret.
    pub provider: Option<String>,
}

/// The part of a source's status that says what to deploy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FluxSourceStatus {
    /// The last artifact; `None` while there is none.
    pub artifact: Option<Artifact>,
}

/// A tarball that a Flux controller serves (Flux's source API).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    /// Where to download it.
    pub url: String,
    /// `algorithm:hex` over the compressed file; empty from Flux releases before 1.0, which used [`Artifact::checksum`].
    pub digest: String,
    /// Hex SHA-256 (or SHA-1) in place of `digest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Human-readable identity of the content, for example `main@sha1:…`.
    pub revision: String,
    /// Size of the compressed file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Annotations of an OCI artifact.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Artifact {
    /// `algorithm:hex` from whichever field is filled; `None` when the source gives neither.
    pub fn digest(&self) -> Option<String> {
        if !self.digest.is_empty() {
            let has_algorithm = self.digest.contains(':');
            return Some(if has_algorithm {
                self.digest.clone()
            } else {
                format!("sha256:{}", self.digest)
            });
        }
        let checksum = self.checksum.as_deref().filter(|checksum| !checksum.is_empty())?;
        // Sources of Flux 0.x wrote SHA-1 sums first and SHA-256 later; only the length tells them apart.
        let algorithm = if checksum.len() == 40 { "sha1" } else { "sha256" };
        Some(format!("{algorithm}:{checksum}"))
    }

    /// Revision of the application's source, as recorded by whoever pushed the artifact.
    pub fn origin_revision(&self) -> Option<&str> {
        self.metadata.get(ORIGIN_REVISION).map(String::as_str).filter(|text| !text.is_empty())
    }
}
