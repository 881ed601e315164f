//! What a run does, told on standard error while it goes on: as a block that is drawn anew on terminals, as lines elsewhere.

mod block;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use self::block::Block;
use super::report::Report;
use crate::observer::{EngineEvent, Observer, Stage};

/// How often the block is drawn anew.
const REDRAW: Duration = Duration::from_millis(100);

/// How much is told, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// A block at the end of the terminal, which goes when the run is over.
    Live,
    /// One line per step.
    Lines,
    /// One line per step and object.
    Everything,
    /// Warnings only.
    Quiet,
}

/// Tells on standard error what a run does, and remembers how long each stage takes.
pub(super) struct Progress {
    report: Report,
    shared: Arc<Mutex<State>>,
    /// Ends the thread that draws when it is dropped.
    ticker: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

#[derive(Default)]
struct State {
    /// Stages that ended, and how long they took, in the order of their first beginning.
    stages: Vec<(Stage, Duration)>,
    running: Vec<(Stage, Instant)>,
    block: Block,
    /// The last line about an object that is waited for, so that it is not repeated.
    last_wait: String,
}

impl Progress {
    /// Progress in the style of `report`.
    pub(super) fn new(report: Report) -> Self {
        let shared = Arc::new(Mutex::new(State::default()));
        let ticker = (report.display == Display::Live).then(|| {
            let (stop, stopped) = mpsc::channel();
            let state = Arc::clone(&shared);
            let tick = move || {
                while stopped.recv_timeout(REDRAW) == Err(mpsc::RecvTimeoutError::Timeout) {
                    lock(&state).redraw(report.colour);
                }
            };
            (stop, std::thread::spawn(tick))
        });
        Self { report, shared, ticker }
    }

    /// How long the stages took that have ended, in the order in which they began.
    pub(super) fn stages(&self) -> Vec<(Stage, Duration)> {
        lock(&self.shared).stages.clone()
    }

    /// Writes a line that stays.
    fn line(state: &mut State, line: &str) {
        let hidden = state.block.erase();
        super::output::to_stderr(&format!("{hidden}{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            drop(stop);
            // It has nothing to tell.
            drop(thread.join());
        }
        let hidden = lock(&self.shared).block.erase();
        super::output::to_stderr(&hidden);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn redraw(&mut self, colour: bool) {
        let width = terminal_size::terminal_size_of(io::stderr());
        let width = width.map_or(80, |(width, _)| usize::from(width.0));
        let stages = self.running.iter().map(|(stage, since)| (*stage, *since));
        let text = self.block.draw(stages, width, colour, Instant::now());
        if !text.is_empty() {
            let mut out = io::stderr().lock();
            // Nobody is left to tell when that fails.
            drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        }
    }

    fn finish(&mut self, stage: Stage) {
        let Some(at) = self.running.iter().position(|(running, _)| *running == stage) else {
            return;
        };
        let (_, since) = self.running.remove(at);
        let took = since.elapsed();
        match self.stages.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, total)) => *total += took,
            None => self.stages.push((stage, took)),
        }
    }

    fn is_repeated(&mut self, line: &str) -> bool {
        let repeated = self.last_wait == line;
        line.clone_into(&mut self.last_wait);
        repeated
    }
}

impl Observer for Progress {
    fn event(&self, event: EngineEvent) {
        let state = &mut *lock(&self.shared);
        match &event {
            EngineEvent::StageStarted { stage } => state.running.push((*stage, Instant::now())),
            EngineEvent::StageFinished { stage } => state.finish(*stage),
            _ => {}
        }
        state.block.note(&event, Instant::now());
        if state.running.is_empty() {
            let hidden = state.block.erase();
            super::output::to_stderr(&hidden);
        }
        if let EngineEvent::Warning { message } = &event {
            return Self::line(state, &self.report.warning(message));
        }
        let text = match self.report.display {
            Display::Quiet => None,
            Display::Live => stays(&event),
            display => plain(&event, state, display == Display::Everything),
        };
        if let Some(text) = text {
            Self::line(state, &format!("{text}\n"));
        }
    }
}

/// What stays on a terminal.
fn stays(event: &EngineEvent) -> Option<String> {
    match event {
        EngineEvent::ItemFinished { .. } if !is_empty(event) => step(event),
        EngineEvent::TemplateDebug { message } => Some(message.clone()),
        _ => None,
    }
}

/// The line about an event where lines cannot be taken back.
fn plain(event: &EngineEvent, state: &mut State, everything: bool) -> Option<String> {
    match event {
        EngineEvent::Waiting { object, reason } => {
            let since =
                state.block.waits_since(object).map_or(0, |since| since.elapsed().as_secs());
            let seconds = if since == 0 { String::new() } else { format!(" ({since} s)") };
            let line = format!("waiting for {object}: {reason}{seconds}");
            (!state.is_repeated(&line)).then_some(line)
        }
        EngineEvent::ObjectApplied { object } if everything => Some(format!("applied {object}")),
        EngineEvent::ObjectDeleted { object } if everything => Some(format!("deleted {object}")),
        EngineEvent::WaitEnded { object } if everything => {
            Some(format!("no longer waiting for {object}"))
        }
        event if is_empty(event) => None,
        event => step(event),
    }
}

/// What an event says, for those that say something by themselves.
fn step(event: &EngineEvent) -> Option<String> {
    Some(match event {
        EngineEvent::StageStarted { stage } => stage_text(*stage).to_owned(),
        EngineEvent::ItemStarted { item, objects } => {
            format!("{item}: applying {}", count_text(*objects))
        }
        EngineEvent::ItemFinished { item, applied, failed: 0 } => {
            format!("{item}: applied {}", count_text(*applied))
        }
        EngineEvent::ItemFinished { item, applied, failed } => {
            format!("{item}: applied {}, {failed} failed", count_text(*applied))
        }
        EngineEvent::Barrier { message: Some(message) } => {
            format!("waiting at barrier: {message}")
        }
        EngineEvent::Barrier { message: None } => "waiting at barrier".to_owned(),
        EngineEvent::TemplateDebug { message } => message.clone(),
        _ => return None,
    })
}

fn count_text(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

/// Whether the event is about an item without objects: barriers and deletions are told by events of their own.
fn is_empty(event: &EngineEvent) -> bool {
    matches!(
        event,
        EngineEvent::ItemStarted { objects: 0, .. }
            | EngineEvent::ItemFinished { applied: 0, failed: 0, .. }
    )
}

/// What a stage does.
pub(super) fn stage_text(stage: Stage) -> &'static str {
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
