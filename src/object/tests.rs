use serde_json::json;

use super::*;
use crate::diagnostic::FieldPath;

#[test]
fn identifying_fields_are_required() {
    let missing = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}));
    assert_eq!(
        missing.unwrap_err().to_string(),
        "metadata.name: expected a non-empty string, found nothing"
    );
    let number =
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 5}}));
    assert_eq!(
        number.unwrap_err().to_string(),
        "metadata.name: expected a non-empty string, found a number"
    );
    assert!(
        Object::new(json!({"apiVersion": "v1", "kind": "Job", "metadata": {"generateName": "x-"}}))
            .is_ok()
    );
    assert!(Object::new(json!([])).is_err());
}

#[test]
fn labels_annotations_and_reference() {
    let mut object =
        Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}))
            .unwrap();
    object.set_label("a", "1");
    object.set_annotation("b", "2");
    assert_eq!(object.label("a"), Some("1"));
    assert_eq!(object.annotation("b"), Some("2"));
    assert!(object.remove_annotation("b"));
    assert!(object.value()["metadata"].get("annotations").is_none());
    let reference = object.reference();
    assert_eq!(reference.to_string(), "shop/Deployment/web");
    assert_eq!(reference.group, "apps");
    assert_eq!(reference.api_version(), "apps/v1");
}

#[test]
fn paths_read_set_and_delete() {
    let mut tree = json!({"spec": {"ports": [{"port": 80}]}});
    let port = FieldPath::root().child("spec").child("ports").child(0).child("port");
    assert_eq!(get_at(&tree, &port), Some(&json!(80)));
    assert!(set_at(&mut tree, &FieldPath::root().child("metadata").child("name"), json!("x")));
    assert_eq!(tree["metadata"]["name"], "x");
    assert!(!set_at(&mut tree, &port.child("deeper"), json!(1)));
    assert_eq!(delete_at(&mut tree, &port), Some(json!(80)));
    assert_eq!(delete_at(&mut tree, &port), None);
}

#[test]
fn merging_recurses_into_mappings_only() {
    let mut base = json!({"a": {"x": 1, "y": [1, 2]}, "b": 1});
    merge(&mut base, json!({"a": {"y": [3], "z": null}, "b": {"c": 1}}));
    assert_eq!(base, json!({"a": {"x": 1, "y": [3], "z": null}, "b": {"c": 1}}));
}

#[test]
fn annotations_follow_gos_booleans_and_numbered_keys() {
    let object = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x",
        "labels": {"kluctl.io/tag-0": "a", "kluctl.io/tag-1": "b", "kluctl.io/tag-x": "c"},
        "annotations": {
            "kluctl.io/delete": "T", "kluctl.io/skip-delete": "yes", "kluctl.io/is-ready": "f",
            "kluctl.io/ignore-diff-field": "a", "kluctl.io/ignore-diff-field-2": "b", "kluctl.io/ignore-diff-field-": "c",
            "kluctl.io/ignore-diff-field-regex": "d", "kluctl.io/ignore-diff-field-x": "e",
        }}}))
    .unwrap();
    assert!(annotations::is_delete(&object));
    assert!(!annotations::is_skip_delete(&object), "not a boolean for Go");
    assert_eq!(annotations::is_ready(&object), Some(false));
    assert_eq!(annotations::numbered(&object, "kluctl.io/ignore-diff-field"), ["a", "c", "b"]);
    assert_eq!(annotations::tags(&object), ["a", "b"]);
}

#[test]
fn kinds_are_deleted_from_the_outside_in() {
    let rank = order::delete_rank;
    let ranks = [
        rank("", "Namespace"),
        rank("cert-manager.io", "Certificate"),
        rank("apps", "Deployment"),
        rank("", "ConfigMap"),
        rank("rbac.authorization.k8s.io", "ClusterRole"),
        rank("apiextensions.k8s.io", "CustomResourceDefinition"),
    ];
    assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    assert_eq!(rank("gateway.networking.k8s.io", "Gateway"), 1);
    assert_eq!(rank("storage.k8s.io", "StorageClass"), 3);
}
