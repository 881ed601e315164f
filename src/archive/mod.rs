//! Archives as they travel: gzip-compressed tar, unpacked within bounds.

mod unpack;

pub use unpack::{ArchiveError, UnpackLimits, Unpacked, unpack};

#[cfg(test)]
mod tests;
