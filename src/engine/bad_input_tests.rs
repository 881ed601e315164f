//! What is wrong with a project ends with one clear message, and with no result at all.
#![expect(clippy::disallowed_methods, reason = "makes directories with links")]

use std::{fmt::Write, path::Path, sync::Arc};

use tokio_util::sync::CancellationToken;

use super::{Engine, Externals, Limits, PrepareRequest, Silent, Source};
use crate::{
    deployment::Inclusion,
    diagnostic::Diagnostic,
    jinja,
    project::TargetRequest,
    tree::{DiskTree, MemoryTree, SourceTree},
};

/// All that is told about a project in a tree.
async fn told_of(tree: Arc<dyn SourceTree>) -> String {
    let request = PrepareRequest {
        source: Source { tree, project_dir: String::new(), config_file: None },
        target: TargetRequest::default(),
        inclusion: Inclusion::default(),
        jinja: jinja::Options::new(jiff::Timestamp::UNIX_EPOCH),
    };
    let engine = Engine::new(Limits::for_cores(2));
    let (externals, cancel) = (Externals::default(), CancellationToken::new());
    let prepared = engine.prepare(&request, &externals, &Silent, &cancel).await;
    let error = prepared.map(drop).unwrap_err();
    error.diagnostics().iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n")
}

async fn told(files: &[(&str, &str)]) -> String {
    told_of(Arc::new(MemoryTree::from_texts(files.iter().copied()))).await
}

const ONE_ITEM: (&str, &str) = ("deployment.yaml", "deployments: [{path: app}]\n");
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";

/// An item with this manifest.
async fn told_of_manifest(text: &str) -> String {
    told(&[ONE_ITEM, ("app/cm.yaml", text)]).await
}

#[tokio::test]
async fn tabs() {
    let told_of_config = told(&[("deployment.yaml", "deployments:\n\t- path: app\n")]).await;
    insta::assert_snapshot!(told_of_config, @"deployment.yaml:2:2: invalid YAML: tabs disallowed within this context (block indentation) (indent with spaces: YAML does not allow tabs there)");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: cm\n";
    insta::assert_snapshot!(told_of_manifest(manifest).await, @"app/cm.yaml:4:2: invalid YAML: tabs disallowed within this context (block indentation) (indent with spaces: YAML does not allow tabs there)");
}

#[tokio::test]
async fn duplicate_keys() {
    let config = told(&[("deployment.yaml", "tags: []\ntags: []\n")]).await;
    insta::assert_snapshot!(config, @r#"deployment.yaml:2:1: duplicate key "tags" (first defined at 1:1)"#);
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, name: b}\n";
    insta::assert_snapshot!(told_of_manifest(manifest).await, @r#"app/cm.yaml:3:22: duplicate key "name" (first defined at 3:12)"#);
}

#[tokio::test]
async fn bytes_that_are_no_text() {
    let told_of_bytes = async |path: &str, deployment: &str| {
        let mut tree = MemoryTree::from_texts([("deployment.yaml", deployment)]);
        tree.insert(path, b"a: {b: 1}\nc: \xff\n".to_vec());
        told_of(Arc::new(tree)).await
    };
    insta::assert_snapshot!(told_of_bytes("deployment.yaml", "").await, @"deployment.yaml:2:4: deployment.yaml is not UTF-8 text");
    insta::assert_snapshot!(told_of_bytes("app/cm.yaml", ONE_ITEM.1).await, @"app/cm.yaml:2:4: app/cm.yaml has template markers but is not UTF-8 text (list binary files in .templateignore)");
    let vars = "vars: [{file: v.yaml}]\n";
    insta::assert_snapshot!(told_of_bytes("v.yaml", vars).await, @"v.yaml:2:4: vars file v.yaml is not UTF-8 text");
}

/// Ten lines that expand to ten thousand million values.
fn bomb() -> String {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (above, name) in "abcdefghi".chars().zip("bcdefghij".chars()) {
        let aliases = vec![format!("*{above}"); 10].join(",");
        writeln!(text, "{name}: &{name} [{aliases}]").unwrap();
    }
    text
}

#[tokio::test]
async fn aliases_that_expand_without_end() {
    insta::assert_snapshot!(told_of_manifest(&bomb()).await, @"app/cm.yaml:6:14: aliases expand to too much content");
    let files = [("deployment.yaml", "vars: [{file: v.yaml}]\n"), ("v.yaml", &bomb())];
    insta::assert_snapshot!(told(&files).await, @"v.yaml:6:14: aliases expand to too much content");
}

#[tokio::test]
async fn files_with_a_hundred_thousand_documents() {
    let manifest = format!("---\n{CONFIG_MAP}").repeat(100_000);
    insta::assert_snapshot!(told_of_manifest(&manifest).await, @"app/cm.yaml:80001:1: more than 20000 documents in one file");
    let vars = "vars: [{file: v.yaml, multidoc: true, targetPath: x}]\n";
    let files = [("deployment.yaml", vars), ("v.yaml", &"---\na: 1\n".repeat(100_000))];
    insta::assert_snapshot!(told(&files).await, @"v.yaml:40001:1: more than 20000 documents in one file");
}

#[tokio::test]
async fn includes_that_lead_back() {
    let deployments = told(&[
        ("deployment.yaml", "deployments: [{include: a}]\n"),
        ("a/deployment.yaml", "deployments: [{include: b}]\n"),
        ("a/b/deployment.yaml", "deployments: [{include: ..}]\n"),
    ])
    .await;
    insta::assert_snapshot!(deployments, @"a/b/deployment.yaml:1:15: deployments[0]: the project includes itself: . → a → a/b → a (give one of the includes a `when` that becomes false, or remove it)");
    let libraries = told(&[
        ("deployment.yaml", "deployments: [{include: lib, args: {num: 1}}]\n"),
        ("lib/.kluctl-library.yaml", "args: [{name: num}]\n"),
        (
            "lib/deployment.yaml",
            "deployments: [{include: ../lib, args: {num: {{ args.num + 1 }} }}]\n",
        ),
    ])
    .await;
    insta::assert_snapshot!(libraries, @"lib/deployment.yaml:1:1: deployments[0]: includes are nested more than 64 deep: … → lib → lib → lib → lib (the place is line 1 of the rendered text; templates made it from the line shown)");
    let templates = told(&[
        ONE_ITEM,
        ("app/cm.yaml", "a: {% include 'b.txt' %}\n"),
        ("app/b.txt", "{% include 'cm.yaml' %}\n"),
    ])
    .await;
    let first = templates.lines().next().unwrap_or_default();
    assert!(first.contains("app/b.txt") && first.contains("app/cm.yaml"), "{templates}");
    let kustomizations = told(&[
        ("deployment.yaml", "deployments: [{path: a}, {path: b, onlyRender: true}]\n"),
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a]\n"),
    ])
    .await;
    assert!(kustomizations.starts_with("b/kustomization.yaml:1:13: resources[0]: "));
}

/// A project on disk, with links.
async fn told_of_links(files: &[(&str, &str)], links: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    let place = |path: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for (path, text) in files {
        std::fs::write(place(path), text).unwrap();
    }
    for (path, target) in links {
        std::os::unix::fs::symlink(Path::new(target), place(path)).unwrap();
    }
    told_of(Arc::new(DiskTree::new(&root).unwrap())).await
}

#[tokio::test]
async fn links_that_leave_the_project() {
    let cm = ("app/cm.yaml", CONFIG_MAP);
    let file = told_of_links(&[ONE_ITEM, cm], &[("app/passwd.yaml", "/etc/passwd")]).await;
    insta::assert_snapshot!(file, @"app: app/passwd.yaml: leads outside of the source root");
    let directory = told_of_links(&[ONE_ITEM, cm], &[("app/etc", "../../../../../../etc")]).await;
    insta::assert_snapshot!(directory, @"app: app/etc: leads outside of the source root");
    let vars = ("deployment.yaml", "vars: [{file: v.yaml}]\n");
    let vars = told_of_links(&[vars], &[("v.yaml", "/etc/passwd")]).await;
    insta::assert_snapshot!(vars, @"deployment.yaml:1:8: vars[0]: vars file cannot be read: v.yaml: leads outside of the source root");
    let include = ("deployment.yaml", "deployments: [{include: sub}]\n");
    let include = told_of_links(&[include], &[("sub", "/etc")]).await;
    insta::assert_snapshot!(include, @"deployment.yaml:1:15: deployments[0]: sub: leads outside of the source root");
    let endless = told_of_links(&[ONE_ITEM, cm], &[("app/up", ".")]).await;
    insta::assert_snapshot!(endless, @"app: directories in app are nested more than 32 deep (look for a link that leads upwards)");
}

#[tokio::test]
async fn missing_files() {
    let directory = told(&[("deployment.yaml", "deployments: [{path: a}, {include: b}]\n")]).await;
    insta::assert_snapshot!(directory, @r#"
    deployment.yaml:1:16: deployments[0].path: directory a does not exist
    deployment.yaml:1:26: deployments[1]: directory b does not exist
    "#);
    let resource = [ONE_ITEM, ("app/kustomization.yaml", "resources: [none.yaml]\n")];
    insta::assert_snapshot!(told(&resource).await, @"app/kustomization.yaml:1:13: resources[0]: app/none.yaml: no such file or directory");
    let vars = told(&[("deployment.yaml", "vars: [{file: none.yaml}]\n")]).await;
    insta::assert_snapshot!(vars, @"deployment.yaml:1:9: vars[0].file: vars file none.yaml does not exist (searched in .; set ignoreMissing: true if it may be missing)");
    let template = told_of_manifest("{% include 'none.txt' %}\n").await;
    insta::assert_snapshot!(template, @"app/cm.yaml:1:12: template none.txt not found");
}

#[tokio::test]
async fn the_same_object_twice() {
    let files = [ONE_ITEM, ("app/a.yaml", CONFIG_MAP), ("app/b.yaml", CONFIG_MAP)];
    insta::assert_snapshot!(told(&files).await, @"app/b.yaml:1:1: ConfigMap/cm: ConfigMap cm is defined twice (also defined at app/a.yaml:1:1; rename or remove one of them, or change it with a patch)");
}

#[tokio::test]
async fn names_and_labels_that_kubernetes_refuses() {
    let manifest =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid, labels: {a: 'b c'}}\n";
    insta::assert_snapshot!(told_of_manifest(manifest).await, @r#"
    app: ConfigMap/Not_Valid: metadata.name: "Not_Valid" is no name that ConfigMap can have, expected lower case letters, digits, `-` and `.`, with a letter or digit at both ends of each part, at most 253 characters
    app: ConfigMap/Not_Valid: metadata.labels["a"]: "b c" is no value that a label can have, expected at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends
    "#);
}

#[tokio::test]
async fn missing_arguments() {
    let files =
        [(".kluctl.yaml", "args: [{name: region}, {name: size, default: 1}, {name: zone}]\n")];
    insta::assert_snapshot!(told(&files).await, @".kluctl.yaml:1:9: args[0].name: required arguments region, zone not set (give it a value, for example with `-a region=…` or in the target's args; arguments: region (required), size, zone (required))");
}

#[tokio::test]
async fn unknown_fields() {
    let files = [(".kluctl.yaml", "tragets: []\n")];
    insta::assert_snapshot!(told(&files).await, @r#".kluctl.yaml:1:1: tragets: unknown field "tragets" (did you mean `targets`?)"#);
    let deployment = "deployments:\n- path: app\n  tgas: [a]\n- pth: app\nvras: []\n";
    let files = [("deployment.yaml", deployment), ("app/cm.yaml", CONFIG_MAP)];
    insta::assert_snapshot!(told(&files).await, @r#"
    deployment.yaml:3:3: deployments[0].tgas: unknown field "tgas" (did you mean `tags`?)
    deployment.yaml:4:3: deployments[1].pth: unknown field "pth" (did you mean `path`?)
    deployment.yaml:5:1: vras: unknown field "vras" (did you mean `vars`?)
    "#);
}
