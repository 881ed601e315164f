//! The types of results, which diffs are made of.

#[path = "../../src/results/outcome.rs"]
mod outcome;
#[path = "../../src/results/types.rs"]
mod types;

pub use outcome::{ObjectOutcome, Operation, OutcomeState};
pub use types::*;
