//! What a run reports while it goes on: the command line shows it, the controller logs it, tests record it.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::object::ObjectRef;

/// A part of a run that takes noticeable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading the project, its includes and variables.
    Load,
    /// Rendering templates.
    Render,
    /// Rendering Helm charts, if there are any.
    Helm,
    /// Building items with kustomize and completing their objects.
    Build,
    /// Reading live objects.
    Observe,
    /// Applying.
    Apply,
    /// Comparing live and applied objects.
    Diff,
    /// Deleting objects that are no longer wanted.
    Prune,
    /// Deleting a whole deployment.
    Delete,
    /// Checking that deployed objects are there and ready.
    Validate,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// A stage begins.
    StageStarted {
        /// Which.
        stage: Stage,
    },
    /// A stage ended; whether well is told by the result of the run.
    StageFinished {
        /// Which.
        stage: Stage,
    },
    /// An item is being applied.
    ItemStarted {
        /// Directory of the item, or what it does when it has none.
        item: String,
        /// Number of its objects.
        objects: usize,
    },
    /// An item is done.
    ItemFinished {
        /// As in [`EngineEvent::ItemStarted`].
        item: String,
        /// Objects applied without error.
        applied: usize,
        /// Objects that the API server refused.
        failed: usize,
    },
    /// An object was applied.
    ObjectApplied {
        /// Which.
        object: ObjectRef,
    },
    /// An object was deleted.
    ObjectDeleted {
        /// Which.
        object: ObjectRef,
    },
    /// An object is not ready, or not gone, yet; reported when the reason changes, and now and then.
    Waiting {
        /// Which.
        object: ObjectRef,
        /// Why it is not ready, or what holds it.
        reason: String,
    },
    /// An object that was waited for is so no longer, whatever came of it.
    WaitEnded {
        /// Which.
        object: ObjectRef,
    },
    /// All items so far must finish before the next one starts.
    Barrier {
        /// The project's message for this barrier.
        message: Option<String>,
    },
    /// Something the user should know that does not stop the run.
    Warning {
        /// The text, without secrets.
        message: String,
    },
    /// Text that a template printed with `debug_print`.
    TemplateDebug {
        /// The text.
        message: String,
    },
}

/// Receives the events of a run. Called from many tasks; must not block.
pub trait Observer: Send + Sync {
    /// Takes notice of an event.
    fn event(&self, event: EngineEvent);

    /// One strand of the run has nothing to do but wait. A strand is an item between its two events, or outside of items the
    /// run itself.
    fn rests(&self) {}

    /// A strand that rested has something to do again. It goes on when the future is ready, which may take a while where runs
    /// take turns.
    fn resume(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// Passes events on, and lets its strand rest from the first wait to [`Rest::over`].
pub(crate) struct Rest<'a> {
    observer: &'a dyn Observer,
    rests: AtomicBool,
}

impl<'a> Rest<'a> {
    /// Nothing is waited for yet.
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, rests: AtomicBool::new(false) }
    }

    /// Something is waited for that is no event.
    pub(crate) fn begin(&self) {
        if !self.rests.swap(true, Ordering::Relaxed) {
            self.observer.rests();
        }
    }

    /// All waits are over: returns when the strand may go on.
    pub(crate) async fn over(self) {
        if self.rests.into_inner() {
            self.observer.resume().await;
        }
    }
}

impl Observer for Rest<'_> {
    fn event(&self, event: EngineEvent) {
        if matches!(event, EngineEvent::Waiting { .. }) {
            self.begin();
        }
        self.observer.event(event);
    }
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: EngineEvent) {}
}
