use std::collections::BTreeMap;

use super::super::requests::Requests;
use crate::api::{DEPLOY_REQUESTED_AT, FORCE_AT, KluctlDeploymentStatus, REQUESTED_AT};

fn open(annotations: &[(&str, &str)], handled: [Option<&str>; 3]) -> Requests {
    let annotations: BTreeMap<_, _> =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let [reconcile, deploy, force] = handled.map(|token| token.map(str::to_owned));
    let status = KluctlDeploymentStatus {
        last_handled_reconcile_at: reconcile,
        last_handled_deploy_at: deploy,
        last_handled_force_at: force,
        ..KluctlDeploymentStatus::default()
    };
    Requests::open(&annotations, &status)
}

#[test]
fn tokens_are_opaque_and_any_change_counts() {
    assert_eq!(open(&[], [None; 3]), Requests::default());
    // A Receiver writes Go's rendering of a time, with a monotonic part; the CLI writes RFC 3339.
    let dump = "2026-11-21 07:03:46.92 +0000 UTC m=+295.27";
    assert_eq!(open(&[(REQUESTED_AT, dump)], [None; 3]).reconcile.as_deref(), Some(dump));
    assert_eq!(open(&[(REQUESTED_AT, dump)], [Some(dump), None, None]), Requests::default());
    let older = open(&[(REQUESTED_AT, "2020")], [Some("2026"), None, None]);
    assert_eq!(older.reconcile.as_deref(), Some("2020"), "an older time is a change, too");
}

#[test]
fn a_deployment_request_is_open_until_handled() {
    let asked = open(&[(DEPLOY_REQUESTED_AT, "a")], [None; 3]);
    assert!(asked.deploys() && asked.reconcile.is_none());
    assert!(!open(&[(DEPLOY_REQUESTED_AT, "a")], [None, Some("a"), None]).deploys());
    assert!(open(&[(DEPLOY_REQUESTED_AT, "b")], [None, Some("a"), None]).deploys());
}

#[test]
fn force_counts_once_and_only_with_an_equal_new_request() {
    for (requested, forced, handled, expected) in [
        (Some("a"), Some("a"), [None, None, None], true),
        (Some("a"), Some("b"), [None, None, None], false),
        (None, Some("a"), [None, None, None], false),
        (Some("a"), None, [None, None, None], false),
        (Some("a"), Some("a"), [Some("a"), None, None], false),
        (Some("a"), Some("a"), [None, None, Some("a")], false),
        (Some("b"), Some("b"), [Some("a"), None, Some("a")], true),
    ] {
        let annotations: Vec<_> = [(REQUESTED_AT, requested), (FORCE_AT, forced)]
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        let requests = open(&annotations, handled);
        assert_eq!(requests.deploys(), expected, "{requested:?} {forced:?} {handled:?}");
        assert_eq!(requests.force_seen.as_deref(), forced);
    }
}
