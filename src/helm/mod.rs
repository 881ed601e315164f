//! Helm charts: where they come from, how they are kept beside a project, and rendering them with the `helm` program.
//!
//! [`Origin`] says which chart a `helm-chart.yaml` means and where its pulled copy lies; [`find`] looks for it in a source
//! tree; [`Renderer`] runs `helm template` on its files and keeps what came of it. The program is given an empty environment,
//! an empty home, no cluster and no network: all that a chart sees is passed in.

mod cache;
mod chart;
mod error;
mod files;
mod find;
mod output;
mod program;
mod pull;
mod render;
mod semver;
mod stage;

pub use cache::CacheLimits;
pub use chart::{Origin, PULLED_DIR, Version};
pub use error::HelmError;
pub use files::{ChartFiles, Metadata};
pub use find::{Found, find};
pub use program::{MINIMUM_VERSION, ProgramChoice, TESTED_VERSION};
pub use pull::{
    Access, AccessRule, AccessRules, ChartCache, IndexEntry, PullError, PullOptions, PulledChart,
    Puller, read_index,
};
pub use render::{Capabilities, Release, Renderer, RendererOptions, Values};
pub use semver::{Constraint, NoConstraint, SemVer};

#[cfg(test)]
mod tests;
