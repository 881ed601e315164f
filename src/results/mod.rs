//! What a run leaves behind, in the reference's wire format: command results, validate results, their summaries.

mod collect;
mod compact;
mod mask;
mod outcome;
mod reduce;
mod start;
mod store;
mod stored;
mod summary;
mod types;

pub(crate) use collect::is_younger;
pub use collect::{AppliedObject, Collected, collect, reference_for_diff};
pub use compact::{CompactError, compact_objects, expand_objects};
pub use outcome::{ObjectOutcome, Operation, OutcomeState};
pub use store::{ResultStore, StoreError, Stored};
pub use stored::Completeness;
pub use summary::{CommandResultSummary, ValidateResultSummary};
pub use types::{
    BaseObject, Change, ChangeKind, ClusterInfo, CommandInfo, CommandResult, DeploymentError,
    GitInfo, Initiator, KluctlDeploymentInfo, ProjectKey, ResultObject, RunInfo, TargetKey,
    ValidateResult, ValidateResultEntry,
};

#[cfg(test)]
mod tests;
