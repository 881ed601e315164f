//! Executes a prune plan.

use std::{collections::HashMap, time::Duration};

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::plan::{PlannedDeletion, PrunePlan};
use crate::{
    cluster::{ApiOutcome, Cluster, DeleteMode, Discovery, Footprint, WriteMode},
    object::{ObjectRef, annotations::DISCRIMINATOR_LABEL, order::delete_rank},
    observer::{EngineEvent, Observer, Rest},
    results::{DeploymentError, ObjectOutcome, Operation, OutcomeState},
};

/// Deletions at the same time.
const PARALLEL: usize = 8;

/// How to prune or delete.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    /// Only ask the API server what would happen.
    pub dry_run: bool,
    /// How long to wait for an accepted deletion to be complete; `None` looks once and takes what is still there for
    /// accepted.
    pub wait: Option<Duration>,
    /// Where to search besides, when searching all namespaces is forbidden.
    pub footprint: Footprint,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self { dry_run: false, wait: Some(Duration::from_mins(1)), footprint: Footprint::default() }
    }
}

/// What a run works with.
#[derive(Clone, Copy)]
pub struct PruneRun<'a> {
    /// Where to delete.
    pub cluster: &'a Cluster,
    /// The discriminator of the deployment, to find others by.
    pub discriminator: &'a str,
    /// How.
    pub options: &'a PruneOptions,
    /// Hears what happens.
    pub observer: &'a dyn Observer,
    /// Ends the run early.
    pub cancel: &'a CancellationToken,
}

/// What pruning did. Every planned deletion has an outcome; those that are not done name the survivors.
#[derive(Debug, Default)]
pub struct PruneReport {
    /// Planned deletions and what came of them, in the order of the plan.
    pub outcomes: Vec<ObjectOutcome>,
    /// Objects that are gone.
    pub deleted: Vec<ObjectRef>,
    /// What went wrong.
    pub errors: Vec<DeploymentError>,
    /// What to know.
    pub warnings: Vec<DeploymentError>,
}

/// Deletes what is planned, kinds in their order, objects of one rank in parallel. Objects inside a namespace that is
/// deleted go with it. An object that is gone already, or was replaced by another one of its name, counts as deleted; one
/// whose deletion is refused or not complete in time survives and is reported as such.
pub async fn run(run: PruneRun<'_>, plan: &PrunePlan) -> PruneReport {
    let mut report = PruneReport::default();
    let mut namespaces: HashMap<String, OutcomeState> = HashMap::new();
    let mut start = 0;
    while start < plan.deletions.len() {
        let rank = rank(&plan.deletions[start]);
        let length =
            plan.deletions[start..].iter().take_while(|next| self::rank(next) == rank).count();
        let phase = &plan.deletions[start..start + length];
        let rest = Rest::new(run.observer);
        let resting = PruneRun { observer: &rest, ..run };
        // Made before they are streamed: a closure over borrowed items in a stream hides that the future is `Send`.
        let deletions: Vec<_> =
            phase.iter().map(|deletion| delete(resting, deletion, &namespaces)).collect();
        let states: Vec<_> = stream::iter(deletions).buffered(PARALLEL).collect().await;
        rest.over().await;
        for (deletion, (state, warnings)) in phase.iter().zip(states) {
            if rank == 0 {
                namespaces.insert(deletion.reference.name.clone(), state.clone());
            }
            report.add(run.observer, deletion, state, warnings);
        }
        start += length;
    }
    report
}

fn rank(deletion: &PlannedDeletion) -> u8 {
    delete_rank(&deletion.reference.group, &deletion.reference.kind)
}

impl PruneReport {
    fn add(
        &mut self,
        observer: &dyn Observer,
        deletion: &PlannedDeletion,
        state: OutcomeState,
        warnings: Vec<String>,
    ) {
        let reference = &deletion.reference;
        let about = |text: String| DeploymentError::new(Some(reference.clone()), text);
        self.warnings.extend(warnings.into_iter().map(about));
        match &state {
            OutcomeState::Done => {
                self.deleted.push(reference.clone());
                observer.event(EngineEvent::ObjectDeleted { object: reference.clone() });
            }
            OutcomeState::Accepted { message } => self.warnings.push(about(message.clone())),
            OutcomeState::Failed { message } | OutcomeState::NotAttempted { reason: message } => {
                self.errors.push(about(format!("not deleted: {message}")));
            }
        }
        let reference = reference.clone();
        self.outcomes.push(ObjectOutcome { reference, operation: Operation::Prune, state });
    }
}

type Deleted = (OutcomeState, Vec<String>);

async fn delete(
    run: PruneRun<'_>,
    deletion: &PlannedDeletion,
    namespaces: &HashMap<String, OutcomeState>,
) -> Deleted {
    let with_namespace =
        deletion.reference.namespace.as_ref().and_then(|name| namespaces.get(name));
    match with_namespace {
        // A namespace that stays does not take its objects with it.
        None | Some(OutcomeState::Failed { .. } | OutcomeState::NotAttempted { .. }) => {}
        Some(OutcomeState::Done) => return (OutcomeState::Done, Vec::new()),
        Some(OutcomeState::Accepted { message }) => {
            let message = format!("its namespace is being deleted: {message}");
            return (OutcomeState::Accepted { message }, Vec::new());
        }
    }
    tokio::select! {
        biased;
        () = run.cancel.cancelled() => {
            let reason = "the run ended before its deletion was confirmed".to_owned();
            (OutcomeState::NotAttempted { reason }, Vec::new())
        }
        deleted = delete_one(run, deletion) => deleted,
    }
}

async fn delete_one(run: PruneRun<'_>, deletion: &PlannedDeletion) -> Deleted {
    let reference = &deletion.reference;
    let failed = |message: String| (OutcomeState::Failed { message }, Vec::new());
    let kinds = match run.cluster.kinds().await {
        Ok(kinds) => kinds,
        Err(outcome) => return failed(outcome.message().unwrap_or_default().to_owned()),
    };
    let Some(kind) = kinds.of_reference(reference) else {
        // An object of a kind that is not served any more does not exist.
        return (OutcomeState::Done, Vec::new());
    };
    if rank(deletion) == 0
        && let Some(problem) = foreign_objects(run, &kinds, &reference.name).await
    {
        return failed(problem);
    }
    let write = if run.options.dry_run { WriteMode::DryRun } else { WriteMode::Real };
    let mode = DeleteMode { write, uid: deletion.uid.as_deref() };
    let limit = run.options.wait.unwrap_or(Duration::ZERO);
    let answer = run.cluster.remove(kind, reference, mode, limit, run.observer).await;
    let state = match answer.outcome {
        // A conflict says that another object has the name now: ours is gone.
        ApiOutcome::Done(_) | ApiOutcome::Outdated(_) => OutcomeState::Done,
        outcome if outcome.is_absent() => OutcomeState::Done,
        ApiOutcome::Timeout(message) if run.options.wait.is_none() => {
            OutcomeState::Accepted { message }
        }
        outcome => {
            OutcomeState::Failed { message: outcome.message().unwrap_or_default().to_owned() }
        }
    };
    (state, answer.warnings)
}

/// Why a namespace must stay: it holds objects of another deployment, or it cannot be known whether it does.
async fn foreign_objects(run: PruneRun<'_>, kinds: &Discovery, namespace: &str) -> Option<String> {
    let selector = format!("{DISCRIMINATOR_LABEL},{DISCRIMINATOR_LABEL}!={}", run.discriminator);
    let selector = selector.as_str();
    let namespaced: Vec<_> = kinds.ownable().filter(|kind| kind.namespaced).cloned().collect();
    let mut found = stream::iter(namespaced)
        .map(|kind| async move {
            match run.cluster.list(&kind, Some(namespace), selector).await {
                Ok(items) => items.first().map(|item| {
                    format!(
                        "it holds {}/{} of another deployment (discriminator {})",
                        kind.kind,
                        item["metadata"]["name"].as_str().unwrap_or_default(),
                        item["metadata"]["labels"][DISCRIMINATOR_LABEL]
                            .as_str()
                            .unwrap_or_default(),
                    )
                }),
                Err(outcome) if outcome.is_absent() => None,
                Err(outcome) => Some(format!(
                    "it cannot be told whether it holds objects of other deployments: {}",
                    outcome.message().unwrap_or_default()
                )),
            }
        })
        .buffer_unordered(PARALLEL)
        .filter_map(|problem| async move { problem })
        .boxed();
    found.next().await
}
