use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::*;

#[test]
fn files_hold_a_mapping_or_with_multidoc_a_list() {
    let files =
        [("docs.yaml", "name: one\n---\n---\n- a\n"), ("list.yaml", "- a\n"), ("empty.yaml", "")];
    let entries = [
        json!({"file": "docs.yaml", "multidoc": true, "targetPath": "all.docs"}),
        json!({"file": "docs.yaml", "targetPath": "first"}),
        json!({"file": "empty.yaml"}),
    ];
    let expected = json!({"all": {"docs": [{"name": "one"}, ["a"]]}, "first": {"name": "one"}});
    assert_eq!(load(&files, json!({}), &entries), expected);
    let error = load_error(&files, json!({"file": "list.yaml"}));
    assert_eq!(error.to_string(), "list.yaml holds a list, expected a mapping of variables");
}

#[test]
fn missing_files_are_told_with_the_directories_searched() {
    let error = load_error(&[], json!({"file": "sub/none.yaml"}));
    assert!(error.message.contains("sub/none.yaml"), "{error}");
    assert_eq!(error.hints[0], "searched in .");
    let start = json!({"scalar": "old", "map": {"x": 1}});
    let entries = [
        json!({"file": "none.yaml", "ignoreMissing": true}),
        json!({"file": "none.yaml", "ignoreMissing": true, "targetPath": "scalar"}),
        json!({"file": "none.yaml", "ignoreMissing": true, "targetPath": "map"}),
    ];
    assert_eq!(load(&[], start, &entries), json!({"scalar": {}, "map": {"x": 1}}));
}

#[test]
fn problems_in_files_point_to_the_file_as_written() {
    let text = "{% for i in [1, 2] %}\na{{ i }}: x\n{% endfor %}\nb: [1\nc: 2\n";
    let error = load_error(&[("v.yaml", text)], json!({"file": "v.yaml"}));
    let at = error.at.clone().unwrap();
    assert_eq!((at.file.as_str(), at.position.unwrap().line), ("v.yaml", 5), "{error}");
    assert!(error.excerpt.unwrap().lines.contains(&"c: 2".to_owned()));

    let error = load_error(&[("v.yaml", "a: 1\nb: {{ nope }}\n")], json!({"file": "v.yaml"}));
    assert_eq!(error.at.unwrap().position.unwrap().line, 2);
}

#[test]
fn encrypted_files_are_refused_by_name() {
    let text = "a: ENC[AES256_GCM,data:x]\nsops:\n  mac: ENC[x]\n  version: 3.9.0\n";
    let error = load_error(&[("v.yaml", text)], json!({"file": "v.yaml"}));
    assert!(error.message.contains("v.yaml is encrypted"), "{error}");
    for (path, content, encrypted) in [
        ("a.yaml", "sops: {mac: x}\n", true),
        ("a.yaml", "sops: text\n", false),
        ("a.txt", "sops: {mac: x}\n", false),
        ("a.json", "{\"sops\": {\"version\": \"3\"}}", true),
        ("a.env", "A=b\nsops_mac=x\n", true),
        ("a.env", "A=sops_mac=\n", false),
        ("a.ini", "[x]\na=b\n[sops]\nmac=x\n", true),
    ] {
        assert_eq!(is_encrypted(path, content.as_bytes()), encrypted, "{path}: {content}");
    }
}

#[test]
fn environment_variables_are_read_as_yaml() {
    let variables = [("COUNT", "3"), ("FLAG", "'true'"), ("MAP", "{a: 1}"), ("EMPTY", "")];
    let environment =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let loader = VarsLoader { environment: Arc::new(environment), ..VarsLoader::default() };
    let read = |names: Value, ignore_missing: bool| {
        let entry = json!({"systemEnvVars": names, "ignoreMissing": ignore_missing});
        load_with(&loader, &[], json!({}), &[entry])
    };
    let names = json!({
        "count": "COUNT:99", "flag": "FLAG", "nested": {"map": "MAP", "other": "UNSET:fallback"},
        "empty": "EMPTY:x", "emptyDefault": "UNSET:", "url": "UNSET:https://x:1/y", "list": ["COUNT", "MAP"],
    });
    let expected = json!({
        "count": 3, "flag": "true", "nested": {"map": {"a": 1}, "other": "fallback"},
        "empty": null, "emptyDefault": "", "url": "https://x:1/y", "list": [3, {"a": 1}],
    });
    assert_eq!(read(names, false).unwrap(), expected);
    let partly = json!({"a": "UNSET", "deep": {"b": "UNSET"}, "list": ["UNSET", "COUNT"]});
    assert_eq!(read(partly, true).unwrap(), json!({"list": [3]}));
    let (error, field) = read(json!({"deep": {"b": "UNSET"}}), false).unwrap_err().describe_entry();
    assert!(error.message.contains("UNSET"), "{error}");
    assert_eq!(field.to_string(), "systemEnvVars.deep[\"b\"]");
    assert!(read(json!({"a": 1}), false).unwrap_err().to_string().contains("not a number"));
}

#[test]
fn cluster_data_is_decoded_rendered_and_parsed() {
    let secret = BASE64_STANDARD.encode("password: \"{{ prefix }}-pw\"\n");
    let loader = cluster(&[
        ("ns/ConfigMap/config", json!({"vars": "a: 1\n", "text": "plain"})),
        ("ns/Secret/creds", json!({"vars": secret})),
    ]);
    let entries = [
        json!({"clusterConfigMap": {"name": "config", "namespace": "ns", "key": "vars"}}),
        json!({"clusterConfigMap": {"name": "config", "namespace": "ns", "key": "text"}, "targetPath": "t"}),
        json!({"clusterSecret": {"labels": {"app": "shop"}, "namespace": "ns", "key": "vars"}}),
    ];
    let loaded = load_with(&loader, &[], json!({"prefix": "x"}), &entries).unwrap();
    assert_eq!(loaded, json!({"prefix": "x", "a": 1, "t": "plain", "password": "x-pw"}));
}

#[test]
fn missing_cluster_data_leaves_earlier_values_alone() {
    let loader = cluster(&[("ns/ConfigMap/config", json!({"vars": "a: 1"}))]);
    let read = |name: &str, key: &str, ignore_missing: bool| {
        let entry = json!({
            "clusterConfigMap": {"name": name, "namespace": "ns", "key": key},
            "ignoreMissing": ignore_missing, "targetPath": "a",
        });
        load_with(&loader, &[], json!({"a": "default"}), &[entry])
    };
    assert_eq!(read("missing", "vars", true).unwrap(), json!({"a": "default"}));
    assert_eq!(read("config", "missing", true).unwrap(), json!({"a": "default"}));
    let message = |name: &str, key: &str| read(name, key, false).unwrap_err().to_string();
    assert_eq!(
        message("missing", "vars"),
        "ns/ConfigMap/missing does not exist in the target cluster"
    );
    assert_eq!(message("config", "missing"), "ns/ConfigMap/config has no key \"missing\"");
    assert_eq!(message("forbidden", "vars"), "forbidden");
    assert_eq!(read("forbidden", "vars", true).unwrap_err().to_string(), "forbidden");
}

#[test]
fn labels_lead_to_exactly_one_object() {
    let data = json!({"vars": "a: 1"});
    let loader = cluster(&[("ns/ConfigMap/one", data.clone()), ("ns/ConfigMap/two", data)]);
    let entry =
        json!({"clusterConfigMap": {"labels": {"app": "shop"}, "namespace": "ns", "key": "vars"}});
    let error = load_with(&loader, &[], json!({}), &[entry]).unwrap_err();
    assert_eq!(error.to_string(), "ns/ConfigMap with labels app=shop matches 2 objects");
}

#[test]
fn problems_in_secrets_do_not_show_them() {
    for content in ["hunter2: [", "{{ hunter2 }}", "{{ 'hunter2'.nope.nope }}"] {
        let loader = cluster(&[("ns/Secret/s", json!({"k": BASE64_STANDARD.encode(content)}))]);
        let entry = json!({"clusterSecret": {"name": "s", "namespace": "ns", "key": "k"}});
        let error = load_with(&loader, &[], json!({}), &[entry]).unwrap_err();
        let shown = format!("{} {error:?}", error.describe());
        assert!(shown.contains("ns/Secret/s"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn cluster_sources_need_a_cluster() {
    let entry = json!({"clusterSecret": {"name": "s", "namespace": "ns", "key": "k"}});
    let error = load_error(&[], entry);
    assert_eq!(error.message, "clusterSecret needs access to the target cluster");
}
