//! One operation per file, from a source tree to a result. Fronts hand in what the engine may talk to.

mod limits;
mod options;

pub use limits::Limits;
pub use options::{DeployOptions, DiffOptions};

pub use crate::observer::{EngineEvent, Observer, Silent, Stage};
