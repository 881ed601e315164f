use super::*;
use crate::{
    diagnostic::Describe,
    tree::{MemoryTree, join},
};

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    MemoryTree::from_texts(files.iter().copied())
}

fn names(files: &[(&str, &str)], dir: &str) -> Vec<String> {
    let objects = build(&tree(files), dir).unwrap();
    objects.iter().map(|object| object.reference().to_string()).collect()
}

fn message(files: &[(&str, &str)], dir: &str) -> String {
    build(&tree(files), dir).unwrap_err().to_string()
}

const CM: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";

#[test]
fn objects_come_in_order_of_accumulation() {
    let files = [
        ("app/kustomization.yaml", "resources: [z.yaml, ../base, a.yaml]\nnamePrefix: p-"),
        ("app/z.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: z}"),
        ("app/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}"),
        ("base/kustomization.yml", "resources: [cm.yaml]\nnamespace: b"),
        ("base/cm.yaml", CM),
    ];
    assert_eq!(names(&files, "app"), ["Secret/p-z", "b/ConfigMap/p-x", "Namespace/a"]);
}

#[test]
fn a_patch_without_an_object_lists_what_there_is() {
    let files = [
        ("app/kustomization.yaml", "resources: [cm.yaml]\npatches: [{path: p.yaml}]"),
        ("app/cm.yaml", CM),
        ("app/p.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ghost}"),
    ];
    assert_eq!(
        message(&files, "app"),
        "app/p.yaml:1:1: the patch for Deployment ghost matches no object \
         (there is no Deployment; there is: ConfigMap/x)"
    );
}

#[test]
fn a_patch_for_another_version_says_so() {
    let files = [
        ("kustomization.yaml", "resources: [cm.yaml]\npatches: [{path: p.yaml}]"),
        ("cm.yaml", CM),
        ("p.yaml", "apiVersion: v2\nkind: ConfigMap\nmetadata: {name: x}"),
    ];
    assert!(
        message(&files, "").ends_with("(ConfigMap x has apiVersion v1, the patch says \"v2\")")
    );
}

#[test]
fn unknown_fields_are_named_with_their_place() {
    let files = [("app/kustomization.yaml", "namePrefix: a-\nresorces: [cm.yaml]")];
    assert_eq!(
        message(&files, "app"),
        "app/kustomization.yaml:2:1: resorces: unknown field \"resorces\" (did you mean `resources`?)"
    );
}

#[test]
fn numbers_are_no_text() {
    let files =
        [("app/kustomization.yaml", "resources: []\nimages:\n- name: nginx\n  newTag: 1.10\n")];
    assert_eq!(
        message(&files, "app"),
        "app/kustomization.yaml:4:3: images[0].newTag: found a number, expected a string \
         (write it in quotes)"
    );
}

#[test]
fn duplicates_name_both_places() {
    let files = [
        ("app/kustomization.yaml", "resources: [a.yaml, b.yaml]"),
        ("app/a.yaml", CM),
        ("app/b.yaml", "# second\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}"),
    ];
    assert_eq!(
        message(&files, "app"),
        "app/b.yaml:2:1: ConfigMap/x: ConfigMap x is defined twice (also defined at app/a.yaml:1:1; \
         rename or remove one of them, or change it with a patch)"
    );
}

#[test]
fn two_kustomization_files_are_ambiguous() {
    let files = [("app/kustomization.yml", "resources: []"), ("app/kustomization.yaml", "")];
    assert_eq!(
        message(&files, "app"),
        "directory app has several kustomization files (keep one of kustomization.yaml, kustomization.yml)"
    );
}

#[test]
fn missing_files_and_directories_are_errors_at_their_entry() {
    let files = [("app/kustomization.yaml", "resources:\n- ../gone")];
    let error = build(&tree(&files), "app").unwrap_err().describe();
    assert_eq!(error.field.as_deref(), Some("resources[0]"));
    assert_eq!(error.at.unwrap().to_string(), "app/kustomization.yaml:2:3");
    assert_eq!(error.message, "gone: no such file or directory");
    assert_eq!(
        message(&[], "app"),
        "no kustomization file in directory app (add a kustomization.yaml, or name a file)"
    );
    let files = [("kustomization.yaml", "resources: [dir]"), ("dir/x.txt", "")];
    assert!(message(&files, "").starts_with(
        "kustomization.yaml:1:13: resources[0]: no kustomization file in directory dir"
    ));
}

#[test]
fn nothing_is_fetched() {
    for path in ["https://example.com/x.yaml", "git@example.com:a/b", "github.com/a/b//c?ref=v1"] {
        let kustomization = format!("resources: [\"{path}\"]");
        let message = message(&[("kustomization.yaml", &kustomization)], "");
        assert!(message.contains("remote resources are not allowed"), "{message}");
    }
    let files = [("kustomization.yaml", "resources: [../../x]")];
    assert!(message(&files, "").contains("leads outside of the source root"));
    assert!(join("", "../x").is_err());
}

#[test]
fn helm_charts_are_refused_with_the_way_to_go() {
    let files = [("kustomization.yaml", "resources: []\nhelmCharts: [{name: x}]")];
    assert_eq!(
        message(&files, ""),
        "kustomization.yaml:2:1: helmCharts: helmCharts is not supported (put a helm-chart.yaml into \
         the directory of a deployment item instead)"
    );
}

#[test]
fn manifests_must_be_objects() {
    for (text, expected) in [
        ("kind: X\nmetadata: {name: x}", "apiVersion: missing in X, expected a non-empty string"),
        ("apiVersion: v1\nkind: X\nmetadata: {name: 5}", "metadata.name: found a number"),
        ("- a", "found a list, expected a Kubernetes object (a mapping)"),
    ] {
        let files = [("kustomization.yaml", "resources: [a.yaml]"), ("a.yaml", text)];
        let message = message(&files, "");
        assert!(message.starts_with("a.yaml:1:1: ") && message.contains(expected), "{message}");
    }
}

#[test]
fn kustomizations_do_not_contain_themselves() {
    let files = [
        ("a/kustomization.yaml", "resources: [b]"),
        ("a/b/kustomization.yaml", "resources: [../..]"),
    ];
    let message = message(&files, "a");
    assert!(message.contains("contains this kustomization"), "{message}");
}

#[test]
fn a_thousand_objects_build() {
    let manifest = |n: usize| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d{n}}}\nspec: {{template: {{spec: \
             {{containers: [{{name: c, image: a}}], volumes: [{{name: v, configMap: {{name: c{n}}}}}]}}}}}}\n"
        )
    };
    let patch = |n: usize| {
        format!(
            "- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {{name: d{n}}}\n    \
             spec: {{replicas: 2}}\n"
        )
    };
    let manifests: Vec<String> = (0..1000).map(manifest).collect();
    let patches: String = (0..1000).step_by(50).map(patch).collect();
    let kustomization = format!(
        "resources: [m.yaml]\nnamespace: far\nnamePrefix: p-\ncommonLabels: {{a: b}}\npatches:\n{patches}"
    );
    let manifests = manifests.join("---\n");
    let files = [("kustomization.yaml", kustomization.as_str()), ("m.yaml", manifests.as_str())];
    let objects = build(&tree(&files), "").unwrap();
    assert_eq!(objects.len(), 1000);
    assert_eq!(objects[50].reference().to_string(), "far/Deployment/p-d50");
    assert_eq!(objects[50].value()["spec"]["replicas"], 2);
}
