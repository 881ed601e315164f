use std::collections::BTreeMap;

use serde_json::json;

use super::{
    super::{
        identity::ClusterIdentity,
        ownership::{Bid, Claim, Claimant, Claims, GITOPS_GROUP, Target, decide},
    },
    at,
};
use crate::api::{
    ClaimState::{self, Granted, Refused, Requested},
    NamespacedName,
};

fn who(name: &str) -> Claimant {
    Claimant::ours(&NamespacedName::new("ns", name))
}

fn cluster(id: &str) -> ClusterIdentity {
    ClusterIdentity { id: id.into(), server: format!("https://{id}") }
}

fn target(discriminator: &str) -> Target {
    Target { cluster: cluster("c"), discriminator: discriminator.into() }
}

fn bid(state: ClaimState, created: &str) -> Bid {
    Bid { target: target("t"), state, created: created.into(), asked: None }
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
    let asked = Bid { asked: Some(at(0)), ..bid(Requested, "2026") };
    object["status"]["claim"] = serde_json::to_value(asked.record()).unwrap();
    assert_eq!(Bid::read(&object), Some(asked.clone()));
    let decided = Bid { state: Refused, ..asked };
    assert_eq!(decided.record().requested_at, None, "it does not change with every look");
}

#[test]
fn only_a_request_that_nobody_renews_is_abandoned() {
    let asked = |state| Bid { asked: Some(at(0)), ..bid(state, "1") };
    for (bid, is_suspended, seconds, expected) in [
        (asked(Requested), false, 119, false),
        (asked(Requested), false, 120, true),
        (asked(Requested), true, 1, true),
        // What is owned stays so, and so does what is being pruned, which has no time.
        (asked(Granted), true, 9_999, false),
        (asked(Refused), true, 9_999, false),
        (bid(Requested, "1"), true, 9_999, false),
    ] {
        assert_eq!(
            bid.is_abandoned(is_suspended, at(seconds)),
            expected,
            "{bid:?} after {seconds} s"
        );
    }
}

#[test]
fn a_rival_is_seen_also_where_one_of_the_two_may_not_read_the_uid() {
    let by_address = ClusterIdentity { id: "https://c".into(), server: "https://c".into() };
    let other = Bid { target: Target { cluster: by_address, ..target("t") }, ..bid(Granted, "1") };
    let mine = bid(Requested, "2");
    let others = BTreeMap::from([(who("a"), mine.clone()), (who("b"), other.clone())]);
    assert_eq!(decide(&who("a"), &mine, &others), refused("b", true));
    let mut claims = Claims::default();
    claims.observe(&who("b"), Some(other));
    assert_eq!(claims.on(&target("t")).into_keys().collect::<Vec<_>>(), [who("b")]);
    let granted = bid(Granted, "2");
    assert_eq!(names(claims.observe(&who("a"), Some(granted))), ["b"]);
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
    let elsewhere = Target { cluster: cluster("d"), ..target("old") };
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
