use serde_json::{Value, json};

use crate::{
    apply::{ConflictError, Resolution, resolve},
    cluster::FieldConflict,
    object::Object,
    schema::ConflictRule,
};

fn object(annotations: &Value, spec: &Value) -> Object {
    Object::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations}, "spec": spec,
    }))
    .unwrap()
}

fn spec(replicas: i64, image: &str) -> Value {
    json!({"replicas": replicas, "template": {"spec": {"containers": [
        {"name": "side", "image": "s"}, {"name": "web", "image": image, "ports": [{"containerPort": 80}]}]}}})
}

/// The live object, with replicas and the image of container `web` owned by `manager`.
fn live(manager: &str) -> Object {
    let mut live = object(&json!({}), &spec(5, "live"));
    live.value_mut()["metadata"]["managedFields"] = json!([
        {"manager": "somebody", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a.b/c": {}}}}},
        {"manager": manager, "fieldsV1": {"f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:containerPort": {}}}},
            }}},
        }}},
    ]);
    live
}

const REPLICAS: &str = ".spec.replicas";
const IMAGE: &str = r#".spec.template.spec.containers[name="web"].image"#;

fn conflicts(fields: &[&str]) -> Vec<FieldConflict> {
    let conflict = |field: &&str| FieldConflict {
        field: (*field).to_owned(),
        message: "conflict with \"hpa\"".to_owned(),
    };
    fields.iter().map(conflict).collect()
}

/// Which of the two conflicting fields are kept, and which count as lost.
fn kept_and_lost(
    manager: &str,
    annotations: &Value,
    rules: Value,
) -> (Vec<&'static str>, Vec<String>) {
    let desired = object(annotations, &spec(1, "ours"));
    let rules: Vec<ConflictRule> = serde_json::from_value(rules).unwrap();
    let Resolution { body, lost } =
        resolve(&desired, &live(manager), &conflicts(&[REPLICAS, IMAGE]), &rules).unwrap();
    let mut kept = Vec::new();
    if body["spec"].get("replicas").is_some() {
        kept.push("replicas");
    }
    if body["spec"]["template"]["spec"]["containers"][1].get("image").is_some() {
        kept.push("image");
    }
    (kept, lost.into_iter().map(|lost| lost.field).collect())
}

#[test]
fn foreign_fields_are_given_up_with_a_warning() {
    let (kept, lost) = kept_and_lost("hpa-controller", &json!({}), json!([]));
    assert_eq!(kept, [""; 0]);
    assert_eq!(lost, [REPLICAS, IMAGE]);
}

#[test]
fn fields_of_tools_in_a_persons_hand_are_taken_over() {
    for manager in ["kluctl", "kluctl-x", "kubectl", "kubectl-edit", "rancher", "k9s"] {
        let (kept, lost) = kept_and_lost(manager, &json!({}), json!([]));
        assert_eq!((kept, lost), (vec!["replicas", "image"], Vec::new()), "{manager}");
    }
    assert_eq!(kept_and_lost("kubectlx", &json!({}), json!([])).0, [""; 0]);
}

#[test]
fn rules_and_annotations_decide_per_field() {
    let image = "spec.template.spec.containers[1].image";
    let both = vec!["replicas", "image"];
    let cases: Vec<(&str, Value, Value, Vec<&str>)> = vec![
        (
            "hpa",
            json!({}),
            json!([{"fieldPath": "spec.replicas", "action": "force-apply"}]),
            vec!["replicas"],
        ),
        (
            "hpa",
            json!({}),
            json!([{"fieldPathRegex": "image$", "action": "force-apply"}]),
            vec!["image"],
        ),
        ("hpa", json!({}), json!([{"manager": "^hp", "action": "force-apply"}]), both.clone()),
        ("hpa", json!({}), json!([{"manager": "^x", "action": "force-apply"}]), vec![]),
        (
            "hpa",
            json!({}),
            json!([{"fieldPath": "..", "action": "force-apply"}, {"fieldPath": image, "action": "ignore"}]),
            vec!["replicas"],
        ),
        (
            "hpa",
            json!({}),
            json!([{"fieldPath": "..", "kind": "Job", "action": "force-apply"}]),
            vec![],
        ),
        (
            "hpa",
            json!({}),
            json!([{"fieldPath": "..", "namespace": "shop", "action": "force-apply"}]),
            both.clone(),
        ),
        ("hpa", json!({"kluctl.io/force-apply": "true"}), json!([]), both.clone()),
        (
            "hpa",
            json!({"kluctl.io/force-apply-field": "spec.replicas"}),
            json!([]),
            vec!["replicas"],
        ),
        ("hpa", json!({"kluctl.io/force-apply-manager": "hpa"}), json!([]), both.clone()),
        (
            "hpa",
            json!({"kluctl.io/force-apply": "true", "kluctl.io/ignore-conflicts-field-1": image}),
            json!([]),
            vec!["replicas"],
        ),
        ("kluctl", json!({"kluctl.io/ignore-conflicts": "true"}), json!([]), vec![]),
        (
            "hpa",
            json!({"kluctl.io/force-apply-field": "spec.replicas"}),
            json!([{"fieldPath": "spec.replicas", "action": "ignore"}]),
            vec!["replicas"],
        ),
    ];
    for (manager, annotations, rules, expected) in cases {
        let (kept, _) = kept_and_lost(manager, &annotations, rules.clone());
        assert_eq!(kept, expected, "{annotations} {rules}");
    }
    let (_, lost) = kept_and_lost("hpa", &json!({"kluctl.io/ignore-conflicts": "true"}), json!([]));
    assert_eq!(lost, [""; 0], "what is ignored is given up silently");
}

#[test]
fn equal_values_are_given_up_silently() {
    let desired = object(&json!({}), &spec(5, "live"));
    let resolution = resolve(&desired, &live("hpa"), &conflicts(&[REPLICAS, IMAGE]), &[]).unwrap();
    assert_eq!(resolution.lost, []);
}

#[test]
fn list_entries_are_found_where_they_are() {
    let mut desired = object(&json!({}), &spec(1, "ours"));
    let containers = desired.value_mut()["spec"]["template"]["spec"]["containers"].as_array_mut();
    containers.unwrap().remove(0);
    let port = r#".spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort"#;
    let resolution = resolve(&desired, &live("hpa"), &conflicts(&[IMAGE, port]), &[]).unwrap();
    let container = &resolution.body["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(*container, json!({"name": "web", "ports": [{}]}));
    assert_eq!(resolution.lost.len(), 1, "the port is equal");
}

#[test]
fn unknown_fields_and_bad_rules_are_errors() {
    let desired = object(&json!({}), &spec(1, "ours"));
    let unknown = resolve(&desired, &live("hpa"), &conflicts(&[".spec.paused"]), &[]);
    assert!(matches!(unknown, Err(ConflictError::UnknownField { .. })), "{unknown:?}");
    for rule in [
        json!([{"fieldPath": "a[", "action": "ignore"}]),
        json!([{"fieldPathRegex": "(", "action": "ignore"}]),
        json!([{"manager": "(", "action": "ignore"}]),
    ] {
        let rules: Vec<ConflictRule> = serde_json::from_value(rule).unwrap();
        assert!(resolve(&desired, &live("hpa"), &conflicts(&[REPLICAS]), &rules).is_err());
    }
}

#[test]
fn keys_with_dots_are_told_apart_by_what_exists() {
    let mut desired = object(&json!({}), &json!({}));
    desired.set_label("a.b/c", "ours");
    let mut theirs = live("x");
    theirs.set_label("a.b/c", "theirs");
    // The same notation could stand for a mapping `a` with the key `b/c`, which does not exist.
    theirs.value_mut()["metadata"]["managedFields"][1]["fieldsV1"] =
        json!({"f:metadata": {"f:labels": {"f:a": {"f:b/c": {}}}}});
    let resolution =
        resolve(&desired, &theirs, &conflicts(&[".metadata.labels.a.b/c"]), &[]).unwrap();
    assert_eq!(resolution.body["metadata"]["labels"], json!({}));
}
