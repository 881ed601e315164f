use serde_json::{Value, json};

use super::script::{Script, aggregated, answer, hasty, refusal};
use crate::{
    cluster::{LiveState, ObserveRequest, observe},
    object::ObjectRef,
};

fn listed(names: &[(&str, &str)]) -> Value {
    let items = names.iter().map(|(namespace, name)| {
        json!({"metadata": {"name": name, "namespace": namespace, "labels": {"kluctl.io/discriminator": "d"}}})
    });
    json!({"items": items.collect::<Vec<_>>()})
}

fn config(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", Some("a"), name)
}

async fn observed(script: &Script, references: &[ObjectRef]) -> LiveState {
    let request = ObserveRequest {
        discriminator: Some("d"),
        references,
        with_namespaces: true,
        ..ObserveRequest::default()
    };
    observe(&script.cluster(hasty()), &request).await.unwrap()
}

#[tokio::test]
async fn all_kinds_are_searched_and_what_is_named_is_read() {
    let script = Script::start().await;
    script
        .on("GET /api/v1/configmaps", [answer(200, &listed(&[("a", "listed"), ("b", "orphan")]))]);
    let named = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "named", "namespace": "a"}});
    script.on("GET /api/v1/namespaces/a/configmaps/named", [answer(200, &named)]);
    script.on("GET /api/v1/namespaces/a", [answer(200, &json!({}))]);
    let elsewhere = ObjectRef::new("v1", "ConfigMap", Some("nowhere"), "x");
    let live =
        observed(&script, &[config("listed"), config("named"), config("missing"), elsewhere]).await;
    assert_eq!(live.objects().count(), 3);
    assert!(live.get(&config("named")).is_some());
    assert!(live.get(&config("missing")).is_none());
    assert!(!live.lacks_namespace("a"));
    assert!(live.lacks_namespace("nowhere"));
    assert_eq!((live.warnings.len(), live.errors.len()), (0, 0));
    assert_eq!(script.count("GET /apis/example.com/v1/widgets"), 1);
    assert_eq!(script.count("GET /api/v1/namespaces/a/configmaps/listed"), 0, "it was listed");
}

#[tokio::test]
async fn missing_rights_narrow_the_search_to_the_deployments_namespaces() {
    let script = Script::start().await;
    script.on("GET /api/v1/configmaps", [refusal(403, "Forbidden", &json!({}))]);
    script.on("GET /api/v1/namespaces/a/configmaps", [answer(200, &listed(&[("a", "orphan")]))]);
    let live = observed(&script, &[config("x")]).await;
    assert!(live.get(&config("orphan")).is_some());
    assert_eq!(live.warnings.len(), 1);
    assert_eq!(
        live.warnings[0].message,
        "listing configmaps in all namespaces is forbidden, so objects were searched only in namespace a; those elsewhere \
         are not found"
    );
}

#[tokio::test]
async fn a_failed_search_of_a_namespace_is_kept_and_a_forbidden_one_is_not() {
    for (status, reason, unlisted) in [
        (500, "InternalError", 1),
        (401, "Unauthorized", 1),
        (403, "Forbidden", 0),
        (404, "NotFound", 0),
    ] {
        let script = Script::start().await;
        script.on("GET /api/v1/configmaps", [refusal(403, "Forbidden", &json!({}))]);
        let answer = refusal(status, reason, &json!({}));
        script.on("GET /api/v1/namespaces/a/configmaps", [answer]);
        let live = observed(&script, &[config("x")]).await;
        assert_eq!(live.unlisted.len(), unlisted, "{status}: {:?}", live.unlisted);
        assert_eq!(live.warnings.len(), 1, "{status}");
        for remark in &live.unlisted {
            let start = "cannot list configmaps in namespace a: ";
            assert!(remark.message.starts_with(start), "{}", remark.message);
        }
    }
}

#[tokio::test]
async fn a_refused_credential_and_a_search_without_a_place_are_not_missing_rights() {
    for (status, reason) in [(401, "Unauthorized"), (403, "Forbidden")] {
        let script = Script::start().await;
        script.on("GET /api/v1/configmaps", [refusal(status, reason, &json!({}))]);
        let live = observed(&script, &[]).await;
        assert_eq!((live.unlisted.len(), live.warnings.len()), (1, 0), "{status}");
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_is_a_warning_and_an_unreadable_object_an_error() {
    let script = Script::start().await;
    script.on("GET /apis/example.com/v1/widgets", [refusal(500, "InternalError", &json!({}))]);
    script.on("GET /api/v1/namespaces/a/configmaps/x", [refusal(500, "InternalError", &json!({}))]);
    let live = observed(&script, &[config("x")]).await;
    assert_eq!(live.unlisted[0].message, "cannot list widgets: refused with InternalError");
    assert_eq!(live.errors[0].reference, Some(config("x")));
}

#[tokio::test]
async fn objects_are_read_in_the_version_that_is_deployed() {
    let script = Script::start().await;
    let versions = ["v2", "v1"].map(|version| {
        json!({"version": version, "resources": [{"resource": "widgets", "responseKind": {"kind": "Widget"},
            "scope": "Namespaced", "verbs": ["list", "delete"]}]})
    });
    let group = json!({"metadata": {"name": "example.com"}, "versions": versions});
    script.on(
        "GET /apis",
        [answer(200, &json!({"kind": "APIGroupDiscoveryList", "items": [group]}))],
    );
    script.on("GET /apis/example.com/v1/widgets", [answer(200, &listed(&[("a", "w")]))]);
    let old = ObjectRef::new("example.com/v1", "Widget", Some("a"), "w");
    let live = observed(&script, std::slice::from_ref(&old)).await;
    assert_eq!(live.get(&old).unwrap().api_version(), "example.com/v1");
    assert_eq!(script.count("GET /apis/example.com/v2"), 0);
}

#[tokio::test]
async fn groups_whose_server_is_down_are_named() {
    let script = Script::start().await;
    let stale = json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "metrics.k8s.io"},
        "versions": [{"version": "v1beta1", "freshness": "Stale"}]}]});
    script.on("GET /apis", [answer(200, &stale)]);
    script.on("GET /api", [aggregated("", "v1", &[])]);
    let live = observed(&script, &[]).await;
    assert!(live.warnings[0].message.contains("metrics.k8s.io/v1beta1"), "{:?}", live.warnings);
    assert!(live.unlisted.is_empty(), "{:?}", live.unlisted);
}
