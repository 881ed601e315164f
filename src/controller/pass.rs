//! One pass over one object: what it knows at the start, and what it writes and tells at the end.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};

use super::{
    conditions,
    context::Context,
    foreign,
    notify::{Notice, Subject},
    observe::Doing,
    outcome::{Ending, Facts, Failure, Outlook},
    ownership::{Bid, Claimant, Target},
    persist::{Progress, StoreError, StoredObject},
    record,
    requests::Requests,
    schedule::Requeue,
    state::Outdated,
    summarize::{self, Before, Event, Run, Severity, Summary, Token},
};
use crate::{
    api::{self, KluctlDeploymentSpec, KluctlDeploymentStatus, NamespacedName, READY, reason},
    object::ObjectRef,
};

/// Longest message of a failure in the log, in bytes.
const LONGEST_LOGGED: usize = 2_000;

/// The object as this pass found it, and the pass's own identity.
pub(crate) struct Pass {
    /// What all passes share.
    pub context: Arc<Context>,
    /// The object.
    pub key: NamespacedName,
    /// As stored; follows this pass's own writes.
    pub object: StoredObject,
    /// What it asks for; `None` when that cannot be read.
    pub spec: Option<KluctlDeploymentSpec>,
    /// Its status when the pass began.
    pub status: KluctlDeploymentStatus,
    /// Generation of `spec`.
    pub generation: i64,
    /// Requests that were open when the pass began.
    pub requests: Requests,
    /// Identity of the pass, in logs, status and events.
    pub id: String,
    /// What became known on the way.
    pub facts: Facts,
    /// Others that claim the same target, once that was looked at.
    pub rivals: Option<Vec<Claimant>>,
    /// Time spent waiting for a turn or a worker, which is no work of this pass.
    pub queued: Duration,
    started: Instant,
}

impl Pass {
    /// A pass over an object as just read.
    pub(crate) fn new(
        context: Arc<Context>,
        key: NamespacedName,
        object: StoredObject,
        id: String,
    ) -> Self {
        let (spec, status) = match api::decode(object.value()) {
            Ok(decoded) => (Some(decoded.spec), decoded.status),
            Err(_) => (None, api::decode_status(object.value())),
        };
        let status = status.unwrap_or_default();
        let requests = Requests::open(&object.annotations(), &status);
        Self {
            generation: object.generation(),
            started: Instant::now(),
            queued: Duration::ZERO,
            facts: Facts::default(),
            rivals: None,
            context,
            key,
            object,
            spec,
            status,
            requests,
            id,
        }
    }

    /// Whether changes are only pretended.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.context.options.dry_run || self.spec.as_ref().is_some_and(|spec| spec.dry_run)
    }

    /// The object before this pass, for the pure parts.
    fn before<'a>(&'a self, rivals: &'a [String]) -> Before<'a> {
        Before {
            generation: self.generation,
            spec: self.spec.as_ref(),
            status: &self.status,
            requests: &self.requests,
            rivals,
        }
    }

    fn rivals(&self) -> Vec<Claimant> {
        let me = Claimant::ours(&self.key);
        let known = || {
            let Some(claim) = &self.status.claim else { return Vec::new() };
            self.context.state.claims_on(&Target::of(claim)).into_keys().collect()
        };
        let rivals = self.rivals.clone().unwrap_or_else(known);
        rivals.into_iter().filter(|who| *who != me).collect()
    }

    /// Whether the object is gone, or for another controller to write to and to tell of: one of another shard, or the replica that
    /// leads now.
    pub(crate) fn is_lost(&self) -> bool {
        self.context.deposed.is_cancelled() || self.context.state.is_lost(&self.key)
    }

    /// Writes the status, as long as that is this controller's to do.
    async fn store(&mut self, status: &KluctlDeploymentStatus) -> Result<(), StoreError> {
        let (context, key) = (self.context.clone(), self.key.clone());
        let lost = context.state.outdated(&key, Outdated::Lost);
        if self.is_lost() {
            return Err(StoreError::Gone);
        }
        tokio::select! {
            biased;
            // Not even between two attempts: what is stored may be another controller's word by then.
            () = lost => Err(StoreError::Gone),
            written = context.store.write_status(&key, &mut self.object, status) => written,
        }
    }

    /// Draws the conclusions, writes the status, tells about it. Returns when the object is to be looked at next. All that is
    /// left out when the object is another controller's by now.
    pub(crate) async fn conclude(mut self, ending: Ending) -> Requeue {
        if self.is_lost() {
            tracing::info!("the object is gone or another controller's, which has the word now");
            if !self.context.state.is_known(&self.key) {
                self.context.metrics.forget(&self.key);
            }
            return Requeue::OnChange;
        }
        let took = self.started.elapsed().saturating_sub(self.queued);
        let claimants = self.rivals();
        let rivals: Vec<_> = claimants.iter().map(Claimant::to_string).collect();
        let run = Run {
            now: super::now(),
            took,
            dry_run: self.is_dry_run(),
            waiting: self.context.options.requeue_dependency,
            jitter: self.jitter(),
        };
        let Summary { status, events, next } =
            summarize::summarize(self.before(&rivals), &self.facts, &ending, run);
        log_end(&ending, &status, took);
        let (context, key) = (self.context.clone(), self.key.clone());
        if let Ending::Done(done) = &ending {
            context.metrics.done(&key, done);
        }
        self.observe(&status);
        let written = self.store(&status).await;
        context.metrics.reconciled(&key, took, self.queued);
        if !context.state.is_known(&key) {
            // It went away meanwhile, and its series with it.
            context.metrics.forget(&key);
        }
        match written {
            Ok(()) => {}
            Err(StoreError::Gone) => return Requeue::OnChange,
            Err(error) => {
                // Nobody would learn of it: the pass is repeated, and with it the write.
                tracing::error!("the status could not be written: {error}");
                return Requeue::Backoff(Duration::from_mins(1));
            }
        }
        self.tell(events);
        foreign::tell(&self, &claimants).await;
        next
    }

    /// Hands events to the notifier.
    pub(crate) fn tell(&self, events: Vec<Event>) {
        for event in events {
            self.context.notifier.notify(&Notice {
                subject: self.subject(),
                event,
                at: super::now(),
                revision: self.facts.revision.clone(),
                origin_revision: self.facts.origin_revision.clone(),
                reconcile_id: self.id.clone(),
            });
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            object: ObjectRef::new(
                api::API_VERSION,
                api::KIND,
                Some(&self.key.namespace),
                &self.key.name,
            ),
            uid: self.object.uid().to_owned(),
            resource_version: self.object.resource_version().to_owned(),
            annotations: Subject::event_annotations(&self.object.annotations()),
        }
    }

    /// Writes the status, for what is not the end of a reconciliation. Failures are only logged: the next pass repeats it.
    pub(crate) async fn write(&mut self, status: &KluctlDeploymentStatus) {
        if let Err(error) = self.store(status).await
            && !self.is_lost()
        {
            tracing::warn!("the status could not be written: {error}");
        }
    }

    /// The status while work goes on.
    pub(crate) fn progress_status(&self, message: &str) -> KluctlDeploymentStatus {
        let rivals: Vec<_> = self.rivals().iter().map(Claimant::to_string).collect();
        summarize::progress(self.before(&rivals), &self.facts, message, super::now())
    }

    /// Writes down how the claim on the target stands, for all controllers to see.
    ///
    /// # Errors
    /// When it cannot be written; the target must not be touched then.
    pub(crate) async fn record_claim(&mut self, bid: &Bid) -> Result<(), Failure> {
        self.status.claim = Some(bid.record());
        let text = format!("Claiming discriminator {:?}", bid.target.discriminator);
        let status = self.progress_status(&text);
        self.store(&status).await.map_err(|error| unclaimed(&error))
    }

    /// Writes down that the target is the object's own, if it still is as `seen`, beside all others. Returns whether it was.
    ///
    /// # Errors
    /// When it cannot be written; the target must not be touched then.
    pub(crate) async fn record_grant(
        &mut self,
        bid: &Bid,
        seen: StoredObject,
    ) -> Result<bool, Failure> {
        let requested = self.status.claim.replace(bid.record());
        let text = format!("Claimed discriminator {:?}", bid.target.discriminator);
        let status = self.progress_status(&text);
        let (context, key) = (self.context.clone(), self.key.clone());
        self.object = seen;
        if self.is_lost() {
            return Err(unclaimed(&StoreError::Gone));
        }
        match context.store.write_status_onto(&key, &mut self.object, &status).await {
            Ok(()) => Ok(true),
            Err(error) => {
                // Whatever is written next must not claim more than was granted.
                self.status.claim = requested;
                if matches!(error, StoreError::Outdated) {
                    Ok(false)
                } else {
                    Err(unclaimed(&error))
                }
            }
        }
    }

    /// Writes down where this pass is about to deploy, so that a prune or deletion finds it also when the pass is killed midway.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be deployed then.
    pub(crate) async fn record_target(&mut self) -> Result<(), Failure> {
        if self.is_dry_run() {
            return Ok(());
        }
        let before = self.status.clone();
        let forgotten = record::record_target(&mut self.status, &self.facts);
        if self.status == before {
            return Ok(());
        }
        let events = forgotten.into_iter().map(|message| Event {
            severity: Severity::Error,
            reason: reason::OBJECTS_LEFT_BEHIND,
            message,
            finishes: false,
            token: Token::Always,
        });
        self.tell(events.collect());
        let revision = self.facts.revision.clone().unwrap_or_default();
        let status = self.progress_status(&format!("Deploying revision {revision}"));
        self.store(&status).await.map_err(|error| {
            let message = format!(
                "the status could not be written, and nothing is deployed that it does not record: {error}"
            );
            Failure::new(reason::DEPLOY_FAILED, Outlook::Backoff, message)
        })
    }

    /// Tells all controllers that objects of former targets are about to be pruned.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be pruned then.
    pub(crate) async fn announce_pruning(&mut self) -> Result<(), Failure> {
        if self.is_dry_run() || self.status.former_targets.is_empty() {
            return Ok(());
        }
        self.status.former_targets.iter_mut().for_each(|former| former.pruning = true);
        let status = self.progress_status("Preparing to prune former targets");
        self.store(&status).await.map_err(|error| {
            let message = format!("the claim on former targets could not be written: {error}");
            Failure::new(reason::PRUNE_FAILED, Outlook::Backoff, message)
        })
    }

    /// Runs `work`, and meanwhile writes its progress now and then. A repetition of what is in place already is silent unless
    /// it has to wait.
    pub(crate) async fn with_progress<T>(
        &mut self,
        mut doing: watch::Receiver<Doing>,
        is_repetition: bool,
        work: impl Future<Output = T>,
    ) -> T {
        let reporting = async {
            let mut progress = Progress::new();
            while doing.changed().await.is_ok() {
                // A repetition is told only when it turns out to be more: else alerts on Ready would flap.
                if is_repetition && !doing.borrow_and_update().is_waiting {
                    continue;
                }
                while !progress.admits(super::now()) {
                    tokio::time::sleep(Progress::GAP / 4).await;
                }
                let text = doing.borrow_and_update().text.clone();
                let status = self.progress_status(&text);
                self.write(&status).await;
            }
            std::future::pending::<std::convert::Infallible>().await
        };
        tokio::select! {
            biased;
            result = work => result,
            never = reporting => match never {},
        }
    }

    /// Brings the object's series up to date.
    pub(crate) fn observe(&self, status: &KluctlDeploymentStatus) {
        let ready = status.condition(READY).map_or("Unknown", |ready| match ready.status {
            api::ConditionStatus::True => "True",
            api::ConditionStatus::False => "False",
            api::ConditionStatus::Unknown => "Unknown",
        });
        let is_suspended = self.spec.as_ref().is_some_and(|spec| spec.suspend);
        self.context.metrics.observed(&self.key, ready, is_suspended);
    }

    /// A factor around 1, so that deployments with equal intervals do not run in step.
    fn jitter(&self) -> f64 {
        let percentage = f64::from(self.context.options.interval_jitter.min(50));
        1.0 + (crate::net::jitter() * 2.0 - 1.0) * percentage / 100.0
    }

    /// When this pass is to end.
    pub(crate) fn deadline(&self) -> Instant {
        let timeout =
            self.spec.as_ref().map_or(Duration::from_mins(1), KluctlDeploymentSpec::timeout);
        let now = Instant::now();
        now.checked_add(timeout).unwrap_or(now + Duration::from_hours(24))
    }
}

fn unclaimed(error: &StoreError) -> Failure {
    let message = format!("the claim on the target could not be written: {error}");
    Failure::new(reason::DEPLOY_FAILED, Outlook::Backoff, message)
}

fn log_end(ending: &Ending, status: &KluctlDeploymentStatus, took: Duration) {
    let revision = status.last_attempted_revision.as_deref().unwrap_or_default();
    let (reason, message) = match ending {
        Ending::Failed(Failure { reason, message, outlook, .. }) => {
            let message = conditions::shorten_to(message, LONGEST_LOGGED);
            match outlook {
                Outlook::Pending | Outlook::Waiting => {
                    tracing::info!(reason, revision, "Waiting: {message}");
                    return;
                }
                Outlook::Interrupted => {
                    tracing::info!(revision, "Reconciliation interrupted after {took:?}");
                    return;
                }
                Outlook::Stalled | Outlook::Retry | Outlook::Backoff => (*reason, message),
            }
        }
        Ending::Done(_) => match status.condition(READY) {
            Some(ready) if ready.status == api::ConditionStatus::False => {
                (ready.reason.as_str(), conditions::shorten_to(&ready.message, LONGEST_LOGGED))
            }
            Some(ready) if ready.status == api::ConditionStatus::Unknown => {
                let message = conditions::shorten_to(&ready.message, LONGEST_LOGGED);
                tracing::info!(revision, "Reconciliation goes on after {took:?}: {message}");
                return;
            }
            _ => {
                tracing::info!(revision, "Reconciliation finished in {took:?}");
                return;
            }
        },
    };
    tracing::error!(reason, revision, error = message, "Reconciliation failed after {took:?}");
}
