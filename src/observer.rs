//! What a run reports while it goes on: the command line shows it, the controller logs it, tests record it.

use crate::object::ObjectRef;

/// A part of a run that takes noticeable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading the project, its includes and variables.
    Load,
    /// Rendering templates.
    Render,
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
    /// An object is not ready yet; reported when the reason changes, and now and then.
    Waiting {
        /// Which.
        object: ObjectRef,
        /// Why it is not ready.
        reason: String,
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
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: EngineEvent) {}
}
