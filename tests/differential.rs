//! Compares the kustomize build, templates, YAML and charts with the real programs on inputs that belong to neither.
//!
//! `KUSTOMIZE` names the program (v5.8), `KUSTOMIZE_TREES` a directory with one published project in each subdirectory.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "differential/command.rs"]
mod command;
#[path = "differential/corpus.rs"]
mod corpus;
#[path = "differential/helm.rs"]
mod helm;
#[path = "differential/random.rs"]
mod random;
#[path = "differential/remote.rs"]
mod remote;
#[path = "differential/templates.rs"]
mod templates;
#[path = "differential/trees.rs"]
mod trees;
#[path = "differential/yaml.rs"]
mod yaml_texts;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use flux_kluctl_controller::{
    kustomize,
    object::Object,
    tree::SourceTree,
    yaml::{self, Schema},
};
use serde_json::Value;

/// The text of all objects, or of the error.
type Outcome = Result<String, String>;

fn program() -> PathBuf {
    std::env::var_os("KUSTOMIZE").map(PathBuf::from).expect(
        "KUSTOMIZE must name the kustomize program: `go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.2`",
    )
}

fn theirs(dir: &Path) -> Outcome {
    let output = Command::new(program())
        .args(["build", "--load-restrictor", "LoadRestrictionsNone", "--reorder", "none"])
        .arg(dir)
        .output()
        .expect("kustomize runs");
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn ours(tree: &dyn SourceTree, dir: &str) -> Outcome {
    let objects = kustomize::build(tree, dir).map_err(|error| error.to_string())?;
    Ok(yaml::emit_documents(objects.iter().map(Object::value)))
}

/// Whether both have the same text, byte for byte, or both refuse.
fn agree(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn documents(text: &[u8]) -> Vec<Value> {
    let documents = yaml::parse_documents("output", text, Schema::Manifest).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

fn difference(ours: &Outcome, theirs: &Outcome) -> String {
    let text = |outcome: &Outcome| match outcome {
        Ok(text) => text.clone(),
        Err(message) => format!("error: {message}\n"),
    };
    let (theirs, ours) = (text(theirs), text(ours));
    let diff = similar::TextDiff::from_lines(&theirs, &ours);
    diff.unified_diff().context_radius(4).header("kustomize", "ours").to_string()
}
