//! What stands in the way of a watch, what follows from it, and how often it is told.

use std::time::Duration;

use super::{Find, Wanted};

/// The first and the longest pause before a kind is looked for again that was not served or not to be seen. It doubles.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];
/// How long a watch is content with one namespace, before all of them are tried again.
const WIDER: Duration = Duration::from_mins(10);

/// Why a watch ended.
#[derive(Debug)]
pub(super) enum End {
    /// The kind is not served (any more) in the version that was watched. `true` when it had been.
    Dropped(bool),
    /// The rights are missing. `true` when they had been there.
    Forbidden(bool),
    /// The cluster does not serve the kind in any version.
    NotServed,
    /// Which kinds the cluster serves could not be read.
    Unknown(String),
    /// It is time to look further.
    Due,
}

/// What stood in the way of a watch, and what follows from it.
pub(super) struct Trouble<'a> {
    pub(super) what: String,
    wanted: &'a Wanted,
    /// Before the next attempt.
    pub(super) pause: Duration,
    /// Refusals in a row.
    refusals: u32,
    /// Whether all namespaces are out of reach.
    is_narrow: bool,
    /// Whether the log tells of it already.
    is_told: bool,
}

impl<'a> Trouble<'a> {
    pub(super) fn new(wanted: &'a Wanted) -> Self {
        let what = wanted.title();
        Self { what, wanted, pause: PAUSES[0], refusals: 0, is_narrow: false, is_told: false }
    }

    /// The namespace to watch.
    pub(super) fn namespace(&self) -> Option<&str> {
        let fallback = self.wanted.fallback.as_ref().filter(|_| self.is_narrow);
        self.wanted.namespace.as_ref().or(fallback).map(String::as_str)
    }

    /// How long to watch, at most.
    pub(super) fn patience(&self) -> Duration {
        if self.is_narrow { WIDER } else { Duration::MAX }
    }

    /// Takes notice of why a watch ended. Returns whether nothing more is to be expected from waiting for it.
    pub(super) fn note(&mut self, end: &End) -> bool {
        let Self { what, wanted, .. } = self;
        let worked = matches!(end, End::Dropped(true) | End::Forbidden(true) | End::Due);
        let was_told = std::mem::replace(&mut self.is_told, true);
        let is_news = !was_told || (worked && !matches!(end, End::Due));
        self.pause = if worked { PAUSES[0] } else { (self.pause * 2).min(PAUSES[1]) };
        self.refusals = if matches!(end, End::Forbidden(_)) { self.refusals + 1 } else { 0 };
        match end {
            End::Dropped(true) => {
                tracing::info!(
                    what,
                    "the watched version is no longer served, looking for another"
                );
                self.is_told = false;
            }
            End::Dropped(false) if is_news => {
                tracing::warn!(what, "the cluster does not serve this kind; {}", wanted.loss);
            }
            End::NotServed if is_news => {
                tracing::debug!(what, "the cluster does not serve this kind");
            }
            End::Unknown(message) => {
                tracing::warn!(what, "the kinds of the cluster cannot be listed: {message}");
            }
            End::Due => self.is_narrow = false,
            // One refusal may come from an API server that is just starting.
            End::Forbidden(_) if self.refusals < 2 => self.is_told = was_told,
            End::Forbidden(_) if !self.is_narrow && wanted.fallback.is_some() => {
                if is_news {
                    tracing::warn!(
                        what,
                        "list and watch in all namespaces are forbidden to the controller: {}",
                        wanted.loss
                    );
                }
                self.is_narrow = true;
                self.pause = Duration::ZERO;
            }
            End::Forbidden(_) => {
                if is_news {
                    tracing::warn!(
                        what,
                        "list and watch are forbidden to the controller: {}",
                        wanted.loss
                    );
                }
                return matches!(wanted.kind, Find::Served(..));
            }
            End::Dropped(false) | End::NotServed => {}
        }
        false
    }
}
