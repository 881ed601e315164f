//! What a run reports while it goes on becomes log lines and progress; while it only waits, others have its worker slot.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    observer::{EngineEvent, Observer, Stage},
    secret::SecretTexts,
};

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
    slots: Arc<Semaphore>,
    cancel: CancellationToken,
    work: Mutex<Work>,
    /// Told when one strand has got a slot for all of them.
    gained: Notify,
    rests: watch::Sender<bool>,
    progress: watch::Sender<Doing>,
    revision: String,
    masked: SecretTexts,
}

/// How much of a run is work.
#[derive(Default)]
struct Work {
    /// Held while any strand works.
    slot: Option<OwnedSemaphorePermit>,
    /// Items under way; outside of items, the run itself is the only strand.
    items: usize,
    /// Strands that wait.
    resting: usize,
    /// Strands that could go on if the run had a slot.
    queueing: usize,
    /// Since when the run has been waiting for a slot to go on with.
    queueing_since: Option<Instant>,
    /// Time that the run had to wait for a slot to go on with, until the last one.
    queued: Duration,
}

impl Work {
    /// Measures how long there is a strand that could go on, and no slot.
    fn measure(&mut self) {
        if self.queueing > 0 && self.slot.is_none() {
            self.queueing_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.queueing_since.take() {
            self.queued += since.elapsed();
        }
    }

    /// Gives the slot back when nothing is left but waiting. Returns whether that is so.
    fn settle(&mut self) -> bool {
        let rests = self.resting > 0 && self.resting >= self.items.max(1);
        if rests {
            self.slot.take();
        }
        self.measure();
        rests
    }
}

impl RunObserver {
    /// An observer that holds `slot`, one of `slots`, while the run works, and the receiver of progress messages. A
    /// cancelled run waits for no slot.
    pub(crate) fn new(
        slots: Arc<Semaphore>,
        slot: OwnedSemaphorePermit,
        cancel: CancellationToken,
        revision: String,
    ) -> (Self, watch::Receiver<Doing>) {
        let (progress, receiver) = watch::channel(Doing::default());
        let work = Mutex::new(Work { slot: Some(slot), ..Work::default() });
        let (gained, rests) = (Notify::new(), watch::Sender::new(false));
        let masked = SecretTexts::default();
        (Self { slots, cancel, work, gained, rests, progress, revision, masked }, receiver)
    }

    /// What must not be told, for the run to add to: objects quote it in what they say of themselves.
    pub(crate) const fn masked(&self) -> &SecretTexts {
        &self.masked
    }

    /// Returns when the run only waits: at once, or as soon as it comes to that.
    pub(crate) async fn waits(&self) {
        let mut rests = self.rests.subscribe();
        // The sender is borrowed here, so it cannot have gone.
        let _rests = rests.wait_for(|rests| *rests).await;
    }

    /// Time that the run had to wait for a slot to go on with.
    pub(crate) fn queued(&self) -> Duration {
        let work = self.work();
        work.queued + work.queueing_since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Runs a part of the run. Returns also how long it took, without the time that it had to wait for a slot.
    pub(crate) async fn measured<T>(&self, part: impl Future<Output = T>) -> (T, Duration) {
        let (started, queued) = (Instant::now(), self.queued());
        let result = part.await;
        let queued = self.queued().saturating_sub(queued);
        (result, started.elapsed().saturating_sub(queued))
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes notice of a change in how much of the run is work.
    fn change(&self, change: impl FnOnce(&mut Work)) {
        let mut work = self.work();
        change(&mut work);
        let rests = work.settle();
        self.rests.send_if_modified(|known| std::mem::replace(known, rests) != rests);
    }

    /// Ends the rest of one strand, if there is a slot to go on with.
    fn wake(&self, slot: Option<OwnedSemaphorePermit>) -> bool {
        let mut work = self.work();
        if work.slot.is_none() && slot.is_some() {
            work.slot = slot;
            self.gained.notify_waiters();
        }
        let may_work = work.slot.is_some() || self.cancel.is_cancelled();
        if may_work {
            work.resting = work.resting.saturating_sub(1);
            self.rests.send_if_modified(|known| std::mem::replace(known, false));
        }
        work.measure();
        may_work
    }

    /// Waits for a slot for the run, whichever strand gets it, and ends the rest of one strand.
    async fn wait_for_slot(&self) {
        loop {
            let gained = self.gained.notified();
            // Another strand may have a slot for the run already, or give it back just before this one has it.
            if self.wake(None) {
                return;
            }
            let slot = self.cancel.run_until_cancelled(self.slots.clone().acquire_owned());
            let slot = tokio::select! {
                slot = slot => slot.and_then(Result::ok),
                () = gained => None,
            };
            if self.wake(slot) {
                return;
            }
        }
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
                let reason = self.masked.mask(&reason);
                tracing::debug!(%object, reason, "waiting");
                let text = format!("Waiting for {object} of revision {}: {reason}", self.revision);
                self.tell(text, true);
            }
            EngineEvent::StageStarted { stage } => {
                tracing::debug!(?stage, "stage started");
                let doing = match stage {
                    Stage::Apply => "Deploying",
                    Stage::Prune => "Pruning after",
                    Stage::Delete => "Deleting what was deployed of",
                    Stage::Validate => "Validating",
                    _ => return,
                };
                self.tell(format!("{doing} revision {}", self.revision), false);
            }
            EngineEvent::ItemStarted { item, objects } => {
                self.change(|work| work.items += 1);
                tracing::debug!(item, objects, "applying an item");
            }
            EngineEvent::ItemFinished { item, applied, failed } => {
                self.change(|work| work.items = work.items.saturating_sub(1));
                tracing::debug!(item, applied, failed, "applied an item");
            }
            EngineEvent::ObjectApplied { object } => tracing::debug!(%object, "applied"),
            EngineEvent::ObjectDeleted { object } => tracing::info!(%object, "deleted"),
            // Told once for a revision, or with what the deployment did.
            EngineEvent::Warning { message } => {
                tracing::debug!("warning: {}", self.masked.mask(&message));
            }
            EngineEvent::TemplateDebug { message } => {
                tracing::debug!("debug_print: {}", self.masked.mask(&message));
            }
            EngineEvent::StageFinished { .. }
            | EngineEvent::WaitEnded { .. }
            | EngineEvent::Barrier { .. } => {}
        }
    }

    fn rests(&self) {
        self.change(|work| work.resting += 1);
    }

    fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if self.wake(None) {
                return;
            }
            self.change(|work| work.queueing += 1);
            self.wait_for_slot().await;
            self.change(|work| work.queueing -= 1);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{object::ObjectRef, observer::Rest};

    type Observing = (Arc<Semaphore>, RunObserver, watch::Receiver<Doing>, CancellationToken);

    async fn observer() -> Observing {
        let slots = Arc::new(Semaphore::new(1));
        let slot = slots.clone().acquire_owned().await.unwrap();
        let cancel = CancellationToken::new();
        let (observer, progress) =
            RunObserver::new(slots.clone(), slot, cancel.clone(), "r1".into());
        (slots, observer, progress, cancel)
    }

    fn waiting() -> EngineEvent {
        let object = ObjectRef::new("apps/v1", "Deployment", Some("ns"), "web");
        EngineEvent::Waiting { object, reason: "0 of 1 replicas".into() }
    }

    fn started() -> EngineEvent {
        EngineEvent::ItemStarted { item: "a".into(), objects: 1 }
    }

    fn finished() -> EngineEvent {
        EngineEvent::ItemFinished { item: "a".into(), applied: 1, failed: 0 }
    }

    async fn is_brief(work: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(std::time::Duration::from_millis(20), work).await.is_ok()
    }

    #[tokio::test]
    async fn progress_is_news_only() {
        let (_slots, observer, mut progress, _cancel) = observer().await;
        observer.event(EngineEvent::StageStarted { stage: Stage::Apply });
        assert_eq!(progress.borrow_and_update().text, "Deploying revision r1");
        observer.event(waiting());
        assert_eq!(
            progress.borrow_and_update().text,
            "Waiting for ns/Deployment/web of revision r1: 0 of 1 replicas"
        );
        observer.event(waiting());
        assert!(!progress.has_changed().unwrap(), "the same again is no news");
    }

    #[tokio::test]
    async fn what_is_waited_for_tells_no_secrets() {
        let (_slots, observer, mut progress, _cancel) = observer().await;
        observer.masked().learn(&serde_json::json!("hunter-22"));
        let object = ObjectRef::new("apps/v1", "Deployment", Some("ns"), "web");
        let reason = "login with hunter-22 refused".into();
        observer.event(EngineEvent::Waiting { object, reason });
        let told = progress.borrow_and_update().text.clone();
        assert!(told.contains("login with") && !told.contains("hunter-22"), "{told}");
    }

    #[tokio::test]
    async fn a_wait_gives_the_slot_back_and_its_end_takes_it_again() {
        let (slots, observer, _progress, _cancel) = observer().await;
        let rest = Rest::new(&observer);
        assert!(!is_brief(observer.waits()).await, "working");
        rest.event(waiting());
        rest.event(waiting());
        assert!(is_brief(observer.waits()).await, "only waiting, and so interruptible");
        let other = slots.clone().acquire_owned().await.unwrap();
        let mut over = Box::pin(rest.over());
        assert!(!is_brief(over.as_mut()).await, "another one works");
        assert!(is_brief(observer.waits()).await, "waiting for a slot is waiting");
        drop(other);
        assert!(is_brief(over).await);
        assert_eq!(slots.available_permits(), 0, "work again");
        assert!(!is_brief(observer.waits()).await, "not interruptible any more");
        let next = Rest::new(&observer);
        next.event(waiting());
        assert!(is_brief(observer.waits()).await, "interruptible again");
        drop(observer);
        assert_eq!(slots.available_permits(), 1);
    }

    #[tokio::test]
    async fn what_never_waited_needs_no_slot_to_go_on() {
        let (slots, observer, _progress, _cancel) = observer().await;
        assert!(is_brief(Rest::new(&observer).over()).await);
        assert_eq!(slots.available_permits(), 0);
    }

    #[tokio::test]
    async fn the_slot_is_kept_while_any_item_works() {
        let (slots, observer, _progress, _cancel) = observer().await;
        observer.event(started());
        observer.event(started());
        let (one, two) = (Rest::new(&observer), Rest::new(&observer));
        one.event(waiting());
        assert_eq!(slots.available_permits(), 0, "the other item works");
        two.event(waiting());
        assert_eq!(slots.available_permits(), 1);
        assert!(is_brief(two.over()).await);
        assert_eq!(slots.available_permits(), 0);
        observer.event(finished());
        assert_eq!(slots.available_permits(), 1, "the item that is left waits");
        assert!(is_brief(one.over()).await);
        observer.event(finished());
        assert_eq!(slots.available_permits(), 0, "the run itself goes on");
    }

    #[tokio::test]
    async fn waiting_for_a_slot_is_no_part_of_what_a_stage_takes() {
        let (slots, observer, _progress, _cancel) = observer().await;
        observer.event(started());
        observer.event(started());
        let (one, two) = (Rest::new(&observer), Rest::new(&observer));
        let millis = std::time::Duration::from_millis;
        let stage = async {
            one.event(waiting());
            two.event(waiting());
            let other = slots.clone().acquire_owned().await.unwrap();
            let returned = async {
                tokio::time::sleep(millis(300)).await;
                drop(other);
            };
            // Both want to go on soon, and one slot is enough for both.
            tokio::time::sleep(millis(30)).await;
            tokio::join!(one.over(), two.over(), returned);
            tokio::time::sleep(millis(40)).await;
        };
        let ((), took) = observer.measured(stage).await;
        assert!(took >= millis(70) && took < millis(270), "{took:?}");
        assert!(observer.queued() >= millis(300), "{:?}", observer.queued());
        assert!(observer.queued() < millis(550), "counted twice: {:?}", observer.queued());
    }

    #[tokio::test]
    async fn a_cancelled_run_waits_for_no_slot() {
        let (slots, observer, _progress, cancel) = observer().await;
        let rest = Rest::new(&observer);
        rest.event(waiting());
        let _other = slots.clone().acquire_owned().await.unwrap();
        let over = async {
            let cancelled = async { cancel.cancel() };
            tokio::join!(rest.over(), cancelled);
        };
        assert!(is_brief(over).await);
    }
}
