//! What the user types: groups of flags, and how they become option values.

mod arguments;
mod cluster;
mod credentials;
mod deploy;
mod images;
mod inclusion;
mod output;
mod project;
mod store;
mod target;

pub(super) use arguments::ArgumentFlags;
pub(super) use cluster::{ClusterFlags, OfflineFlags};
pub(super) use credentials::{GitFlags, HelmFlags, RegistryFlags};
pub(super) use deploy::{ConfirmFlags, DeployFlags, DiscriminatorFlag, ForceFlags, IgnoreFlags};
pub(super) use images::ImageFlags;
pub(super) use inclusion::InclusionFlags;
pub(super) use output::{
    OutputFlags, OutputFormat, ResultOutput, ResultOutputFlags, ValidateOutputFlags,
};
pub(super) use project::ProjectFlags;
pub(super) use store::StoreFlags;
pub(super) use target::DeploymentFlags;

use crate::api::GoDuration;

/// Reads a duration as Go writes it.
pub(in crate::cli) fn duration(text: &str) -> Result<std::time::Duration, String> {
    text.parse::<GoDuration>().map(|duration| duration.0).map_err(|error| error.to_string())
}
