//! The files of a Kluctl project as typed values, with the rules between their fields.

mod conflict;
mod deployment;
mod git;
mod helm;
mod images;
mod item;
mod json_schema;
mod oci;
mod project;
mod selector;
mod target;
mod vars;
mod violation;

pub use conflict::{ConflictAction, ConflictRule, IgnoreRule, OneOrMany};
pub use deployment::DeploymentFile;
pub use git::{GitProject, GitRef};
pub use helm::{HelmChart, HelmChartFile};
pub use images::{FixedImage, FixedImages};
pub use item::DeploymentItem;
pub use json_schema::{FileSchema, json_schemas};
pub use oci::{OciProject, OciRef};
pub use project::{ArgDeclaration, AwsConfig, LibraryFile, ProjectFile, ServiceAccountRef};
pub use selector::ObjectSelector;
pub use target::TargetConfig;
pub use vars::{
    AwsSecret, AzureSecret, ClusterData, ClusterObject, GcpSecret, GitFile, GitFiles,
    GitFilesEntry, HttpRequest, VarsSource, VaultSecret,
};
pub use violation::{Violation, Violations};

#[cfg(test)]
mod tests;
