//! The custom resources that the controller serves and reads, as Rust types.
//!
//! `crds/` is generated from these types; `docs/spec/v1alpha1.md` describes them field by field. Rules that concern a
//! single object are in the schema; everything that needs the cluster is the controller's.

mod conditions;
mod crd;
mod decode;
mod duration;
mod flux_v1alpha1;
mod meta;
mod reference;
mod schemas;
mod sources;
mod status;

pub use conditions::{
    Condition, ConditionStatus, OWNERSHIP_CONFLICT, READY, RECONCILING, STALLED, broken_rules,
    reason,
};
pub use crd::{CrdFile, crd_files};
pub use decode::{DecodeError, decode, decode_status};
pub use duration::{DurationError, DurationOrNever, GoDuration};
pub use flux_v1alpha1::{
    API_VERSION, Credentials, Decryption, DecryptionProvider, Dependency, DeployMode, FixedImage,
    FixedImageObject, GROUP, GitRef, GitSource, HelmCredentials, HostCredentials, KIND,
    KluctlDeployment, KluctlDeploymentSpec, KubeConfig, RegistryCredentials, RenameContext,
    SecretKeyReference, SourceKind, SourceReference, VERSION,
};
pub use meta::{
    DEPLOY_REQUESTED_AT, EVENT_ANNOTATION_PREFIX, FINALIZER, FORCE_AT, LocalObjectReference,
    NamespacedName, REQUESTED_AT,
};
pub use reference::reference_page;
pub use sources::{
    Artifact, FluxSource, FluxSourceSpec, FluxSourceStatus, ORIGIN_REVISION, SOURCE_GROUP,
};
pub use status::{
    ClaimState, CommandStatus, DependentRepository, Footprint, FormerTarget,
    KluctlDeploymentStatus, MAX_FOOTPRINT, MAX_FORMER_TARGETS, MAX_LISTED_FAILURES, ObjectFailure,
    TargetClaim, ValidateStatus,
};

#[cfg(test)]
mod tests;
