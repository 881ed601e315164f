//! Fetches charts from Helm repositories and OCI registries.
//!
//! Credentials go only to the host that they are for; redirects elsewhere are followed without them. What is downloaded is
//! compared with the digest that index or manifest tell, and unpacked within limits.

mod access;
mod cache;
mod client;
mod error;
mod index;
mod oci;
mod repository;
mod source;

pub use access::{Access, AccessRule, AccessRules};
pub use cache::ChartCache;
pub use error::PullError;
pub use index::{IndexEntry, read_index};
pub use source::{PullOptions, PulledChart, Puller};

#[cfg(test)]
mod tests;
