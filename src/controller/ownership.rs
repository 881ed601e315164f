//! One owner per target: of several objects that would manage the same discriminator on the same cluster, one is let
//! through, and all of them hear of it.
//!
//! The owner is whoever was there first. A claim is remembered in the object's status, so it survives restarts; among
//! several remembered ones the oldest object wins. Objects of both API groups take part.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::api::NamespacedName;

/// What is owned: a discriminator on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// UID of the cluster's namespace `kube-system`.
    pub cluster_id: String,
    /// Value of the label `kluctl.io/discriminator`.
    pub discriminator: String,
}

/// An object that deploys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Claimant {
    /// API group of its kind.
    pub group: String,
    /// Namespace and name.
    pub name: NamespacedName,
}

impl std::fmt::Display for Claimant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KluctlDeployment.{} {}", self.group, self.name)
    }
}

/// Who claims what.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Owners of targets, and others that want the same.
    targets: BTreeMap<Target, Contest>,
    /// What each claimant owns or wants.
    claims: HashMap<Claimant, Target>,
}

#[derive(Debug, Default)]
struct Contest {
    /// The owner with its age (creation time, RFC 3339).
    owner: Option<(String, Claimant)>,
    /// Whoever was refused.
    refused: BTreeSet<Claimant>,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The target may be deployed to. `rivals` want it too.
    Granted {
        /// Others that were refused.
        rivals: Vec<Claimant>,
    },
    /// Another object owns the target.
    Refused {
        /// The owner.
        owner: Claimant,
        /// Whether the owner does not know of this rival yet.
        is_news: bool,
    },
}

impl Claims {
    /// Takes notice of a claim that an object's status records, when the object is seen for the first time. Of two such
    /// claims the older object's counts.
    pub(crate) fn remember(&mut self, claimant: &Claimant, created: &str, target: &Target) {
        if self.claims.get(claimant) == Some(target) {
            return;
        }
        self.withdraw(claimant);
        self.claims.insert(claimant.clone(), target.clone());
        let contest = self.targets.entry(target.clone()).or_default();
        let candidate = (created.to_owned(), claimant.clone());
        match &mut contest.owner {
            None => contest.owner = Some(candidate),
            Some(owner) if candidate < *owner => {
                let loser = std::mem::replace(owner, candidate);
                contest.refused.insert(loser.1);
            }
            Some(_) => {
                contest.refused.insert(claimant.clone());
            }
        }
    }

    /// Claims `target` for `claimant`, which gives up whatever else it held.
    pub(crate) fn claim(&mut self, claimant: &Claimant, created: &str, target: &Target) -> Claim {
        if self.claims.get(claimant).is_some_and(|held| held != target) {
            self.withdraw(claimant);
        }
        self.claims.insert(claimant.clone(), target.clone());
        let contest = self.targets.entry(target.clone()).or_default();
        let owner = contest.owner.get_or_insert_with(|| (created.to_owned(), claimant.clone()));
        if owner.1 == *claimant {
            contest.refused.remove(claimant);
            return Claim::Granted { rivals: contest.refused.iter().cloned().collect() };
        }
        let is_news = contest.refused.insert(claimant.clone());
        Claim::Refused { owner: owner.1.clone(), is_news }
    }

    /// Ends the claim of an object that is gone or deploys nothing any more. Returns those whose position changed: rivals
    /// that may try now, or an owner that has a rival less.
    pub(crate) fn withdraw(&mut self, claimant: &Claimant) -> Vec<Claimant> {
        let Some(target) = self.claims.remove(claimant) else { return Vec::new() };
        let Some(contest) = self.targets.get_mut(&target) else { return Vec::new() };
        let affected = if contest.owner.as_ref().is_some_and(|(_, owner)| owner == claimant) {
            contest.owner = None;
            contest.refused.iter().cloned().collect()
        } else if contest.refused.remove(claimant) {
            contest.owner.iter().map(|(_, owner)| owner.clone()).collect()
        } else {
            Vec::new()
        };
        if contest.owner.is_none() && contest.refused.is_empty() {
            self.targets.remove(&target);
        }
        affected
    }

    /// What `claimant` owns or wants.
    pub(crate) fn target_of(&self, claimant: &Claimant) -> Option<&Target> {
        self.claims.get(claimant)
    }

    /// The other claimants of what `claimant` owns or wants.
    pub(crate) fn rivals_of(&self, claimant: &Claimant) -> Vec<Claimant> {
        let contest = self.claims.get(claimant).and_then(|target| self.targets.get(target));
        let Some(contest) = contest else { return Vec::new() };
        let owner = contest.owner.iter().map(|(_, owner)| owner);
        owner.chain(&contest.refused).filter(|other| *other != claimant).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(name: &str) -> Claimant {
        Claimant { group: "flux.kluctl.io".into(), name: NamespacedName::new("ns", name) }
    }

    fn target(discriminator: &str) -> Target {
        Target { cluster_id: "c".into(), discriminator: discriminator.into() }
    }

    #[test]
    fn the_first_claim_counts_and_both_hear_of_the_second() {
        let mut claims = Claims::default();
        let (a, b) = (claimant("a"), claimant("b"));
        assert_eq!(claims.claim(&a, "2026", &target("t")), Claim::Granted { rivals: vec![] });
        let refused = |is_news| Claim::Refused { owner: a.clone(), is_news };
        // `b` is older, but `a` deployed first: taking over would prune what is in place.
        assert_eq!(claims.claim(&b, "2020", &target("t")), refused(true));
        assert_eq!(claims.claim(&b, "2020", &target("t")), refused(false));
        assert_eq!(
            claims.claim(&a, "2026", &target("t")),
            Claim::Granted { rivals: vec![b.clone()] }
        );
        assert_eq!(claims.rivals_of(&a), std::slice::from_ref(&b));
        assert_eq!(claims.rivals_of(&b), std::slice::from_ref(&a));
        assert_eq!(claims.claim(&b, "2020", &target("other")), Claim::Granted { rivals: vec![] });
        assert_eq!(claims.rivals_of(&a), [], "who claims something else is no rival any more");
    }

    #[test]
    fn rivals_may_try_when_the_owner_leaves() {
        let mut claims = Claims::default();
        let (a, b) = (claimant("a"), claimant("b"));
        claims.claim(&a, "1", &target("t"));
        claims.claim(&b, "2", &target("t"));
        assert_eq!(claims.withdraw(&a), std::slice::from_ref(&b));
        assert_eq!(claims.claim(&b, "2", &target("t")), Claim::Granted { rivals: vec![] });
        claims.claim(&a, "1", &target("t"));
        assert_eq!(
            claims.withdraw(&a),
            std::slice::from_ref(&b),
            "the owner hears that the rival has left"
        );
        assert!(claims.withdraw(&a).is_empty());
        claims.withdraw(&b);
        assert!(claims.targets.is_empty() && claims.claims.is_empty(), "nothing is left behind");
    }

    #[test]
    fn remembered_claims_go_to_the_oldest_object() {
        let (old, young) = (claimant("z-old"), claimant("a-young"));
        for order in [[&old, &young], [&young, &old]] {
            let mut claims = Claims::default();
            for who in order {
                let created = if *who == old { "2026-01-01" } else { "2026-02-02" };
                claims.remember(who, created, &target("t"));
                claims.remember(who, created, &target("t"));
            }
            assert_eq!(
                claims.claim(&old, "2026-01-01", &target("t")),
                Claim::Granted { rivals: vec![young.clone()] }
            );
            let refused = Claim::Refused { owner: old.clone(), is_news: false };
            assert_eq!(claims.claim(&young, "2026-02-02", &target("t")), refused);
        }
    }

    #[test]
    fn groups_are_kept_apart() {
        let mut claims = Claims::default();
        let ours = claimant("a");
        let theirs = Claimant { group: "gitops.kluctl.io".into(), ..claimant("a") };
        claims.remember(&theirs, "1", &target("t"));
        let refused = Claim::Refused { owner: theirs.clone(), is_news: true };
        assert_eq!(claims.claim(&ours, "0", &target("t")), refused);
        assert_eq!(theirs.to_string(), "KluctlDeployment.gitops.kluctl.io ns/a");
    }
}
