use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::object::{Object, merge};

fn judged(api_version: &str, kind: &str, rest: Value) -> Readiness {
    let mut tree = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z"}});
    merge(&mut tree, rest);
    let facts =
        Facts { has_status: Some(true), now: "2026-01-01T00:00:10Z".parse::<Timestamp>().unwrap() };
    assess(&Object::new(tree).unwrap(), &facts).readiness
}

fn waits(reason: &str) -> Readiness {
    Readiness::Progressing { reason: reason.to_owned() }
}

fn fails(reason: &str) -> Readiness {
    Readiness::Failed { reason: reason.to_owned() }
}

fn conditions(list: &[(&str, &str, &str, &str)]) -> Value {
    list.iter()
        .map(|(kind, status, reason, message)| {
            json!({"type": kind, "status": status, "reason": reason, "message": message})
        })
        .collect()
}

#[test]
fn annotations_generation_and_deletion_come_first() {
    let ready = Readiness::Ready;
    let cases = [
        (
            json!({"metadata": {"annotations": {"kluctl.io/validate-ignore": "true"}}}),
            ready.clone(),
        ),
        (json!({"metadata": {"annotations": {"kluctl.io/is-ready": "true"}}}), ready.clone()),
        (
            json!({"metadata": {"annotations": {"kluctl.io/is-ready": "false"}}, "status": {}}),
            waits("annotation kluctl.io/is-ready is false"),
        ),
        (json!({"metadata": {"deletionTimestamp": "x"}, "status": {}}), waits("being deleted")),
        (json!({}), waits("no status available yet")),
        (json!({"metadata": {"creationTimestamp": "2025-12-31T23:59:54Z"}}), ready.clone()),
        (
            json!({"status": {"observedGeneration": 1}}),
            waits("generation 2 is not reconciled yet, the status is of generation 1"),
        ),
        (json!({"status": {"observedGeneration": 2}}), ready.clone()),
    ];
    for (rest, expected) in cases {
        assert_eq!(judged("example.com/v1", "Thing", rest.clone()), expected, "{rest}");
    }
}

#[test]
fn kinds_without_status_are_ready_at_once() {
    let object =
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}));
    let object = object.unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let known = assess(&object, &Facts { has_status: Some(false), now });
    assert_eq!(known, Assessment { readiness: Readiness::Ready, warnings: Vec::new() });
    let unknown = assess(&object, &Facts { has_status: None, now });
    assert_eq!((unknown.readiness, unknown.warnings.len()), (Readiness::Ready, 1));
}

#[test]
fn pods() {
    let cases = [
        (
            json!({"phase": "Running", "conditions": conditions(&[("Ready", "True", "", "")])}),
            Readiness::Ready,
        ),
        (
            json!({"phase": "Running", "conditions": conditions(&[("Ready", "False", "ContainersNotReady", "no")])}),
            waits("no"),
        ),
        (json!({"phase": "Pending"}), waits("not ready")),
        (
            json!({"phase": "Succeeded", "conditions": conditions(&[("Ready", "False", "PodCompleted", "")])}),
            Readiness::Ready,
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}),
            fails("container main exited with code 3"),
        ),
        (json!({"phase": "Failed", "reason": "Evicted"}), fails("Evicted")),
    ];
    for (status, expected) in cases {
        assert_eq!(judged("v1", "Pod", json!({"status": status})), expected, "{status}");
    }
}

#[test]
fn jobs() {
    let cases = [
        (json!({"status": {}}), waits("the job has not completed")),
        (json!({"status": {}, "spec": {"suspend": true}}), waits("the job is suspended")),
        (
            json!({"status": {"conditions": conditions(&[("Complete", "True", "", "")])}}),
            Readiness::Ready,
        ),
        (
            json!({"status": {"conditions": conditions(&[("Failed", "True", "BackoffLimitExceeded", "too often")])}}),
            fails("too often"),
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(judged("batch/v1", "Job", rest.clone()), expected, "{rest}");
    }
}

#[test]
fn deployments() {
    let status = |replicas: i64, updated: i64, ready: i64, available: i64| {
        json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 2, "replicas": replicas,
            "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": available}})
    };
    let cases = [
        (status(2, 2, 2, 2), Readiness::Ready),
        (status(2, 1, 2, 2), waits("1 of 2 replicas are updated")),
        (status(3, 2, 3, 3), waits("1 old replicas are still there")),
        (status(2, 2, 1, 1), waits("1 of 2 replicas are ready")),
        (status(2, 2, 2, 1), waits("1 of 2 replicas are available")),
        (json!({"spec": {"replicas": 0}, "status": {}}), Readiness::Ready),
        (json!({"spec": {"replicas": 1}, "status": {}}), waits("0 of 1 replicas are updated")),
        (
            json!({"status": {"conditions": conditions(&[("Progressing", "False", "ProgressDeadlineExceeded", "late")])}}),
            fails("late"),
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(judged("apps/v1", "Deployment", rest.clone()), expected, "{rest}");
    }
}

#[test]
fn stateful_sets() {
    let make = |partition: i64, updated: i64, ready: i64| {
        json!({"spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}},
            "status": {"updatedReplicas": updated, "readyReplicas": ready}})
    };
    let cases = [
        (make(0, 3, 3), Readiness::Ready),
        (make(0, 2, 3), waits("2 of 3 replicas are updated")),
        (make(2, 1, 3), Readiness::Ready),
        (make(2, 3, 3), Readiness::Ready),
        (make(0, 3, 2), waits("2 of 3 replicas are ready")),
        (
            json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"readyReplicas": 0}}),
            Readiness::Ready,
        ),
        (json!({"spec": {}, "status": {}}), waits("0 of 1 replicas are updated")),
    ];
    for (rest, expected) in cases {
        assert_eq!(judged("apps/v1", "StatefulSet", rest.clone()), expected, "{rest}");
    }
}

#[test]
fn daemon_sets() {
    let make = |unavailable: Value, updated: i64, ready: i64| {
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}},
            "status": {"desiredNumberScheduled": 10, "updatedNumberScheduled": updated, "numberReady": ready}})
    };
    let cases = [
        (make(json!(1), 10, 9), Readiness::Ready),
        (make(json!(1), 9, 10), waits("9 of 10 pods are updated")),
        (make(json!(1), 10, 8), waits("8 of at least 9 pods are ready")),
        (make(json!("25%"), 10, 7), Readiness::Ready),
        (make(json!("25%"), 10, 6), waits("6 of at least 7 pods are ready")),
        (json!({"status": {}}), waits("it is not known yet on how many nodes to run")),
        (json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {}}), Readiness::Ready),
    ];
    for (rest, expected) in cases {
        assert_eq!(judged("apps/v1", "DaemonSet", rest.clone()), expected, "{rest}");
    }
}

#[test]
fn other_kinds_with_rules() {
    let definition = "CustomResourceDefinition";
    let crd = "apiextensions.k8s.io/v1";
    let cases = [
        ("v1", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}}), Readiness::Ready),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"status": {"phase": "Pending"}}),
            waits("phase is Pending, not Bound"),
        ),
        ("v1", "Namespace", json!({"status": {"phase": "Active"}}), Readiness::Ready),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "ExternalName"}, "status": {}}),
            Readiness::Ready,
        ),
        (
            "v1",
            "Service",
            json!({"spec": {}, "status": {}}),
            fails("the service has no cluster IP"),
        ),
        ("v1", "Service", json!({"spec": {"clusterIP": "None"}, "status": {}}), Readiness::Ready),
        (
            "v1",
            "Service",
            json!({"spec": {"clusterIP": "10.0.0.1", "type": "LoadBalancer"}, "status": {"loadBalancer": {}}}),
            waits("the load balancer has no address yet"),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"clusterIP": "10.0.0.1", "type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
            Readiness::Ready,
        ),
        (crd, definition, json!({"status": {}}), waits("not established")),
        (
            crd,
            definition,
            json!({"status": {"conditions": conditions(&[("Established", "True", "", "")])}}),
            Readiness::Ready,
        ),
        (
            crd,
            definition,
            json!({"status": {"conditions": conditions(&[("NamesAccepted", "False", "", "taken")])}}),
            fails("taken"),
        ),
        (
            "cluster.x-k8s.io/v1beta1",
            "MachineDeployment",
            json!({"status": {"replicas": 1, "readyReplicas": 1,
                "conditions": conditions(&[("Ready", "True", "", ""), ("Available", "True", "", "")])}}),
            Readiness::Ready,
        ),
        (
            "cluster.x-k8s.io/v1beta1",
            "MachineDeployment",
            json!({"status": {"conditions": conditions(&[("Ready", "True", "", "")])}}),
            waits("condition Available is not there yet"),
        ),
        (
            "example.com/v1",
            "Thing",
            json!({"status": {"conditions": conditions(&[("Ready", "False", "", "no")])}}),
            waits("no"),
        ),
        (
            "example.com/v1",
            "Thing",
            json!({"status": {"conditions": conditions(&[("Reconciling", "True", "", "working")])}}),
            waits("working"),
        ),
        (
            "example.com/v1",
            "Thing",
            json!({"status": {"conditions": conditions(&[("Stalled", "True", "", "stuck")])}}),
            fails("stuck"),
        ),
    ];
    for (api_version, kind, rest, expected) in cases {
        assert_eq!(judged(api_version, kind, rest.clone()), expected, "{kind} {rest}");
    }
}
