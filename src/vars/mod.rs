//! Variables: where they come from, how they are merged, and how templates see them (kluctl 2.28).

mod context;
mod encryption;
mod error;
mod glob;
mod load;
mod outside;
mod rendered_file;
mod sources;
mod templates;

pub use context::Context;
pub(crate) use encryption::is_encrypted;
pub use error::VarsError;
pub use load::VarsLoader;
pub use outside::{
    ClusterReader, GitCheckout, GitSource, GitTip, GitTips, HttpAnswer, HttpSource, SecretStore,
    SecretStores,
};
pub use rendered_file::RenderedFile;
pub use templates::Templates;
pub(crate) use templates::is_template;

#[cfg(test)]
mod tests;
