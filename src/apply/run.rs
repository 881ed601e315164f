//! Executes a plan: items in order and up to a limit at the same time, objects of one item one after the other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    decide::{Policy, Provider},
    item::ItemRun,
    plan::ApplyPlan,
};
use crate::{
    cluster::{Clock, Cluster, LiveKey, LiveState},
    deployment::DesiredState,
    object::{Object, ObjectRef},
    observer::{EngineEvent, Observer},
    results::{AppliedObject, DeploymentError, ObjectOutcome},
};

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// What to do about errors, and whether the run is a dry one.
    pub policy: Policy,
    /// Start nothing more after the first error.
    pub abort_on_error: bool,
    /// Do not wait for readiness.
    pub no_wait: bool,
    /// How long one object may take to become ready, or to go.
    pub readiness_timeout: Duration,
    /// Items applied at the same time.
    pub parallel_items: usize,
    /// Objects known to be as desired at this `resourceVersion`; they are not sent again.
    pub known_versions: HashMap<LiveKey, String>,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            abort_on_error: false,
            no_wait: false,
            readiness_timeout: Duration::from_mins(5),
            parallel_items: 8,
            known_versions: HashMap::new(),
        }
    }
}

/// What a run works with.
#[derive(Clone, Copy)]
pub struct ApplyRun<'a> {
    /// Where to apply.
    pub cluster: &'a Cluster,
    /// What is wanted; the plan's items are its items.
    pub desired: &'a DesiredState,
    /// What was found before.
    pub live: &'a LiveState,
    /// What to do.
    pub plan: &'a ApplyPlan,
    /// How.
    pub options: &'a ApplyOptions,
    /// Hears what happens.
    pub observer: &'a dyn Observer,
    /// The time of the run.
    pub clock: Clock,
    /// Ends the run early; what was not attempted is reported as such.
    pub cancel: &'a CancellationToken,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct ApplyReport {
    /// Every planned object, in the order of the plan.
    pub outcomes: Vec<ObjectOutcome>,
    /// Applied objects, in the order of the plan.
    pub applied: Vec<AppliedObject>,
    /// Deleted objects, hooks included.
    pub deleted: Vec<ObjectRef>,
    /// What went wrong.
    pub errors: Vec<DeploymentError>,
    /// What to know.
    pub warnings: Vec<DeploymentError>,
    /// Whether the run was cancelled before it was complete.
    pub interrupted: bool,
}

impl ApplyReport {
    fn append(&mut self, mut more: Self) {
        self.outcomes.append(&mut more.outcomes);
        self.applied.append(&mut more.applied);
        self.deleted.append(&mut more.deleted);
        self.errors.append(&mut more.errors);
        self.warnings.append(&mut more.warnings);
    }
}

/// How far the namespaces and definitions of kinds of a run are, by slot.
pub(super) struct ProviderStates(Vec<watch::Sender<Provider>>);

impl ProviderStates {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| watch::Sender::new(Provider::Pending)).collect())
    }

    pub(super) fn of(&self, slot: Option<usize>) -> Provider {
        slot.and_then(|slot| self.0.get(slot)).map_or(Provider::None, |state| *state.borrow())
    }

    pub(super) fn set(&self, slot: Option<usize>, state: Provider) {
        if let Some(sender) = slot.and_then(|slot| self.0.get(slot)) {
            sender.send_replace(state);
        }
    }

    /// Returns when the provider has been tried.
    pub(super) async fn settled(&self, slot: Option<usize>) {
        let Some(sender) = slot.and_then(|slot| self.0.get(slot)) else { return };
        let mut states = sender.subscribe();
        // The sender is borrowed here, so it cannot have gone.
        let _settled = states.wait_for(|state| *state != Provider::Pending).await;
    }
}

/// Executes a plan. Never fails as a whole: whatever goes wrong is in the report, by object. On cancellation, requests in
/// flight are dropped, nothing new is started, and the report says what was not attempted.
pub async fn run(run: ApplyRun<'_>) -> ApplyReport {
    let stop = run.cancel.child_token();
    let providers = ProviderStates::new(run.plan.providers);
    let mut report = ApplyReport::default();
    let mut start = 0;
    while start < run.plan.items.len() {
        let rest = &run.plan.items[start..];
        let length = rest.iter().position(|item| item.barrier).map_or(rest.len(), |at| at + 1);
        let items = stream::iter(start..start + length).map(|index| {
            let item = ItemRun::new(&run, index, &providers, &stop);
            async move { (index, item.run().await) }
        });
        let finished = items.buffer_unordered(run.options.parallel_items.max(1));
        let mut reports: Vec<_> = finished.collect().await;
        reports.sort_by_key(|(index, _)| *index);
        for (_, item) in reports {
            report.append(item);
        }
        let last = &rest[length - 1];
        if last.barrier && start + length < run.plan.items.len() && !stop.is_cancelled() {
            run.observer.event(EngineEvent::Barrier { message: last.message.clone() });
        }
        start += length;
    }
    report.interrupted = run.cancel.is_cancelled();
    report
}

/// An object as applied, shared with the report.
pub(super) type Applied = Arc<Object>;
