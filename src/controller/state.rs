//! What the running controller knows: deployments and who refers to what, claims on targets, and the queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    ownership::{Bid, Claimant, Claims, Target},
    queue::Queue,
    schedule::Requeue,
    triggers::{Entry, Index, SourceKey},
};
use crate::api::{self, FluxSource, NamespacedName, SourceKind};

/// Shared by watches, runs and probes. No method waits.
#[derive(Default)]
pub(crate) struct State {
    knowledge: Mutex<Knowledge>,
    queue: Mutex<Queue<NamespacedName>>,
    news: Notify,
    /// Deployments that are being worked on though what they work on has changed.
    outdated: watch::Sender<BTreeMap<NamespacedName, Outdated>>,
}

/// Why a run that is under way is no longer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outdated {
    /// Its spec, requests or source changed: it should not wait for anything any more.
    Changed,
    /// Its target is another object's: it must not change anything in the cluster any more.
    Contested,
    /// The object is gone, or is another controller's now: it must not change anything any more, the object's status
    /// included.
    Lost,
}

#[derive(Default)]
struct Knowledge {
    index: Index,
    claims: Claims,
    /// Objects of the other API group, which are somebody else's to reconcile.
    foreign: BTreeSet<NamespacedName>,
}

impl Knowledge {
    /// Of those to whom a claim is news, the deployments that are this controller's to reconcile.
    fn concerned(&self, claimants: BTreeSet<Claimant>) -> Vec<NamespacedName> {
        let ours = claimants.into_iter().filter(|who| who.group == api::GROUP);
        ours.map(|who| who.name).filter(|name| self.index.get(name).is_some()).collect()
    }
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
        let woken = self.knowledge().index.observe(key, entry);
        if woken.contains(key) {
            self.outdate(std::slice::from_ref(key), Outdated::Changed);
        }
        self.wake(woken);
    }

    /// A deployment is gone, or no longer this controller's to reconcile.
    pub(crate) fn remove(&self, key: &NamespacedName) {
        let woken = self.knowledge().index.remove(key);
        self.outdate(std::slice::from_ref(key), Outdated::Lost);
        self.queue().forget(key);
        self.wake(woken);
    }

    /// The claim of a KluctlDeployment of this API group was seen, whichever controller reconciles it; `None` when it has
    /// none, or is gone.
    pub(crate) fn observe_claim(&self, key: &NamespacedName, bid: Option<Bid>) {
        let woken = {
            let mut known = self.knowledge();
            let woken = known.claims.observe(&Claimant::ours(key), bid);
            known.concerned(woken)
        };
        self.wake(woken);
    }

    /// All claims on a target.
    pub(crate) fn claims_on(&self, target: &Target) -> BTreeMap<Claimant, Bid> {
        self.knowledge().claims.on(target)
    }

    /// The objects of an API group that claim a target.
    pub(crate) fn claimants(&self, group: &str) -> BTreeSet<NamespacedName> {
        self.knowledge().claims.claimants(group).cloned().collect()
    }

    /// Whether a deployment is there, and this controller's to reconcile.
    pub(crate) fn is_known(&self, key: &NamespacedName) -> bool {
        self.knowledge().index.get(key).is_some()
    }

    /// All deployments known.
    pub(crate) fn keys(&self) -> BTreeSet<NamespacedName> {
        self.knowledge().index.keys().cloned().collect()
    }

    /// A source was seen, or (`None`) is gone.
    pub(crate) fn observe_source(&self, key: &SourceKey, source: Option<&FluxSource>) {
        let woken = self.knowledge().index.observe_source(key, source);
        self.outdate(&woken, Outdated::Changed);
        self.wake(woken);
    }

    /// A Secret was seen, or (`None`) is gone.
    pub(crate) fn observe_secret(&self, key: &NamespacedName, resource_version: Option<&str>) {
        let woken = self.knowledge().index.observe_secret(key, resource_version);
        self.wake(woken);
    }

    /// The variables of a deployment are about to be read from a Secret.
    pub(crate) fn reads(&self, key: &NamespacedName, secret: &NamespacedName) {
        self.knowledge().index.reads(key, secret);
    }

    /// The variables of a deployment are read from these Secrets and no others.
    pub(crate) fn reads_only(&self, key: &NamespacedName, secrets: &BTreeSet<NamespacedName>) {
        self.knowledge().index.reads_only(key, secrets);
    }

    /// Sources of a kind that deployments use, as far as they exist.
    pub(crate) fn sources_in_use(&self, kind: SourceKind) -> BTreeSet<NamespacedName> {
        self.knowledge().index.sources_seen(kind).cloned().collect()
    }

    /// Secrets that deployments refer to, as far as they exist.
    pub(crate) fn secrets_in_use(&self) -> BTreeSet<NamespacedName> {
        self.knowledge().index.secrets_seen().cloned().collect()
    }

    /// An object of the other API group was seen, with the claim that it makes.
    pub(crate) fn observe_foreign(&self, key: &NamespacedName, bid: Option<Bid>) {
        let (woken, lost) = {
            let mut known = self.knowledge();
            let mut woken = Vec::new();
            if known.foreign.insert(key.clone()) && known.index.get(key).is_some() {
                woken.push(key.clone());
            }
            let is_claim = bid.is_some();
            let concerned = known.claims.observe(&Claimant::theirs(key), bid);
            let concerned = known.concerned(concerned);
            // It asks nobody, so its controller may begin at any moment.
            let mut lost = woken.clone();
            lost.extend(concerned.iter().filter(|_| is_claim).cloned());
            woken.extend(concerned);
            (woken, lost)
        };
        self.outdate(&lost, Outdated::Contested);
        self.wake(woken);
    }

    /// An object of the other API group is gone.
    pub(crate) fn remove_foreign(&self, key: &NamespacedName) {
        let woken = {
            let mut known = self.knowledge();
            known.foreign.remove(key);
            let woken = known.claims.observe(&Claimant::theirs(key), None);
            let mut woken = known.concerned(woken);
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
    fn outdate(&self, keys: &[NamespacedName], why: Outdated) {
        let running: Vec<_> = {
            let queue = self.queue();
            keys.iter().filter(|key| queue.is_running(key)).cloned().collect()
        };
        if !running.is_empty() {
            self.outdated.send_modify(|outdated| {
                for key in running {
                    let worst = outdated.entry(key).or_insert(why);
                    *worst = why.max(*worst);
                }
            });
        }
    }

    /// Returns once the deployment's run has become outdated in this way, or a worse one, since it began.
    pub(crate) async fn outdated(&self, key: &NamespacedName, why: Outdated) {
        let mut outdated = self.outdated.subscribe();
        let is_outdated = |all: &BTreeMap<_, _>| all.get(key).is_some_and(|known| *known >= why);
        // The sender is borrowed here, so it cannot have gone.
        let _changed = outdated.wait_for(is_outdated).await;
    }

    /// Whether the deployment's run must not even write its status any more.
    pub(crate) fn is_lost(&self, key: &NamespacedName) -> bool {
        self.outdated.borrow().get(key) == Some(&Outdated::Lost) || !self.is_known(key)
    }

    /// The next deployment that is due; waits for one.
    pub(crate) async fn next(&self) -> NamespacedName {
        loop {
            let due = {
                let mut queue = self.queue();
                if let Some(key) = queue.take(Instant::now()) {
                    self.outdated.send_if_modified(|outdated| outdated.remove(&key).is_some());
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

    /// Ends the work on a deployment that [`State::next`] gave out. Returns the delay until the next run; there is none for a
    /// deployment that was removed meanwhile.
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
        let repeats = queue.done(key, delay.and_then(|delay| Instant::now().checked_add(delay)));
        drop(queue);
        self.outdated.send_if_modified(|outdated| outdated.remove(key).is_some());
        self.news.notify_one();
        delay.filter(|_| repeats)
    }

    /// Numbers of deployments that are due and that are being worked on.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.queue().load(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ClaimState;

    fn key(name: &str) -> NamespacedName {
        NamespacedName::new("ns", name)
    }

    fn entry() -> Entry {
        Entry::read(&json!({ "metadata": { "namespace": "ns" } }))
    }

    fn target() -> Target {
        Target { discriminator: "d".into(), ..Target::default() }
    }

    fn bid(state: ClaimState) -> Bid {
        Bid { target: target(), state, created: "2026".into(), asked: None }
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
        state.observe(&key("a"), entry());
        state.observe(&key("b"), entry());
        assert_eq!(drain(&state).await, ["a", "b"]);
        state.observe_claim(&key("a"), Some(bid(ClaimState::Granted)));
        state.observe_claim(&key("b"), Some(bid(ClaimState::Refused)));
        assert_eq!(drain(&state).await, ["a"]);
        assert_eq!(state.claims_on(&target()).len(), 2);
        state.observe_claim(&key("another-shards"), Some(bid(ClaimState::Refused)));
        assert_eq!(drain(&state).await, ["a", "b"]);
        state.observe_claim(&key("a"), None);
        assert_eq!(drain(&state).await, ["b"], "what others reconcile is theirs to wake");
    }

    #[tokio::test]
    async fn objects_of_the_other_group_interrupt_and_release() {
        let state = State::default();
        let brief = Duration::from_millis(5);
        state.observe(&key("a"), entry());
        let running = state.next().await;
        state.observe_claim(&key("a"), Some(bid(ClaimState::Granted)));
        state.observe_foreign(&key("other"), Some(bid(ClaimState::Granted)));
        let lost = state.outdated(&running, Outdated::Contested);
        assert!(tokio::time::timeout(brief, lost).await.is_ok(), "the run goes on");
        assert!(!state.is_lost(&running), "its status stays this controller's to write");
        state.done(&running, Requeue::OnChange);
        assert_eq!(drain(&state).await, ["a"]);
        state.remove_foreign(&key("other"));
        assert_eq!(drain(&state).await, ["a"]);
        assert!(!state.is_migrated(&key("a")));
        state.observe_foreign(&key("a"), None);
        assert!(state.is_migrated(&key("a")));
        assert_eq!(drain(&state).await, ["a"]);
    }

    #[tokio::test]
    async fn a_run_over_an_object_that_is_gone_is_lost() {
        let state = State::default();
        state.observe(&key("a"), entry());
        let running = state.next().await;
        state.remove(&key("a"));
        let lost = state.outdated(&running, Outdated::Lost);
        assert!(tokio::time::timeout(Duration::from_millis(5), lost).await.is_ok());
        assert!(state.is_lost(&running));
        state.observe(&key("a"), entry());
        assert!(state.is_lost(&running), "the run began before the object came back");
        state.remove(&key("a"));
        assert_eq!(state.done(&running, Requeue::After(Duration::ZERO)), None);
        assert!(drain(&state).await.is_empty(), "an interrupted run is not repeated here");
        state.observe(&key("a"), entry());
        assert_eq!(drain(&state).await, ["a"]);
        assert!(!state.is_lost(&running));
    }

    #[tokio::test]
    async fn a_run_learns_that_it_is_outdated() {
        let state = State::default();
        let brief = Duration::from_millis(5);
        let generation = |generation| Entry { generation, ..entry() };
        state.observe(&key("a"), generation(1));
        let running = state.next().await;
        assert!(
            tokio::time::timeout(brief, state.outdated(&running, Outdated::Changed)).await.is_err()
        );
        state.observe(&key("a"), generation(1));
        assert!(
            tokio::time::timeout(brief, state.outdated(&running, Outdated::Changed)).await.is_err()
        );
        state.observe(&key("a"), generation(2));
        assert!(
            tokio::time::timeout(brief, state.outdated(&running, Outdated::Changed)).await.is_ok()
        );
        let lost = state.outdated(&running, Outdated::Lost);
        assert!(tokio::time::timeout(brief, lost).await.is_err(), "it only should not wait");
        state.done(&running, Requeue::OnChange);
        let next = state.next().await;
        assert!(
            tokio::time::timeout(brief, state.outdated(&next, Outdated::Changed)).await.is_err(),
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
