//! Deleting what a deployment no longer wants, or all of it (kluctl 2.28).

mod plan;
mod run;

pub use plan::{KeptObject, NoDiscriminator, PlannedDeletion, PrunePlan, Wanted, plan};
pub use run::{PruneOptions, PruneReport, PruneRun, run};

#[cfg(test)]
mod tests;
