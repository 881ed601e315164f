use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    cluster::{ApiKind, Discovery, LiveState},
    deployment::{DesiredItem, DesiredState, Inclusion},
    object::{Object, merge},
};

/// A live object that was applied by us for discriminator `d`.
fn live(kind: &str, namespace: Option<&str>, name: &str, rest: Value) -> Arc<Object> {
    let mut tree = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": format!("uid-{name}"),
        "labels": {"kluctl.io/discriminator": "d"}, "managedFields": [{"manager": "kluctl"}]}});
    if let Some(namespace) = namespace {
        tree["metadata"]["namespace"] = namespace.into();
    }
    merge(&mut tree, rest);
    Arc::new(Object::new(tree).unwrap())
}

fn config(name: &str, rest: Value) -> Arc<Object> {
    live("ConfigMap", Some("a"), name, rest)
}

fn kinds() -> Discovery {
    let config = ApiKind {
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
        ..ApiKind::namespace()
    };
    Discovery::of([config, ApiKind::namespace()])
}

fn desired(objects: Vec<Arc<Object>>, inclusion: Inclusion) -> DesiredState {
    DesiredState {
        items: vec![DesiredItem { objects, ..DesiredItem::default() }],
        discriminator: Some("d".into()),
        inclusion,
        objects_hash: String::new(),
        images: Vec::new(),
        warnings: Vec::new(),
    }
}

fn planned(
    objects: Vec<Arc<Object>>,
    wanted: Vec<Arc<Object>>,
    inclusion: &Inclusion,
) -> PrunePlan {
    let wanted = Wanted::of(&desired(wanted, inclusion.clone()), &kinds());
    plan(&LiveState::of(objects), &wanted, Some("d"), inclusion).unwrap()
}

fn names(plan: &PrunePlan) -> Vec<String> {
    plan.deletions.iter().map(|deletion| deletion.reference.to_string()).collect()
}

fn tags(include: &[&str]) -> Inclusion {
    Inclusion {
        include_tags: include.iter().map(|tag| (*tag).to_owned()).collect(),
        ..Inclusion::default()
    }
}

#[test]
fn a_discriminator_is_required() {
    let state = LiveState::of([config("x", json!({}))]);
    for discriminator in [None, Some("")] {
        let refused = plan(&state, &Wanted::nothing(), discriminator, &Inclusion::default());
        assert_eq!(refused, Err(NoDiscriminator));
    }
}

#[test]
fn only_what_we_own_and_do_not_want_goes() {
    let metadata = |metadata: Value| json!({ "metadata": metadata });
    let annotated = |key: &str| metadata(json!({"annotations": {key: "true"}}));
    let objects = vec![
        config("orphan", json!({})),
        config("wanted", json!({})),
        config("foreign", metadata(json!({"labels": {"kluctl.io/discriminator": "other"}}))),
        config("owned-by-another", metadata(json!({"ownerReferences": [{"uid": "x"}]}))),
        config("not-ours", metadata(json!({"managedFields": [{"manager": "kubectl"}]}))),
        config("unknown", metadata(json!({"managedFields": []}))),
        config("kept", annotated("kluctl.io/skip-delete")),
        config("helm", metadata(json!({"annotations": {"helm.sh/resource-policy": "keep"}}))),
        config(
            "forced",
            metadata(
                json!({"annotations": {"kluctl.io/force-managed": "true"}, "ownerReferences": [{"uid": "x"}]}),
            ),
        ),
        config("by-tags", annotated("kluctl.io/skip-delete-if-tags")),
    ];
    let plan = planned(objects, vec![config("wanted", json!({}))], &Inclusion::default());
    assert_eq!(names(&plan), ["a/ConfigMap/by-tags", "a/ConfigMap/forced", "a/ConfigMap/orphan"]);
    assert_eq!(plan.deletions[2].uid.as_deref(), Some("uid-orphan"));
    let kept: Vec<_> = plan.kept.iter().map(|kept| kept.reference.name.as_str()).collect();
    assert_eq!(kept, ["helm", "kept"]);
}

#[test]
fn the_inclusion_filters_bound_what_goes() {
    let tagged = |name: &str, tag: &str, more: Value| {
        let mut rest = json!({"metadata": {"labels": {"kluctl.io/tag-0": tag},
            "annotations": {"kluctl.io/deployment-item-dir": format!("dirs/{tag}")}}});
        merge(&mut rest, more);
        config(name, rest)
    };
    let skip = json!({"metadata": {"annotations": {"kluctl.io/skip-delete-if-tags": "true"}}});
    let objects = || {
        vec![
            tagged("x", "one", json!({})),
            tagged("y", "two", json!({})),
            tagged("z", "one", skip.clone()),
        ]
    };
    assert_eq!(names(&planned(objects(), Vec::new(), &tags(&["one"]))), ["a/ConfigMap/x"]);
    let dirs = Inclusion { exclude_dirs: vec!["dirs/one".into()], ..Inclusion::default() };
    assert_eq!(names(&planned(objects(), Vec::new(), &dirs)), ["a/ConfigMap/y"]);
    let all = names(&planned(objects(), Vec::new(), &Inclusion::default()));
    assert_eq!(all.len(), 3, "the annotation counts only with tags: {all:?}");
}

#[test]
fn a_namespace_goes_only_with_everything_in_it() {
    let namespace = || live("Namespace", None, "a", json!({}));
    let kept = json!({"metadata": {"annotations": {"kluctl.io/skip-delete": "true"}}});
    let all = planned(vec![config("x", json!({})), namespace()], Vec::new(), &Inclusion::default());
    assert_eq!(names(&all), ["Namespace/a", "a/ConfigMap/x"]);

    let held = planned(vec![config("x", kept), namespace()], Vec::new(), &Inclusion::default());
    assert_eq!(names(&held), [""; 0]);
    assert_eq!(held.kept[1].reason, "still holds a/ConfigMap/x, which stays");

    // Wanted, and perhaps not there yet.
    let wanted = planned(vec![namespace()], vec![config("new", json!({}))], &Inclusion::default());
    assert_eq!(names(&wanted), [""; 0]);
    assert_eq!(wanted.kept[0].reason, "the deployment has objects in it");

    let tagged = json!({"metadata": {"labels": {"kluctl.io/tag-0": "one"}}});
    let outside = planned(
        vec![config("x", json!({})), live("Namespace", None, "a", tagged)],
        Vec::new(),
        &tags(&["one"]),
    );
    assert_eq!(names(&outside), [""; 0], "an object outside of the filters lives in it");
}

#[test]
fn deleting_everything_takes_everything_we_own() {
    let objects = vec![config("x", json!({})), live("Namespace", None, "a", json!({}))];
    let state = LiveState::of(objects);
    let plan = plan(&state, &Wanted::nothing(), Some("d"), &Inclusion::default()).unwrap();
    assert_eq!(names(&plan), ["Namespace/a", "a/ConfigMap/x"]);
}

#[test]
fn versions_do_not_matter() {
    let other = config("x", json!({"apiVersion": "v2"}));
    assert!(planned(vec![config("x", json!({}))], vec![other], &Inclusion::default()).is_empty());
}

proptest! {
    /// Whatever the cluster holds: what goes carries our discriminator, is inside the filters, unwanted and unprotected.
    #[test]
    fn prune_stays_within_its_bounds(
        objects in proptest::collection::vec((0..6_usize, 0..3_usize, 0..3_usize, any::<bool>(), any::<bool>()), 0..20),
        wanted in proptest::collection::vec(0..6_usize, 0..4),
        by_tag in any::<bool>(),
    ) {
        let discriminators = ["d", "other", ""];
        let tag_names = ["one", "two", "three"];
        let make = |(name, discriminator, tag, kept, owned): (usize, usize, usize, bool, bool)| {
            let mut rest = json!({"metadata": {"labels": {
                "kluctl.io/discriminator": discriminators[discriminator], "kluctl.io/tag-0": tag_names[tag]}}});
            if kept {
                rest["metadata"]["annotations"] = json!({"kluctl.io/skip-delete": "true"});
            }
            if owned {
                rest["metadata"]["ownerReferences"] = json!([{"uid": "x"}]);
            }
            config(&format!("n{name}"), rest)
        };
        let inclusion = if by_tag { tags(&["one"]) } else { Inclusion::default() };
        let wanted: Vec<_> = wanted.into_iter().map(|name| config(&format!("n{name}"), json!({}))).collect();
        let state = LiveState::of(objects.into_iter().map(make));
        let keys = Wanted::of(&desired(wanted.clone(), inclusion.clone()), &kinds());
        let plan = plan(&state, &keys, Some("d"), &inclusion).unwrap();
        for deletion in &plan.deletions {
            let object = state.get(&deletion.reference).unwrap();
            prop_assert_eq!(object.label("kluctl.io/discriminator"), Some("d"));
            prop_assert!(object.annotation("kluctl.io/skip-delete").is_none());
            prop_assert!(object.value()["metadata"]["ownerReferences"].is_null());
            prop_assert!(!by_tag || object.label("kluctl.io/tag-0") == Some("one"));
            prop_assert!(wanted.iter().all(|wanted| wanted.name() != deletion.reference.name));
        }
    }
}

mod execution {
    use std::time::Duration;

    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::{config, live, names};
    use crate::{
        cluster::{
            LiveState,
            tests::script::{Script, answer, gone, hasty, refusal},
        },
        deployment::Inclusion,
        object::Object,
        observer::Silent,
        prune::{PruneOptions, PruneReport, PruneRun, Wanted, plan, run},
        results::OutcomeState,
    };

    async fn pruned(
        script: &Script,
        objects: Vec<std::sync::Arc<Object>>,
        options: PruneOptions,
        cancel: &CancellationToken,
    ) -> PruneReport {
        let state = LiveState::of(objects);
        let plan = plan(&state, &Wanted::nothing(), Some("d"), &Inclusion::default()).unwrap();
        assert!(!names(&plan).is_empty());
        let cluster = script.cluster(hasty());
        let observer = Silent;
        run(
            PruneRun {
                cluster: &cluster,
                discriminator: "d",
                options: &options,
                observer: &observer,
                cancel,
            },
            &plan,
        )
        .await
    }

    fn hasty_wait() -> PruneOptions {
        PruneOptions { wait: Some(Duration::from_millis(200)), ..PruneOptions::default() }
    }

    fn path(name: &str) -> String {
        format!("DELETE /api/v1/namespaces/a/configmaps/{name}")
    }

    /// The problems of the survivors by name.
    fn survivors(report: &PruneReport) -> Vec<(&str, &str)> {
        let left = report
            .outcomes
            .iter()
            .filter_map(|outcome| Some((outcome.reference.name.as_str(), outcome.problem()?)));
        left.collect()
    }

    #[tokio::test]
    async fn refused_and_unconfirmed_deletions_survive() {
        let script = Script::start().await;
        script.on(&path("free"), [gone()]);
        script.on(&path("guarded"), [refusal(403, "Forbidden", &json!({}))]);
        script.on(&path("replaced"), [refusal(409, "Conflict", &json!({}))]);
        let held = answer(200, &json!({"metadata": {"uid": "uid-held", "finalizers": ["f/g"]}}));
        script.on(&path("held"), [held.clone()]);
        script.on("GET /api/v1/namespaces/a/configmaps/held", [held]);
        let objects =
            ["free", "guarded", "held", "replaced", "vanished"].map(|name| config(name, json!({})));
        let report =
            pruned(&script, objects.to_vec(), hasty_wait(), &CancellationToken::new()).await;
        let left = survivors(&report);
        assert_eq!(left[0], ("guarded", "refused with Forbidden"));
        assert!(left[1].1.contains("held by finalizers f/g"), "{left:?}");
        assert_eq!(left.len(), 2);
        assert_eq!(report.deleted.len(), 3);
        assert_eq!(report.errors.len(), 2);
    }

    #[tokio::test]
    async fn unconfirmed_deletions_are_accepted_when_nobody_waits() {
        let script = Script::start().await;
        let held = answer(200, &json!({"metadata": {"uid": "uid-held", "finalizers": ["f/g"]}}));
        script.on(&path("held"), [held.clone()]);
        script.on("GET /api/v1/namespaces/a/configmaps/held", [held]);
        let options = PruneOptions { wait: None, ..PruneOptions::default() };
        let report =
            pruned(&script, vec![config("held", json!({}))], options, &CancellationToken::new())
                .await;
        assert!(matches!(report.outcomes[0].state, OutcomeState::Accepted { .. }));
        assert_eq!((report.errors.len(), report.warnings.len()), (0, 1));
    }

    #[tokio::test]
    async fn a_namespace_with_objects_of_others_stays_and_its_own_objects_go() {
        let script = Script::start().await;
        let foreign = json!({"items": [{"metadata": {"name": "theirs",
            "labels": {"kluctl.io/discriminator": "other"}}}]});
        script.on("GET /api/v1/namespaces/a/configmaps", [answer(200, &foreign)]);
        script.on(&path("x"), [gone()]);
        let objects = vec![live("Namespace", None, "a", json!({})), config("x", json!({}))];
        let report = pruned(&script, objects, hasty_wait(), &CancellationToken::new()).await;
        assert_eq!(
            survivors(&report),
            [("a", "it holds ConfigMap/theirs of another deployment (discriminator other)")]
        );
        assert_eq!(script.count("DELETE /api/v1/namespaces/a/configmaps/x"), 1);
        assert_eq!(script.count("DELETE /api/v1/namespaces/a"), 1, "only the object");
        let asked = script.seen();
        let selector = "labelSelector=kluctl.io%2Fdiscriminator%2Ckluctl.io%2Fdiscriminator%21%3Dd";
        assert!(asked.iter().any(|request| request.contains(selector)), "{asked:?}");
    }

    #[tokio::test]
    async fn objects_go_with_their_namespace() {
        let script = Script::start().await;
        script.on("DELETE /api/v1/namespaces/a", [gone()]);
        let objects = vec![live("Namespace", None, "a", json!({})), config("x", json!({}))];
        let report = pruned(&script, objects, hasty_wait(), &CancellationToken::new()).await;
        assert_eq!(report.deleted.len(), 2);
        assert_eq!(script.count("DELETE"), 1);
    }

    #[tokio::test]
    async fn a_cancelled_run_deletes_nothing_more() {
        let script = Script::start().await;
        let cancel = CancellationToken::new();
        cancel.cancel();
        let report = pruned(&script, vec![config("x", json!({}))], hasty_wait(), &cancel).await;
        assert!(matches!(report.outcomes[0].state, OutcomeState::NotAttempted { .. }));
        assert_eq!(script.count("DELETE"), 0);
    }

    #[tokio::test]
    async fn a_dry_run_only_asks() {
        let script = Script::start().await;
        script.on(&path("x"), [answer(200, &json!({"metadata": {"uid": "uid-x"}}))]);
        let options = PruneOptions { dry_run: true, ..PruneOptions::default() };
        let report =
            pruned(&script, vec![config("x", json!({}))], options, &CancellationToken::new()).await;
        assert_eq!(report.deleted.len(), 1);
        assert_eq!(script.bodies("DELETE")[0]["dryRun"], json!(["All"]));
    }
}
