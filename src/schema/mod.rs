//! The files of a Kluctl project as typed values.

mod conflict;
mod selector;

pub use conflict::{ConflictAction, ConflictRule, IgnoreRule, OneOrMany};
pub use selector::ObjectSelector;
