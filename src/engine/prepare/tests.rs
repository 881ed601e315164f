use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::{diagnostic::Describe, tree::MemoryTree};

/// Remembers all events.
#[derive(Default)]
struct Recorder(Mutex<Vec<EngineEvent>>);

impl Observer for Recorder {
    fn event(&self, event: EngineEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn request(files: &[(&str, &str)], args: Value) -> PrepareRequest {
    PrepareRequest {
        source: Source {
            tree: Arc::new(MemoryTree::from_texts(files.iter().copied())),
            project_dir: String::new(),
            config_file: None,
        },
        target: TargetRequest { args, ..TargetRequest::default() },
        inclusion: Inclusion::default(),
        jinja: jinja::Options::new(jiff::Timestamp::UNIX_EPOCH),
    }
}

async fn prepare(request: &PrepareRequest) -> (Result<Prepared, EngineError>, Vec<EngineEvent>) {
    let engine = Engine::new(Limits::for_cores(2));
    let (recorder, cancel) = (Recorder::default(), CancellationToken::new());
    let prepared = engine.prepare(request, &Externals::default(), &recorder, &cancel).await;
    (prepared, recorder.0.into_inner().unwrap())
}

const MANIFEST: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ args.name }}-{{ id }}\"}\n";

/// Two items of the same directory, with other variables.
fn project() -> Vec<(&'static str, &'static str)> {
    vec![
        (".kluctl.yaml", "discriminator: \"d-{{ args.name }}\"\nargs:\n- name: name\n"),
        (
            "deployment.yaml",
            "deployments:\n- {path: app, vars: [{values: {id: 1}}]}\n- {path: app, vars: [{values: {id: 2}}]}\n",
        ),
        ("app/cm.yaml", MANIFEST),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_becomes_the_desired_state() {
    let (prepared, events) = prepare(&request(&project(), json!({"name": "shop"}))).await;
    let prepared = prepared.unwrap();
    let names: Vec<&str> = prepared.desired.objects().map(|object| object.name()).collect();
    assert_eq!(names, ["shop-1", "shop-2"]);
    assert_eq!(prepared.desired.discriminator.as_deref(), Some("d-shop"));
    let dirs: Vec<&str> =
        prepared.rendered_files.iter().map(|files| files.render_dir.as_str()).collect();
    assert_eq!(dirs, ["app", "app-1"]);
    let stages: Vec<EngineEvent> = [Stage::Load, Stage::Render, Stage::Build]
        .into_iter()
        .flat_map(|stage| {
            [EngineEvent::StageStarted { stage }, EngineEvent::StageFinished { stage }]
        })
        .collect();
    assert_eq!(events, stages);
}

#[tokio::test]
async fn preparing_is_deterministic_and_the_hash_tells_changes() {
    let hash = async |files: &[(&str, &str)], name: &str| {
        let (prepared, _) = prepare(&request(files, json!({"name": name}))).await;
        prepared.unwrap().desired.objects_hash
    };
    let first = hash(&project(), "shop").await;
    assert_eq!(first, hash(&project(), "shop").await);
    assert_ne!(first, hash(&project(), "other").await);
    let mut changed = project();
    changed[2].1 = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ id }}\"}\n";
    assert_ne!(first, hash(&changed, "shop").await);
}

#[tokio::test]
async fn problems_of_all_items_are_gathered_and_nothing_is_returned() {
    let files = [
        ("deployment.yaml", "deployments: [{path: a}, {path: b}, {path: c}]"),
        ("a/x.yaml", "{{ nope }}"),
        ("b/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ok}\n"),
        ("c/x.yaml", "a: 1\n{% if %}\n"),
        ("c/y.yaml", "{{ also_nope }}"),
    ];
    let (prepared, _) = prepare(&request(&files, json!({}))).await;
    let Err(error) = prepared else { panic!("two items cannot be rendered") };
    assert_eq!(error.to_string(), "2 items of the deployment cannot be built");
    let places: Vec<String> = error
        .diagnostics()
        .iter()
        .map(|diagnostic| {
            let at = diagnostic.at.as_ref().unwrap();
            format!("{}:{}", at.file, at.position.unwrap().line)
        })
        .collect();
    assert_eq!(places, ["a/x.yaml:1", "c/x.yaml:2", "c/y.yaml:1"]);
    assert!(error.describe().hints.contains(&"there are 2 more problems".to_owned()));
}

#[tokio::test]
async fn missing_arguments_are_problems_of_the_project() {
    let (prepared, _) = prepare(&request(&project(), json!({}))).await;
    let Err(EngineError::Project(error)) = prepared else { panic!("name is required") };
    assert!(error.to_string().contains("name"), "{error}");
}

#[tokio::test]
async fn bases_are_those_of_the_same_use_of_a_project() {
    let files = [
        (
            "deployment.yaml",
            "deployments:\n- {include: lib, args: {id: one}}\n- {include: lib, args: {id: two}}\n",
        ),
        ("lib/.kluctl-library.yaml", "args: [{name: id}]"),
        ("lib/deployment.yaml", "deployments: [{path: base, onlyRender: true}, {path: overlay}]"),
        ("lib/base/kustomization.yaml", "resources: [cm.yaml]"),
        (
            "lib/base/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ args.id }}\"}\n",
        ),
        ("lib/overlay/kustomization.yaml", "resources: [../base]\nnamePrefix: over-\n"),
    ];
    let (prepared, _) = prepare(&request(&files, json!({}))).await;
    let prepared = prepared.unwrap();
    let names: Vec<&str> = prepared.desired.objects().map(|object| object.name()).collect();
    assert_eq!(names, ["over-one", "over-two"]);
}

#[tokio::test]
async fn a_base_that_no_item_renders_is_told() {
    let files = [
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/kustomization.yaml", "resources: [../base]"),
        ("base/kustomization.yaml", "resources: []"),
    ];
    let (prepared, _) = prepare(&request(&files, json!({}))).await;
    let Err(error) = prepared else { panic!("the base is not rendered") };
    let diagnostic = error.diagnostics().remove(0);
    assert_eq!(diagnostic.at.as_ref().unwrap().file, "app/kustomization.yaml");
    assert!(diagnostic.hints.iter().any(|hint| hint.contains("onlyRender")), "{diagnostic}");
}

#[tokio::test]
async fn files_that_kustomize_reads_must_not_be_encrypted() {
    let files = [
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/secret.yaml", "kind: Secret\nsops: {mac: x, version: '3'}\n"),
        ("app/unused.txt", "sops"),
    ];
    let (prepared, _) = prepare(&request(&files, json!({}))).await;
    let Err(error) = prepared else { panic!("the file is encrypted") };
    let shown = error.diagnostics().remove(0).to_string();
    assert!(shown.contains("app/secret.yaml") && shown.contains("SOPS"), "{shown}");
}

#[tokio::test]
async fn a_cancelled_run_prepares_nothing() {
    let engine = Engine::new(Limits::for_cores(1));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = request(&project(), json!({"name": "x"}));
    let (externals, silent) = (Externals::default(), crate::observer::Silent);
    let prepared = engine.prepare(&request, &externals, &silent, &cancel).await;
    assert!(matches!(prepared, Err(EngineError::Cancelled)));
}

#[tokio::test]
async fn targets_are_listed_without_arguments() {
    let files = [(
        ".kluctl.yaml",
        "args: [{name: region}]\ntargets:\n- {name: b, args: {region: eu}}\n- {name: a}\n",
    )];
    let source = request(&files, json!({})).source;
    let options = jinja::Options::new(jiff::Timestamp::UNIX_EPOCH);
    let engine = Engine::new(Limits::for_cores(1));
    let list = engine.list_targets(source, options, &CancellationToken::new()).await.unwrap();
    let names: Vec<&str> = list.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    assert_eq!(list.warnings.len(), 1);
}
