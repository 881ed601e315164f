//! What the running controller knows: deployments and who refers to what, claims on targets, and the queue.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    ownership::{Claim, Claimant, Claims, Target},
    queue::Queue,
    schedule::Requeue,
    triggers::{Entry, Index, SourceKey},
};
use crate::api::{self, FluxSource, NamespacedName, SourceKind};

/// API group of the other controller's KluctlDeployments.
pub(crate) const GITOPS_GROUP: &str = "gitops.kluctl.io";

/// Shared by watches, runs and probes. No method waits.
#[derive(Default)]
pub(crate) struct State {
    knowledge: Mutex<Knowledge>,
    queue: Mutex<Queue<NamespacedName>>,
    news: Notify,
    /// Deployments that are being worked on and have changed since that began.
    outdated: watch::Sender<BTreeSet<NamespacedName>>,
}

#[derive(Default)]
struct Knowledge {
    index: Index,
    claims: Claims,
    /// Objects of the other API group, which are somebody else's to reconcile.
    foreign: BTreeSet<NamespacedName>,
}

fn ours(key: &NamespacedName) -> Claimant {
    Claimant { group: api::GROUP.to_owned(), name: key.clone() }
}

fn theirs(key: &NamespacedName) -> Claimant {
    Claimant { group: GITOPS_GROUP.to_owned(), name: key.clone() }
}

impl State {
    fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue<NamespacedName>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A deployment was seen.
    pub(crate) fn observe(&self, key: &NamespacedName, entry: Entry) {
        let woken = {
            let mut known = self.knowledge();
            // A status tells what was claimed before this process; from then on claims are made by runs.
            if known.index.get(key).is_none()
                && let Some((cluster_id, discriminator)) = entry.target.clone()
            {
                let target = Target { cluster_id, discriminator };
                known.claims.remember(&ours(key), &entry.created, &target);
            }
            known.index.observe(key, entry)
        };
        if woken.contains(key) {
            self.outdate(std::slice::from_ref(key));
        }
        self.wake(woken);
    }

    /// A deployment is gone.
    pub(crate) fn remove(&self, key: &NamespacedName) {
        let woken = {
            let mut known = self.knowledge();
            let mut woken = known.index.remove(key);
            woken.extend(own_names(known.claims.withdraw(&ours(key))));
            woken
        };
        self.queue().forget(key);
        self.wake(woken);
    }

    /// All deployments known.
    pub(crate) fn keys(&self) -> BTreeSet<NamespacedName> {
        self.knowledge().index.keys().cloned().collect()
    }

    /// A source was seen, or (`None`) is gone.
    pub(crate) fn observe_source(&self, key: &SourceKey, source: Option<&FluxSource>) {
        let woken = self.knowledge().index.observe_source(key, source);
        self.outdate(&woken);
        self.wake(woken);
    }

    /// A Secret was seen, or (`None`) is gone.
    pub(crate) fn observe_secret(&self, key: &NamespacedName, resource_version: Option<&str>) {
        let woken = self.knowledge().index.observe_secret(key, resource_version);
        self.wake(woken);
    }

    /// Sources of a kind that deployments use, as far as they exist.
    pub(crate) fn sources_in_use(&self, kind: SourceKind) -> BTreeSet<NamespacedName> {
        self.knowledge().index.sources_seen(kind).cloned().collect()
    }

    /// Secrets that deployments refer to, as far as they exist.
    pub(crate) fn secrets_in_use(&self) -> BTreeSet<NamespacedName> {
        self.knowledge().index.secrets_seen().cloned().collect()
    }

    /// An object of the other API group was seen, with the target that it records.
    pub(crate) fn observe_foreign(&self, key: &NamespacedName, target: Option<Target>) {
        let woken = {
            let mut known = self.knowledge();
            let mut woken = Vec::new();
            if known.foreign.insert(key.clone()) && known.index.get(key).is_some() {
                woken.push(key.clone());
            }
            let claimant = theirs(key);
            if known.claims.target_of(&claimant) != target.as_ref() {
                woken.extend(own_names(known.claims.withdraw(&claimant)));
                if let Some(target) = target {
                    // Its controller does not ask: whoever cannot be held back comes before all others.
                    known.claims.remember(&claimant, "", &target);
                    woken.extend(own_names(known.claims.rivals_of(&claimant)));
                }
            }
            woken
        };
        self.wake(woken);
    }

    /// An object of the other API group is gone.
    pub(crate) fn remove_foreign(&self, key: &NamespacedName) {
        let woken = {
            let mut known = self.knowledge();
            known.foreign.remove(key);
            let mut woken = own_names(known.claims.withdraw(&theirs(key)));
            woken.extend(known.index.get(key).is_some().then(|| key.clone()));
            woken
        };
        self.wake(woken);
    }

    /// All objects of the other API group known.
    pub(crate) fn foreign_keys(&self) -> BTreeSet<NamespacedName> {
        self.knowledge().foreign.clone()
    }

    /// Whether an object of the same name in the other API group has taken over.
    pub(crate) fn is_migrated(&self, key: &NamespacedName) -> bool {
        self.knowledge().foreign.contains(key)
    }

    /// A circle of dependencies through `key`.
    pub(crate) fn dependency_cycle(&self, key: &NamespacedName) -> Option<Vec<NamespacedName>> {
        super::dependencies::find_cycle(&self.knowledge().index, key)
    }

    /// Claims a target for a deployment; wakes the owner when it gets a rival.
    pub(crate) fn claim(&self, key: &NamespacedName, created: &str, target: &Target) -> Claim {
        let mut known = self.knowledge();
        let given_up = match known.claims.target_of(&ours(key)) {
            Some(held) if held != target => own_names(known.claims.withdraw(&ours(key))),
            _ => Vec::new(),
        };
        let claim = known.claims.claim(&ours(key), created, target);
        drop(known);
        self.wake(given_up);
        if let Claim::Refused { owner, is_news: true } = &claim {
            self.wake(own_names(vec![owner.clone()]));
        }
        claim
    }

    /// The other claimants of the deployment's target.
    pub(crate) fn rivals(&self, key: &NamespacedName) -> Vec<Claimant> {
        self.knowledge().claims.rivals_of(&ours(key))
    }

    /// Wants deployments to be reconciled now.
    pub(crate) fn wake(&self, keys: Vec<NamespacedName>) {
        if keys.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut queue = self.queue();
        for key in keys {
            queue.add(key, now);
        }
        drop(queue);
        self.news.notify_one();
    }

    /// Notes that runs which are under way work on what is no longer wanted.
    fn outdate(&self, keys: &[NamespacedName]) {
        let running: Vec<_> = {
            let queue = self.queue();
            keys.iter().filter(|key| queue.is_running(key)).cloned().collect()
        };
        if !running.is_empty() {
            self.outdated.send_modify(|outdated| outdated.extend(running));
        }
    }

    /// Returns once the deployment's spec, requests or source changed since its run began.
    pub(crate) async fn outdated(&self, key: &NamespacedName) {
        let mut outdated = self.outdated.subscribe();
        // The sender is borrowed here, so it cannot have gone.
        let _changed = outdated.wait_for(|outdated| outdated.contains(key)).await;
    }

    /// The next deployment that is due; waits for one.
    pub(crate) async fn next(&self) -> NamespacedName {
        loop {
            let due = {
                let mut queue = self.queue();
                if let Some(key) = queue.take(Instant::now()) {
                    self.outdated.send_if_modified(|outdated| outdated.remove(&key));
                    return key;
                }
                queue.next_due()
            };
            match due {
                Some(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    () = self.news.notified() => {}
                },
                None => self.news.notified().await,
            }
        }
    }

    /// Ends the work on a deployment that [`State::next`] gave out. Returns the delay until the next run.
    pub(crate) fn done(&self, key: &NamespacedName, next: Requeue) -> Option<Duration> {
        let mut queue = self.queue();
        let delay = match next {
            Requeue::After(delay) => {
                queue.succeeded(key);
                Some(delay)
            }
            Requeue::Backoff(longest) => Some(queue.backoff(key, longest)),
            Requeue::OnChange => {
                queue.succeeded(key);
                None
            }
        };
        queue.done(key, delay.and_then(|delay| Instant::now().checked_add(delay)));
        drop(queue);
        self.news.notify_one();
        delay
    }

    /// Numbers of deployments that are due and that are being worked on.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.queue().load(Instant::now())
    }
}

fn own_names(claimants: Vec<Claimant>) -> Vec<NamespacedName> {
    claimants.into_iter().filter(|c| c.group == api::GROUP).map(|c| c.name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> NamespacedName {
        NamespacedName::new("ns", name)
    }

    fn entry(target: Option<(&str, &str)>) -> Entry {
        let mut object = json!({ "metadata": { "namespace": "ns", "creationTimestamp": "2026" } });
        if let Some((cluster, discriminator)) = target {
            object["status"] = json!({ "clusterId": cluster, "discriminator": discriminator });
        }
        Entry::read(&object)
    }

    fn target() -> Target {
        Target { cluster_id: "c".into(), discriminator: "d".into() }
    }

    async fn drain(state: &State) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(key) = tokio::time::timeout(Duration::from_millis(5), state.next()).await {
            state.done(&key, Requeue::OnChange);
            names.push(key.name);
        }
        names
    }

    #[tokio::test]
    async fn an_owner_is_woken_when_a_rival_comes_and_a_rival_when_the_owner_goes() {
        let state = State::default();
        state.observe(&key("a"), entry(Some(("c", "d"))));
        state.observe(&key("b"), entry(None));
        assert_eq!(drain(&state).await, ["a", "b"]);
        assert!(matches!(state.claim(&key("b"), "2020", &target()), Claim::Refused { .. }));
        assert_eq!(drain(&state).await, ["a"]);
        assert_eq!(state.rivals(&key("a")).len(), 1);
        // Its status still tells what it owned before; that must not undo the claim.
        state.observe(&key("b"), entry(Some(("c", "other"))));
        assert_eq!(state.rivals(&key("a")).len(), 1);
        state.remove(&key("a"));
        assert_eq!(drain(&state).await, ["b"]);
        assert_eq!(state.claim(&key("b"), "2020", &target()), Claim::Granted { rivals: vec![] });
    }

    #[tokio::test]
    async fn objects_of_the_other_group_come_first() {
        let state = State::default();
        state.observe(&key("a"), entry(Some(("c", "d"))));
        drain(&state).await;
        state.observe_foreign(&key("other"), Some(target()));
        assert_eq!(drain(&state).await, ["a"]);
        let Claim::Refused { owner, .. } = state.claim(&key("a"), "2026", &target()) else {
            panic!("granted")
        };
        assert_eq!(owner.group, GITOPS_GROUP);
        state.remove_foreign(&key("other"));
        assert_eq!(drain(&state).await, ["a"]);
        assert!(matches!(state.claim(&key("a"), "2026", &target()), Claim::Granted { .. }));
        assert!(!state.is_migrated(&key("a")));
        state.observe_foreign(&key("a"), None);
        assert!(state.is_migrated(&key("a")));
        assert_eq!(drain(&state).await, ["a"]);
    }

    #[tokio::test]
    async fn a_run_learns_that_it_is_outdated() {
        let state = State::default();
        let brief = Duration::from_millis(5);
        let generation = |generation| Entry { generation, ..entry(None) };
        state.observe(&key("a"), generation(1));
        let running = state.next().await;
        assert!(tokio::time::timeout(brief, state.outdated(&running)).await.is_err());
        state.observe(&key("a"), generation(1));
        assert!(tokio::time::timeout(brief, state.outdated(&running)).await.is_err());
        state.observe(&key("a"), generation(2));
        assert!(tokio::time::timeout(brief, state.outdated(&running)).await.is_ok());
        state.done(&running, Requeue::OnChange);
        let next = state.next().await;
        assert!(
            tokio::time::timeout(brief, state.outdated(&next)).await.is_err(),
            "it starts anew"
        );
    }

    #[tokio::test]
    async fn a_run_is_repeated_after_its_delay() {
        let state = State::default();
        state.wake(vec![key("a")]);
        let first = state.next().await;
        state.done(&first, Requeue::After(Duration::from_millis(20)));
        let started = Instant::now();
        assert_eq!(state.next().await, first);
        assert!(started.elapsed() >= Duration::from_millis(19));
        assert_eq!(state.load(), (0, 1));
        assert_eq!(
            state.done(&first, Requeue::Backoff(Duration::from_secs(9))),
            Some(Duration::from_millis(750))
        );
    }
}
