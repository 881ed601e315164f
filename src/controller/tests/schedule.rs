use std::time::Duration;

use serde_json::{Value, json};

use super::{
    super::{
        outcome::{Failure, Outlook},
        schedule::{Requeue, after_failure, after_run},
    },
    at, deployed, failed_deployment, progressing, spec, validated,
};
use crate::api::{CommandStatus, KluctlDeploymentStatus, ObjectFailure};

fn seconds(n: u64) -> Requeue {
    Requeue::After(Duration::from_secs(n))
}

#[test]
fn the_earliest_due_time_counts() {
    let rest = || KluctlDeploymentStatus {
        last_deploy_result: Some(deployed(0, "h")),
        last_validate_result: Some(validated(0, true)),
        ..KluctlDeploymentStatus::default()
    };
    let rows: Vec<(&str, Value, KluctlDeploymentStatus, i64, u64)> = vec![
        ("interval", json!({ "validateInterval": "never" }), rest(), 0, 600),
        (
            "interval from now, not from the last run",
            json!({ "validateInterval": "never" }),
            rest(),
            400,
            600,
        ),
        ("validation due earlier", json!({}), rest(), 400, 200),
        ("validation switched off", json!({ "validate": false }), rest(), 400, 600),
        (
            "never validated",
            json!({}),
            KluctlDeploymentStatus { last_validate_result: None, ..rest() },
            0,
            600,
        ),
        (
            "deployment due earlier",
            json!({ "deployInterval": "1h", "validateInterval": "never" }),
            rest(),
            3550,
            50,
        ),
        ("overdue runs soon, but not at once", json!({ "deployInterval": "1m" }), rest(), 500, 1),
        (
            "failed deployment",
            json!({}),
            KluctlDeploymentStatus {
                last_deploy_result: Some(failed_deployment(0, "h")),
                ..rest()
            },
            0,
            60,
        ),
        (
            "failed deployment, counted from the failure",
            json!({}),
            KluctlDeploymentStatus {
                last_deploy_result: Some(failed_deployment(0, "h")),
                ..rest()
            },
            40,
            20,
        ),
        (
            "failed validation",
            json!({}),
            KluctlDeploymentStatus { last_validate_result: Some(validated(0, false)), ..rest() },
            0,
            60,
        ),
        (
            "survivors",
            json!({ "prune": true }),
            KluctlDeploymentStatus {
                survivors: vec![ObjectFailure::default()],
                last_prune_result: Some(deployed(0, "h")),
                ..rest()
            },
            0,
            60,
        ),
        (
            "survivors while another revision is rendered, which is not deployed",
            json!({ "prune": true, "deployOnChanges": false }),
            KluctlDeploymentStatus {
                survivors: vec![ObjectFailure::default()],
                last_deploy_result: Some(deployed(0, "h0")),
                last_prune_result: Some(deployed(0, "h0")),
                ..rest()
            },
            100,
            500,
        ),
        (
            "survivors while the last deployment failed",
            json!({ "prune": true }),
            KluctlDeploymentStatus {
                survivors: vec![ObjectFailure::default()],
                last_deploy_result: Some(failed_deployment(100, "h")),
                last_prune_result: Some(deployed(0, "h0")),
                ..rest()
            },
            110,
            50,
        ),
        (
            "survivors, prune off",
            json!({}),
            KluctlDeploymentStatus {
                survivors: vec![ObjectFailure::default()],
                last_prune_result: Some(deployed(0, "h")),
                ..rest()
            },
            0,
            600,
        ),
        (
            "a dry run's record does not schedule real deployments",
            json!({ "deployInterval": "2m" }),
            KluctlDeploymentStatus {
                last_deploy_result: Some(CommandStatus { dry_run: true, ..deployed(0, "h") }),
                ..rest()
            },
            0,
            600,
        ),
    ];
    for (name, more, status, now, expected) in rows {
        assert_eq!(
            after_run(at(now), &spec(&more), &status, Some("h"), false, 1.0),
            seconds(expected),
            "{name}"
        );
    }
}

#[test]
fn what_is_on_its_way_is_looked_at_less_and_less_often_until_it_counts_as_failed() {
    let more = json!({ "timeout": "5m", "retryInterval": "30m", "interval": "1h" });
    let delay = |time, since| {
        let status = KluctlDeploymentStatus {
            last_deploy_result: Some(deployed(0, "h")),
            last_validate_result: Some(progressing(time, since)),
            ..KluctlDeploymentStatus::default()
        };
        after_run(at(time), &spec(&more), &status, Some("h"), false, 1.0)
    };
    for (time, expected) in
        [(0, 5), (10, 5), (40, 10), (200, 50), (250, 50), (299, 1), (300, 1800), (900, 1800)]
    {
        assert_eq!(delay(time, 0), seconds(expected), "{time} s after the first look");
    }
    assert_eq!(delay(900, 880), seconds(5), "it counts from when it began");
}

#[test]
fn jitter_varies_the_interval_only() {
    let status = KluctlDeploymentStatus::default();
    assert_eq!(after_run(at(0), &spec(&json!({})), &status, None, false, 0.95), seconds(570));
    assert_eq!(after_run(at(0), &spec(&json!({})), &status, None, false, 1.05), seconds(630));
}

#[test]
fn failures_come_back_when_that_makes_sense() {
    let wait = Duration::from_secs(30);
    let with =
        |outlook| after_failure(&Failure::new("R", outlook, ""), Some(&spec(&json!({}))), wait);
    assert_eq!(with(Outlook::Stalled), Requeue::OnChange);
    assert_eq!(with(Outlook::Waiting), seconds(30));
    assert_eq!(with(Outlook::Retry), seconds(60));
    assert_eq!(with(Outlook::Backoff), Requeue::Backoff(Duration::from_mins(1)));
    assert_eq!(with(Outlook::Interrupted), seconds(0));
    let own_delay =
        Failure { retry_after: Some(Duration::from_secs(7)), ..Failure::waiting("R", "") };
    assert_eq!(after_failure(&own_delay, None, wait), seconds(7));
    let unreadable = after_failure(&Failure::retry("R", ""), None, wait);
    assert_eq!(unreadable, seconds(300), "without a spec there is no retry interval to go by");
}
