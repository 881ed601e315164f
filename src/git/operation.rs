//! What one conversation with a server has in common: time, cancellation, bytes, and the failure that ended it.
//!
//! Git's protocol code is synchronous and wraps errors into texts; so transports note what really happened here, and the
//! caller looks here first.

use std::{
    future::Future,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Auth, GitError, GitUrl};
use crate::net::{Failure as Retry, NetError};

/// What a transport knows about the end of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    Denied(String),
    NotFound,
    HostKey {
        reason: String,
        offered: String,
    },
    Key(String),
    /// Another attempt may help.
    Again {
        retry: Retry,
        message: String,
    },
    Refused(String),
    Net(NetError),
    TooLarge,
    Deadline,
    Cancelled,
}

/// One attempt at one conversation; shared by everything that takes part in it.
pub(super) struct Operation {
    pub(super) runtime: Handle,
    pub(super) deadline: Instant,
    pub(super) cancel: CancellationToken,
    /// For code that computes: set when the caller is gone.
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) max_bytes: u64,
    pub(super) received: AtomicU64,
    pub(super) failure: Mutex<Option<Failure>>,
}

impl Operation {
    /// Notes the failure (the first one counts) and returns an error for the code in between.
    pub(super) fn fail(&self, failure: Failure) -> io::Error {
        let error = io::Error::other(format!("{failure:?}"));
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        error
    }

    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs a future to its end on the calling thread, which must be one that may block.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        let bounded = tokio::time::timeout_at(self.deadline, future);
        match self.runtime.block_on(self.cancel.run_until_cancelled(bounded)) {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) => Err(self.fail(Failure::Deadline)),
            None => Err(self.fail(Failure::Cancelled)),
        }
    }

    /// Counts bytes from the server.
    pub(super) fn count(&self, bytes: usize) -> io::Result<()> {
        let before = self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.saturating_add(bytes as u64) > self.max_bytes {
            return Err(self.fail(Failure::TooLarge));
        }
        Ok(())
    }

    /// Whether the caller has left or the time is over; for loops that do not wait.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.cancel.is_cancelled() || self.interrupt.load(Ordering::Relaxed) {
            return Err(self.fail(Failure::Cancelled));
        }
        if Instant::now() >= self.deadline {
            return Err(self.fail(Failure::Deadline));
        }
        Ok(())
    }
}

impl Failure {
    /// Says which proxy took part, where that may be the reason.
    pub(super) fn through(self, proxy: Option<&str>) -> Self {
        let Some(proxy) = proxy else { return self };
        let say = |message: String| format!("{message} (through the proxy {proxy})");
        match self {
            Self::Again { retry, message } => Self::Again { retry, message: say(message) },
            Self::Denied(message) => Self::Denied(say(message)),
            Self::Refused(message) => Self::Refused(say(message)),
            other => other,
        }
    }

    pub(super) fn into_error(
        self,
        url: &GitUrl,
        auth: &Auth,
        attempts: u32,
        timeout: Duration,
        limit: u64,
    ) -> GitError {
        let url = url.to_string();
        let tried = auth.trail.to_string();
        match self {
            Self::Denied(message) => GitError::Denied { url, message, tried },
            Self::NotFound => GitError::NotFound { url, tried },
            Self::HostKey { reason, offered } => GitError::HostKey { url, reason, offered },
            Self::Key(message) => GitError::Key { url, message, tried },
            Self::Again { message, .. } => GitError::Unavailable { url, attempts, message },
            Self::Refused(message) => GitError::Protocol { url, message },
            Self::Net(source) => GitError::Net { url, source },
            Self::TooLarge => GitError::TooLarge { url, limit },
            Self::Deadline => GitError::Deadline { url, seconds: timeout.as_secs() },
            Self::Cancelled => GitError::Cancelled,
        }
    }
}
