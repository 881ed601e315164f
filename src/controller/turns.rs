use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use super::ownership::Target;

/// One run at a time per target, whoever owns it. Claims see to it that there is one owner; this covers the moment in which
/// the owner changes while its run is still coming to an end.
#[derive(Default)]
pub(crate) struct Turns {
    locks: Mutex<Vec<(Target, Weak<tokio::sync::Mutex<()>>)>>,
}

impl Turns {
    /// Waits until nobody else works on `target`; it stays so while the guard lives. Who holds a worker slot must not wait
    /// here: the one who works on the target may need a slot to come to an end.
    pub(crate) async fn wait_for(&self, target: &Target) -> OwnedMutexGuard<()> {
        self.lock(target).lock_owned().await
    }

    /// As [`Turns::wait_for`], if nobody works on `target` at this moment.
    pub(crate) fn try_take(&self, target: &Target) -> Option<OwnedMutexGuard<()>> {
        self.lock(target).try_lock_owned().ok()
    }

    fn lock(&self, target: &Target) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|(_, lock)| lock.strong_count() > 0);
        let found = locks.iter().find(|(known, _)| known.is_same(target));
        found.and_then(|(_, lock)| lock.upgrade()).unwrap_or_else(|| {
            let lock = Arc::default();
            locks.push((target.clone(), Arc::downgrade(&lock)));
            lock
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_run_per_target_at_a_time() {
        let turns = Turns::default();
        let target = |name: &str| Target { discriminator: name.into(), ..Target::default() };
        let first = turns.wait_for(&target("a")).await;
        let _other = turns.wait_for(&target("b")).await;
        let brief = Duration::from_millis(10);
        assert!(tokio::time::timeout(brief, turns.wait_for(&target("a"))).await.is_err());
        assert!(turns.try_take(&target("a")).is_none());
        drop(first);
        assert!(turns.try_take(&target("a")).is_some());
        assert!(tokio::time::timeout(brief, turns.wait_for(&target("a"))).await.is_ok());
        assert_eq!(turns.locks.lock().unwrap().len(), 2);
    }
}
