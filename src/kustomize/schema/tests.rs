use serde_json::json;

use super::*;

#[test]
fn the_builtin_table_is_readable_and_complete() {
    let schema: Types = serde_json::from_str(include_str!("builtin.json")).unwrap();
    assert!(schema.kinds.len() > 60, "{}", schema.kinds.len());
    for fields in schema.types.values() {
        for field in fields.values() {
            let names = match field {
                Field::Type(name) => vec![name],
                Field::Container(c) => c.items.iter().chain(&c.values).collect(),
            };
            for name in names {
                assert!(schema.types.contains_key(name), "{name} is not defined");
            }
        }
    }
    for name in schema.kinds.values() {
        assert!(schema.types.contains_key(name), "{name} is not defined");
    }
}

#[test]
fn lists_of_pods_merge_by_key() {
    let schema = Schema::builtin();
    let pod = schema.kind("apps/v1", "Deployment").field("spec").field("template").field("spec");
    let containers = pod.field("containers");
    assert_eq!(containers.merge_keys().unwrap(), ["name"]);
    let container = containers.items();
    assert_eq!(container.field("ports").merge_keys().unwrap(), ["containerPort", "protocol"]);
    assert!(container.field("args").merge_keys().is_none());
    assert!(pod.field("tolerations").merge_keys().is_none());
    let finalizers = schema.kind("v1", "Secret").field("metadata").field("finalizers");
    assert!(finalizers.merge_keys().unwrap().is_empty());
    assert!(schema.kind("autoscaling/v2", "HorizontalPodAutoscaler").is_unknown());
}

#[test]
fn scopes_are_those_kustomize_knows() {
    let schema = Schema::builtin();
    assert!(schema.is_cluster_scoped("v1", "Namespace"));
    assert!(schema.is_cluster_scoped("rbac.authorization.k8s.io/v1", "ClusterRole"));
    assert!(!schema.is_cluster_scoped("apps/v1", "Deployment"));
    assert!(!schema.is_cluster_scoped("example.com/v1", "Anything"));
}

#[test]
fn a_document_of_the_user_takes_the_place_of_the_table() {
    let document = json!({"definitions": {
        "Rollout": {
            "properties": {
                "spec": {"properties": {
                    "steps": {
                        "type": "array",
                        "items": {"$ref": "#/definitions/Step"},
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "name",
                    },
                    "groups": {"type": "object", "additionalProperties": {"$ref": "#/definitions/Step"}},
                }},
            },
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Rollout"}],
        },
        "Step": {"properties": {"tags": {"type": "array", "x-kubernetes-patch-strategy": "merge"}}},
    }});
    let schema = Schema::from_openapi(&document, false);
    let spec = schema.kind("example.com/v1", "Rollout").field("spec");
    assert_eq!(spec.field("steps").merge_keys().unwrap(), ["name"]);
    assert!(spec.field("steps").items().field("tags").merge_keys().unwrap().is_empty());
    assert!(spec.field("groups").field("any").field("tags").merge_keys().is_some());
    assert!(schema.kind("apps/v1", "Deployment").is_unknown());
    assert!(schema.is_cluster_scoped("v1", "Namespace"));
}

#[test]
fn a_document_below_objects_adds_to_the_table() {
    let template = json!({"$ref": "#/definitions/io.k8s.api.core.v1.PodTemplateSpec"});
    let document = json!({"definitions": {
        "Rollout": {
            "properties": {"template": template},
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Rollout"}],
        },
        // The built-in type wins.
        "io.k8s.api.core.v1.PodTemplateSpec": {"properties": {}},
    }});
    let schema = Schema::from_openapi(&document, true);
    let containers = |shape: super::Shape<'_>| {
        shape.field("spec").field("containers").merge_keys().map(<[String]>::to_vec)
    };
    let rollout = schema.kind("example.com/v1", "Rollout");
    assert_eq!(containers(rollout.field("template")).unwrap(), ["name"]);
    let deployment = schema.kind("apps/v1", "Deployment").field("spec");
    assert_eq!(containers(deployment.field("template")).unwrap(), ["name"]);
}
