//! Published projects: every kustomization in them, and all their manifests under one kustomization that changes everything.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use flux_kluctl_controller::{
    kustomize,
    object::Object,
    tree::{DiskTree, MemoryTree, parent, walk_files},
};

use super::{agree, difference, ours, theirs};

/// The projects that must be there; a missing one fails the test.
const PROJECTS: [&str; 4] =
    ["cert-manager", "gateway-api", "metrics-server", "prometheus-operator"];

fn trees() -> PathBuf {
    std::env::var_os("KUSTOMIZE_TREES").map(PathBuf::from).expect(
        "KUSTOMIZE_TREES must name the directory of projects that hack/control-plane/build copies",
    )
}

/// The paths of files in a tree with one of the extensions.
fn files(root: &Path, extension: &str) -> Vec<String> {
    let tree = DiskTree::new(root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let mut files = walk_files(&tree, "").unwrap();
    files.retain(|file| file.ends_with(extension));
    files
}

fn compare(root: &Path, dir: &str, failures: &mut Vec<String>) -> bool {
    let tree = DiskTree::new(root).unwrap();
    let (ours, theirs) = (ours(&tree, dir), theirs(&root.join(dir)));
    if !agree(&ours, &theirs) {
        failures.push(format!("== {}/{dir}\n{}", root.display(), difference(&ours, &theirs)));
    }
    theirs.is_ok()
}

#[test]
fn kustomize_agrees_on_real_projects() {
    let trees = trees();
    let mut failures = Vec::new();
    let mut built = 0;
    for project in PROJECTS {
        let root = trees.join(project);
        for file in files(&root, "kustomization.yaml") {
            built += usize::from(compare(&root, parent(&file), &mut failures));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(built >= 11, "only {built} kustomizations were built");
}

/// Copies all files with manifests, of which each can be built alone and none has an object of another one. Returns their
/// names.
fn copy_manifests(source: &Path, base: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for (index, file) in files(source, ".yaml").iter().enumerate() {
        let text = fs::read_to_string(source.join(file)).unwrap();
        let name = format!("{index}.yaml");
        let tree = MemoryTree::from_texts([
            ("kustomization.yaml", "resources: [it.yaml]"),
            ("it.yaml", text.as_str()),
        ]);
        // Patches and templates cannot be built.
        let Ok(objects) = kustomize::build(&tree, "") else { continue };
        let is_unfit = |object: &Object| {
            object.api_version().starts_with("kustomize.") || object.kind() == "Namespace"
        };
        // All go into one namespace.
        let id = |object: &Object| format!("{} {}", object.kind(), object.name());
        let ids: HashSet<String> = objects.iter().map(id).collect();
        let is_new = ids.len() == objects.len() && ids.is_disjoint(&seen);
        if is_new && !ids.is_empty() && !objects.iter().any(is_unfit) {
            seen.extend(ids);
            fs::write(base.join(&name), text).unwrap();
            names.push(name);
        }
    }
    names
}

/// A base with all manifests of a project, and an overlay with every transformer.
#[test]
fn kustomize_agrees_on_overlays_of_real_manifests() {
    const OVERLAY: &str = "resources: [base]
namespace: elsewhere
namePrefix: a-
nameSuffix: -z
labels: [{pairs: {team: x}, includeSelectors: true}, {pairs: {tier: back}, includeTemplates: true}]
commonAnnotations: {note: text}
buildMetadata: [managedByLabel, originAnnotations, transformerAnnotations]
configMapGenerator: [{name: settings, literals: [a=b]}]
patches:
- target: {kind: Deployment}
  patch: |
    kind: Deployment
    metadata: {name: any}
    spec: {template: {spec: {priorityClassName: high, hostNetwork: null}}}
- target: {kind: CustomResourceDefinition, name: .*s\\..*}
  patch: '- {op: replace, path: /spec/scope, value: Cluster}'
";
    let trees = trees();
    let mut failures = Vec::new();
    let scratch = tempfile::tempdir().unwrap();
    for project in PROJECTS {
        let source = trees.join(project);
        let base = scratch.path().join(project).join("base");
        fs::create_dir_all(&base).unwrap();
        let entries = copy_manifests(&source, &base);
        assert!(!entries.is_empty(), "{project} has no manifests");
        fs::write(base.join("kustomization.yaml"), format!("resources: {entries:?}\n")).unwrap();
        let overlay = scratch.path().join(project).join("kustomization.yaml");
        fs::write(overlay, OVERLAY).unwrap();
        let root = scratch.path().join(project);
        if !compare(&root, "", &mut failures) {
            failures.push(format!("== {project}: {:?}", theirs(&root)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
