use serde_json::json;

use super::JsonPath;

fn located(path: &str) -> Vec<String> {
    let tree = json!({
        "metadata": {"labels": {"a.b/c": "1", "x": "2"}},
        "spec": {"containers": [
            {"name": "web", "image": "a", "ports": [{"port": 80}, {"port": 443}]},
            {"name": "log", "image": "b"},
        ]},
    });
    let path = JsonPath::parse(path).unwrap();
    path.locate(&tree).iter().map(ToString::to_string).collect()
}

#[test]
fn paths_select_fields() {
    let cases: &[(&str, &[&str])] = &[
        ("metadata.labels.xx", &[]),
        ("$.metadata.labels", &["metadata.labels"]),
        (r#"metadata.labels["a.b/c"]"#, &[r#"metadata.labels["a.b/c"]"#]),
        ("$['metadata']['labels']['x']", &[r#"metadata.labels["x"]"#]),
        ("metadata.labels.*", &[r#"metadata.labels["a.b/c"]"#, r#"metadata.labels["x"]"#]),
        ("spec.containers[0].image", &["spec.containers[0].image"]),
        ("spec.containers[-1].image", &["spec.containers[1].image"]),
        ("spec.containers[*].image", &["spec.containers[0].image", "spec.containers[1].image"]),
        ("spec.containers[0:1].name", &["spec.containers[0].name"]),
        ("spec.containers[0,1].name", &["spec.containers[0].name", "spec.containers[1].name"]),
        (r#"spec.containers[?(@.name == "log")].image"#, &["spec.containers[1].image"]),
        ("spec.containers[?(@.ports)].name", &["spec.containers[0].name"]),
        ("spec.containers[?(!@.ports)].name", &["spec.containers[1].name"]),
        ("spec..ports[?(@.port > 80 && @.port < 500)]", &["spec.containers[0].ports[1]"]),
        (
            "spec.containers[?(@.image == 'a' || @.image == 'b')].name",
            &["spec.containers[0].name", "spec.containers[1].name"],
        ),
        ("spec.containers[?(@.name =~ /^w/)].name", &["spec.containers[0].name"]),
        ("$..port", &["spec.containers[0].ports[0].port", "spec.containers[0].ports[1].port"]),
    ];
    for (path, expected) in cases {
        assert_eq!(located(path), *expected, "{path}");
    }
}

#[test]
fn two_dots_alone_select_everything() {
    let all = located("..");
    assert_eq!(all.first().map(String::as_str), Some("metadata"));
    assert!(all.contains(&"spec.containers[0].ports[1].port".to_owned()));
    assert!(!all.contains(&String::new()));
}

#[test]
fn errors_tell_where() {
    for (path, message) in [
        ("", r#""" is not a JSON path: the path is empty at character 1"#),
        ("a.", r#""a." is not a JSON path: expected a field name at character 3"#),
        ("a[", r#""a[" is not a JSON path: expected an index or a key at character 3"#),
        ("a['b", r#""a['b" is not a JSON path: text not closed at character 5"#),
        (
            "a[?(@.b == )]",
            r#""a[?(@.b == )]" is not a JSON path: expected a path or a value at character 12"#,
        ),
    ] {
        assert_eq!(JsonPath::parse(path).unwrap_err().to_string(), message);
    }
}
