//! Leader election by a Lease (`coordination.k8s.io/v1`), with a clean hand-over: who stops gives the lease back, and the
//! next one starts at once.
//!
//! Times are Flux's: a lease of 35 s, given up 5 s before its end when it could not be renewed, renewed every 5 s. Clocks of
//! replicas are not compared: a lease counts as expired when it was *seen* unchanged for its whole duration, so skew does no
//! harm.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long the lease's return may take.
pub(crate) const RELEASE: Duration = Duration::from_secs(5);

/// Times of the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// How long others wait before they take over a lease that is not renewed.
    pub duration: Duration,
    /// How long the holder goes on without a renewal before it stops by itself.
    pub renew_deadline: Duration,
    /// Time between attempts to get or renew.
    pub retry: Duration,
    /// The longest that one attempt waits for its answer.
    pub patience: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(35),
            renew_deadline: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            patience: Duration::from_secs(10),
        }
    }
}

/// A Lease and who wants it.
#[derive(Clone)]
pub(crate) struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    terms: Terms,
}

/// What a Lease says to a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is ours.
    Held,
    /// Nobody holds it.
    Free,
    /// Somebody else holds it.
    Taken {
        /// Who.
        by: String,
    },
}

/// The lease as seen, and since when it has not changed.
#[derive(Debug, Default)]
struct Watch {
    version: String,
    since: Option<Instant>,
}

impl Watch {
    /// Whether the lease has been seen unchanged for `duration`.
    fn is_expired(&mut self, lease: &Lease, duration: Duration, now: Instant) -> bool {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        if self.version != version || self.since.is_none() {
            *self = Self { version, since: Some(now) };
        }
        self.since.is_some_and(|since| now.duration_since(since) >= duration)
    }
}

/// What `spec` means to `identity`.
pub(crate) fn standing(spec: Option<&LeaseSpec>, identity: &str) -> Standing {
    match spec.and_then(|spec| spec.holder_identity.as_deref()) {
        None | Some("") => Standing::Free,
        Some(holder) if holder == identity => Standing::Held,
        Some(holder) => Standing::Taken { by: holder.to_owned() },
    }
}

/// The Lease's content for a holder. Taking over from somebody counts as a transition.
fn taken(old: Option<&LeaseSpec>, identity: &str, terms: Terms, now: Timestamp) -> LeaseSpec {
    let is_renewal = standing(old, identity) == Standing::Held;
    let transitions = old.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let acquired = old.and_then(|spec| spec.acquire_time.clone()).filter(|_| is_renewal);
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: i32::try_from(terms.duration.as_secs()).ok(),
        acquire_time: Some(acquired.unwrap_or(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(if is_renewal {
            transitions
        } else {
            transitions + i32::from(old.is_some())
        }),
        ..LeaseSpec::default()
    }
}

impl Election {
    /// A candidate for the Lease `name`. `host` becomes part of its identity.
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        name: String,
        host: &str,
        terms: Terms,
    ) -> Self {
        let unique = RandomState::new().hash_one(host);
        let identity = format!("{host}_{unique:016x}");
        Self { api: Api::namespaced(client, namespace), name, identity, terms }
    }

    /// Waits until the lease is ours. Returns since when it is, at the latest; `None` when `cancel` fires before.
    pub(crate) async fn acquire(
        &self,
        now: impl Fn() -> Timestamp,
        cancel: &CancellationToken,
    ) -> Option<Instant> {
        let mut watch = Watch::default();
        let mut holder = String::new();
        loop {
            // What is granted counts from when it was asked for; the answer may take its time.
            let asked = Instant::now();
            let attempt = self.attempt(&mut watch, now());
            let attempt = tokio::time::timeout(self.terms.patience, attempt);
            match cancel.run_until_cancelled(attempt).await? {
                Ok(Ok(Standing::Held)) => {
                    tracing::info!(
                        lease = self.name,
                        identity = self.identity,
                        "became the leader"
                    );
                    return Some(asked);
                }
                Ok(Ok(Standing::Taken { by })) if by != holder => {
                    tracing::info!(lease = self.name, holder = by, "waiting for the lease");
                    holder = by;
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.name, "the lease cannot be had: {error}");
                }
                Err(_) => tracing::warn!(lease = self.name, "the lease cannot be had: no answer"),
            }
            // A released lease is found within a second; that is what makes a hand-over quick.
            let pause = self.terms.retry.min(Duration::from_secs(1));
            cancel.run_until_cancelled(tokio::time::sleep(pause)).await?;
        }
    }

    /// Renews the lease, ours since `renewed`, until `cancel` fires or it is lost. Returns whether it is still ours.
    pub(crate) async fn hold(
        &self,
        mut renewed: Instant,
        now: impl Fn() -> Timestamp,
        cancel: &CancellationToken,
    ) -> bool {
        let mut watch = Watch::default();
        loop {
            if cancel.run_until_cancelled(tokio::time::sleep(self.terms.retry)).await.is_none() {
                return true;
            }
            let asked = Instant::now();
            let left = self.terms.renew_deadline.saturating_sub(renewed.elapsed());
            let attempt = self.attempt(&mut watch, now());
            let attempt = tokio::time::timeout(left.min(self.terms.patience), attempt);
            let Some(answer) = cancel.run_until_cancelled(attempt).await else { return true };
            match answer {
                // Others count from the write, which came after the question and maybe long before the answer.
                Ok(Ok(Standing::Held)) => renewed = asked,
                Ok(Ok(Standing::Taken { by })) => {
                    tracing::error!(
                        lease = self.name,
                        holder = by,
                        "the lease was taken by another"
                    );
                    return false;
                }
                Ok(Ok(Standing::Free)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.name, "the lease is not renewed: {error}");
                }
                Err(_) => tracing::warn!(lease = self.name, "the lease is not renewed: no answer"),
            }
            if renewed.elapsed() >= self.terms.renew_deadline {
                tracing::error!(lease = self.name, "the lease could not be renewed in time");
                return false;
            }
        }
    }

    /// Gives the lease back, if it is ours. Failures are only logged: it expires by itself.
    pub(crate) async fn release(&self, now: Timestamp) {
        let released = async {
            let mut lease = self.api.get(&self.name).await?;
            if standing(lease.spec.as_ref(), &self.identity) != Standing::Held {
                return Ok(());
            }
            lease.spec = Some(LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                renew_time: Some(MicroTime(now)),
                ..lease.spec.unwrap_or_default()
            });
            // The resource version that was read makes sure that nobody else's lease is given away.
            self.api.replace(&self.name, &PostParams::default(), &lease).await.map(drop)
        };
        match tokio::time::timeout(RELEASE, released).await {
            Ok(Ok(())) => tracing::info!(lease = self.name, "gave the lease back"),
            Ok(Err(error)) => {
                tracing::warn!(lease = self.name, "the lease is not given back: {error}");
            }
            Err(_) => tracing::warn!(lease = self.name, "the lease is not given back: no answer"),
        }
    }

    /// One attempt to get or renew the lease.
    async fn attempt(&self, watch: &mut Watch, now: Timestamp) -> Result<Standing, kube::Error> {
        let params = PostParams::default();
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                spec: Some(taken(None, &self.identity, self.terms, now)),
            };
            return Ok(lost_race(self.api.create(&params, &lease).await)?.unwrap_or(Standing::Held));
        };
        let duration = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let duration = duration
            .and_then(|s| u64::try_from(s).ok())
            .map_or(self.terms.duration, Duration::from_secs);
        let is_expired = watch.is_expired(&lease, duration, Instant::now());
        let standing = standing(lease.spec.as_ref(), &self.identity);
        if matches!(standing, Standing::Taken { .. }) && !is_expired {
            return Ok(standing);
        }
        lease.spec = Some(taken(lease.spec.as_ref(), &self.identity, self.terms, now));
        Ok(lost_race(self.api.replace(&self.name, &params, &lease).await)?
            .unwrap_or(Standing::Held))
    }
}

/// A conflict means that another candidate was quicker; the next attempt will tell who.
fn lost_race(answer: Result<Lease, kube::Error>) -> Result<Option<Standing>, kube::Error> {
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some(Standing::Free)),
        Err(error) => Err(error),
    }
}

/// The Lease's name. A shard, which sees only some objects, has a lease of its own.
pub(crate) fn lease_name(label_selector: Option<&str>) -> String {
    use sha2::{Digest, Sha256};
    const NAME: &str = "flux-kluctl-controller-leader-election";
    match label_selector.filter(|selector| !selector.is_empty()) {
        None => NAME.to_owned(),
        Some(selector) => {
            let hash = Sha256::digest(selector);
            let start = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
            format!("{NAME}-{start:08x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        task::{self, Poll},
    };

    use kube::client::Body;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_renewal_keeps_the_time_of_acquisition_and_a_take_over_counts() {
        let terms = Terms::default();
        let first = taken(None, "a", terms, at(0));
        assert_eq!(first.lease_transitions, Some(0));
        let renewed = taken(Some(&first), "a", terms, at(5));
        assert_eq!(renewed.acquire_time, Some(MicroTime(at(0))));
        assert_eq!(renewed.renew_time, Some(MicroTime(at(5))));
        assert_eq!(renewed.lease_transitions, Some(0));
        let other = taken(Some(&renewed), "b", terms, at(50));
        assert_eq!(other.acquire_time, Some(MicroTime(at(50))));
        assert_eq!(other.lease_transitions, Some(1));
        assert_eq!(standing(Some(&other), "a"), Standing::Taken { by: "b".into() });
        assert_eq!(standing(Some(&other), "b"), Standing::Held);
    }

    #[test]
    fn a_released_lease_is_free() {
        let released = LeaseSpec { holder_identity: Some(String::new()), ..LeaseSpec::default() };
        assert_eq!(standing(Some(&released), "a"), Standing::Free);
        assert_eq!(standing(None, "a"), Standing::Free);
    }

    #[test]
    fn a_lease_expires_by_being_seen_unchanged_whatever_the_clocks_say() {
        let lease = |version: &str| Lease {
            metadata: ObjectMeta {
                resource_version: Some(version.into()),
                ..ObjectMeta::default()
            },
            // A renewal time long ago, as from a machine whose clock is wrong.
            spec: Some(taken(None, "a", Terms::default(), at(0))),
        };
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let duration = Duration::from_secs(35);
        let mut watch = Watch::default();
        assert!(!watch.is_expired(&lease("1"), duration, start));
        assert!(!watch.is_expired(&lease("1"), duration, after(34)));
        assert!(!watch.is_expired(&lease("2"), duration, after(36)), "renewed meanwhile");
        assert!(!watch.is_expired(&lease("2"), duration, after(70)));
        assert!(watch.is_expired(&lease("2"), duration, after(71)));
    }

    /// An API server that takes every request and answers none.
    struct Silent;

    impl tower::Service<http::Request<Body>> for Silent {
        type Response = http::Response<Body>;
        type Error = Infallible;
        type Future = std::future::Pending<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: http::Request<Body>) -> Self::Future {
            std::future::pending()
        }
    }

    /// An election at an API server that never answers.
    fn unanswered() -> Election {
        let terms = Terms {
            renew_deadline: Duration::from_millis(60),
            retry: Duration::from_millis(5),
            patience: Duration::from_millis(10),
            ..Terms::default()
        };
        Election::new(Client::new(Silent, "ns"), "ns", "lease".into(), "host", terms)
    }

    #[tokio::test]
    async fn an_api_server_that_hangs_holds_up_neither_the_end_nor_the_loss() {
        let election = unanswered();
        let soon = Duration::from_secs(5);
        let cancel = CancellationToken::new();
        let acquiring = election.acquire(|| at(0), &cancel);
        let ending = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            cancel.cancel();
        };
        let both = async { tokio::join!(acquiring, ending).0 };
        assert_eq!(tokio::time::timeout(soon, both).await, Ok(None));

        let started = Instant::now();
        let never = CancellationToken::new();
        let holding = election.hold(started, || at(0), &never);
        assert_eq!(tokio::time::timeout(soon, holding).await, Ok(false));
        assert!(started.elapsed() >= Duration::from_millis(60));
    }

    #[test]
    fn shards_have_leases_of_their_own() {
        assert_eq!(lease_name(None), "flux-kluctl-controller-leader-election");
        assert_eq!(lease_name(Some("")), lease_name(None));
        let one = lease_name(Some("sharding.fluxcd.io/key=shard1"));
        assert_eq!(one.len(), "flux-kluctl-controller-leader-election".len() + 9);
        assert_ne!(one, lease_name(Some("sharding.fluxcd.io/key=shard2")));
    }
}
