//! When a request is sent again.

use std::time::Duration;

use super::ApiOutcome;

/// How often and how fast requests are repeated.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// How often a request is sent at most, the first time included.
    pub attempts: u32,
    /// The same while there is no connection at all: long enough for an API server to restart.
    pub attempts_to_connect: u32,
    /// The same when no answer comes in time, since each attempt takes long.
    pub attempts_in_vain: u32,
    /// The first pause; each further one doubles it.
    pub first_pause: Duration,
    /// The longest pause, also when the server asks for a longer one.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    /// Five attempts within about four seconds, eight within about thirty while there is no connection, three when no answer
    /// comes.
    fn default() -> Self {
        Self {
            attempts: 5,
            attempts_to_connect: 8,
            attempts_in_vain: 3,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    /// The pause before a request is sent again that has been sent `sent` times and came out as `outcome`; `None` when
    /// sending it again makes no sense or was done often enough. Only transient outcomes are repeated; the server's
    /// `Retry-After` counts when it is longer than ours. `seed` spreads simultaneous retries over a quarter of the pause.
    pub fn pause(&self, sent: u32, outcome: &ApiOutcome, seed: u64) -> Option<Duration> {
        let attempts = match outcome {
            ApiOutcome::Unreachable(_) => self.attempts_to_connect,
            ApiOutcome::Timeout(_) => self.attempts_in_vain,
            _ => self.attempts,
        };
        if !outcome.is_transient() || sent >= attempts {
            return None;
        }
        let doubled = self.first_pause.saturating_mul(1 << sent.saturating_sub(1).min(16));
        let asked = match outcome {
            ApiOutcome::Throttled { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let pause = doubled.max(asked).min(self.longest_pause);
        let spread = (seed.wrapping_add(u64::from(sent)).wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 56;
        Some(pause + pause.mul_f64(f64::from(u32::try_from(spread).unwrap_or(0)) / 1024.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_outcomes_are_repeated() {
        let policy = RetryPolicy::default();
        let transient = ApiOutcome::Transient("x".into());
        let pauses: Vec<_> = (1..=5).map(|sent| policy.pause(sent, &transient, 7)).collect();
        assert!(pauses[..4].iter().all(Option::is_some));
        assert!(pauses.is_sorted_by(|a, b| b.is_none() || a < b), "{pauses:?}");
        assert_eq!(pauses[4], None, "five attempts are enough");
        let attempts = |outcome: &ApiOutcome| {
            (1..20).take_while(|sent| policy.pause(*sent, outcome, 7).is_some()).count() + 1
        };
        assert_eq!(attempts(&ApiOutcome::Unreachable("x".into())), 8);
        assert_eq!(attempts(&ApiOutcome::Timeout("x".into())), 3);
        for outcome in [
            ApiOutcome::Forbidden("x".into()),
            ApiOutcome::BadRequest("x".into()),
            ApiOutcome::Denied("x".into()),
            ApiOutcome::NotFound("x".into()),
            ApiOutcome::Interrupted,
        ] {
            assert_eq!(policy.pause(1, &outcome, 7), None, "{outcome:?}");
        }
    }

    #[test]
    fn the_servers_pause_is_honoured_within_bounds() {
        let policy = RetryPolicy::default();
        let throttled = |seconds| ApiOutcome::Throttled {
            message: "slow".into(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert!(policy.pause(1, &throttled(3), 1).unwrap() >= Duration::from_secs(3));
        assert!(policy.pause(1, &throttled(3600), 1).unwrap() <= Duration::from_secs(19));
    }
}
