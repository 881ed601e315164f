//! `.kluctl.yaml`: the project, its arguments, and the one target that is worked with.
//!
//! [`Project::load`] reads the file; [`args`] makes one value of the arguments given from outside; [`Project::resolve`] picks a
//! target, renders its templates and applies overrides (kluctl 2.28). Everything here is pure: files come from a
//! [`SourceTree`](crate::tree::SourceTree), templates are rendered by a function that is handed in.

pub mod args;
mod discriminator;
mod error;
mod load;
mod target;
mod targets;

pub use discriminator::check_discriminator;
pub use error::ProjectError;
pub use load::Project;
pub use target::Target;
pub use targets::{RenderTexts, TargetList, TargetRequest};

#[cfg(test)]
mod tests;
