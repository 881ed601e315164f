//! Variables: where they come from, how they are merged, and how templates see them (kluctl 2.28).

mod cluster;
mod context;
mod encryption;
mod error;
mod load;
mod rendered_file;
mod sources;
mod templates;

pub use cluster::ClusterReader;
pub use context::Context;
pub(crate) use encryption::is_encrypted;
pub use error::VarsError;
pub use load::VarsLoader;
pub use rendered_file::RenderedFile;
pub use templates::Templates;
pub(crate) use templates::is_template;

#[cfg(test)]
mod tests;
