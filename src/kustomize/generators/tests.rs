use serde_json::json;

use super::*;
use crate::{diagnostic::SourceLocation, kustomize::schema::Schema};

fn hash_of(value: Value) -> String {
    hash::of(&Resource::new(value, SourceLocation::file("x"), &Schema::builtin()))
}

#[test]
fn base64_is_broken_into_lines_of_seventy() {
    assert_eq!(base64_lines(b"abc"), "YWJj");
    let long = base64_lines(&[b'a'; 60]);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [70, 10]);
    assert!(long.ends_with('\n'));
    assert!(!base64_lines(&[b'a'; 51]).contains('\n'));
}

#[test]
fn hashes_depend_on_content_only() {
    let map = |data: Value| {
        hash_of(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}),
        )
    };
    assert_eq!(map(json!({"a": "<&>"})), map(json!({"a": "<&>"})));
    assert_ne!(map(json!({"a": "1"})), map(json!({"a": "2"})));
    let labelled = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"l": "1"}}, "data": {"a": "1"}});
    assert_eq!(hash_of(labelled), map(json!({"a": "1"})));
}

#[test]
fn own_options_go_over_those_for_all() {
    let all = GeneratorOptions {
        labels: [("a".to_owned(), "all".to_owned()), ("b".to_owned(), "all".to_owned())].into(),
        disable_name_suffix_hash: true,
        ..GeneratorOptions::default()
    };
    let own = GeneratorOptions {
        labels: [("a".to_owned(), "own".to_owned())].into(),
        immutable: true,
        ..GeneratorOptions::default()
    };
    let merged = GeneratorOptions::over(Some(&own), Some(&all));
    assert_eq!(merged.labels["a"], "own");
    assert_eq!(merged.labels["b"], "all");
    assert!(merged.disable_name_suffix_hash && merged.immutable);
}
