use std::time::Duration;

use crate::{
    apply::{Known, Policy, Provider, Request, State, Step, next},
    cluster::{ApiOutcome, FieldConflict, RetryPolicy},
};

const LIVE: Known =
    Known { live: true, keep: false, namespace: Provider::None, kind: Provider::None };
const NEW: Known = Known { live: false, ..LIVE };

fn text(message: &str) -> String {
    message.to_owned()
}

fn done() -> ApiOutcome {
    ApiOutcome::Done(serde_json::json!({}))
}

fn invalid() -> ApiOutcome {
    ApiOutcome::Invalid { message: text("bad"), fields: Vec::new(), immutable: false }
}

fn conflict() -> ApiOutcome {
    ApiOutcome::Conflict { message: text("taken"), fields: fields() }
}

fn fields() -> Vec<FieldConflict> {
    vec![FieldConflict { field: text(".data.a"), message: text("conflict with \"x\"") }]
}

/// A short form of a step: what it does, and with which request.
fn short(step: &Step) -> String {
    match step {
        Step::Send(request) => format!("send {request:?}"),
        Step::Pause(_, request) => format!("pause, {request:?}"),
        Step::RefreshKinds(_, request) => format!("refresh kinds, {request:?}"),
        Step::AwaitNamespace(request) => format!("await namespace, {request:?}"),
        Step::AwaitKind(request) => format!("await kind, {request:?}"),
        Step::Resolve(fields) => format!("resolve {}", fields[0].field),
        Step::Done => text("done"),
        Step::StandIn { .. } => text("stand in"),
        Step::Fail { message } => format!("fail: {message}"),
    }
}

/// Feeds outcomes one by one and returns the steps that follow, in short.
fn talk(
    policy: &Policy,
    known: Known,
    first: Request,
    outcomes: impl IntoIterator<Item = ApiOutcome>,
) -> Vec<String> {
    let mut state = State::new(first, 1);
    outcomes.into_iter().map(|outcome| short(&next(&mut state, &outcome, known, policy))).collect()
}

fn policy(change: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    change(&mut policy);
    policy
}

fn replacing() -> Policy {
    policy(|policy| policy.replace_on_error = true)
}

fn forcing() -> Policy {
    policy(|policy| policy.force_replace_on_error = true)
}

fn dry() -> Policy {
    policy(|policy| policy.dry_run = true)
}

#[test]
fn one_request_is_enough_when_nothing_is_wrong() {
    assert_eq!(talk(&Policy::default(), NEW, Request::Apply, [done()]), ["done"]);
}

#[test]
fn refusals_end_the_conversation() {
    let table = [
        (ApiOutcome::Forbidden(text("no")), "fail: no"),
        (ApiOutcome::Unauthorized(text("no")), "fail: no"),
        (ApiOutcome::Denied(text("no")), "fail: no"),
        (ApiOutcome::BadRequest(text("no")), "fail: no"),
        (ApiOutcome::AlreadyExists(text("no")), "fail: no"),
        (invalid(), "fail: bad"),
        (ApiOutcome::Interrupted, "fail: interrupted while waiting for the API server"),
    ];
    for (outcome, expected) in table {
        assert_eq!(talk(&Policy::default(), LIVE, Request::Apply, [outcome]), [expected]);
    }
    let immutable =
        ApiOutcome::Invalid { message: text("fixed"), fields: Vec::new(), immutable: true };
    let steps = talk(&Policy::default(), LIVE, Request::Apply, [immutable]);
    assert!(steps[0].starts_with("fail: fixed; replacing it"), "{steps:?}");
}

#[test]
fn transient_failures_are_repeated_and_then_reported() {
    let transient = ApiOutcome::Transient(text("reset"));
    let policy =
        policy(|policy| policy.retry = RetryPolicy { attempts: 3, ..RetryPolicy::default() });
    assert_eq!(
        talk(
            &policy,
            NEW,
            Request::Apply,
            [transient.clone(), transient.clone(), transient.clone()]
        ),
        ["pause, Apply", "pause, Apply", "fail: reset (tried 3 times)"]
    );
    for outcome in [
        ApiOutcome::Timeout(text("slow")),
        ApiOutcome::NamespaceTerminating(text("going")),
        ApiOutcome::Throttled { message: text("busy"), retry_after: Some(Duration::from_secs(2)) },
    ] {
        let steps = talk(&policy, LIVE, Request::Apply, [outcome.clone(), done()]);
        assert_eq!(steps, ["pause, Apply", "done"], "{outcome:?}");
    }
    // A new request has all its attempts again.
    let steps =
        talk(&policy, LIVE, Request::Apply, [transient.clone(), transient.clone(), conflict()]);
    assert_eq!(steps[2], "resolve .data.a");
}

#[test]
fn conflicts_are_resolved_or_forced() {
    let force = policy(|policy| policy.force_apply = true);
    assert_eq!(
        talk(&force, LIVE, Request::Apply, [conflict(), done()]),
        ["send ApplyForced", "done"]
    );
    assert_eq!(
        talk(&Policy::default(), LIVE, Request::Apply, [conflict(), done()]),
        ["resolve .data.a", "done"]
    );
    // Somebody created the object after the live side was read.
    assert_eq!(
        talk(&Policy::default(), NEW, Request::Apply, [conflict(), done(), done()]),
        ["send Read", "resolve .data.a", "done"]
    );
    let gone = ApiOutcome::NotFound(text("gone"));
    assert_eq!(
        talk(&Policy::default(), NEW, Request::Apply, [conflict(), gone, done()]),
        ["send Read", "send ApplyAnew", "done"]
    );
}

#[test]
fn errors_are_replaced_and_recreated_as_far_as_allowed() {
    assert_eq!(
        talk(&replacing(), LIVE, Request::Apply, [invalid(), done()]),
        ["send Replace", "done"]
    );
    assert_eq!(
        talk(&replacing(), LIVE, Request::Apply, [invalid(), invalid()]),
        ["send Replace", "fail: bad"]
    );
    assert_eq!(talk(&replacing(), NEW, Request::Apply, [invalid()]), ["fail: bad"]);
    assert_eq!(
        talk(&forcing(), LIVE, Request::Apply, [invalid(), invalid(), done(), done()]),
        ["send Replace", "send Delete", "send ApplyAnew", "done"]
    );
    let kept = Known { keep: true, ..LIVE };
    let steps = talk(&forcing(), kept, Request::Apply, [invalid(), invalid()]);
    assert!(steps[1].contains("marked to be kept"), "{steps:?}");
    // After a conflict that could not be resolved by applying, too.
    assert_eq!(
        talk(&forcing(), LIVE, Request::Apply, [conflict(), invalid(), done(), done()]),
        ["resolve .data.a", "send Delete", "send ApplyAnew", "done"]
    );
}

#[test]
fn deleting_is_no_answer_to_missing_rights_or_denials() {
    for outcome in [ApiOutcome::Forbidden(text("no")), ApiOutcome::Denied(text("no"))] {
        assert_eq!(talk(&forcing(), LIVE, Request::Apply, [outcome.clone()]), ["fail: no"]);
        assert_eq!(
            talk(&forcing(), LIVE, Request::Apply, [invalid(), outcome]),
            ["send Replace", "fail: no (first: bad)"]
        );
    }
}

#[test]
fn replacing_follows_a_moving_object() {
    let outdated = ApiOutcome::Outdated(text("moved"));
    assert_eq!(
        talk(&replacing(), LIVE, Request::Apply, [invalid(), outdated.clone(), done(), done()]),
        ["send Replace", "send Read", "send Replace", "done"]
    );
    let mut outcomes = vec![invalid()];
    for _ in 0..6 {
        outcomes.extend([outdated.clone(), done()]);
    }
    let steps = talk(&replacing(), LIVE, Request::Apply, outcomes);
    assert!(steps.iter().any(|step| step.starts_with("fail: moved")), "not for ever: {steps:?}");
    let gone = ApiOutcome::NotFound(text("gone"));
    assert_eq!(
        talk(&replacing(), LIVE, Request::Apply, [invalid(), gone, done()]),
        ["send Replace", "send ApplyAnew", "done"]
    );
}

#[test]
fn kinds_of_this_run_are_waited_for() {
    let missing = ApiOutcome::NoSuchKind(text("unknown"));
    let with = |kind: Provider| Known { kind, ..NEW };
    assert_eq!(
        talk(&Policy::default(), NEW, Request::Apply, [missing.clone(), missing.clone()]),
        ["refresh kinds, Apply", "fail: unknown"]
    );
    assert_eq!(
        talk(
            &Policy::default(),
            with(Provider::Pending),
            Request::Apply,
            [missing.clone(), done()]
        ),
        ["await kind, Apply", "done"]
    );
    assert_eq!(
        talk(&Policy::default(), with(Provider::Done), Request::Apply, [missing.clone(), done()]),
        ["refresh kinds, Apply", "done"]
    );
    let failed =
        talk(&Policy::default(), with(Provider::Failed), Request::Apply, [missing.clone()]);
    assert_eq!(failed, ["fail: unknown: the definition of its kind could not be applied"]);
    for first in [Request::Apply, Request::ApplyStandIn] {
        assert_eq!(talk(&dry(), with(Provider::Done), first, [missing.clone()]), ["stand in"]);
    }
    let forever = vec![missing; 30];
    let steps = talk(&Policy::default(), with(Provider::Done), Request::Apply, forever);
    assert!(steps.contains(&text("fail: unknown")), "not for ever: {steps:?}");
}

#[test]
fn namespaces_of_this_run_are_waited_for() {
    let missing = ApiOutcome::NoSuchNamespace(text("no namespace"));
    let with = |namespace: Provider| Known { namespace, ..NEW };
    let steps = talk(&Policy::default(), NEW, Request::Apply, [missing.clone()]);
    assert!(steps[0].contains("not part of the deployment"), "{steps:?}");
    assert_eq!(
        talk(
            &Policy::default(),
            with(Provider::Pending),
            Request::Apply,
            [missing.clone(), done()]
        ),
        ["await namespace, Apply", "done"]
    );
    assert_eq!(
        talk(&Policy::default(), with(Provider::Done), Request::Apply, [missing.clone(), done()]),
        ["pause, Apply", "done"]
    );
    let failed =
        talk(&Policy::default(), with(Provider::Failed), Request::Apply, [missing.clone()]);
    assert_eq!(failed, ["fail: no namespace: the namespace could not be applied"]);
    assert_eq!(
        talk(&dry(), with(Provider::Pending), Request::Apply, [missing, done()]),
        ["send ApplyStandIn", "done"]
    );
}

#[test]
fn dry_runs_try_what_they_can_under_another_name() {
    let policy = policy(|policy| {
        policy.dry_run = true;
        policy.force_replace_on_error = true;
    });
    assert_eq!(
        talk(&policy, LIVE, Request::Apply, [invalid(), invalid(), done(), done()]),
        ["send Replace", "send Delete", "send ApplyStandIn", "done"]
    );
    let refused = ApiOutcome::Forbidden(text("not there"));
    assert_eq!(talk(&dry(), NEW, Request::ApplyStandIn, [refused]), ["stand in"]);
    assert_eq!(talk(&dry(), NEW, Request::ApplyStandIn, [invalid()]), ["fail: bad"]);
}
