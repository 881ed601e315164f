//! One operation per file, from a source tree to a result. Fronts hand in what the engine may talk to.

#[cfg(test)]
mod bad_input_tests;
mod changes;
mod delete;
mod deploy;
mod diff;
mod error;
mod externals;
mod helm;
mod http_vars;
mod limits;
mod lint;
mod options;
mod parallel;
mod poke;
mod prepare;
mod prune;
mod remotes;
mod session;
mod validate;

pub use delete::{delete, plan_delete};
pub use deploy::deploy;
pub use diff::{KnownVersions, diff, known_versions};
pub use error::EngineError;
pub(crate) use externals::git_tips;
pub use externals::{Externals, GitIncludes};
pub use helm::{ChartSource, Charts, PulledCharts};
pub use http_vars::HttpVars;
pub use limits::Limits;
pub use lint::{Finding, Severity};
pub use options::{DeployOptions, DiffOptions};
pub use poke::poke_images;
pub use prepare::{ConfigFile, Engine, PrepareRequest, Prepared, ResolvedTarget, Source};
pub use prune::{Leftovers, PlannedRemoval, footprint, leftovers, plan_prune, prune, prune_former};
pub use remotes::RemoteResources;
pub use session::Session;
pub use validate::validate;

pub use crate::observer::{EngineEvent, Observer, Silent, Stage};
