//! One owner per target: of several objects that would manage the same discriminator on the same cluster, one is let
//! through, and all of them hear of it.
//!
//! A claim is a flag in the object's own status, which every controller sees, whichever objects it reconciles. Who wants
//! a target raises the flag ([`ClaimState::Requested`]), and only then reads all flags, in one consistent list. Nobody
//! else's flag is up: the target is granted. Otherwise the one that comes first in [`Bid`]'s order waits for the others,
//! which take theirs down ([`ClaimState::Refused`]). Two can never both find themselves alone, since of two flags one was
//! raised before the other's owner looked. A granted target stays granted until its owner goes away or wants another one.
//!
//! A request that nobody renews is taken down by whoever it stands in the way of. That is safe however wrong clocks are,
//! because a grant is written onto exactly the version of the object in which the owner saw its own flag up, beside all others:
//! a request that was taken down meanwhile cannot be granted any more.
//!
//! Pruning what was left at a former target is announced by a flag, too, that is taken down at the end of the run.
//!
//! Objects of the other API group do not take part in this: whoever cannot be held back comes before all others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use super::{conditions::kube_time, identity::ClusterIdentity, outcome::after};
use crate::api::{ClaimState, GROUP, NamespacedName, TargetClaim};

/// API group of the other controller's KluctlDeployments.
pub(crate) const GITOPS_GROUP: &str = "gitops.kluctl.io";

/// How long a request counts that is not renewed. Who asks gets an answer, or asks again, within a fraction of that.
const ABANDONED: Duration = Duration::from_mins(2);

/// What is owned: a discriminator on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The cluster.
    pub cluster: ClusterIdentity,
    /// Value of the label `kluctl.io/discriminator`.
    pub discriminator: String,
}

impl Target {
    /// The target that a claim is about.
    pub(crate) fn of(claim: &TargetClaim) -> Self {
        let cluster =
            ClusterIdentity { id: claim.cluster_id.clone(), server: claim.server.clone() };
        Self { cluster, discriminator: claim.discriminator.clone() }
    }

    /// Whether both mean the same objects, as far as that is known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.discriminator == other.discriminator && self.cluster.is_same(&other.cluster)
    }
}

/// An object that deploys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Claimant {
    /// API group of its kind.
    pub group: String,
    /// Namespace and name.
    pub name: NamespacedName,
}

impl Claimant {
    /// A KluctlDeployment of this controller's API group.
    pub(crate) fn ours(name: &NamespacedName) -> Self {
        Self { group: GROUP.to_owned(), name: name.clone() }
    }

    /// A KluctlDeployment of the other API group.
    pub(crate) fn theirs(name: &NamespacedName) -> Self {
        Self { group: GITOPS_GROUP.to_owned(), name: name.clone() }
    }
}

impl std::fmt::Display for Claimant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KluctlDeployment.{} {}", self.group, self.name)
    }
}

/// A claim as its object records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bid {
    /// What is wanted.
    pub target: Target,
    /// How that stands.
    pub state: ClaimState,
    /// Creation time of the object, RFC 3339: of several that ask at the same time, the oldest goes first.
    pub created: String,
    /// When it was last asked for, as long as it is not decided.
    pub asked: Option<Timestamp>,
}

impl Bid {
    /// The claim of an object of this API group, however malformed the rest of it is.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let claim: TargetClaim = serde_json::from_value(object["status"]["claim"].clone()).ok()?;
        let asked = claim.requested_at.as_ref().map(|time| time.0);
        Some(Self {
            target: Target::of(&claim),
            state: claim.state,
            created: created(object),
            asked,
        })
    }

    /// What an object of this API group wants with one target. To prune what it left there counts as well.
    pub(crate) fn read_on(object: &Value, target: &Target) -> Option<Self> {
        let claim = Self::read(object).filter(|bid| bid.target.is_same(target));
        claim.or_else(|| {
            let former = object["status"]["formerTargets"].as_array()?;
            former.iter().find(|former| {
                let cluster = former["clusterId"].as_str().filter(|id| !id.is_empty());
                former["pruning"] == true
                    && former["discriminator"] == target.discriminator.as_str()
                    && cluster
                        .is_none_or(|id| id == target.cluster.id || id == target.cluster.server)
            })?;
            let (target, created) = (target.clone(), created(object));
            Some(Self { target, state: ClaimState::Requested, created, asked: None })
        })
    }

    /// Whether nobody seems to stand behind a request any more. What is being pruned, or owned, is never abandoned.
    pub(crate) fn is_abandoned(&self, is_suspended: bool, now: Timestamp) -> bool {
        let is_old = |asked| is_suspended || after(asked, ABANDONED) <= now;
        self.state == ClaimState::Requested && self.asked.is_some_and(is_old)
    }

    /// The claim of an object of the other API group. It asks nobody, so it is granted and the oldest of all.
    pub(crate) fn read_foreign(object: &Value) -> Option<Self> {
        let key = &object["status"]["targetKey"];
        let text = |field: &str| key[field].as_str().filter(|t| !t.is_empty()).map(str::to_owned);
        let (cluster_id, discriminator) = text("clusterId").zip(text("discriminator"))?;
        let cluster = ClusterIdentity { id: cluster_id, server: String::new() };
        let target = Target { cluster, discriminator };
        Some(Self { target, state: ClaimState::Granted, created: String::new(), asked: None })
    }

    /// The claim as it is recorded.
    pub(crate) fn record(&self) -> TargetClaim {
        let Target { cluster, discriminator } = self.target.clone();
        let requested = (self.state == ClaimState::Requested).then_some(self.asked).flatten();
        TargetClaim {
            cluster_id: cluster.id,
            server: cluster.server,
            discriminator,
            state: self.state,
            requested_at: requested.map(kube_time),
        }
    }
}

fn created(object: &Value) -> String {
    object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The target is the object's own.
    Granted,
    /// The object goes first, as soon as this one has stepped back.
    Pending(Claimant),
    /// The target is not to be touched.
    Refused {
        /// The owner, or the one that goes first.
        owner: Claimant,
        /// Whether it is the owner already.
        is_settled: bool,
    },
}

/// Decides what `me` may do by `others`, which were read after `bid` was recorded. All who see the same decide the same.
pub(crate) fn decide(me: &Claimant, bid: &Bid, others: &BTreeMap<Claimant, Bid>) -> Claim {
    let first = |state: ClaimState| {
        let rivals = others.iter().filter(|(who, other)| {
            *who != me && other.state == state && other.target.is_same(&bid.target)
        });
        rivals.map(|(who, other)| (other.created.as_str(), who)).min()
    };
    let mine = (bid.created.as_str(), me);
    if let Some(owner) = first(ClaimState::Granted) {
        // Two owners come from statuses that were written by hand or restored; the older one stays.
        return if bid.state == ClaimState::Granted && mine < owner {
            Claim::Granted
        } else {
            Claim::Refused { owner: owner.1.clone(), is_settled: true }
        };
    }
    match first(ClaimState::Requested) {
        Some(_) if bid.state == ClaimState::Granted => Claim::Granted,
        Some(rival) if mine < rival => Claim::Pending(rival.1.clone()),
        Some(rival) => Claim::Refused { owner: rival.1.clone(), is_settled: false },
        None => Claim::Granted,
    }
}

/// All claims, as the watches tell of them.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    bids: HashMap<Claimant, Bid>,
    by_discriminator: HashMap<String, BTreeSet<Claimant>>,
}

impl Claims {
    /// Takes notice of a claim; `None` when the object has none, or is gone. Returns to whom that is news: the others that
    /// want the same target, or wanted it; and the object itself when it was refused, without asking, in favour of one that
    /// has left since.
    pub(crate) fn observe(&mut self, who: &Claimant, bid: Option<Bid>) -> BTreeSet<Claimant> {
        let old = self.bids.get(who).cloned();
        if old == bid {
            return BTreeSet::new();
        }
        let mut woken = BTreeSet::new();
        let has_asked = old.as_ref().is_some_and(|old| old.state == ClaimState::Requested);
        self.forget(who);
        if let Some(old) = old.filter(|old| bid.as_ref().is_none_or(|b| b.target != old.target)) {
            woken.extend(self.on(&old.target).into_keys());
        }
        let Some(bid) = bid else { return woken };
        let others = self.on(&bid.target);
        let is_raised = others.values().any(|other| other.state != ClaimState::Refused);
        match bid.state {
            // What comes of it is news, soon.
            ClaimState::Requested => {}
            ClaimState::Refused if !has_asked && !is_raised => {
                woken.extend(others.into_keys());
                woken.insert(who.clone());
            }
            ClaimState::Refused | ClaimState::Granted => woken.extend(others.into_keys()),
        }
        let all = self.by_discriminator.entry(bid.target.discriminator.clone()).or_default();
        all.insert(who.clone());
        self.bids.insert(who.clone(), bid);
        woken
    }

    fn forget(&mut self, who: &Claimant) {
        let Some(bid) = self.bids.remove(who) else { return };
        let discriminator = &bid.target.discriminator;
        if let Some(all) = self.by_discriminator.get_mut(discriminator) {
            all.remove(who);
            if all.is_empty() {
                self.by_discriminator.remove(discriminator);
            }
        }
    }

    /// All claims on a target.
    pub(crate) fn on(&self, target: &Target) -> BTreeMap<Claimant, Bid> {
        let all = self.by_discriminator.get(&target.discriminator).into_iter().flatten();
        let all = all.filter_map(|who| Some((who, self.bids.get(who)?)));
        let same = all.filter(|(_, bid)| bid.target.is_same(target));
        same.map(|(who, bid)| (who.clone(), bid.clone())).collect()
    }

    /// The objects of an API group that claim something.
    pub(crate) fn claimants(&self, group: &str) -> impl Iterator<Item = &NamespacedName> {
        self.bids.keys().filter(move |who| who.group == group).map(|who| &who.name)
    }
}
