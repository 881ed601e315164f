use serde_json::{Value, json};

use super::{
    super::{
        decide::{Actions, Basis, DeployReason, ValidateReason, decide},
        requests::Requests,
    },
    at, deployed, failed_deployment, progressing, spec, validated,
};
use crate::api::{CommandStatus, KluctlDeploymentStatus, ObjectFailure};

/// One row: what is decided 100 s after the records (which are at 0 unless told otherwise).
struct Row {
    name: &'static str,
    spec: Value,
    status: KluctlDeploymentStatus,
    generation: i64,
    hash: &'static str,
    requests: Requests,
    dry_run: bool,
    is_elsewhere: bool,
    now: i64,
    deploy: Option<DeployReason>,
    prune: bool,
    validate: Option<ValidateReason>,
}

/// An object at rest: deployed and validated at 0, looked at 30 s later.
fn at_rest() -> Row {
    Row {
        name: "at rest",
        spec: json!({}),
        status: KluctlDeploymentStatus {
            observed_generation: 1,
            last_deploy_result: Some(deployed(0, "h1")),
            last_validate_result: Some(validated(0, true)),
            ..KluctlDeploymentStatus::default()
        },
        generation: 1,
        hash: "h1",
        requests: Requests::default(),
        dry_run: false,
        is_elsewhere: false,
        now: 30,
        deploy: None,
        prune: false,
        validate: None,
    }
}

fn with_deploy(result: Option<CommandStatus>) -> KluctlDeploymentStatus {
    KluctlDeploymentStatus { last_deploy_result: result, ..at_rest().status }
}

fn requested(deploy: bool) -> Requests {
    Requests {
        reconcile: Some("t1".to_owned()),
        deploy: deploy.then(|| "d1".to_owned()),
        ..Requests::default()
    }
}

#[test]
fn what_is_due() {
    use DeployReason as D;
    use ValidateReason as V;
    let survivor =
        ObjectFailure { kind: "Pod".into(), name: "p".into(), ..ObjectFailure::default() };
    let pruned = |seconds| Some(deployed(seconds, "h1"));
    let rows = vec![
        at_rest(),
        Row {
            name: "never deployed",
            status: KluctlDeploymentStatus::default(),
            deploy: Some(D::NeverDeployed),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "a record without a time (old release) counts as none",
            status: with_deploy(Some(CommandStatus { time: None, ..deployed(0, "h1") })),
            deploy: Some(D::NeverDeployed),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "objects changed",
            hash: "h2",
            deploy: Some(D::ObjectsChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "objects changed, but deployOnChanges is off",
            hash: "h2",
            spec: json!({ "deployOnChanges": false }),
            ..at_rest()
        },
        Row {
            name: "spec changed",
            generation: 2,
            deploy: Some(D::SpecChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "spec changed while deployOnChanges is off",
            generation: 2,
            spec: json!({ "deployOnChanges": false }),
            deploy: Some(D::SpecChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "a preparation that failed meanwhile does not hide the change of the spec",
            generation: 2,
            status: KluctlDeploymentStatus { observed_generation: 2, ..at_rest().status },
            deploy: Some(D::SpecChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "deployment requested",
            requests: requested(true),
            deploy: Some(D::Requested),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "force requested",
            requests: Requests { force: true, ..Requests::default() },
            deploy: Some(D::Requested),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "reconciliation requested",
            requests: requested(false),
            validate: Some(V::Requested),
            ..at_rest()
        },
        Row {
            name: "prune follows the deployment",
            spec: json!({ "prune": true }),
            hash: "h2",
            deploy: Some(D::ObjectsChanged),
            prune: true,
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row { name: "no deployment, no prune", spec: json!({ "prune": true }), ..at_rest() },
        Row {
            name: "failed deployment, too early",
            status: with_deploy(Some(failed_deployment(0, "h1"))),
            ..at_rest()
        },
        Row {
            name: "failed deployment, retry interval over",
            now: 60,
            status: with_deploy(Some(failed_deployment(0, "h1"))),
            deploy: Some(D::RetryAfterFailure),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "failed deployment, other objects",
            hash: "h2",
            status: with_deploy(Some(failed_deployment(0, "h1"))),
            deploy: Some(D::ObjectsChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "deployInterval is never by default",
            now: 1_000_000,
            validate: Some(V::IntervalElapsed),
            ..at_rest()
        },
        Row {
            name: "deployInterval over",
            now: 3600,
            spec: json!({ "deployInterval": "1h" }),
            deploy: Some(D::IntervalElapsed),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "deployInterval not over",
            now: 3599,
            spec: json!({ "deployInterval": "1h", "validateInterval": "never" }),
            ..at_rest()
        },
        Row {
            name: "validateInterval defaults to interval",
            now: 600,
            validate: Some(V::IntervalElapsed),
            ..at_rest()
        },
        Row { name: "validateInterval not over", now: 599, ..at_rest() },
        Row {
            name: "validateInterval never",
            now: 1_000_000,
            spec: json!({ "validateInterval": "never" }),
            ..at_rest()
        },
        Row {
            name: "validateInterval never, but never validated",
            spec: json!({ "validateInterval": "never" }),
            status: KluctlDeploymentStatus { last_validate_result: None, ..at_rest().status },
            validate: Some(V::NeverValidated),
            ..at_rest()
        },
        Row {
            name: "validate off",
            now: 1_000_000,
            spec: json!({ "validate": false }),
            requests: requested(false),
            ..at_rest()
        },
        Row {
            name: "validate off, deploying",
            hash: "h2",
            spec: json!({ "validate": false }),
            deploy: Some(D::ObjectsChanged),
            ..at_rest()
        },
        Row {
            name: "validation failed, too early",
            status: KluctlDeploymentStatus {
                last_validate_result: Some(validated(0, false)),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "validation failed, retry interval over",
            now: 60,
            status: KluctlDeploymentStatus {
                last_validate_result: Some(validated(0, false)),
                ..at_rest().status
            },
            validate: Some(V::RetryAfterFailure),
            ..at_rest()
        },
        Row {
            name: "on its way, too early",
            now: 4,
            status: KluctlDeploymentStatus {
                last_validate_result: Some(progressing(0, 0)),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "on its way, and due before the retry interval is over",
            now: 5,
            status: KluctlDeploymentStatus {
                last_validate_result: Some(progressing(0, 0)),
                ..at_rest().status
            },
            validate: Some(V::Progressing),
            ..at_rest()
        },
        Row {
            name: "survivors, retry interval over",
            now: 60,
            spec: json!({ "prune": true }),
            status: KluctlDeploymentStatus {
                survivors: vec![survivor.clone()],
                last_prune_result: pruned(0),
                ..at_rest().status
            },
            prune: true,
            ..at_rest()
        },
        Row {
            name: "survivors, too early",
            now: 59,
            spec: json!({ "prune": true }),
            status: KluctlDeploymentStatus {
                survivors: vec![survivor.clone()],
                last_prune_result: pruned(0),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "survivors while the last deployment failed",
            now: 70,
            hash: "h2",
            spec: json!({ "prune": true }),
            status: KluctlDeploymentStatus {
                survivors: vec![survivor.clone()],
                last_prune_result: pruned(0),
                last_deploy_result: Some(failed_deployment(30, "h2")),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "survivors of a revision that another one follows, which is not deployed",
            now: 70,
            hash: "h2",
            spec: json!({ "prune": true, "deployOnChanges": false }),
            status: KluctlDeploymentStatus {
                survivors: vec![survivor.clone()],
                last_prune_result: pruned(0),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "survivors, prune switched off since",
            now: 60,
            status: KluctlDeploymentStatus {
                survivors: vec![survivor],
                last_prune_result: pruned(0),
                ..at_rest().status
            },
            ..at_rest()
        },
        Row {
            name: "the kubeconfig leads to another cluster",
            is_elsewhere: true,
            deploy: Some(D::ClusterChanged),
            validate: Some(V::Deployed),
            ..at_rest()
        },
        Row {
            name: "another cluster, and deployOnChanges is false: what is left on the first one is not pruned there",
            spec: json!({"prune": true, "deployOnChanges": false}),
            status: KluctlDeploymentStatus {
                survivors: vec![ObjectFailure::default()],
                ..at_rest().status
            },
            is_elsewhere: true,
            now: 100,
            ..at_rest()
        },
        Row {
            name: "first dry run after real deployments",
            dry_run: true,
            deploy: Some(D::NeverDeployed),
            validate: None,
            ..at_rest()
        },
        Row {
            name: "dry run repeated",
            dry_run: true,
            status: with_deploy(Some(CommandStatus { dry_run: true, ..deployed(0, "h1") })),
            ..at_rest()
        },
        Row {
            name: "dropping the dry run deploys",
            status: with_deploy(Some(CommandStatus { dry_run: true, ..deployed(0, "h1") })),
            deploy: Some(D::NeverDeployed),
            validate: Some(V::Deployed),
            ..at_rest()
        },
    ];
    for row in rows {
        let decided = decide(Basis {
            now: at(row.now),
            spec: &spec(&row.spec),
            generation: row.generation,
            status: &row.status,
            objects_hash: row.hash,
            requests: &row.requests,
            dry_run: row.dry_run,
            is_elsewhere: row.is_elsewhere,
        });
        let expected = Actions { deploy: row.deploy, prune: row.prune, validate: row.validate };
        assert_eq!(decided, expected, "{}", row.name);
    }
}

#[test]
fn at_rest_there_is_nothing_to_do() {
    assert!(Actions::default().is_empty());
    assert!(!Actions { prune: true, ..Actions::default() }.is_empty());
}
