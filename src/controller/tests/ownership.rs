use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::super::ownership::{Bid, Claim, Claimant, Claims, GITOPS_GROUP, Target, decide};
use crate::api::{
    ClaimState::{self, Granted, Refused, Requested},
    NamespacedName,
};

fn who(name: &str) -> Claimant {
    Claimant::ours(&NamespacedName::new("ns", name))
}

fn target(discriminator: &str) -> Target {
    Target { cluster_id: "c".into(), discriminator: discriminator.into() }
}

fn bid(state: ClaimState, created: &str) -> Bid {
    Bid { target: target("t"), state, created: created.into() }
}

fn refused(owner: &str, is_settled: bool) -> Claim {
    Claim::Refused { owner: who(owner), is_settled }
}

#[test]
fn an_owner_stays_and_among_those_who_ask_the_oldest_goes_first() {
    for (mine, other, expected) in [
        (bid(Requested, "2"), bid(Granted, "9"), refused("b", true)),
        (bid(Requested, "2"), bid(Refused, "1"), Claim::Granted),
        (bid(Requested, "2"), bid(Requested, "1"), refused("b", false)),
        (bid(Requested, "2"), bid(Requested, "3"), Claim::Pending(who("b"))),
        (bid(Requested, "2"), bid(Requested, "2"), Claim::Pending(who("b"))),
        (bid(Granted, "2"), bid(Requested, "1"), Claim::Granted),
        (bid(Granted, "2"), bid(Granted, "3"), Claim::Granted),
        (bid(Granted, "2"), bid(Granted, "1"), refused("b", true)),
        (bid(Requested, "2"), Bid { target: target("u"), ..bid(Granted, "1") }, Claim::Granted),
    ] {
        let others = BTreeMap::from([(who("a"), mine.clone()), (who("b"), other.clone())]);
        assert_eq!(decide(&who("a"), &mine, &others), expected, "{mine:?} beside {other:?}");
    }
}

#[test]
fn objects_of_the_other_group_come_before_all_others() {
    let object = json!({ "metadata": { "creationTimestamp": "2026-01-01T00:00:00Z" },
        "status": { "targetKey": { "clusterId": "c", "discriminator": "t" } } });
    let foreign = Claimant::theirs(&NamespacedName::new("ns", "a"));
    let others = BTreeMap::from([(foreign.clone(), Bid::read_foreign(&object).unwrap())]);
    for state in [Requested, Granted] {
        let expected = Claim::Refused { owner: foreign.clone(), is_settled: true };
        assert_eq!(decide(&who("a"), &bid(state, "0"), &others), expected);
    }
    assert_eq!(foreign.to_string(), format!("KluctlDeployment.{GITOPS_GROUP} ns/a"));
    let unfinished = json!({ "status": { "targetKey": { "clusterId": "c" } } });
    assert_eq!(Bid::read_foreign(&unfinished), None);
}

#[test]
fn claims_are_read_as_they_are_recorded() {
    let granted = bid(Granted, "2026");
    let mut object = json!({ "metadata": { "creationTimestamp": "2026" }, "status": {} });
    assert_eq!(Bid::read(&object), None);
    object["status"]["claim"] = serde_json::to_value(granted.record()).unwrap();
    assert_eq!(object["status"]["claim"]["state"], "Granted");
    assert_eq!(Bid::read(&object), Some(granted));
    object["status"]["claim"]["state"] = "nonsense".into();
    assert_eq!(Bid::read(&object), None);
}

#[test]
fn who_prunes_a_former_target_has_a_flag_up_there() {
    let mut object = json!({ "metadata": { "creationTimestamp": "2026" }, "status": {
        "claim": bid(Granted, "2026").record(),
        "formerTargets": [{ "discriminator": "old", "clusterId": "c", "pruning": true }],
    } });
    assert_eq!(Bid::read_on(&object, &target("t")).map(|bid| bid.state), Some(Granted));
    let pruning = Bid::read_on(&object, &target("old")).unwrap();
    assert_eq!((pruning.state, pruning.target), (Requested, target("old")));
    assert_eq!(Bid::read_on(&object, &target("other")), None);
    let elsewhere = Target { cluster_id: "d".into(), ..target("old") };
    assert_eq!(Bid::read_on(&object, &elsewhere), None);
    object["status"]["formerTargets"][0]["pruning"] = false.into();
    assert_eq!(Bid::read_on(&object, &target("old")), None, "the run has ended");
}

fn names(woken: impl IntoIterator<Item = Claimant>) -> Vec<String> {
    woken.into_iter().map(|who| who.name.name).collect()
}

#[test]
fn all_concerned_hear_of_claims_that_come_and_go() {
    let mut claims = Claims::default();
    let mut see = |name: &str, bid: Option<Bid>| names(claims.observe(&who(name), bid));
    assert!(see("a", Some(bid(Granted, "1"))).is_empty());
    assert!(see("b", Some(bid(Requested, "2"))).is_empty(), "not decided yet");
    assert_eq!(see("b", Some(bid(Refused, "2"))), ["a"], "the owner has a rival");
    assert!(see("b", Some(bid(Refused, "2"))).is_empty(), "no news");
    assert_eq!(see("c", Some(bid(Refused, "3"))), ["a", "b"]);
    assert_eq!(see("a", None), ["b", "c"], "the target is free");
    assert!(see("b", Some(bid(Requested, "2"))).is_empty());
    assert_eq!(see("b", Some(bid(Granted, "2"))), ["c"]);
    let elsewhere = Bid { target: target("u"), ..bid(Granted, "2") };
    assert_eq!(see("b", Some(elsewhere)), ["c"]);
    assert_eq!(claims.on(&target("t")).into_keys().collect::<Vec<_>>(), [who("c")]);
    assert_eq!(claims.on(&target("u")).len(), 1);
    assert_eq!(claims.claimants("flux.kluctl.io").count(), 2);
}

#[test]
fn who_was_refused_for_one_that_has_left_since_tries_again() {
    let mut claims = Claims::default();
    assert!(claims.observe(&who("a"), Some(bid(Granted, "1"))).is_empty());
    assert!(claims.observe(&who("a"), None).is_empty(), "nobody knows of b yet");
    assert_eq!(names(claims.observe(&who("b"), Some(bid(Refused, "2")))), ["b"]);
    // Who has asked knows better than the watches, which need not see the owner.
    assert!(claims.observe(&who("b"), Some(bid(Requested, "2"))).is_empty());
    assert!(claims.observe(&who("b"), Some(bid(Refused, "2"))).is_empty());
}

/// What an object of the model does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Raise,
    Look,
    /// Records what it decided.
    Record(ClaimState),
    Work,
    Rest,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// The flags as stored.
    states: [Option<ClaimState>; 3],
    steps: [Step; 3],
    /// How many owners may still leave.
    departures: u8,
}

impl World {
    fn bids(&self) -> BTreeMap<Claimant, Bid> {
        let ages = ["2", "1", "2"];
        let bids = (0..3).filter_map(|i| Some((NAMES[i], bid(self.states[i]?, ages[i]))));
        bids.map(|(name, bid)| (who(name), bid)).collect()
    }

    /// The world after the next step of one object; `None` when it rests.
    fn after(&self, i: usize) -> Option<Self> {
        let mut next = self.clone();
        next.steps[i] = match self.steps[i] {
            Step::Raise => {
                next.states[i] = Some(Requested);
                Step::Look
            }
            Step::Look => {
                let bids = self.bids();
                match decide(&who(NAMES[i]), &bids[&who(NAMES[i])], &bids) {
                    Claim::Granted => Step::Record(Granted),
                    Claim::Pending(_) => Step::Look,
                    Claim::Refused { .. } => Step::Record(Refused),
                }
            }
            Step::Record(state) => {
                next.states[i] = Some(state);
                if state == Granted { Step::Work } else { Step::Rest }
            }
            Step::Work if self.departures > 0 => {
                next.states[i] = None;
                next.departures -= 1;
                Step::Rest
            }
            // Woken when nothing is in its way any more.
            Step::Rest
                if self.states[i] == Some(Refused)
                    && self.states.iter().all(|state| state.is_none_or(|s| s == Refused)) =>
            {
                Step::Raise
            }
            Step::Work | Step::Rest => return None,
        };
        Some(next)
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

#[test]
fn in_no_order_of_events_two_objects_own_a_target_and_in_none_nobody_does() {
    let start = World { states: [None; 3], steps: [Step::Raise; 3], departures: 1 };
    let mut seen = HashSet::from([start.clone()]);
    let mut pending = vec![start];
    while let Some(world) = pending.pop() {
        let owns = |step: &&Step| matches!(step, Step::Work | Step::Record(Granted));
        assert!(world.steps.iter().filter(owns).count() <= 1, "{world:?}");
        let next: Vec<_> = (0..3).filter_map(|i| world.after(i)).filter(|n| *n != world).collect();
        if next.is_empty() {
            assert_eq!(world.steps.iter().filter(owns).count(), 1, "nobody owns it: {world:?}");
        }
        pending.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
    }
    assert!(seen.len() > 100, "{} worlds", seen.len());
}
