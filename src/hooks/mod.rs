//! Hooks: objects that are applied at a moment of their own, and deleted by policies of their own (kluctl 2.28).

mod select;

pub use select::{DeletePolicy, Hook, HookProblem, Moment, Stage, hook_of, select};

#[cfg(test)]
mod tests;
