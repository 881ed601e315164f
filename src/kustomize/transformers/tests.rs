//! Each field through a whole build; how it covers all kinds is the differential test's business.

use serde_json::{Value, json};

use crate::{kustomize::build, object::Object, tree::MemoryTree};

const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    spec:
      containers: [{name: web, image: 'registry:5000/nginx:1.25', envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: v1
kind: Namespace
metadata: {name: here}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: default, namespace: x}, {kind: ServiceAccount, name: other, namespace: x}]
";

fn built(kustomization: &str) -> Vec<Value> {
    let kustomization = format!("resources: [all.yaml]\n{kustomization}");
    let tree = MemoryTree::from_texts([
        ("kustomization.yaml", kustomization.as_str()),
        ("all.yaml", OBJECTS),
    ]);
    build(&tree, "").unwrap().into_iter().map(Object::into_value).collect()
}

#[test]
fn namespace_moves_what_lives_in_namespaces() {
    let objects = built("namespace: prod");
    assert_eq!(objects[0]["metadata"]["namespace"], "prod");
    assert_eq!(objects[2]["metadata"], json!({"name": "prod"}));
    assert_eq!(objects[3]["metadata"], json!({"name": "all"}));
    assert_eq!(objects[3]["subjects"][0]["namespace"], "prod");
    assert_eq!(objects[3]["subjects"][1]["namespace"], "x");
}

#[test]
fn renamed_objects_keep_their_references() {
    let objects = built("namePrefix: a-\nnameSuffix: -b");
    let container = &objects[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"][0]["configMapRef"]["name"], "a-settings-b");
    assert_eq!(objects[1]["metadata"]["name"], "a-settings-b");
    assert_eq!(objects[2]["metadata"]["name"], "here");
}

#[test]
fn labels_reach_selectors_only_when_asked_to() {
    let objects = built("labels: [{pairs: {team: x}}]");
    assert_eq!(objects[0]["metadata"]["labels"], json!({"team": "x"}));
    assert_eq!(objects[0]["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
    let objects = built("commonLabels: {team: x}");
    assert_eq!(objects[0]["spec"]["selector"]["matchLabels"], json!({"app": "web", "team": "x"}));
    assert_eq!(objects[0]["spec"]["template"]["metadata"]["labels"], json!({"team": "x"}));
    let objects = built("labels: [{pairs: {team: x}, includeTemplates: true}]");
    assert_eq!(objects[0]["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
    assert_eq!(objects[0]["spec"]["template"]["metadata"]["labels"], json!({"team": "x"}));
}

#[test]
fn annotations_are_set_on_pod_templates_too() {
    let objects = built("commonAnnotations: {note: 'true'}");
    assert_eq!(objects[0]["spec"]["template"]["metadata"]["annotations"], json!({"note": "true"}));
    assert_eq!(objects[1]["metadata"]["annotations"], json!({"note": "true"}));
}

#[test]
fn images_change_by_name() {
    let image = |entry: &str| {
        let objects = built(&format!("images: [{{name: 'registry:5000/nginx', {entry}}}]"));
        objects[0]["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(image("newTag: '2'"), "registry:5000/nginx:2");
    assert_eq!(image("newName: nginx"), "nginx:1.25");
    assert_eq!(image("digest: 'sha256:aa'"), "registry:5000/nginx@sha256:aa");
    assert_eq!(image("newTag: '2', digest: 'sha256:aa'"), "registry:5000/nginx:2@sha256:aa");
}

#[test]
fn replicas_are_set_by_original_name() {
    let objects = built("namePrefix: p-\nreplicas: [{name: web, count: 3}]");
    assert_eq!(objects[0]["spec"]["replicas"], 3);
}

#[test]
fn replicas_of_nothing_are_refused() {
    let tree = MemoryTree::from_texts([
        ("kustomization.yaml", "resources: [all.yaml]\nreplicas:\n- {name: settings, count: 3}"),
        ("all.yaml", OBJECTS),
    ]);
    assert_eq!(
        build(&tree, "").unwrap_err().to_string(),
        "kustomization.yaml:3:3: replicas[0]: no object named \"settings\" has replicas (there are: Deployment/web)"
    );
}

#[test]
fn sort_options_put_kinds_first() {
    let objects = built("sortOptions: {order: legacy}");
    let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Namespace", "ClusterRoleBinding", "ConfigMap", "Deployment"]);
}
