use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::EngineError;

/// Runs `work` for each index below `count` on the blocking pool, as many at once as `limit` has permits, and returns the
/// results in order of the index. Dropping the future, or a cancellation, keeps work that has not begun from beginning.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Internal`] when the work panics.
pub(super) async fn for_each_index<T: Send + 'static>(
    count: usize,
    limit: &Arc<Semaphore>,
    cancel: &CancellationToken,
    work: impl Fn(usize) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, EngineError> {
    let work = Arc::new(work);
    let mut tasks = JoinSet::new();
    for index in 0..count {
        let permit = tokio::select! {
            permit = limit.clone().acquire_owned() => permit,
            () = cancel.cancelled() => return Err(EngineError::Cancelled),
        };
        let Ok(permit) = permit else { return Err(EngineError::Cancelled) };
        let work = work.clone();
        tasks.spawn_blocking(move || {
            let result = work(index);
            drop(permit);
            (index, result)
        });
    }
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    loop {
        let joined = tokio::select! {
            joined = tasks.join_next() => joined,
            () = cancel.cancelled() => return Err(EngineError::Cancelled),
        };
        match joined {
            None => break,
            Some(Ok((index, result))) => results[index] = Some(result),
            Some(Err(error)) => return Err(EngineError::Internal { message: error.to_string() }),
        }
    }
    // Every index was spawned and joined.
    Ok(results.into_iter().flatten().collect())
}
