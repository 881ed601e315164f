use std::{sync::Arc, sync::Mutex, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    apply::{ApplyOptions, ApplyReport, ApplyRun, Policy, plan, run},
    cluster::{
        Clock, LiveState, RetryPolicy,
        tests::script::{Script, answer, gone, hasty, refusal},
    },
    deployment::{DesiredItem, DesiredState, Inclusion},
    object::{Object, merge},
    observer::{EngineEvent, Observer},
    results::{Operation, OutcomeState},
};

#[derive(Default)]
struct Recorder(Mutex<Vec<EngineEvent>>);

impl Observer for Recorder {
    fn event(&self, event: EngineEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn config(name: &str, rest: Value) -> Arc<Object> {
    let mut tree = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}});
    merge(&mut tree, rest);
    Arc::new(Object::new(tree).unwrap())
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/a/configmaps/{name}")
}

fn item(objects: Vec<Arc<Object>>) -> DesiredItem {
    DesiredItem { dir: "x".into(), objects, ..DesiredItem::default() }
}

fn options() -> ApplyOptions {
    let retry = RetryPolicy { first_pause: Duration::from_millis(1), ..RetryPolicy::default() };
    ApplyOptions {
        policy: Policy { retry, ..Policy::default() },
        readiness_timeout: Duration::from_secs(2),
        ..ApplyOptions::default()
    }
}

/// Everything that a test may vary.
struct Setup {
    items: Vec<DesiredItem>,
    live: Vec<Arc<Object>>,
    options: ApplyOptions,
    cancel: CancellationToken,
}

impl Setup {
    fn new(items: Vec<DesiredItem>) -> Self {
        Self { items, live: Vec::new(), options: options(), cancel: CancellationToken::new() }
    }

    async fn run(self, script: &Script) -> ApplyReport {
        let desired = DesiredState {
            items: self.items,
            discriminator: None,
            inclusion: Inclusion::default(),
            objects_hash: String::new(),
            images: Vec::new(),
            warnings: Vec::new(),
        };
        let cluster = script.cluster(hasty());
        let live = LiveState::of(self.live).with_namespaces(["a".to_owned()]);
        let plan = plan(&desired, &live, &cluster.kinds().await.unwrap());
        let observer = Recorder::default();
        run(ApplyRun {
            cluster: &cluster,
            desired: &desired,
            live: &live,
            plan: &plan,
            options: &self.options,
            observer: &observer,
            clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()),
            cancel: &self.cancel,
        })
        .await
    }
}

/// The outcomes in short: operation, name, state.
fn short(report: &ApplyReport) -> Vec<String> {
    let shown = report.outcomes.iter().map(|outcome| {
        let state = match &outcome.state {
            OutcomeState::Done => "done",
            OutcomeState::Failed { .. } => "failed",
            OutcomeState::Accepted { .. } => "accepted",
            OutcomeState::NotAttempted { .. } => "not attempted",
        };
        format!("{:?} {} {state}", outcome.operation, outcome.reference.name)
    });
    shown.collect()
}

#[tokio::test]
async fn conflicts_are_resolved_and_the_rest_is_forced() {
    let script = Script::start().await;
    let live = config(
        "x",
        json!({"data": {"aa": "theirs", "bb": "1"}, "metadata": {"managedFields": [
        {"manager": "other", "fieldsV1": {"f:data": {"f:aa": {}}}}]}}),
    );
    let desired = config("x", json!({"data": {"aa": "ours", "bb": "2"}}));
    let conflict = json!({"causes": [
        {"reason": "FieldManagerConflict", "field": ".data.aa", "message": "conflict with \"other\""}]});
    script.on(
        &format!("PATCH {}", path("x")),
        [refusal(409, "Conflict", &conflict), answer(200, desired.value())],
    );
    let mut setup = Setup::new(vec![item(vec![desired])]);
    setup.live = vec![live];
    let report = setup.run(&script).await;
    assert_eq!(short(&report), ["Apply x done"]);
    assert!(report.warnings[0].message.contains(".data.aa"), "{:?}", report.warnings);
    let sent = script.bodies("PATCH");
    assert_eq!(sent[1]["data"], json!({"bb": "2"}));
    assert!(script.seen()[1].contains("force=true"));
    assert!(!report.applied[0].new);
}

#[tokio::test]
async fn transient_failures_are_ridden_out_and_others_do_not_stop_the_run() {
    let script = Script::start().await;
    let (one, two) = (config("one", json!({})), config("two", json!({})));
    script.on(
        &format!("PATCH {}", path("one")),
        [
            refusal(500, "InternalError", &json!({})),
            refusal(429, "TooManyRequests", &json!({})),
            answer(200, one.value()),
        ],
    );
    script.on(&format!("PATCH {}", path("two")), [refusal(422, "Invalid", &json!({}))]);
    script
        .on(&format!("PATCH {}", path("three")), [answer(200, config("three", json!({})).value())]);
    let items = vec![item(vec![one, two, config("three", json!({}))])];
    let report = Setup::new(items).run(&script).await;
    assert_eq!(short(&report), ["Apply one done", "Apply two failed", "Apply three done"]);
    assert_eq!(report.errors.len(), 1);
    assert_eq!(report.errors[0].reference.name, "two");
}

#[tokio::test]
async fn an_error_aborts_the_run_when_asked_to() {
    let script = Script::start().await;
    script.on(&format!("PATCH {}", path("one")), [refusal(422, "Invalid", &json!({}))]);
    let mut first = item(vec![config("one", json!({})), config("two", json!({}))]);
    first.barrier = true;
    let mut setup = Setup::new(vec![first, item(vec![config("three", json!({}))])]);
    setup.options.abort_on_error = true;
    let report = setup.run(&script).await;
    assert_eq!(
        short(&report),
        ["Apply one failed", "Apply two not attempted", "Apply three not attempted"]
    );
    assert_eq!(script.count("PATCH"), 1);
    assert!(!report.interrupted);
}

#[tokio::test]
async fn a_cancelled_run_says_what_was_not_attempted() {
    let script = Script::start().await;
    let one = config("one", json!({}));
    script.on(&format!("PATCH {}", path("one")), [answer(200, one.value())]);
    let slow = answer(200, one.value()).set_delay(Duration::from_secs(30));
    script.on(&format!("PATCH {}", path("two")), [slow]);
    let items = vec![item(vec![one, config("two", json!({})), config("three", json!({}))])];
    let setup = Setup::new(items);
    let cancel = setup.cancel.clone();
    let canceller = async {
        while script.count("PATCH") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(setup.run(&script), canceller);
    assert_eq!(short(&report), ["Apply one done", "Apply two failed", "Apply three not attempted"]);
    assert!(report.interrupted);
    assert!(report.errors[0].message.contains("may have been applied"), "{:?}", report.errors);
}

#[tokio::test]
async fn barriers_hold_back_later_items() {
    let script = Script::start().await;
    for name in ["one", "two", "three"] {
        let reply = answer(200, config(name, json!({})).value());
        let reply = if name == "one" { reply.set_delay(Duration::from_millis(100)) } else { reply };
        script.on(&format!("PATCH {}", path(name)), [reply]);
    }
    let mut second = item(vec![config("two", json!({}))]);
    second.barrier = true;
    let items =
        vec![item(vec![config("one", json!({}))]), second, item(vec![config("three", json!({}))])];
    let report = Setup::new(items).run(&script).await;
    assert_eq!(short(&report), ["Apply one done", "Apply two done", "Apply three done"]);
    let seen = script.seen();
    assert!(seen.last().unwrap().contains("three"), "{seen:?}");
    let order: Vec<_> = report.applied.iter().map(|applied| applied.object.name()).collect();
    assert_eq!(order, ["one", "two", "three"], "reported in the order of the plan");
}

#[tokio::test]
async fn waits_end_with_readiness_failure_or_time() {
    let script = Script::start().await;
    let widget = |name: &str, rest: Value| {
        let mut tree = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": name, "namespace": "a", "annotations": {"kluctl.io/wait-readiness": "true"}}});
        merge(&mut tree, rest);
        tree
    };
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "message": "m"}]}});
    for (name, status) in [
        ("ok", condition("Ready")),
        ("bad", condition("Stalled")),
        ("slow", condition("Reconciling")),
    ] {
        let live = widget(name, status);
        let path = format!("/apis/example.com/v1/namespaces/a/widgets/{name}");
        script.on(&format!("PATCH {path}"), [answer(200, &live)]);
        script.on(&format!("GET {path}"), [answer(200, &live)]);
    }
    let objects =
        ["ok", "bad", "slow"].map(|name| Arc::new(Object::new(widget(name, json!({}))).unwrap()));
    let mut setup = Setup::new(vec![item(objects.to_vec())]);
    setup.options.readiness_timeout = Duration::from_millis(300);
    let report = setup.run(&script).await;
    assert_eq!(short(&report)[3..], ["Wait ok done", "Wait bad failed", "Wait slow failed"]);
    let messages: Vec<_> = report.errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, ["m", "not ready after 0 s: m"]);
}

#[tokio::test]
async fn hooks_are_created_anew_and_deleted_after_success() {
    let script = Script::start().await;
    let hook = config(
        "hook",
        json!({"metadata": {"annotations": {"kluctl.io/hook": "pre-deploy",
        "kluctl.io/hook-delete-policy": "before-hook-creation,hook-succeeded"}}}),
    );
    script.on(&format!("DELETE {}", path("hook")), [gone()]);
    script.on(&format!("PATCH {}", path("hook")), [answer(200, hook.value())]);
    script.on(&format!("GET {}", path("hook")), [answer(200, hook.value())]);
    script.on(&format!("PATCH {}", path("main")), [answer(200, config("main", json!({})).value())]);
    let mut setup = Setup::new(vec![item(vec![config("main", json!({})), hook.clone()])]);
    setup.live = vec![hook];
    let report = setup.run(&script).await;
    assert_eq!(short(&report), ["Hook hook done", "Apply main done"]);
    let methods: Vec<_> = script
        .seen()
        .iter()
        .map(|request| {
            request.split(['?', ' ']).collect::<Vec<_>>()[..2]
                .join(" ")
                .replace("/api/v1/namespaces/a/configmaps/", "")
        })
        .collect();
    assert_eq!(methods, ["DELETE hook", "PATCH hook", "GET hook", "DELETE hook", "PATCH main"]);
    assert_eq!(report.deleted, [], "a hook's deletion is not the deployment's");
}

#[tokio::test]
async fn objects_known_to_be_unchanged_are_not_sent() {
    let script = Script::start().await;
    let live = config("x", json!({"metadata": {"resourceVersion": "7"}}));
    let mut setup = Setup::new(vec![item(vec![config("x", json!({}))])]);
    setup.options.known_versions = [((&live.reference()).into(), "7".to_owned())].into();
    setup.live = vec![live];
    let report = setup.run(&script).await;
    assert_eq!(short(&report), ["Apply x done"]);
    assert_eq!(script.count("PATCH"), 0);
}

#[tokio::test]
async fn dry_runs_reach_into_namespaces_that_do_not_exist_yet() {
    let script = Script::start().await;
    let namespace = Arc::new(
        Object::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}))
            .unwrap(),
    );
    let inside = Arc::new(
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "new"}}))
            .unwrap(),
    );
    script.on("PATCH /api/v1/namespaces/new", [answer(200, namespace.value())]);
    let mut setup = Setup::new(vec![item(vec![inside.clone(), namespace])]);
    setup.options.policy.dry_run = true;
    let report = setup.run(&script).await;
    let sent = script.seen();
    assert!(sent.iter().all(|request| request.contains("dryRun=All")), "{sent:?}");
    assert!(sent[1].starts_with("PATCH /api/v1/namespaces/default/configmaps/x-"), "{sent:?}");
    // The script has no such object: what matters is where it was sent.
    assert_eq!(report.outcomes[0].operation, Operation::Apply);
}

#[tokio::test]
async fn what_marks_objects_for_deletion_is_deleted_first() {
    let script = Script::start().await;
    script.on(&format!("DELETE {}", path("marked")), [gone()]);
    let marked =
        config("marked", json!({"metadata": {"annotations": {"kluctl.io/delete": "true"}}}));
    let absent =
        config("absent", json!({"metadata": {"annotations": {"kluctl.io/delete": "true"}}}));
    let report = Setup::new(vec![item(vec![marked, absent])]).run(&script).await;
    assert_eq!(short(&report), ["Delete marked done", "Delete absent done"]);
    assert_eq!(report.deleted.len(), 1, "what was not there was not deleted");
    assert_eq!(report.errors, []);
}
