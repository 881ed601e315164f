use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{
        Footprint,
        tests::script::{Script, answer, gone, hasty, refusal},
    },
    deployment::{DesiredItem, DesiredState, Inclusion},
    engine::{
        DeployOptions, KnownVersions, Session, Silent, delete, deploy, diff, known_versions,
        leftovers, prune, prune_former, validate,
    },
    object::{Object, merge},
    prune::PruneOptions,
    results::{CommandResult, RunInfo},
};

fn object(kind: &str, name: &str, rest: Value) -> Object {
    let mut tree = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "a",
        "labels": {"kluctl.io/discriminator": "d"}}});
    merge(&mut tree, rest);
    Object::new(tree).unwrap()
}

fn config(name: &str, data: &str) -> Object {
    object("ConfigMap", name, json!({"data": {"value": data}}))
}

/// As the API server has it after kluctl applied it.
fn stored(object: &Object) -> Value {
    let mut tree = object.value().clone();
    let server_side = json!({"metadata": {"uid": "u", "resourceVersion": "1", "managedFields": [{"manager": "kluctl"}]}});
    merge(&mut tree, server_side);
    tree
}

fn desired(objects: Vec<Object>) -> DesiredState {
    let objects = objects.into_iter().map(Arc::new).collect();
    DesiredState {
        items: vec![DesiredItem { dir: "x".into(), objects, ..DesiredItem::default() }],
        discriminator: Some("d".into()),
        inclusion: Inclusion::default(),
        objects_hash: "hash".into(),
        images: Vec::new(),
        warnings: Vec::new(),
    }
}

fn in_namespace_a() -> Footprint {
    Footprint { namespaces: vec!["a".into()], ..Footprint::default() }
}

const LIST: &str = "GET /api/v1/configmaps";

fn one(method: &str, name: &str) -> String {
    format!("{method} /api/v1/namespaces/a/configmaps/{name}")
}

/// Runs an operation in a session on the script.
async fn in_session<T>(
    script: &Script,
    timeout: Option<Duration>,
    operation: impl AsyncFnOnce(&Session<'_>) -> T,
) -> T {
    let cluster = script.cluster(hasty());
    let info = RunInfo {
        id: "1".into(),
        started: "2026-01-01T00:00:00Z".parse().unwrap(),
        ..RunInfo::default()
    };
    let cancel = CancellationToken::new();
    let observer = Silent;
    let session =
        Session { cluster: &cluster, info: &info, observer: &observer, cancel: &cancel, timeout };
    operation(&session).await
}

async fn deployed(script: &Script, state: &DesiredState, options: &DeployOptions) -> CommandResult {
    in_session(script, None, async |session| deploy(session, state, options).await).await
}

fn names(result: &CommandResult, is_meant: fn(&crate::results::BaseObject) -> bool) -> Vec<&str> {
    let objects = result.objects.iter().map(|object| &object.base);
    objects.filter(|base| is_meant(base)).map(|base| base.reference.name.as_str()).collect()
}

#[tokio::test]
async fn a_deployment_applies_compares_and_prunes() {
    let script = Script::start().await;
    let (kept, new) = (config("kept", "2"), config("new", "1"));
    let items = [stored(&config("kept", "1")), stored(&config("orphan", "1"))];
    script.on(LIST, [answer(200, &json!({ "items": items }))]);
    script.on(&one("PATCH", "kept"), [answer(200, &stored(&kept))]);
    script.on(&one("PATCH", "new"), [answer(200, &stored(&new))]);
    script.on(&one("DELETE", "orphan"), [gone()]);
    script.on(
        "GET /api/v1/namespaces/kube-system",
        [answer(200, &json!({"metadata": {"uid": "cluster"}}))],
    );
    let state = desired(vec![kept, new]);
    let seen_only = deployed(&script, &state, &DeployOptions::default()).await;
    assert_eq!(names(&seen_only, |base| base.orphan), ["orphan"]);
    assert_eq!(script.count("DELETE"), 0);

    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    let result = deployed(&script, &state, &options).await;
    assert!(result.is_success(), "{:?}", result.errors);
    assert_eq!(names(&result, |base| base.new), ["new"]);
    assert_eq!(names(&result, |base| base.deleted), ["orphan"]);
    assert_eq!(names(&result, |base| !base.changes.is_empty()), ["kept"]);
    assert_eq!(result.target_key.cluster_id, "cluster");
    assert_eq!(result.target_key.discriminator, "d");
    assert_eq!(result.rendered_objects_hash, "hash");
    assert_eq!(result.outcomes.len(), 3);
    assert_eq!(known_versions(&result).len(), 2);
}

#[tokio::test]
async fn nothing_is_pruned_when_an_object_could_not_be_applied() {
    let script = Script::start().await;
    let items = [stored(&config("orphan", "1"))];
    script.on(LIST, [answer(200, &json!({ "items": items }))]);
    script.on(&one("PATCH", "x"), [refusal(422, "Invalid", &json!({}))]);
    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    let result = deployed(&script, &desired(vec![config("x", "1")]), &options).await;
    assert_eq!(script.count("DELETE"), 0);
    let survivors: Vec<_> =
        result.survivors().filter_map(crate::results::ObjectOutcome::problem).collect();
    assert_eq!(survivors, ["not deleted because not everything could be applied"]);
    assert_eq!(names(&result, |base| base.orphan), ["orphan"]);
}

#[tokio::test]
async fn pruning_without_a_discriminator_is_refused() {
    let script = Script::start().await;
    script.on(&one("PATCH", "x"), [answer(200, &stored(&config("x", "1")))]);
    let mut state = desired(vec![config("x", "1")]);
    state.discriminator = None;
    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    let result = deployed(&script, &state, &options).await;
    assert!(result.errors[0].message.starts_with("pruning is refused"), "{:?}", result.errors);
    let result = deployed(&script, &state, &DeployOptions::default()).await;
    assert!(result.is_success());
    assert_eq!(result.warnings.len(), 1);
    for discriminator in [None, Some("")] {
        let result = in_session(&script, None, async |session| {
            delete(session, discriminator, &Inclusion::default(), &PruneOptions::default()).await
        });
        let result = result.await;
        assert!(result.errors[0].message.starts_with("delete is refused"), "{:?}", result.errors);
    }
    assert_eq!(script.count("DELETE"), 0);
}

#[tokio::test]
async fn an_unreachable_cluster_leaves_everything_unattempted() {
    let script = Script::start().await;
    script.on("GET /api", [refusal(500, "InternalError", &json!({}))]);
    let state = desired(vec![config("x", "1")]);
    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    let result = deployed(&script, &state, &options).await;
    assert!(!result.is_success());
    assert_eq!(result.failures().count(), 1);
    assert!(result.errors.iter().any(|error| error.message.starts_with("cannot read the cluster")));
    assert_eq!(script.count("PATCH") + script.count("DELETE"), 0);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_cut_and_prunes_nothing() {
    let script = Script::start().await;
    let items = [stored(&config("orphan", "1"))];
    script.on(LIST, [answer(200, &json!({ "items": items }))]);
    script.on(&one("PATCH", "x"), [answer(200, &json!({})).set_delay(Duration::from_secs(30))]);
    let state = desired(vec![config("x", "1"), config("y", "1")]);
    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    let limit = Some(Duration::from_millis(300));
    let result =
        in_session(&script, limit, async |session| deploy(session, &state, &options).await).await;
    assert!(result.interrupted);
    assert_eq!(result.failures().count(), 3, "{:?}", result.outcomes);
    assert_eq!(result.survivors().count(), 1);
    assert_eq!(script.count("DELETE"), 0);
    let last = &result.errors.last().unwrap().message;
    assert_eq!(last, "the run did not complete within 0 s");
}

#[tokio::test]
async fn diffs_change_nothing_and_trust_known_versions() {
    let script = Script::start().await;
    let live = stored(&config("x", "1"));
    script.on(LIST, [answer(200, &json!({ "items": [live.clone()] }))]);
    script.on(&one("PATCH", "x"), [answer(200, &stored(&config("x", "2")))]);
    let state = desired(vec![config("x", "2")]);
    let options = DeployOptions::default();
    let result = in_session(&script, None, async |session| {
        diff(session, &state, &options, &KnownVersions::new()).await
    });
    let result = result.await;
    assert_eq!(names(&result, |base| !base.changes.is_empty()), ["x"]);
    assert!(
        script
            .seen()
            .iter()
            .all(|request| !request.starts_with("PATCH") || request.contains("dryRun"))
    );
    assert!(known_versions(&result).is_empty(), "what drifted is looked at again");
    let reference = Object::new(live).unwrap().reference();
    let known: KnownVersions = [((&reference).into(), "1".to_owned())].into();
    let asked = script.count("PATCH");
    let result =
        in_session(&script, None, async |session| diff(session, &state, &options, &known).await)
            .await;
    assert_eq!(names(&result, |base| !base.changes.is_empty()), [""; 0]);
    assert_eq!(script.count("PATCH"), asked);
}

#[tokio::test]
async fn pruning_and_deleting_list_survivors() {
    let script = Script::start().await;
    let items = [stored(&config("kept", "1")), stored(&config("orphan", "1"))];
    script.on(LIST, [answer(200, &json!({ "items": items }))]);
    script.on(&one("DELETE", "orphan"), [refusal(403, "Forbidden", &json!({}))]);
    script.on(&one("DELETE", "kept"), [gone()]);
    let state = desired(vec![config("kept", "1")]);
    let options = PruneOptions::default();
    let pruned =
        in_session(&script, None, async |session| prune(session, &state, &options).await).await;
    let survivors: Vec<_> =
        pruned.survivors().map(|outcome| outcome.reference.name.as_str()).collect();
    assert_eq!(survivors, ["orphan"]);
    assert_eq!(names(&pruned, |base| base.orphan), ["orphan"]);
    assert_eq!(script.count(&one("DELETE", "kept")), 0);
    let deleted = in_session(&script, None, async |session| {
        delete(session, Some("d"), &Inclusion::default(), &options).await
    });
    let deleted = deleted.await;
    assert_eq!(names(&deleted, |base| base.deleted), ["kept"]);
    assert_eq!(deleted.survivors().count(), 1);
}

#[tokio::test]
async fn deleting_searches_where_it_may_and_fails_when_a_kind_cannot_be_listed() {
    let script = Script::start().await;
    script.on(LIST, [refusal(403, "Forbidden", &json!({}))]);
    let mine = json!({"items": [stored(&config("x", "1"))]});
    script.on("GET /api/v1/namespaces/a/configmaps", [answer(200, &mine)]);
    script.on(&one("DELETE", "x"), [gone()]);
    let options = PruneOptions { footprint: in_namespace_a(), ..PruneOptions::default() };
    let all = Inclusion::default();
    let run = async |session: &Session<'_>| delete(session, Some("d"), &all, &options).await;
    let result = in_session(&script, None, run).await;
    assert!(result.is_success(), "{:?}", result.errors);
    assert_eq!(names(&result, |base| base.deleted), ["x"]);
    assert_eq!(result.warnings.len(), 1);

    script.on("GET /apis/example.com/v1/widgets", [refusal(500, "InternalError", &json!({}))]);
    let result = in_session(&script, None, run).await;
    assert_eq!(result.errors[0].message, "cannot list widgets: refused with InternalError");
}

#[tokio::test]
async fn deleting_fails_when_a_namespace_cannot_be_searched_and_warns_of_a_silent_group() {
    let options = PruneOptions { footprint: in_namespace_a(), ..PruneOptions::default() };
    let all = Inclusion::default();
    let run = async |session: &Session<'_>| delete(session, Some("d"), &all, &options).await;

    let script = Script::start().await;
    script.on(LIST, [refusal(403, "Forbidden", &json!({}))]);
    let in_namespace = "GET /api/v1/namespaces/a/configmaps";
    script.on(in_namespace, [refusal(500, "InternalError", &json!({}))]);
    let result = in_session(&script, None, run).await;
    assert!(!result.is_success() && result.has_unlisted);
    script.on(in_namespace, [refusal(403, "Forbidden", &json!({}))]);
    let result = in_session(&script, None, run).await;
    assert!(result.is_success() && !result.has_unlisted, "{:?}", result.errors);

    let script = Script::start().await;
    let stale = json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "example.com"},
        "versions": [{"version": "v1", "freshness": "Stale"}]}]});
    script.on("GET /apis", [answer(200, &stale)]);
    let result = in_session(&script, None, run).await;
    assert!(result.is_success() && !result.has_unlisted, "{:?}", result.errors);
    assert!(result.warnings[0].message.contains("example.com/v1"), "{:?}", result.warnings);
}

#[tokio::test]
async fn kinds_that_were_deployed_and_may_not_be_listed_are_named() {
    let script = Script::start().await;
    let forbidden = || [refusal(403, "Forbidden", &json!({}))];
    script.on(LIST, forbidden());
    script.on("GET /api/v1/namespaces/a/configmaps", forbidden());
    script.on("GET /apis/example.com/v1/widgets", forbidden());
    script.on("GET /apis/example.com/v1/namespaces/a/widgets", forbidden());
    script.on(&one("PATCH", "x"), [answer(200, &stored(&config("x", "1")))]);
    let kinds = vec!["ConfigMap".into()];
    let options = PruneOptions {
        footprint: Footprint { kinds, ..in_namespace_a() },
        ..PruneOptions::default()
    };
    let all = Inclusion::default();
    let told = "listing configmaps in namespace a is forbidden, so none of them is found or deleted; grant the account the \
                verb list on them";
    let run = async |session: &Session<'_>| delete(session, Some("d"), &all, &options).await;
    let deleted = in_session(&script, None, run).await;
    assert_eq!(deleted.errors[0].message, told);

    let state = desired(vec![config("x", "1")]);
    let run = async |session: &Session<'_>| prune(session, &state, &options).await;
    let pruned = in_session(&script, None, run).await;
    assert!(pruned.is_success() && pruned.has_unlisted, "{:?}", pruned.errors);
    assert!(pruned.warnings.iter().any(|warning| warning.message == told), "{:?}", pruned.warnings);

    // Nothing is known of what was deployed, and nothing can be seen: that is no success.
    let options = PruneOptions { footprint: in_namespace_a(), ..PruneOptions::default() };
    let run = async |session: &Session<'_>| delete(session, Some("d"), &all, &options).await;
    script.on("GET /api/v1/namespaces", forbidden());
    let blind = in_session(&script, None, run).await;
    let told = "listing configmaps, namespaces, widgets in namespace a is forbidden";
    assert!(blind.errors[0].message.starts_with(told), "{:?}", blind.errors);
}

#[tokio::test]
async fn a_search_of_some_of_the_namespaces_is_no_success() {
    let script = Script::start().await;
    script.on(LIST, [refusal(403, "Forbidden", &json!({}))]);
    script.on("GET /api/v1/namespaces/a/configmaps", [answer(200, &json!({"items": []}))]);
    let all = Inclusion::default();
    for is_partial in [false, true] {
        let footprint = Footprint { is_partial, ..in_namespace_a() };
        let options = PruneOptions { footprint, ..PruneOptions::default() };
        let run = async |session: &Session<'_>| delete(session, Some("d"), &all, &options).await;
        assert_eq!(in_session(&script, None, run).await.is_success(), !is_partial);
    }
}

#[tokio::test]
async fn a_former_discriminator_is_searched_for_what_is_not_wanted_any_more() {
    let script = Script::start().await;
    let former = |name: &str| {
        let label = json!({"metadata": {"labels": {"kluctl.io/discriminator": "old"}}});
        let mut tree = stored(&config(name, "1"));
        merge(&mut tree, label);
        tree
    };
    script.on(LIST, [answer(200, &json!({"items": [former("x"), former("y")]}))]);
    script.on(&one("DELETE", "y"), [gone()]);
    let state = desired(vec![config("x", "1")]);
    let left = async |session: &Session<'_>| {
        leftovers(session, &state, "old", &Footprint::default()).await.unwrap()
    };
    let left = in_session(&script, None, left).await;
    assert_eq!(left.objects.len(), 1);
    assert!(!left.is_partial && left.objects[0].name == "y", "{left:?}");
    let options = PruneOptions::default();
    let run =
        async |session: &Session<'_>| prune_former(session, &state, Some("old"), &options).await;
    let pruned = in_session(&script, None, run).await;
    assert_eq!(names(&pruned, |base| base.deleted), ["y"]);
    assert_eq!(script.count("DELETE"), 1);
}

#[tokio::test]
async fn only_pruning_fails_when_orphans_may_be_unseen() {
    let script = Script::start().await;
    script.on(&one("PATCH", "x"), [answer(200, &stored(&config("x", "1")))]);
    let widgets = "GET /apis/example.com/v1/widgets";
    script.on(widgets, [refusal(500, "InternalError", &json!({}))]);
    let state = desired(vec![config("x", "1")]);
    let result = deployed(&script, &state, &DeployOptions::default()).await;
    assert!(result.is_success() && result.has_unlisted, "{:?}", result.errors);
    assert_eq!(result.warnings.len(), 1);
    let options = DeployOptions { prune: true, ..DeployOptions::default() };
    assert!(!deployed(&script, &state, &options).await.is_success());

    let options = PruneOptions::default();
    let run = async |session: &Session<'_>| prune(session, &state, &options).await;
    let result = in_session(&script, None, run).await;
    assert_eq!(result.errors[0].message, "cannot list widgets: refused with InternalError");
    script.on(widgets, [answer(200, &json!({"items": []}))]);
    let result = in_session(&script, None, run).await;
    assert!(result.is_success() && !result.has_unlisted, "{:?}", result.errors);
}

#[tokio::test]
async fn no_secret_value_is_in_a_result() {
    let script = Script::start().await;
    script.on(
        "GET /api",
        [crate::cluster::tests::script::aggregated("", "v1", &[("secrets", "Secret", true)])],
    );
    let secret = |text: &str| object("Secret", "s", json!({"stringData": {"password": text}}));
    let live = |text: &str| stored(&object("Secret", "s", json!({"data": {"password": text}})));
    script.on("GET /api/v1/secrets", [answer(200, &json!({"items": [live("aHVudGVyMg==")]}))]);
    let path = "PATCH /api/v1/namespaces/a/secrets/s";
    script.on(path, [answer(200, &live("aHVudGVyMw=="))]);
    let state = desired(vec![secret("hunter3")]);
    let result = deployed(&script, &state, &DeployOptions::default()).await;
    assert_eq!(names(&result, |base| !base.changes.is_empty()), ["s"]);
    let refused =
        json!({"kind": "Status", "message": "Invalid value: \"hunter3\"", "reason": "Invalid"});
    script.on(path, [answer(422, &refused)]);
    let failed = deployed(&script, &state, &DeployOptions::default()).await;
    assert_eq!(failed.errors[0].message, "Invalid value: \"*****\"");
    for result in [result, failed] {
        let shown = format!("{result:?}{}", serde_json::to_string(&result).unwrap());
        assert!(!shown.contains("hunter") && !shown.contains("aHVudGVy"), "{shown}");
    }
}

#[tokio::test]
async fn validation_reports_what_is_missing() {
    let script = Script::start().await;
    script.on(LIST, [answer(200, &json!({"items": [stored(&config("x", "1"))]}))]);
    let state = desired(vec![config("x", "1"), config("missing", "1")]);
    let result = in_session(&script, None, async |session| validate(session, &state).await).await;
    assert!(!result.ready);
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.errors[0].reference.name, "missing");
    assert_eq!(script.count("GET /apis/example.com"), 0, "only kinds in use are searched");
}
