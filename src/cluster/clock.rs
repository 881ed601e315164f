use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The wall time of a run: the caller says when it starts, tokio's clock says how long it has been running.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Timestamp,
    at: Instant,
}

impl Clock {
    /// A clock that shows `started` now.
    pub fn starting_at(started: Timestamp) -> Self {
        Self { started, at: Instant::now() }
    }

    /// When the run started.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.started.saturating_add(self.elapsed()).unwrap_or(self.started)
    }

    /// How long the run has been going on.
    pub fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}
