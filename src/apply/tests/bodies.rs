use std::borrow::Cow;

use serde_json::json;

use crate::{
    apply::{body::for_apply, dry_run::StandIn},
    object::ObjectRef,
};

#[test]
fn ports_get_protocols_and_cpu_becomes_text() {
    let container = json!({"name": "x", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        "resources": {"limits": {"cpu": 1, "memory": 5}, "requests": {"cpu": 0.5}}});
    let tree =
        json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}});
    let body = for_apply(&tree);
    let container = &body["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    assert_eq!(container["ports"][1]["protocol"], "UDP");
    assert_eq!(container["resources"]["limits"], json!({"cpu": "1", "memory": 5}));
    assert_eq!(container["resources"]["requests"]["cpu"], "0.5");
    let service = json!({"kind": "Service", "spec": {"ports": [{"port": 80}]}});
    assert_eq!(for_apply(&service)["spec"]["ports"][0]["protocol"], "TCP");
    let range = json!({"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "default": {"cpu": 2}}]}});
    assert_eq!(for_apply(&range)["spec"]["limits"][0]["default"]["cpu"], "2");
}

#[test]
fn objects_that_need_nothing_are_not_copied() {
    let tree = json!({"kind": "ConfigMap", "spec": {"ports": [{"port": 1}]}, "data": {"a": "1"}});
    assert!(matches!(for_apply(&tree), Cow::Borrowed(_)));
}

#[test]
fn stand_ins_are_renamed_back() {
    let reference = ObjectRef::new("apps/v1", "Deployment", Some("new"), "web");
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "new"}});
    let moved = StandIn::new(&body, &reference, false);
    let name = moved.body["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("web-") && name.len() == 12, "{name}");
    assert_eq!(moved.body["metadata"]["namespace"], "default");
    let mut answer = moved.body.clone();
    answer["spec"] = json!({"volumeName": format!("{name}-data"), "keys": {name.clone(): 1}});
    let undone = moved.undo(answer, &reference).unwrap();
    assert_eq!(undone.reference(), reference);
    assert_eq!(undone.value()["spec"], json!({"volumeName": "web-data", "keys": {"web": 1}}));
    let renamed = StandIn::new(&body, &reference, true);
    assert_eq!(renamed.body["metadata"]["namespace"], "new");
    let long = ObjectRef::new("v1", "ConfigMap", None, &"x".repeat(200));
    let long = StandIn::new(&body, &long, true);
    assert!(long.body["metadata"]["name"].as_str().unwrap().len() <= 63);
}
