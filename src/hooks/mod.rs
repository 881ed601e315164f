//! Hooks: objects that are applied at a moment of their own, and deleted by policies of their own (engine reference 6.4,
//! 7.2).

mod select;

pub use select::{DeletePolicy, Hook, HookProblem, Moment, Stage, hook_of, select};

#[cfg(test)]
mod tests;
