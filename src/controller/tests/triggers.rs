use serde_json::{Value, json};

use super::super::triggers::{Entry, Index, SourceKey};
use crate::api::{FluxSource, NamespacedName, SourceKind};

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("apps", name)
}

fn object(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "apps", "generation": 1 },
        "spec": { "sourceRef": { "kind": "GitRepository", "name": "shop", "namespace": "flux" } },
    });
    crate::object::merge(&mut object, more.clone());
    object
}

fn source_key() -> SourceKey {
    SourceKey { kind: SourceKind::GitRepository, name: NamespacedName::new("flux", "shop") }
}

fn source(revision: &str, digest: &str, more: &Value) -> FluxSource {
    let mut value = json!({
        "metadata": { "name": "shop", "namespace": "flux" },
        "spec": { "url": "https://git.example.com/shop", "secretRef": { "name": "git" } },
        "status": { "artifact": { "revision": revision, "digest": digest, "url": "http://sc/shop" } },
    });
    crate::object::merge(&mut value, more.clone());
    serde_json::from_value(value).unwrap()
}

struct World(Index);

impl World {
    fn see(&mut self, name: &str, more: &Value) -> Vec<String> {
        names(self.0.observe(&key(name), Entry::read(&object(name, more))))
    }

    fn see_source(&mut self, source: Option<&FluxSource>) -> Vec<String> {
        names(self.0.observe_source(&source_key(), source))
    }

    fn see_secret(&mut self, namespace: &str, name: &str, version: Option<&str>) -> Vec<String> {
        names(self.0.observe_secret(&NamespacedName::new(namespace, name), version))
    }
}

fn names(keys: Vec<NamespacedName>) -> Vec<String> {
    keys.into_iter().map(|key| key.name).collect()
}

#[test]
fn an_object_wakes_itself_by_spec_requests_and_deletion_but_not_by_status() {
    let mut world = World(Index::default());
    assert_eq!(world.see("a", &json!({})), ["a"]);
    assert!(world.see("a", &json!({})).is_empty(), "the same again, as after a new listing");
    assert!(world.see("a", &json!({ "status": { "observedGeneration": 1 } })).is_empty());
    assert!(world.see("a", &json!({ "metadata": { "labels": { "x": "y" } } })).is_empty());
    assert_eq!(world.see("a", &json!({ "metadata": { "generation": 2 } })), ["a"]);
    for (number, annotation) in [
        "reconcile.fluxcd.io/requestedAt",
        "deploy.flux.kluctl.io/requestedAt",
        "reconcile.fluxcd.io/forceAt",
    ]
    .into_iter()
    .enumerate()
    {
        let mut annotations = json!({});
        annotations[annotation] = format!("t{number}").into();
        let more = json!({ "metadata": { "generation": 2, "annotations": annotations } });
        assert_eq!(world.see("a", &more), ["a"], "{annotation}");
        assert!(world.see("a", &more).is_empty());
    }
    let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(world.see("a", &deleting), ["a"]);
}

#[test]
fn a_source_wakes_its_users_when_the_artifact_changes() {
    let mut world = World(Index::default());
    assert!(world.see_source(Some(&source("r1", "d1", &json!({})))).is_empty(), "nobody uses it");
    world.see("a", &json!({}));
    world.see("b", &json!({}));
    world.see("suspended", &json!({ "spec": { "suspend": true } }));
    world.see("other", &json!({ "spec": { "sourceRef": { "namespace": "else" } } }));
    world.see("bucket", &json!({ "spec": { "sourceRef": { "kind": "Bucket" } } }));

    let first = source("r1", "d1", &json!({}));
    assert_eq!(world.see_source(Some(&first)), ["a", "b"]);
    assert!(world.see_source(Some(&first)).is_empty());
    let conditions =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } });
    assert!(world.see_source(Some(&source("r1", "d1", &conditions))).is_empty());
    assert_eq!(world.see_source(Some(&source("r2", "d2", &json!({})))), ["a", "b"]);
    // An edit of spec.ignore rebuilds the artifact under the same revision.
    assert_eq!(world.see_source(Some(&source("r2", "d3", &json!({})))), ["a", "b"]);
    let moved = json!({ "status": { "artifact": { "url": "http://elsewhere/shop" } } });
    assert_eq!(world.see_source(Some(&source("r2", "d3", &moved))), ["a", "b"]);
    assert_eq!(world.see_source(None), ["a", "b"], "deleted");
    assert_eq!(world.see_source(Some(&source("r2", "d3", &json!({})))), ["a", "b"], "created anew");
}

#[test]
fn a_source_reference_can_move() {
    let mut world = World(Index::default());
    world.see("a", &json!({}));
    world.see_source(Some(&source("r1", "d1", &json!({}))));
    let elsewhere =
        json!({ "metadata": { "generation": 2 }, "spec": { "sourceRef": { "name": "x" } } });
    assert_eq!(world.see("a", &elsewhere), ["a"]);
    assert!(world.see_source(Some(&source("r2", "d2", &json!({})))).is_empty());
    world.0.remove(&key("a"));
    assert_eq!(world.0.keys().count(), 0);
}

#[test]
fn secrets_wake_those_who_refer_to_them() {
    let mut world = World(Index::default());
    world.see(
        "remote",
        &json!({ "spec": { "kubeConfig": { "secretRef": { "name": "kubeconfig" } } } }),
    );
    let credentials = json!({ "git": [{ "host": "h", "secretRef": { "name": "creds" } }] });
    world.see("git", &json!({ "spec": { "credentials": credentials } }));
    world.see(
        "clone",
        &json!({ "spec": { "source": { "url": "u", "secretRef": { "name": "creds" } } } }),
    );
    world.see_source(Some(&source("r1", "d1", &json!({}))));

    assert_eq!(world.see_secret("apps", "kubeconfig", Some("1")), ["remote"]);
    assert!(world.see_secret("apps", "kubeconfig", Some("1")).is_empty());
    assert_eq!(world.see_secret("apps", "kubeconfig", Some("2")), ["remote"]);
    assert_eq!(world.see_secret("apps", "kubeconfig", None), ["remote"]);
    assert!(world.see_secret("else", "kubeconfig", Some("1")).is_empty());
    assert_eq!(world.see_secret("apps", "creds", Some("7")), ["clone", "git"]);
    // The credentials of the GitRepository lie in its own namespace, and concern all who use it.
    assert_eq!(world.see_secret("flux", "git", Some("3")), ["clone", "git", "remote"]);
    assert!(world.see_secret("apps", "unrelated", Some("9")).is_empty());
    // It was there before somebody refers to it: only its end is seen.
    world.see(
        "late",
        &json!({ "spec": { "kubeConfig": { "secretRef": { "name": "unrelated" } } } }),
    );
    assert_eq!(world.see_secret("apps", "unrelated", None), ["late"]);
}

#[test]
fn secrets_that_variables_come_from_wake_their_readers() {
    let mut world = World(Index::default());
    let secret = |name: &str| NamespacedName::new("apps", name);
    world.see("a", &json!({}));
    world.0.reads(&key("gone"), &secret("vars"));
    assert!(world.see_secret("apps", "vars", Some("1")).is_empty());
    world.0.reads(&key("a"), &secret("vars"));
    world.0.reads(&key("a"), &secret("more"));
    assert_eq!(world.see_secret("apps", "vars", Some("2")), ["a"]);
    assert!(world.see_secret("apps", "vars", Some("2")).is_empty());
    assert_eq!(world.see_secret("apps", "vars", None), ["a"]);
    // The next render needs only one of them.
    world.0.reads_only(&key("a"), &[secret("more")].into());
    assert!(world.see_secret("apps", "vars", Some("3")).is_empty());
    assert_eq!(world.see_secret("apps", "more", Some("1")), ["a"]);
    // A change of the spec leaves the readings alone, the end of the deployment ends them.
    world.see(
        "a",
        &json!({ "metadata": { "generation": 2 }, "spec": { "sourceRef": { "name": "x" } } }),
    );
    assert_eq!(world.see_secret("apps", "more", Some("2")), ["a"]);
    world.0.remove(&key("a"));
    assert!(world.see_secret("apps", "more", Some("3")).is_empty());
}

#[test]
fn dependents_wake_when_readiness_changes() {
    let mut world = World(Index::default());
    world.see("base", &json!({}));
    world.see("top", &json!({ "spec": { "dependsOn": [{ "name": "base" }] } }));
    let status = |ready: &str, revision: &str, observed: i64| {
        json!({ "status": {
            "observedGeneration": observed,
            "lastAppliedRevision": revision,
            "conditions": [{ "type": "Ready", "status": ready }],
        } })
    };
    assert_eq!(world.see("base", &status("True", "r1", 1)), ["top"]);
    assert!(world.see("base", &status("True", "r1", 1)).is_empty());
    assert_eq!(world.see("base", &status("True", "r2", 1)), ["top"], "another revision");
    assert_eq!(world.see("base", &status("False", "r2", 1)), ["top"]);
    assert!(world.see("base", &status("True", "r2", 0)).is_empty(), "Ready of an older generation");
    assert_eq!(names(world.0.remove(&key("base"))), ["top"]);
}

#[test]
fn all_who_wait_wake_when_dependencies_change() {
    let mut world = World(Index::default());
    let depends_on = |name: &str| json!({ "spec": { "dependsOn": [{ "name": name }] } });
    world.see("a", &depends_on("b"));
    world.see("b", &depends_on("c"));
    world.see("c", &depends_on("a"));
    let mut free = depends_on("x");
    free["metadata"] = json!({ "generation": 2 });
    assert_eq!(world.see("c", &free), ["c", "a", "b"], "the circle is open");
}

#[test]
fn malformed_objects_are_indexed_as_far_as_they_go() {
    let mut world = World(Index::default());
    let broken = json!({
        "metadata": { "generation": 1 },
        "spec": { "interval": 5, "dependsOn": "x", "credentials": [1], "sourceRef": { "kind": 7 } },
        "status": { "conditions": {} },
    });
    assert_eq!(world.see("broken", &broken), ["broken"]);
    assert_eq!(world.0.get(&key("broken")).unwrap().source, None);
}
