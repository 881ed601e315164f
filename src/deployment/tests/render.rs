use super::{
    super::{hash::objects_hash, namespaces::fix_namespaces, template_ignore::TemplateIgnore},
    *,
};
use crate::object::Object;

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn names(state: &DesiredState) -> Vec<&str> {
    state.objects().map(|object| object.name()).collect()
}

#[test]
fn items_without_kustomization_take_manifests_by_name() {
    let all = |dir: &str, name: &str| (format!("m/{dir}"), config_map(name));
    let files = [
        all(".hidden.yaml", "hidden"),
        all("Z.YAML", "z"),
        all("a10.yaml", "a10"),
        all("a2.yml", "a2"),
        all("sub/c.yaml", "c"),
        all("helm-values.yaml", "values"),
        ("m/readme.md".to_owned(), "text".to_owned()),
        ("deployment.yaml".to_owned(), "deployments: [{path: m}]".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let state = Fixture::new(&files).desired(Inclusion::default()).unwrap();
    assert_eq!(names(&state), ["hidden", "z", "a10", "a2"]);
}

#[test]
fn recursive_items_take_sub_directories_in_place() {
    let names_of = |extra: (&str, &str)| {
        let state = Fixture::new(&[
            ("deployment.yaml", "deployments: [{path: m, recursive: true}]"),
            ("m/a.yaml", &config_map("a-file")),
            ("m/a/b/deep.yml", &config_map("deep")),
            ("m/a/z.yaml", &config_map("a-z")),
            ("m/b.yaml", &config_map("b")),
            extra,
        ])
        .desired(Inclusion::default());
        state.map(|state| names(&state).join(" "))
    };
    assert_eq!(names_of(("m/x.txt", "")).unwrap(), "deep a-z a-file b");
    for kustomization in ["m/kustomization.yaml", "m/a/kustomization.yml"] {
        let errors = names_of((kustomization, "resources: []")).unwrap_err();
        assert_eq!(errors[0].at.as_ref().unwrap().file, kustomization);
    }
}

#[test]
fn only_included_items_are_rendered() {
    let fixture = Fixture::new(&[
        (
            "deployment.yaml",
            "deployments:\n- path: a\n- path: b\n- {path: c, alwaysDeploy: true}\n- {path: d, barrier: true}\n",
        ),
        ("a/x.yaml", &config_map("a")),
        ("b/helm-chart.yaml", "helmChart: {}"),
        ("c/x.yaml", &config_map("c")),
        ("d/x.yaml", &config_map("d")),
    ]);
    let only = |include: &[&str], exclude: &[&str]| {
        let tags = |list: &[&str]| list.iter().map(|tag| (*tag).to_owned()).collect();
        Inclusion {
            include_tags: tags(include),
            exclude_tags: tags(exclude),
            ..Inclusion::default()
        }
    };
    let state = fixture.desired(only(&["a"], &["d"])).unwrap();
    assert_eq!(names(&state), ["a", "c", "d"]);
    let errors = fixture.desired(Inclusion::default()).unwrap_err();
    assert_eq!(errors[0].at.as_ref().unwrap().file, "b/helm-chart.yaml");
}

#[test]
fn the_problems_of_all_items_are_gathered_by_stage() {
    let errors = Fixture::new(&[
        ("deployment.yaml", "deployments: [{path: a}, {path: b}]"),
        ("a/helm-chart.yaml", ""),
        ("b/sub/Helm-Chart.YML", ""),
    ]);
    let rendering = errors.load().unwrap().into_rendering(RenderOptions {
        inclusion: Inclusion::default(),
        discriminator: None,
        images: Vec::new(),
    });
    assert!((0..2).all(|index| rendering.render_item(index).is_err()));
}

#[test]
fn objects_get_labels_and_annotations_of_the_deployment() {
    let state = Fixture::new(&[
        (
            "deployment.yaml",
            "commonLabels: {team: a}\ncommonAnnotations: {note: b}\ndeployments:\n- {path: app, skipDeleteIfTags: true}\n",
        ),
        (
            "app/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\n  labels: {team: own, keep: me, kluctl.io/discriminator: mine}\n",
        ),
        (
            "app/ignored.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: no\n  annotations: {kluctl.io/ignore: \"1\"}\n",
        ),
    ])
    .desired(Inclusion::default())
    .unwrap();
    let metadata = &state.items[0].objects[0].value()["metadata"];
    let labels = json!({"team": "a", "keep": "me", "kluctl.io/discriminator": "shop", "kluctl.io/tag-0": "app"});
    assert_eq!(metadata["labels"], labels);
    let annotations = json!({
        "note": "b", "kluctl.io/deployment-item-dir": "app", "kluctl.io/skip-delete-if-tags": "true",
    });
    assert_eq!(metadata["annotations"], annotations);
    assert_eq!(state.objects().count(), 1);
}

#[test]
fn the_extension_less_kustomization_is_refused_by_name() {
    let errors = Fixture::new(&[
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/Kustomization", "resources: []"),
    ])
    .desired(Inclusion::default())
    .unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "app/Kustomization: app/Kustomization is not used by kluctl, expected kustomization.yaml or kustomization.yml"
    );
}

#[test]
fn template_ignore_lets_the_last_pattern_decide() {
    let tree = MemoryTree::from_texts([
        (".templateignore", "# comment\n*.tmpl\n/app/anchored.txt\n**/skip/*\n!**/skip/keep.txt\n"),
        ("app/.templateignore", "local.txt\n"),
        ("app/deep/.templateignore", "!local.txt\nown/\n"),
        ("other/.templateignore", "*\n"),
    ]);
    let ignore = TemplateIgnore::read(&tree, "app", &["app/deep".to_owned()]).unwrap();
    for (path, ignored) in [
        ("app/a.tmpl", true),
        ("app/anchored.txt", true),
        ("app/nested/app/anchored.txt", false),
        ("app/skip/a.txt", true),
        ("app/skip/keep.txt", false),
        ("app/local.txt", true),
        ("app/nested/local.txt", true),
        ("app/deep/local.txt", false),
        ("app/deep/own/x.yaml", true),
        ("app/own/x.yaml", false),
        ("app/plain.yaml", false),
    ] {
        assert_eq!(ignore.is_ignored(path), ignored, "{path}");
    }
}

#[test]
fn namespaces_follow_scopes_with_own_crds_first() {
    struct Known;
    impl ScopeLookup for Known {
        fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
            match (group, kind) {
                ("", "ConfigMap") | ("example.com", "Widget") => Some(true),
                ("", "Namespace") => Some(false),
                _ => None,
            }
        }
    }
    let object = |api_version: &str, kind: &str, namespace: Option<&str>, chart: bool| {
        let mut object = Object::new(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}),
        )
        .unwrap();
        object.set_namespace(namespace);
        if chart {
            object.set_annotation("kluctl.io/helm-install-namespace", "chart-ns");
        }
        Arc::new(object)
    };
    let crd = Object::new(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Widget"}},
    }));
    let mut items = [DesiredItem {
        objects: vec![
            object("v1", "ConfigMap", None, false),
            object("v1", "ConfigMap", None, true),
            object("v1", "ConfigMap", Some("own"), true),
            object("v1", "Namespace", Some("wrong"), false),
            object("example.com/v1", "Widget", Some("wrong"), false),
            object("other.io/v1", "Unknown", None, false),
            Arc::new(crd.unwrap()),
        ],
        ..DesiredItem::default()
    }];
    fix_namespaces(&mut items, &Known);
    let namespaces: Vec<_> = items[0].objects.iter().map(|object| object.namespace()).collect();
    let expected = [Some("default"), Some("chart-ns"), Some("own"), None, None, None, None];
    assert_eq!(namespaces, expected);
    assert!(items[0].objects.iter().all(|object| object.annotations().is_empty()));
}

#[test]
fn the_hash_depends_on_content_and_order_and_escapes_as_go_does() {
    let object = |name: &str| {
        let value = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"x": "<&>"}});
        Arc::new(Object::new(value).unwrap())
    };
    let (a, b) = (object("a"), object("b"));
    assert_ne!(objects_hash([&a, &b]), objects_hash([&b, &a]));
    // The JSON in Go's notation, hashed twice.
    let json = r#"{"apiVersion":"v1","data":{"x":"\u003c\u0026\u003e"},"kind":"ConfigMap","metadata":{"name":"a"}}"#;
    let inner = <sha2::Sha256 as sha2::Digest>::digest(json);
    let outer = <sha2::Sha256 as sha2::Digest>::digest(inner);
    let hex = outer.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    assert_eq!(objects_hash([&a]), hex);
}
