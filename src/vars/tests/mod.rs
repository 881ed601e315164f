mod outside;
mod sources;
mod templates;

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, executor::block_on, future::BoxFuture};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    jinja,
    schema::VarsSource,
    tree::MemoryTree,
};

/// Templates of a project at the root of these files.
fn templates(files: &[(&str, &str)]) -> Templates {
    let tree = Arc::new(MemoryTree::from_texts(files.iter().copied()));
    let options = jinja::Options::new(jiff::Timestamp::UNIX_EPOCH);
    Templates::new(tree, None, vec![String::new()], &options)
}

fn context(values: Value) -> Context {
    let Value::Object(values) = values else { panic!("variables are a mapping") };
    Context::from(values)
}

/// Loads entries given as JSON, one after the other.
fn load_with(
    loader: &VarsLoader,
    files: &[(&str, &str)],
    start: Value,
    entries: &[Value],
) -> Result<Value, VarsError> {
    let templates = templates(files);
    let mut context = context(start);
    for entry in entries {
        let entry: VarsSource = serde_json::from_value(entry.clone()).unwrap();
        block_on(loader.load(&entry, "deployment.yaml", &templates, &mut context))?;
    }
    Ok(context.values().clone())
}

fn load(files: &[(&str, &str)], start: Value, entries: &[Value]) -> Value {
    load_with(&VarsLoader::default(), files, start, entries).unwrap()
}

fn load_failure(entry: Value) -> VarsError {
    load_with(&VarsLoader::default(), &[], json!({}), &[entry]).unwrap_err()
}

fn load_error(files: &[(&str, &str)], entry: Value) -> Diagnostic {
    let loader = VarsLoader::default();
    load_with(&loader, files, json!({}), &[entry]).unwrap_err().describe()
}

#[test]
fn later_entries_win_see_earlier_ones_and_merge_deeply() {
    let files =
        [("common.yaml", "app:\n  ports: [8080]\n  url: https://{{ app.name }}.{{ region }}\n")];
    let entries = [
        json!({"values": {"app": {"name": "shop", "ports": [80, 443]}, "region": "eu"}}),
        json!({"file": "common.yaml"}),
        json!({"values": {"region": null}}),
    ];
    let expected =
        json!({"app": {"name": "shop", "ports": [8080], "url": "https://shop.eu"}, "region": null});
    assert_eq!(load(&files, json!({}), &entries), expected);
}

#[test]
fn no_override_only_adds_what_is_missing() {
    let entry = json!({"values": {"a": {"x": 2, "y": 2}, "b": 2}, "noOverride": true});
    let loaded = load(&[], json!({"a": {"x": 1}}), &[entry]);
    assert_eq!(loaded, json!({"a": {"x": 1, "y": 2}, "b": 2}));
}

#[test]
fn values_keys_and_conditions_are_rendered_with_the_variables_so_far() {
    let entries = [
        json!({"values": {"name": "core", "base": 10}}),
        json!({"values": {"key-{{ name }}": "{{ base + 1 }}", "list": ["{{ name }}"]}}),
        json!({"values": {"skipped": 1}, "when": "name == 'other'"}),
        json!({"file": "missing.yaml", "when": "{{ name == 'x' }}"}),
    ];
    let expected = json!({"name": "core", "base": 10, "key-core": "11", "list": ["core"]});
    assert_eq!(load(&[], json!({}), &entries), expected);
}

#[test]
fn a_false_condition_does_not_excuse_undefined_names() {
    let entry = json!({"values": {"a": "{{ nope }}"}, "when": "False"});
    let error = load_error(&[], entry);
    assert!(error.message.contains("'nope' is undefined"), "{error}");
}

#[test]
fn target_paths_name_one_place() {
    let entries = [
        json!({"values": {"user": "admin"}, "targetPath": "creds"}),
        json!({"values": {"k": "v"}, "targetPath": "$.creds[\"x.y\"].deep"}),
    ];
    let expected = json!({"creds": {"user": "admin", "x.y": {"deep": {"k": "v"}}}});
    assert_eq!(load(&[], json!({}), &entries), expected);
    for path in ["a.*", "a[0]", "a..b", "$"] {
        let entry = json!({"values": {"k": "v"}, "targetPath": path});
        let error = load_error(&[], entry);
        assert!(error.message.contains("does not name one field"), "{path}: {error}");
    }
}

#[test]
fn changing_a_copy_leaves_the_original_alone() {
    let original = context(json!({"a": {"x": 1}}));
    let mut copy = original.clone();
    let Value::Object(newer) = json!({"a": {"y": 2}}) else { unreachable!() };
    copy.merge(newer);
    copy.set("b", json!(1));
    copy.remove("missing");
    assert_eq!(original.values(), &json!({"a": {"x": 1}}));
    assert_eq!(copy.values(), &json!({"a": {"x": 1, "y": 2}, "b": 1}));
}

#[test]
fn sources_that_the_front_does_not_offer_are_refused_by_name() {
    let url = "https://example.com";
    for (kind, source) in [
        ("http", json!({"url": url})),
        ("git", json!({"url": url, "path": "x.yaml"})),
        ("gitFiles", json!({"url": url, "files": [{"glob": "*"}]})),
        ("awsSecretsManager", json!({"secretName": "x"})),
        ("gcpSecretManager", json!({"secretName": "x"})),
        ("azureKeyVault", json!({"vaultUri": url, "secretName": "x"})),
        ("vault", json!({"address": "https://vault", "path": "secret/data/x"})),
    ] {
        let (error, field) = load_failure(json!({kind: source})).describe_entry();
        assert_eq!(error.message, format!("vars from {kind} are not available here"));
        assert_eq!(field.to_string(), kind);
    }
}

/// Objects by `namespace/kind/name`.
struct FakeCluster(BTreeMap<String, Value>);

impl ClusterReader for FakeCluster {
    fn api_versions<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<String>, Diagnostic>> {
        let versions: &[&str] = match kind {
            "ConfigMap" => &["v1"],
            "Event" => &["events.k8s.io/v1", "v1"],
            _ => &[],
        };
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        async move { Ok(versions) }.boxed()
    }

    fn get<'a>(
        &'a self,
        _api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>> {
        let found = match name {
            "forbidden" => Err(Diagnostic::new(Class::Access, "forbidden")),
            _ => Ok(self.0.get(&format!("{namespace}/{kind}/{name}")).cloned()),
        };
        async move { found }.boxed()
    }

    fn list<'a>(
        &'a self,
        _api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Vec<Value>, Diagnostic>> {
        let has = |object: &&Value| {
            labels.iter().all(|(key, value)| object["metadata"]["labels"][key] == **value)
        };
        let prefix = format!("{namespace}/{kind}/");
        let objects = self.0.iter().filter(|(key, _)| key.starts_with(&prefix));
        let found = objects.map(|(_, object)| object).filter(has).cloned().collect();
        async move { Ok(found) }.boxed()
    }
}

fn cluster(objects: &[(&str, Value)]) -> VarsLoader {
    let objects = objects.iter().map(|(name, data)| {
        let labels: Map<String, Value> = Map::from_iter([("app".to_owned(), json!("shop"))]);
        let short = name.rsplit('/').next().unwrap();
        let object = json!({"metadata": {"name": short, "labels": labels}, "data": data});
        ((*name).to_owned(), object)
    });
    VarsLoader { cluster: Some(Arc::new(FakeCluster(objects.collect()))), ..VarsLoader::default() }
}
