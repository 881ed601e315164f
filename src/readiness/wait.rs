//! Waiting for objects, by watch where possible and by polling otherwise.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Assessment, Facts, Readiness, assess};
use crate::{
    cluster::{ApiKind, ApiOutcome, Clock, Cluster, ObjectEvent},
    object::{Object, ObjectRef},
    observer::{EngineEvent, Observer},
};

/// The pause between two looks when there is no watch.
const POLL: Duration = Duration::from_millis(500);
/// How often at least the reason is reported while nothing changes.
const REPORT: Duration = Duration::from_secs(10);

/// Why an object did not become ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// Waiting longer would not help.
    #[error("{reason}")]
    Failed {
        /// Why.
        reason: String,
    },
    /// It was there and then deleted.
    #[error("disappeared while waiting for it to become ready")]
    Disappeared,
    /// It took too long.
    #[error("not ready after {} s: {reason}", .after.as_secs())]
    TimedOut {
        /// How long was waited.
        after: Duration,
        /// What was missing last.
        reason: String,
    },
    /// It could not be read.
    #[error("cannot read it: {problem}")]
    Unreadable {
        /// The API server's words.
        problem: String,
    },
    /// The run was cancelled.
    #[error("interrupted while waiting for it to become ready: {reason}")]
    Interrupted {
        /// What was missing last.
        reason: String,
    },
}

/// What waiting needs.
#[derive(Clone, Copy)]
pub struct Waiter<'a> {
    /// Where the objects live.
    pub cluster: &'a Cluster,
    /// The time of the run.
    pub clock: Clock,
    /// Hears why an object is not ready yet.
    pub observer: &'a dyn Observer,
    /// Ends every wait.
    pub cancel: &'a CancellationToken,
}

impl Waiter<'_> {
    /// Waits until an object exists and is ready; returns the remarks of the last assessment.
    ///
    /// # Errors
    /// When the object fails, disappears, cannot be read, is not ready in time, or the run is cancelled.
    pub async fn ready(
        &self,
        kind: &ApiKind,
        reference: &ObjectRef,
        limit: Duration,
    ) -> Result<Vec<String>, WaitError> {
        let mut wait = Wait {
            waiter: self,
            kind,
            reference,
            seen: false,
            reason: "not there yet".to_owned(),
            reported: None,
        };
        let deadline = Instant::now() + limit;
        let done = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            done = timeout_at(deadline, wait.run()) => Some(done),
        };
        if wait.reported.is_some() {
            self.observer.event(EngineEvent::WaitEnded { object: reference.clone() });
        }
        match done {
            None => Err(WaitError::Interrupted { reason: wait.reason }),
            Some(Err(_)) => Err(WaitError::TimedOut { after: limit, reason: wait.reason }),
            Some(Ok(done)) => done,
        }
    }
}

struct Wait<'a> {
    waiter: &'a Waiter<'a>,
    kind: &'a ApiKind,
    reference: &'a ObjectRef,
    seen: bool,
    reason: String,
    reported: Option<(Instant, String)>,
}

impl Wait<'_> {
    async fn run(&mut self) -> Result<Vec<String>, WaitError> {
        let cluster = self.waiter.cluster;
        let namespace = self.reference.namespace.as_deref();
        loop {
            let outcome = cluster.get(self.kind, namespace, &self.reference.name).await.outcome;
            let version = match outcome {
                ApiOutcome::Done(value) => {
                    let version = value["metadata"]["resourceVersion"].as_str();
                    let version = version.unwrap_or_default().to_owned();
                    if let Ok(object) = Object::new(value)
                        && let Some(warnings) = self.look(&object)?
                    {
                        return Ok(warnings);
                    }
                    version
                }
                outcome if outcome.is_absent() => {
                    if self.seen {
                        return Err(WaitError::Disappeared);
                    }
                    self.report();
                    sleep(POLL).await;
                    continue;
                }
                outcome if outcome.is_transient() => {
                    sleep(POLL).await;
                    continue;
                }
                outcome => {
                    let problem = outcome.message().unwrap_or_default().to_owned();
                    return Err(WaitError::Unreadable { problem });
                }
            };
            if let Some(warnings) = self.follow(&version).await? {
                return Ok(warnings);
            }
        }
    }

    /// Follows the object's changes until it is ready (the remarks) or has to be read again.
    async fn follow(&mut self, version: &str) -> Result<Option<Vec<String>>, WaitError> {
        let namespace = self.reference.namespace.as_deref();
        let watch =
            self.waiter.cluster.watch(self.kind, namespace, &self.reference.name, version).await;
        let Some(mut watch) = watch else {
            sleep(POLL).await;
            return Ok(None);
        };
        loop {
            // Looking again now and then covers rules that depend on time, and watches that went silent.
            let next = timeout_at(Instant::now() + REPORT, watch.next()).await;
            match next {
                Ok(Some(ObjectEvent::Changed(object))) => {
                    if let Some(warnings) = self.look(&object)? {
                        return Ok(Some(warnings));
                    }
                }
                Ok(Some(ObjectEvent::Gone)) => return Err(WaitError::Disappeared),
                Ok(None) => {
                    sleep(POLL).await;
                    return Ok(None);
                }
                Err(_) => return Ok(None),
            }
        }
    }

    /// Assesses the object: the remarks when it is ready, an error when it failed.
    fn look(&mut self, object: &Object) -> Result<Option<Vec<String>>, WaitError> {
        self.seen = true;
        let facts = Facts { has_status: Some(self.kind.has_status), now: self.waiter.clock.now() };
        let Assessment { readiness, warnings } = assess(object, &facts);
        match readiness {
            Readiness::Ready => Ok(Some(warnings)),
            Readiness::Failed { reason } => Err(WaitError::Failed { reason }),
            Readiness::Progressing { reason } => {
                self.reason = reason;
                self.report();
                Ok(None)
            }
        }
    }

    /// Tells the observer when the reason changed, or nothing was told for a while.
    fn report(&mut self) {
        let is_old = match &self.reported {
            None => true,
            Some((at, reason)) => *reason != self.reason || at.elapsed() >= REPORT,
        };
        if is_old {
            self.reported = Some((Instant::now(), self.reason.clone()));
            self.waiter.observer.event(EngineEvent::Waiting {
                object: self.reference.clone(),
                reason: self.reason.clone(),
            });
        }
    }
}
