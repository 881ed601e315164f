//! Applying a desired state: a plan, a conversation with the API server per object, and a report that names every planned
//! object (kluctl 2.28).

mod body;
mod conflict;
mod converse;
mod decide;
mod dry_run;
mod item;
mod managed_fields;
mod plan;
mod run;

pub use conflict::{ConflictError, Resolution, resolve};
pub use decide::{Known, Policy, Provider, Request, State, Step, next};
pub use plan::{ApplyPlan, ItemPlan, PlanRemark, PlannedHook, PlannedObject, plan, selected};
pub use run::{ApplyOptions, ApplyReport, ApplyRun, run};

#[cfg(test)]
mod tests;
