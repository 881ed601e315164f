use std::sync::Mutex;

use super::report::Report;
use crate::observer::{EngineEvent, Observer, Stage};

/// Tells on standard error what a run does, one line per step.
pub(super) struct Progress {
    report: Report,
    /// The last line about an object that is waited for, so that it is not repeated.
    last_wait: Mutex<String>,
}

impl Progress {
    /// Progress in the style of `report`.
    pub(super) fn new(report: Report) -> Self {
        Self { report, last_wait: Mutex::default() }
    }

    fn is_repeated(&self, line: &str) -> bool {
        let mut last = self.last_wait.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let repeated = *last == line;
        line.clone_into(&mut last);
        repeated
    }
}

impl Observer for Progress {
    fn event(&self, event: EngineEvent) {
        if is_empty(&event) {
            return;
        }
        let line = match event {
            EngineEvent::StageStarted { stage } => stage_text(stage).to_owned(),
            EngineEvent::ItemStarted { item, objects } => {
                format!("{item}: applying {objects} objects")
            }
            EngineEvent::ItemFinished { item, applied, failed: 0 } => {
                format!("{item}: applied {applied} objects")
            }
            EngineEvent::ItemFinished { item, applied, failed } => {
                format!("{item}: applied {applied} objects, {failed} failed")
            }
            EngineEvent::Waiting { object, reason } => {
                let line = format!("waiting for {object}: {reason}");
                if self.is_repeated(&line) {
                    return;
                }
                line
            }
            EngineEvent::Barrier { message: Some(message) } => {
                format!("waiting at barrier: {message}")
            }
            EngineEvent::Barrier { message: None } => "waiting at barrier".to_owned(),
            EngineEvent::Warning { message } => {
                super::output::to_stderr(&self.report.warning(&message));
                return;
            }
            EngineEvent::TemplateDebug { message } => message,
            EngineEvent::StageFinished { .. }
            | EngineEvent::ObjectApplied { .. }
            | EngineEvent::ObjectDeleted { .. } => return,
        };
        super::output::to_stderr(&format!("{line}\n"));
    }
}

/// Whether the event is about an item without objects: barriers and deletions are told by events of their own.
fn is_empty(event: &EngineEvent) -> bool {
    matches!(
        event,
        EngineEvent::ItemStarted { objects: 0, .. }
            | EngineEvent::ItemFinished { applied: 0, failed: 0, .. }
    )
}

fn stage_text(stage: Stage) -> &'static str {
    match stage {
        Stage::Load => "Loading project",
        Stage::Render => "Rendering templates",
        Stage::Helm => "Rendering Helm charts",
        Stage::Build => "Building objects",
        Stage::Observe => "Reading live objects",
        Stage::Apply => "Applying objects",
        Stage::Diff => "Comparing objects",
        Stage::Prune => "Pruning objects",
        Stage::Delete => "Deleting objects",
        Stage::Validate => "Validating objects",
    }
}
