//! One file per kind of source.

pub(super) mod cluster;
pub(super) mod environment;
pub(super) mod file;
