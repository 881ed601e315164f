use serde_json::{Value, json};

use super::{DeploymentFile, FixedImages, Violations};

/// `path: message` of each violation in a `deployment.yaml` given as JSON.
fn violations(value: Value) -> Vec<String> {
    let file: DeploymentFile = serde_json::from_value(value).unwrap();
    let show = |violation: super::Violation| format!("{}: {}", violation.path, violation.message);
    file.violations().into_iter().map(show).collect()
}

#[test]
fn a_complete_file_has_no_violations() {
    let file = json!({
        "vars": [
            {"values": {"a": 1}},
            {"file": "x.yaml", "multidoc": true, "targetPath": "docs"},
            {"clusterSecret": {"labels": {"a": "b"}, "namespace": "n", "key": "k"}},
        ],
        "deployments": [
            {"path": "app", "waitReadiness": true, "recursive": true},
            {"include": "sub", "args": {"a": 1}, "passVars": true},
            {"git": "https://git.example.com/a.git"},
            {"git": {"url": "git@git.example.com:a.git", "ref": {"tag": "v1"}, "subDir": "a/b"}},
            {"barrier": true, "deleteObjects": [{"group": "apps", "name": "x"}]},
        ],
        "ignoreForDiff": [{"fieldPath": "spec.replicas"}],
        "conflictResolution": [{"manager": ["hpa"], "action": "ignore"}],
    });
    assert_eq!(violations(file), Vec::<String>::new());
}

#[test]
fn items_are_of_one_kind_with_the_fields_of_that_kind() {
    let file = json!({"deployments": [
        {"path": "a", "include": "b"},
        {"include": "b", "recursive": true, "waitReadiness": true},
        {"path": "a", "args": {"x": 1}, "passVars": true},
        {"path": "a", "args": {}},
        {"path": "a", "renderedObjects": [{}]},
        {"waitReadinessObjects": [{"name": "x"}]},
    ]});
    assert_eq!(
        violations(file),
        [
            "deployments[0]: has path and include at the same time",
            "deployments[1].recursive: is only allowed on an item with path",
            "deployments[1].waitReadiness: is only allowed on an item with path",
            "deployments[2].args: is only allowed on an item with include, git or oci",
            "deployments[2].passVars: is only allowed on an item with include, git or oci",
            "deployments[4].renderedObjects: is written into results and cannot be set",
            "deployments[5].waitReadinessObjects[0]: has neither group nor kind",
        ]
    );
}

#[test]
fn vars_entries_have_one_source() {
    let file = json!({"vars": [
        {"values": {}, "file": "x"},
        {"when": "True"},
        {"file": "x", "multidoc": true},
        {"clusterConfigMap": {"name": "a", "labels": {"b": "c"}, "namespace": "", "key": "k"}},
    ]});
    assert_eq!(
        violations(file),
        [
            "vars[0]: has several sources: values, file",
            "vars[1]: has no source",
            "vars[2]: multidoc gives a list, which cannot be merged at the root",
            "vars[3].clusterConfigMap: has both name and labels",
            "vars[3].clusterConfigMap.namespace: is empty",
        ]
    );
}

#[test]
fn git_references_name_one_revision() {
    let git = |reference: Value| json!({"git": {"url": "https://example.com/a", "ref": reference}});
    let file = json!({"deployments": [
        git(json!({})),
        git(json!({"branch": "main", "tag": "v1"})),
        {"git": "file:///etc"},
        {"git": {"url": "https://example.com/a", "subDir": "a/b:c"}},
        {"oci": {"url": "https://example.com/a"}},
    ]});
    assert_eq!(
        violations(file),
        [
            "deployments[0].git.ref: is empty",
            "deployments[1].git.ref: names more than one revision",
            "deployments[2].git.url: file:// repositories are not supported",
            "deployments[3].git.subDir: has the character ':'",
            "deployments[4].oci.url: is no OCI repository",
        ]
    );
}

#[test]
fn rules_need_something_to_act_on() {
    let file = json!({
        "ignoreForDiff": [{"kind": "Deployment"}],
        "conflictResolution": [{"action": "ignore"}],
    });
    assert_eq!(
        violations(file),
        [
            "ignoreForDiff[0]: names no field",
            "conflictResolution[0]: names neither fields nor managers"
        ]
    );
}

#[test]
fn fixed_images_name_one_image() {
    let images: FixedImages = serde_json::from_value(json!({"images": [
        {"image": "a", "resultImage": "a:1"},
        {"resultImage": "a:1"},
        {"image": "a", "imageRegex": "a.*", "resultImage": "a:1"},
        {"imageRegex": "(", "resultImage": "a:1"},
    ]}))
    .unwrap();
    let mut found = Violations::default();
    images.check(&mut found);
    let paths: Vec<String> = found.into_vec().iter().map(|v| v.path.to_string()).collect();
    assert_eq!(paths, ["images[1]", "images[2]", "images[3].imageRegex"]);
}
