//! Compares the kustomize build with the real `kustomize` on inputs that belong to neither.
//!
//! `KUSTOMIZE` names the program (v5.8). Each directory below `tests/differential/kustomize` is a case, except `shared`, which
//! holds manifests for all of them; `overlay` in a case is built if it exists, else the case itself. Both must give the same objects in the same order, or both refuse. A case with
//! a file `better` documents where we deliberately differ, and why: then the outcomes must not be equal, and ours must be
//! `expected.yaml`, or an error that holds every line of `expected-error`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use flux_kluctl_controller::{
    kustomize,
    object::Object,
    tree::{DiskTree, SourceTree},
    yaml::{self, Schema},
};
use serde_json::Value;

type Outcome = Result<Vec<Value>, String>;

fn program() -> PathBuf {
    std::env::var_os("KUSTOMIZE").map(PathBuf::from).expect(
        "KUSTOMIZE must name the kustomize program: `go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.2`",
    )
}

fn documents(text: &[u8]) -> Vec<Value> {
    let documents = yaml::parse_documents("output", text, Schema::Manifest).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

fn theirs(dir: &Path) -> Outcome {
    let output = Command::new(program())
        .args(["build", "--load-restrictor", "LoadRestrictionsNone", "--reorder", "none"])
        .arg(dir)
        .output()
        .expect("kustomize runs");
    if output.status.success() {
        Ok(documents(&output.stdout))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn ours(tree: &dyn SourceTree, dir: &str) -> Outcome {
    let objects = kustomize::build(tree, dir).map_err(|error| error.to_string())?;
    Ok(objects.into_iter().map(Object::into_value).collect())
}

/// What is wrong with a case, if anything.
fn check(corpus: &Path, name: &str) -> Option<String> {
    let case = corpus.join(name);
    let overlay = case.join("overlay").is_dir();
    let dir = if overlay { format!("{name}/overlay") } else { name.to_owned() };
    let tree = DiskTree::new(corpus).unwrap();
    let (ours, theirs) = (ours(&tree, &dir), theirs(&corpus.join(dir)));
    let same = match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(_), Err(_)) => true,
        _ => false,
    };
    if !case.join("better").exists() {
        return (!same).then(|| difference(&ours, &theirs));
    }
    if same {
        return Some("no difference any more: drop the file `better`".to_owned());
    }
    match ours {
        Ok(ours) => {
            let expected = documents(&fs::read(case.join("expected.yaml")).unwrap_or_default());
            (ours != expected).then(|| difference(&Ok(ours), &Ok(expected)))
        }
        Err(message) => {
            let expected = fs::read_to_string(case.join("expected-error")).unwrap_or_default();
            let missing = expected.lines().find(|line| !message.contains(line));
            missing.map_or_else(
                || expected.is_empty().then(|| message.clone()),
                |line| Some(format!("`{line}` is not in: {message}")),
            )
        }
    }
}

fn difference(ours: &Outcome, theirs: &Outcome) -> String {
    let text = |outcome: &Outcome| match outcome {
        Ok(objects) => yaml::emit_documents(objects),
        Err(message) => format!("error: {message}\n"),
    };
    let (theirs, ours) = (text(theirs), text(ours));
    let diff = similar::TextDiff::from_lines(&theirs, &ours);
    diff.unified_diff().context_radius(4).header("kustomize", "ours").to_string()
}

fn cases(corpus: &Path) -> Vec<String> {
    let entries = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap());
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut cases: Vec<String> = names.filter(|name| name != "shared").collect();
    cases.sort();
    cases
}

#[test]
fn kustomize_agrees_on_the_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/kustomize");
    let cases = cases(&corpus);
    let only = std::env::var("KUSTOMIZE_CASE").unwrap_or_default();
    let failures: Vec<String> = cases
        .iter()
        .filter(|name| name.contains(&only))
        .filter_map(|name| check(&corpus, name).map(|problem| format!("== {name}\n{problem}")))
        .collect();
    let (failed, all) = (failures.len(), cases.len());
    assert!(failures.is_empty(), "{failed} of {all} cases:\n{}", failures.join("\n"));
    assert!(all >= 80, "only {all} cases");
}

/// Builds all kustomizations of metrics-server, and below the directories that `KUSTOMIZE_TREES` adds, separated by `:`.
#[test]
fn kustomize_agrees_on_real_projects() {
    let mut trees = std::env::var("METRICS_SERVER_MANIFESTS")
        .expect("METRICS_SERVER_MANIFESTS must name the manifests of sigs.k8s.io/metrics-server");
    if let Ok(more) = std::env::var("KUSTOMIZE_TREES") {
        trees = format!("{trees}:{more}");
    }
    let mut failures = Vec::new();
    let mut built = 0;
    for root in trees.split(':').filter(|root| !root.is_empty()) {
        let tree = DiskTree::new(Path::new(root)).unwrap();
        let files = flux_kluctl_controller::tree::walk_files(&tree, "").unwrap();
        for file in files.iter().filter(|file| file.ends_with("/kustomization.yaml")) {
            built += 1;
            let dir = flux_kluctl_controller::tree::parent(file);
            let (ours, theirs) = (ours(&tree, dir), theirs(&Path::new(root).join(dir)));
            let same = match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => ours == theirs,
                (Err(_), Err(_)) => true,
                _ => false,
            };
            if !same {
                failures.push(format!("== {root}/{dir}\n{}", difference(&ours, &theirs)));
            }
        }
    }
    assert!(built > 0, "no kustomization in {trees}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
