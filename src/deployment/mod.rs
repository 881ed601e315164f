//! From a loaded project to the objects that are wanted in the cluster.

mod desired;
mod inclusion;

pub use desired::{DesiredItem, DesiredState, FixedImageUse};
pub use inclusion::Inclusion;
