//! What a run reports while it goes on becomes log lines and progress; the first wait gives the worker slot back.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::observer::{EngineEvent, Observer, Stage};

/// What a run is doing, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Doing {
    /// In a sentence.
    pub text: String,
    /// Whether something is waited for, so that the outcome is open even when nothing is changed.
    pub is_waiting: bool,
}

/// Listens to one reconciliation.
pub(crate) struct RunObserver {
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    waits: watch::Sender<bool>,
    progress: watch::Sender<Doing>,
    revision: String,
}

impl RunObserver {
    /// An observer that holds `slot` until the run waits, and the receiver of progress messages.
    pub(crate) fn new(
        slot: OwnedSemaphorePermit,
        revision: String,
    ) -> (Self, watch::Receiver<Doing>) {
        let (progress, receiver) = watch::channel(Doing::default());
        let waits = watch::Sender::new(false);
        (Self { slot: Mutex::new(Some(slot)), waits, progress, revision }, receiver)
    }

    /// Returns once the run has begun to wait for objects to become ready.
    pub(crate) async fn waits(&self) {
        let mut waits = self.waits.subscribe();
        // The sender is borrowed here, so it cannot have gone.
        let _waits = waits.wait_for(|waits| *waits).await;
    }

    /// Gives the worker slot back, so that others can work. What remains of the run is waiting and little else.
    fn release(&self) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.waits.send_if_modified(|waits| !std::mem::replace(waits, true));
    }

    fn tell(&self, text: String, is_waiting: bool) {
        let doing = Doing { text, is_waiting };
        self.progress.send_if_modified(|current| {
            let is_news = *current != doing;
            *current = doing;
            is_news
        });
    }
}

impl Observer for RunObserver {
    fn event(&self, event: EngineEvent) {
        match event {
            EngineEvent::Waiting { object, reason } => {
                self.release();
                tracing::debug!(%object, reason, "waiting");
                let text = format!("Waiting for {object} of revision {}: {reason}", self.revision);
                self.tell(text, true);
            }
            EngineEvent::StageStarted { stage } => {
                tracing::debug!(?stage, "stage started");
                let doing = match stage {
                    Stage::Apply => "Deploying",
                    Stage::Prune => "Pruning after",
                    Stage::Validate => "Validating",
                    _ => return,
                };
                self.tell(format!("{doing} revision {}", self.revision), false);
            }
            EngineEvent::ItemStarted { item, objects } => {
                tracing::debug!(item, objects, "applying an item");
            }
            EngineEvent::ItemFinished { item, applied, failed } => {
                tracing::debug!(item, applied, failed, "applied an item");
            }
            EngineEvent::ObjectApplied { object } => tracing::debug!(%object, "applied"),
            EngineEvent::ObjectDeleted { object } => tracing::info!(%object, "deleted"),
            EngineEvent::Warning { message } => tracing::info!("warning: {message}"),
            EngineEvent::TemplateDebug { message } => tracing::debug!("debug_print: {message}"),
            EngineEvent::StageFinished { .. } | EngineEvent::Barrier { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::object::ObjectRef;

    #[tokio::test]
    async fn the_first_wait_gives_the_slot_back_and_progress_is_news_only() {
        let slots = Arc::new(Semaphore::new(1));
        let slot = slots.clone().acquire_owned().await.unwrap();
        let (observer, mut progress) = RunObserver::new(slot, "r1".into());
        observer.event(EngineEvent::StageStarted { stage: Stage::Apply });
        assert_eq!(slots.available_permits(), 0, "applying is work");
        assert_eq!(progress.borrow_and_update().text, "Deploying revision r1");
        let object = ObjectRef::new("apps/v1", "Deployment", Some("ns"), "web");
        let waiting = EngineEvent::Waiting { object, reason: "0 of 1 replicas".into() };
        observer.event(waiting.clone());
        assert_eq!(slots.available_permits(), 1, "waiting is not");
        assert!(progress.has_changed().unwrap());
        assert_eq!(
            progress.borrow_and_update().text,
            "Waiting for ns/Deployment/web of revision r1: 0 of 1 replicas"
        );
        observer.event(waiting);
        assert!(!progress.has_changed().unwrap(), "the same again is no news");
        assert_eq!(slots.available_permits(), 1);
    }
}
