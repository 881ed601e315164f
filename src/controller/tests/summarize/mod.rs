mod failures;

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    super::{
        outcome::{CommandOutcome, Done, Ending, Facts, Failure, Outlook, ValidateOutcome},
        requests::Requests,
        schedule::Requeue,
        summarize::{Before, Run, Severity, Summary, Token, progress, summarize, suspended},
    },
    at, cluster, deployed, failed_deployment, progressing, spec, validated,
};
use crate::api::{
    CommandStatus, ConditionStatus, FormerTarget, KluctlDeploymentStatus, OWNERSHIP_CONFLICT,
    ObjectFailure, READY, RECONCILING, STALLED, ValidateStatus, broken_rules, reason,
};

const GENERATION: i64 = 1;

struct Case {
    warnings: Vec<String>,
    spec: Value,
    status: KluctlDeploymentStatus,
    generation: i64,
    requests: Requests,
    rivals: Vec<String>,
    revision: &'static str,
    hash: &'static str,
    dry_run: bool,
    now: i64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            warnings: Vec::new(),
            spec: json!({}),
            status: KluctlDeploymentStatus {
                observed_generation: -1,
                ..KluctlDeploymentStatus::default()
            },
            generation: GENERATION,
            requests: Requests::default(),
            rivals: Vec::new(),
            revision: "main@sha1:aa",
            hash: "h1",
            dry_run: false,
            now: 0,
        }
    }
}

impl Case {
    /// Summarizes, and checks what must hold after every run.
    fn end(&self, ending: &Ending) -> Summary {
        let spec = spec(&self.spec);
        let before = Before {
            generation: self.generation,
            spec: Some(&spec),
            status: &self.status,
            requests: &self.requests,
            rivals: &self.rivals,
        };
        let facts = Facts {
            revision: Some(self.revision.to_owned()),
            digest: Some("sha256:dd".to_owned()),
            discriminator: Some("shop-prod".to_owned()),
            cluster: Some(cluster()),
            objects_hash: Some(self.hash.to_owned()),
            target: Some("prod".to_owned()),
            warnings: self.warnings.clone(),
            ..Facts::default()
        };
        let run = Run {
            now: at(self.now),
            took: Duration::from_millis(1234),
            dry_run: self.dry_run,
            waiting: Duration::from_secs(30),
            jitter: 1.0,
        };
        let summary = summarize(before, &facts, ending, run);
        let broken = broken_rules(&summary.status, self.generation);
        let interrupted = matches!(ending, Ending::Failed(f) if f.outlook == Outlook::Interrupted);
        assert!(broken.is_empty() || interrupted, "{broken:?} {:?}", summary.status.conditions);
        summary
    }

    /// The same object later, as `summary` left it.
    fn later(self, summary: &Summary, now: i64) -> Self {
        Self { status: summary.status.clone(), now, ..self }
    }
}

fn done(deploy: Option<CommandStatus>, validate: Option<ValidateStatus>) -> Ending {
    let failed = |errors: i64| match errors {
        0 => Vec::new(),
        _ => vec![ObjectFailure {
            kind: "Deployment".into(),
            name: "web".into(),
            ..ObjectFailure::default()
        }],
    };
    Ending::Done(Done {
        deploy: deploy.map(|status| CommandOutcome {
            failed: failed(status.errors),
            status,
            survivors: Vec::new(),
            warnings: Vec::new(),
        }),
        validate: validate.map(|status| ValidateOutcome { failed: failed(status.errors), status }),
        ..Done::default()
    })
}

fn nothing_due() -> Ending {
    Ending::Done(Done::default())
}

fn shown(summary: &Summary) -> String {
    let short = |status| match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    let conditions = summary.status.conditions.iter();
    let parts: Vec<_> = conditions
        .map(|c| format!("{}={} {}: {}", c.condition_type, short(c.status), c.reason, c.message))
        .collect();
    parts.join("; ")
}

fn texts(summary: &Summary) -> Vec<&str> {
    summary.events.iter().map(|event| event.message.as_str()).collect()
}

#[test]
fn a_first_good_deployment() {
    let created = CommandStatus { new_objects: 3, ..deployed(0, "h1") };
    let summary = Case::default().end(&done(Some(created), Some(validated(0, true))));
    assert_eq!(
        shown(&summary),
        "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:aa"
    );
    let status = &summary.status;
    assert_eq!(status.observed_generation, GENERATION);
    assert_eq!(status.last_applied_revision.as_deref(), Some("main@sha1:aa"));
    assert_eq!(status.last_attempted_revision.as_deref(), Some("main@sha1:aa"));
    assert_eq!(status.last_attempted_digest.as_deref(), Some("sha256:dd"));
    assert_eq!(status.discriminator.as_deref(), Some("shop-prod"));
    assert_eq!(status.cluster_id.as_deref(), Some("uid"));
    assert_eq!(status.raw_target.as_deref(), Some("discriminator: shop-prod\nname: prod\n"));
    assert!(status.ready_for_migration);
    assert_eq!(
        texts(&summary),
        [
            "deploy succeeded. 3 new objects.",
            "Reconciliation finished in 1.234s, next run in 10m0s"
        ]
    );
    assert!(summary.events[1].finishes && !summary.events[0].finishes);
    assert_eq!(summary.events[1].token, Token::Always);
    assert_eq!(summary.next, Requeue::After(Duration::from_mins(10)));
}

#[test]
fn at_rest_nothing_changes_and_nobody_is_told() {
    let first = Case::default();
    let summary = first.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let second = first.later(&summary, 100);
    let again = second.end(&nothing_due());
    assert_eq!(again.status, summary.status, "no write, transition times stay");
    assert!(again.events.is_empty());
    assert_eq!(again.next, Requeue::After(Duration::from_secs(500)), "the next validation");
}

#[test]
fn a_new_revision_without_changes_is_applied_and_told_to_git() {
    let first = Case::default();
    let summary = first.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let next = Case { revision: "main@sha1:bb", ..first.later(&summary, 100) };
    let after = next.end(&nothing_due());
    assert_eq!(after.status.last_applied_revision.as_deref(), Some("main@sha1:bb"));
    assert_eq!(shown(&after), "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:bb");
    assert_eq!(after.events.len(), 1);
    assert!(after.events[0].finishes);
}

#[test]
fn changes_that_are_not_to_be_deployed_are_named() {
    let first = Case { spec: json!({ "deployOnChanges": false }), ..Case::default() };
    let summary = first.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let next = Case { revision: "main@sha1:bb", hash: "h2", ..first.later(&summary, 100) };
    let after = next.end(&nothing_due());
    assert_eq!(after.status.last_applied_revision.as_deref(), Some("main@sha1:aa"));
    assert!(shown(&after).contains("revision main@sha1:bb differs and is not deployed"));
}

#[test]
fn warnings_of_a_revision_are_told_once_also_when_nothing_is_deployed() {
    let mut first = Case { warnings: vec!["`foo` has no effect".into()], ..Case::default() };
    first.status.last_deploy_result = Some(deployed(0, "h1"));
    let summary = first.end(&nothing_due());
    assert_eq!(texts(&summary)[0], "rendered. 1 warnings.\nwarning: `foo` has no effect");
    let again = first.later(&summary, 600).end(&nothing_due());
    assert!(texts(&again).is_empty(), "{:?}", texts(&again));
}

#[test]
fn requests_are_answered_also_by_failures_but_a_deployment_stays_asked_for() {
    let asking = || Case {
        requests: Requests {
            reconcile: Some("r".into()),
            deploy: Some("d".into()),
            force: true,
            force_seen: Some("r".into()),
        },
        ..Case::default()
    };
    let failed = asking().end(&Ending::Failed(Failure::retry(reason::PREPARE_FAILED, "x"))).status;
    assert_eq!(failed.last_handled_reconcile_at.as_deref(), Some("r"));
    assert_eq!(failed.last_handled_force_at.as_deref(), Some("r"));
    assert_eq!(failed.last_handled_deploy_at, None);
    let good = asking().end(&done(Some(deployed(0, "h1")), None)).status;
    assert_eq!(good.last_handled_deploy_at.as_deref(), Some("d"));
    let tried = asking().end(&done(Some(failed_deployment(0, "h1")), None)).status;
    assert_eq!(
        tried.last_handled_deploy_at.as_deref(),
        Some("d"),
        "it took place, and is retried as a failure"
    );
    let interrupted = Failure::new(reason::DEPLOY_FAILED, Outlook::Interrupted, "");
    assert_eq!(asking().end(&Ending::Failed(interrupted)).status.last_handled_reconcile_at, None);

    let answer = suspended(&KluctlDeploymentStatus::default(), &asking().requests);
    assert_eq!(answer.last_handled_reconcile_at.as_deref(), Some("r"));
    assert_eq!(answer.last_handled_deploy_at, None, "nothing is deployed while suspended");
    assert!(answer.conditions.is_empty());
}

#[test]
fn a_suspended_object_stands_in_nobodys_way_but_keeps_what_it_owns() {
    let status = |state: &str| -> KluctlDeploymentStatus {
        serde_json::from_value(json!({
            "claim": {"clusterId": "c", "discriminator": "d", "state": state},
            "formerTargets": [{"discriminator": "old", "pruning": true}],
        }))
        .unwrap()
    };
    for (state, stays) in [("Requested", false), ("Refused", true), ("Granted", true)] {
        let after = suspended(&status(state), &Requests::default());
        assert_eq!(after.claim.is_some(), stays, "{state}");
        assert!(!after.former_targets[0].pruning);
    }
}

#[test]
fn a_dry_run_records_itself_and_nothing_else() {
    let dry = CommandStatus { dry_run: true, changed_objects: 2, ..deployed(0, "h1") };
    let case = Case { dry_run: true, ..Case::default() };
    let summary = case.end(&done(Some(dry), None));
    assert_eq!(
        shown(&summary),
        "Ready=True ReconciliationSucceeded: Dry run of revision: main@sha1:aa"
    );
    assert_eq!(summary.status.last_applied_revision, None);
    assert_eq!(summary.status.discriminator, None);
    assert_eq!(texts(&summary)[0], "dry run succeeded. 2 changed objects.");
}

#[test]
fn results_of_switched_off_stages_are_cleared() {
    let status = KluctlDeploymentStatus {
        last_deploy_result: Some(deployed(0, "h1")),
        last_prune_result: Some(failed_deployment(0, "h1")),
        survivors: vec![ObjectFailure::default()],
        last_validate_result: Some(validated(0, false)),
        ..KluctlDeploymentStatus::default()
    };
    let case = Case { spec: json!({ "validate": false }), status, ..Case::default() };
    let summary = case.end(&nothing_due());
    assert!(shown(&summary).starts_with("Ready=True"));
    assert_eq!(summary.status.last_prune_result, None);
    assert_eq!(summary.status.last_validate_result, None);
    assert!(summary.status.survivors.is_empty());
}

#[test]
fn rivals_are_listed_on_owner_and_contender() {
    let case =
        Case { rivals: vec!["KluctlDeployment.gitops.kluctl.io ns/b".into()], ..Case::default() };
    let owner = case.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let conflict = owner.status.condition(OWNERSHIP_CONFLICT).unwrap();
    assert!(conflict.message.contains("gitops.kluctl.io ns/b"));
    assert!(owner.status.condition(READY).unwrap().is_true());
    assert_eq!(owner.status.rivals.len(), 1);
    let alone = Case { rivals: Vec::new(), ..case.later(&owner, 10) }.end(&nothing_due());
    assert!(alone.status.condition(OWNERSHIP_CONFLICT).is_none() && alone.status.rivals.is_empty());
}

#[test]
fn progress_says_what_happens() {
    let first = Case::default();
    let summary = first.end(&done(Some(deployed(0, "h1")), Some(validated(0, true))));
    let object = spec(&json!({}));
    let before = Before {
        generation: GENERATION,
        spec: Some(&object),
        status: &summary.status,
        requests: &Requests::default(),
        rivals: &[],
    };
    let facts = Facts { revision: Some("main@sha1:bb".into()), ..Facts::default() };
    let status = progress(before, &facts, "Applying", at(50));
    let reconciling = status.condition(RECONCILING).unwrap();
    assert!(reconciling.is_true() && reconciling.message == "Applying");
    assert_eq!(status.condition(READY).unwrap().status, ConditionStatus::Unknown);
    assert_eq!(status.last_attempted_revision.as_deref(), Some("main@sha1:bb"));
    assert_eq!(status.last_applied_revision.as_deref(), Some("main@sha1:aa"));
    assert_eq!(broken_rules(&status, GENERATION), Vec::<String>::new());
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let text = "ä".repeat(20_000);
    let summary =
        Case::default().end(&Ending::Failed(Failure::retry(reason::PREPARE_FAILED, text)));
    let ready = summary.status.condition(READY).unwrap();
    assert_eq!(ready.message.len(), 20_003);
    assert!(ready.message.ends_with("ä..."));
}

#[test]
fn what_stays_behind_is_told_once_and_shown_until_it_is_gone() {
    let former = |message: &str| FormerTarget {
        discriminator: Some("old".into()),
        message: message.into(),
        ..FormerTarget::default()
    };
    let with_former = |former: Vec<FormerTarget>| {
        let Ending::Done(done) = done(Some(deployed(0, "h1")), None) else { unreachable!() };
        Ending::Done(Done { former: Some(former), ..done })
    };
    let told = |summary: &Summary| -> Vec<String> {
        let events = summary.events.iter();
        let events = events.filter(|event| event.reason == reason::OBJECTS_LEFT_BEHIND);
        events.map(|event| event.message.clone()).collect()
    };
    // The target was recorded when the deployment began.
    let status = KluctlDeploymentStatus {
        former_targets: vec![former("")],
        ..KluctlDeploymentStatus::default()
    };
    let first = Case { status, ..Case::default() }.end(&with_former(vec![former("2 objects")]));
    assert_eq!(told(&first), ["2 objects"]);
    let ready = first.status.condition(READY).unwrap();
    assert!(ready.is_true() && ready.message.contains("status.formerTargets"), "{}", ready.message);

    let again = Case { status: first.status.clone(), ..Case::default() };
    assert!(told(&again.end(&with_former(vec![former("2 objects")]))).is_empty(), "no news");
    assert_eq!(told(&again.end(&with_former(vec![former("1 object")]))), ["1 object"]);
    let gone = again.end(&with_former(Vec::new()));
    assert!(told(&gone).is_empty() && gone.status.former_targets.is_empty());
    assert!(!gone.status.condition(READY).unwrap().message.contains("former"));
}

#[test]
fn the_target_is_recorded_by_deployments_only() {
    let status = KluctlDeploymentStatus {
        discriminator: Some("old".into()),
        cluster_id: Some("uid".into()),
        ..KluctlDeploymentStatus::default()
    };
    let validated = done(None, Some(validated(0, true)));
    let summary = Case { status: status.clone(), ..Case::default() }.end(&validated);
    assert_eq!(summary.status.discriminator.as_deref(), Some("old"), "nothing was deployed");
    let summary = Case { status, ..Case::default() }.end(&done(Some(deployed(0, "h1")), None));
    assert_eq!(summary.status.discriminator.as_deref(), Some("shop-prod"));
    assert_eq!(summary.status.former_targets[0].discriminator.as_deref(), Some("old"));
}
