//! What is to be reconciled when: at most one run per object, the sooner of two wishes wins, nothing is lost.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

/// First delay of a run that is repeated because of trouble with the API server or network.
const FIRST_BACKOFF: Duration = Duration::from_millis(750);

/// A queue of keys with due times. Time is handed in.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    /// Waiting keys by due time; the number keeps equal times apart and in order of arrival.
    waiting: BTreeMap<(Instant, u64), K>,
    /// Where each waiting key stands.
    places: HashMap<K, (Instant, u64)>,
    /// Keys that are being worked on.
    running: HashMap<K, Again>,
    /// Failures in a row that call for a growing delay.
    failures: HashMap<K, u32>,
    arrivals: u64,
}

/// What is wanted of a key after the work on it that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// What that work says at its end.
    Open,
    /// To be worked on again at this time, or sooner when that work says so.
    At(Instant),
    /// Nothing: the key was dropped meanwhile.
    Never,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            places: HashMap::new(),
            running: HashMap::new(),
            failures: HashMap::new(),
            arrivals: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Wants `key` to be worked on at `at`, or sooner when that was wished before. A key that is being worked on waits
    /// until that is done.
    pub(crate) fn add(&mut self, key: K, at: Instant) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = match *again {
                Again::At(earlier) => Again::At(earlier.min(at)),
                Again::Open | Again::Never => Again::At(at),
            };
            return;
        }
        if let Some(place) = self.places.get(&key) {
            if place.0 <= at {
                return;
            }
            self.waiting.remove(place);
        }
        self.arrivals += 1;
        let place = (at, self.arrivals);
        self.places.insert(key.clone(), place);
        self.waiting.insert(place, key);
    }

    /// The time at which the next key falls due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first key that is due at `now`; it counts as being worked on until [`Queue::done`].
    pub(crate) fn take(&mut self, now: Instant) -> Option<K> {
        let entry = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let key = entry.remove();
        self.places.remove(&key);
        self.running.insert(key.clone(), Again::Open);
        Some(key)
    }

    /// Ends the work on `key`, to be repeated at `next` or when it was wished for meanwhile; not at all when the key was
    /// dropped meanwhile. Returns whether it is to be repeated.
    pub(crate) fn done(&mut self, key: &K, next: Option<Instant>) -> bool {
        let at = match self.running.remove(key) {
            Some(Again::Never) => None,
            Some(Again::At(at)) => Some(next.map_or(at, |next| next.min(at))),
            Some(Again::Open) | None => next,
        };
        if let Some(at) = at {
            self.add(key.clone(), at);
        }
        at.is_some()
    }

    /// Whether a key is being worked on.
    pub(crate) fn is_running(&self, key: &K) -> bool {
        self.running.contains_key(key)
    }

    /// The delay after one more failure in a row, doubling up to `longest`.
    pub(crate) fn backoff(&mut self, key: &K, longest: Duration) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_BACKOFF.saturating_mul(1 << (*failures).min(20)).min(longest);
        *failures += 1;
        delay
    }

    /// Ends a row of failures.
    pub(crate) fn succeeded(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Drops a key for good; work on it goes on to its end.
    pub(crate) fn forget(&mut self, key: &K) {
        if let Some(place) = self.places.remove(key) {
            self.waiting.remove(&place);
        }
        if let Some(again) = self.running.get_mut(key) {
            *again = Again::Never;
        }
        self.failures.remove(key);
    }

    /// Numbers of waiting keys that are due at `now`, and of keys being worked on.
    pub(crate) fn load(&self, now: Instant) -> (usize, usize) {
        (self.waiting.keys().take_while(|(at, _)| *at <= now).count(), self.running.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_sooner_wish_wins_and_each_key_runs_once() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add("a", start + secs(10));
        queue.add("b", start + secs(5));
        queue.add("a", start + secs(20));
        assert_eq!(queue.next_due(), Some(start + secs(5)));
        queue.add("a", start + secs(1));
        assert_eq!(queue.take(start), None, "nothing is due yet");
        assert_eq!(queue.take(start + secs(6)), Some("a"));
        assert_eq!(queue.take(start + secs(6)), Some("b"));
        assert_eq!(queue.take(start + secs(60)), None, "both are being worked on");
        assert_eq!(queue.load(start + secs(60)), (0, 2));
    }

    #[test]
    fn a_wish_during_the_run_is_kept_and_beats_the_later_requeue() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add("a", start);
        assert_eq!(queue.take(start), Some("a"));
        queue.add("a", start + secs(2));
        queue.add("a", start + secs(3));
        assert_eq!(queue.take(start + secs(9)), None, "never twice at a time");
        queue.done(&"a", Some(start + secs(300)));
        assert_eq!(queue.next_due(), Some(start + secs(2)));
        assert_eq!(queue.take(start + secs(9)), Some("a"));
        queue.done(&"a", None);
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn equal_times_are_served_in_order_of_arrival() {
        let start = Instant::now();
        let mut queue = Queue::default();
        for key in ["c", "a", "b"] {
            queue.add(key, start);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.take(start)).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }

    #[test]
    fn a_forgotten_key_does_not_come_back() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add("a", start);
        queue.add("b", start);
        queue.forget(&"a");
        assert_eq!(queue.take(start), Some("b"));
        queue.add("b", start);
        queue.forget(&"b");
        assert!(!queue.done(&"b", Some(start)), "whatever the work on it wishes");
        assert_eq!(queue.take(start), None);
    }

    #[test]
    fn a_key_that_is_wanted_after_it_was_forgotten_comes_back() {
        let start = Instant::now();
        let mut queue = Queue::default();
        queue.add("a", start);
        assert_eq!(queue.take(start), Some("a"));
        queue.forget(&"a");
        queue.add("a", start + secs(2));
        assert!(queue.done(&"a", Some(start + secs(300))));
        assert_eq!(queue.next_due(), Some(start + secs(2)));
    }

    #[test]
    fn failures_in_a_row_wait_longer_and_longer() {
        let mut queue = Queue::default();
        let delays: Vec<_> = (0..4).map(|_| queue.backoff(&"a", secs(3)).as_millis()).collect();
        assert_eq!(delays, [750, 1500, 3000, 3000]);
        assert_eq!(queue.backoff(&"b", secs(3)).as_millis(), 750, "each key has its own row");
        queue.succeeded(&"a");
        assert_eq!(queue.backoff(&"a", secs(3)).as_millis(), 750);
        for _ in 0..100 {
            assert!(queue.backoff(&"a", Duration::MAX) > Duration::ZERO, "no overflow");
        }
    }
}
