use super::*;

#[test]
fn field_paths_print_in_kluctl_notation() {
    let cases: [(FieldPath, &str); 5] = [
        (
            ["metadata", "labels", "kluctl.io/tag-0"].into_iter().collect(),
            r#"metadata.labels["kluctl.io/tag-0"]"#,
        ),
        (["data", "a"].into_iter().collect(), r#"data["a"]"#),
        (
            FieldPath::root().child("spec").child("ports").child(2).child("name"),
            "spec.ports[2].name",
        ),
        (["x.y"].into_iter().collect(), r#"$["x.y"]"#),
        ([r#"a"b"#].into_iter().collect(), r#"$['a"b']"#),
    ];
    for (path, expected) in cases {
        assert_eq!(path.to_string(), expected);
    }
}

#[test]
fn a_diagnostic_prints_place_field_and_hint() {
    let diagnostic = Diagnostic::new(Class::Project, "unknown branch \"prdo\"")
        .with_location(SourceLocation::new("deployment.yaml", 14, 5))
        .with_field("deployments[2].git.ref")
        .with_hint("did you mean `prod`?");
    assert_eq!(
        diagnostic.to_string(),
        "deployment.yaml:14:5: deployments[2].git.ref: unknown branch \"prdo\" (did you mean `prod`?)"
    );
}
