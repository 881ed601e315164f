//! From a loaded project to the objects that are wanted in the cluster.
//!
//! The stages are functions on values: [`load()`] walks the project, its includes and variables; each item is rendered, built
//! and completed on its own; [`DesiredState`] exists only when all of them succeeded.

mod build;
mod charts;
mod config_file;
mod desired;
mod error;
mod hash;
mod images;
mod include;
mod inclusion;
mod inherited;
mod item;
mod kustomization;
mod load;
mod metadata;
mod namespaces;
mod postprocess;
mod project_file;
mod render;
mod sources;
mod template_ignore;
mod view;
mod walk;

pub use build::{
    Building, BuiltItem, ItemError, ItemProblem, RenderOptions, RenderedFiles, RenderedItem,
    Rendering,
};
pub use charts::{ChartError, ChartProblem, ChartUse};
pub use desired::{DesiredItem, DesiredState, FixedImageUse};
pub use error::{LoadError, LoadProblem};
pub use images::ImageError;
pub use inclusion::Inclusion;
pub use kustomization::KustomizationError;
pub(crate) use load::load_partly;
pub use load::{Deployment, LoadInput, load};
pub use metadata::MetadataProblem;
pub use namespaces::ScopeLookup;
pub use postprocess::PostprocessError;
pub use render::RenderError;
pub use sources::ResolvedRepository;

pub use crate::vars::{GitCheckout, GitSource};

#[cfg(test)]
mod tests;
