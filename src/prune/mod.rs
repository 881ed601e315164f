//! Deleting what a deployment no longer wants, or all of it (engine reference 8.3).

mod plan;
mod run;

pub use plan::{KeptObject, NoDiscriminator, PlannedDeletion, PrunePlan, Wanted, plan};
pub use run::{PruneOptions, PruneReport, PruneRun, run};

#[cfg(test)]
mod tests;
