use serde_json::{Value, json};

use super::super::{
    dependencies::{DependencyState, OwnSource, assess, find_cycle},
    triggers::{Entry, Index, SourceKey},
};
use crate::api::{NamespacedName, SourceKind};

fn object(api_version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": "dep", "namespace": "apps", "generation": 2 },
        "spec": spec,
        "status": status,
    })
}

fn ready(status: &str, observed: i64) -> Value {
    json!({
        "observedGeneration": observed,
        "conditions": [{ "type": "Ready", "status": status, "message": "because" }],
    })
}

#[test]
fn kstatus_rules() {
    const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";
    let other = |status: &Value| object("example.com/v1", "Thing", &json!({}), status);
    let kustomization = |status: &Value| object(FLUX, "Kustomization", &json!({}), status);
    let mut deleting = kustomization(&ready("True", 2));
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let abnormal = |name: &str| {
        json!({ "conditions": [
            { "type": "Ready", "status": "True" },
            { "type": name, "status": "True", "message": "m" },
        ] })
    };
    let replicas = |ready: i64, updated: i64| {
        let status =
            json!({ "readyReplicas": ready, "updatedReplicas": updated, "observedGeneration": 2 });
        object("apps/v1", "Deployment", &json!({ "replicas": 2 }), &status)
    };
    let rows: Vec<(Value, Option<&str>)> = vec![
        (kustomization(&ready("True", 2)), None),
        (kustomization(&ready("True", 1)), Some("its latest change has not been observed yet")),
        (kustomization(&ready("False", 2)), Some("it is not ready: because")),
        (kustomization(&ready("Unknown", 2)), Some("it is not ready: because")),
        (kustomization(&json!({})), Some("it was not reconciled yet")),
        (
            kustomization(&json!({ "observedGeneration": -1 })),
            Some("its latest change has not been observed yet"),
        ),
        (deleting, Some("it is being deleted")),
        (other(&abnormal("Reconciling")), Some("it is being reconciled: m")),
        (other(&abnormal("Stalled")), Some("it is stalled: m")),
        (other(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] })), None),
        (other(&json!({ "conditions": [{ "type": "Other", "status": "True" }] })), None),
        (json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} }), None),
        (replicas(2, 2), None),
        (replicas(1, 2), Some("1 of 2 replicas are ready")),
        (replicas(2, 0), Some("0 of 2 replicas are ready")),
        (
            object("batch/v1", "Job", &json!({}), &json!({ "active": 1 })),
            Some("the job is not complete"),
        ),
        (
            object(
                "batch/v1",
                "Job",
                &json!({}),
                &json!({ "conditions": [{ "type": "Complete", "status": "True" }] }),
            ),
            None,
        ),
        (
            object("v1", "PersistentVolumeClaim", &json!({}), &json!({ "phase": "Pending" })),
            Some("the claim is not bound"),
        ),
    ];
    for (dependency, expected) in rows {
        let expected = match expected {
            None => DependencyState::Ready,
            Some(reason) => DependencyState::NotReady(reason.to_owned()),
        };
        assert_eq!(assess(&dependency, None), expected, "{dependency}");
    }
}

#[test]
fn a_dependency_on_the_same_source_must_have_applied_the_same_revision() {
    let key =
        SourceKey { kind: SourceKind::GitRepository, name: NamespacedName::new("apps", "shop") };
    let own = OwnSource { key: &key, revision: "main@sha1:bb" };
    let dependency = |source: Value, applied: Option<&str>| {
        let mut status = ready("True", 2);
        if let Some(applied) = applied {
            status["lastAppliedRevision"] = applied.into();
        }
        let spec = json!({ "sourceRef": source });
        assess(&object("flux.kluctl.io/v1alpha1", "KluctlDeployment", &spec, &status), Some(own))
    };
    let same = json!({ "kind": "GitRepository", "name": "shop" });
    let spelled_out = json!({ "kind": "GitRepository", "name": "shop", "namespace": "apps" });
    let other = json!({ "kind": "GitRepository", "name": "shop", "namespace": "else" });
    assert_eq!(dependency(same.clone(), Some("main@sha1:bb")), DependencyState::Ready);
    assert_eq!(dependency(other, Some("main@sha1:aa")), DependencyState::Ready);
    let behind = "it has the same source but applied main@sha1:aa, not main@sha1:bb";
    assert_eq!(
        dependency(spelled_out, Some("main@sha1:aa")),
        DependencyState::NotReady(behind.to_owned())
    );
    let nothing = "it has the same source but applied nothing, not main@sha1:bb";
    assert_eq!(dependency(same, None), DependencyState::NotReady(nothing.to_owned()));
}

fn graph(edges: &[(&str, &[&str])]) -> Index {
    let mut index = Index::default();
    for (name, dependencies) in edges {
        let dependencies: Vec<_> =
            dependencies.iter().map(|name| json!({ "name": name })).collect();
        let object = json!({
            "metadata": { "name": name, "namespace": "ns" },
            "spec": { "dependsOn": dependencies },
        });
        index.observe(&NamespacedName::new("ns", *name), Entry::read(&object));
    }
    index
}

fn cycle(index: &Index, start: &str) -> Option<String> {
    let names = find_cycle(index, &NamespacedName::new("ns", start))?;
    Some(names.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(" "))
}

#[test]
fn cycles_are_named_in_full() {
    let index = graph(&[
        ("a", &["b"]),
        ("b", &["x", "c"]),
        ("c", &["a"]),
        ("x", &["y", "y"]),
        ("y", &[]),
        ("self", &["self"]),
        ("outside", &["a"]),
        ("short", &["long", "short2"]),
        ("long", &["short2"]),
        ("short2", &["short"]),
    ]);
    assert_eq!(cycle(&index, "a").as_deref(), Some("a b c a"));
    assert_eq!(cycle(&index, "c").as_deref(), Some("c a b c"));
    assert_eq!(cycle(&index, "self").as_deref(), Some("self self"));
    assert_eq!(cycle(&index, "short").as_deref(), Some("short short2 short"));
    assert_eq!(cycle(&index, "x"), None, "a diamond is no cycle");
    assert_eq!(cycle(&index, "outside"), None, "who waits for a cycle is not part of it");
    assert_eq!(cycle(&index, "missing"), None);
}

#[test]
fn dependencies_of_other_kinds_are_no_edges() {
    let mut index = graph(&[("b", &["a"])]);
    let object = json!({
        "metadata": { "name": "a", "namespace": "ns" },
        "spec": { "dependsOn": [
            { "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "name": "b" },
            { "apiVersion": "gitops.kluctl.io/v1beta1", "kind": "KluctlDeployment", "name": "b" },
        ] },
    });
    let a = NamespacedName::new("ns", "a");
    index.observe(&a, Entry::read(&object));
    assert_eq!(find_cycle(&index, &a), None);
    let object = json!({
        "metadata": { "name": "a", "namespace": "ns" },
        "spec": { "dependsOn": [
            { "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment", "name": "b" },
        ] },
    });
    index.observe(&a, Entry::read(&object));
    assert_eq!(cycle(&index, "a").as_deref(), Some("a b a"));
}
