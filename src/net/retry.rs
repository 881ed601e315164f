use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio_util::sync::CancellationToken;

use super::NetError;

/// How a request failed, as far as the retry rule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No connection, or it broke, or went silent.
    Connection,
    /// The server answered with this status.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The server's wish, from `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// Trying again changes nothing.
    Final,
}

/// When and how often to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub retries: u32,
    /// The wait before the first retry; it doubles from there.
    pub min_wait: Duration,
    /// The longest wait, also when the server asks for more.
    pub max_wait: Duration,
}

impl RetryPolicy {
    /// No second attempt.
    pub const NEVER: Self = Self { retries: 0, min_wait: Duration::ZERO, max_wait: Duration::ZERO };

    /// Flux's rule for artifacts: `--http-retry` attempts more, 5 to 30 seconds apart.
    pub const fn flux(retries: u32) -> Self {
        Self { retries, min_wait: Duration::from_secs(5), max_wait: Duration::from_secs(30) }
    }

    /// How long to wait before the next attempt; `None` when there is to be none.
    ///
    /// `attempts` counts the attempts made so far, from 1. Connection failures, 408, 429 and 5xx (but 501) are tried again.
    /// `jitter` in 0..1 spreads the wait by up to a fifth of it, so that many clients do not return at once.
    pub fn wait(&self, attempts: u32, failure: Failure, jitter: f64) -> Option<Duration> {
        let asked = match failure {
            Failure::Connection => None,
            Failure::Status { code: 408 | 429 | 500 | 502..=599, retry_after } => retry_after,
            Failure::Status { .. } | Failure::Final => return None,
        };
        if attempts > self.retries {
            return None;
        }
        let doubled = self.min_wait.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        let base = asked.map_or(doubled, |asked| asked.max(self.min_wait)).min(self.max_wait);
        Some(base.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0)).min(self.max_wait))
    }
}

/// A fresh number in 0..1 for [`RetryPolicy::wait`].
pub fn jitter() -> f64 {
    // The standard library seeds each of these hashers differently; that is random enough to spread retries.
    let bits = RandomState::new().hash_one(0u8) >> 32;
    #[expect(clippy::cast_precision_loss, reason = "32 bits fit into the mantissa")]
    let numerator = bits as f64;
    numerator / f64::from(u32::MAX)
}

/// What `Retry-After` asks for. A date is taken relative to the answer's own `Date`, so no clock is involved.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let from = date(headers.get(DATE)?.to_str().ok()?)?;
    Some(date(text)?.duration_since(from).try_into().unwrap_or(Duration::ZERO))
}

/// Waits, unless cancelled.
///
/// # Errors
/// [`NetError::Cancelled`].
pub async fn sleep(wait: Duration, cancel: &CancellationToken) -> Result<(), NetError> {
    cancel.run_until_cancelled(tokio::time::sleep(wait)).await.ok_or(NetError::Cancelled)
}
