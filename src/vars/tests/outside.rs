//! Sources beyond the project's own files: repositories, objects of any kind, HTTP servers, stores of secrets.

use super::*;
use crate::{
    schema::{GitRef, HttpRequest, VaultSecret},
    secret::Secret,
};

/// A repository with these files on `main`, and with `version: <name>` in `version.yaml` on each branch and tag.
struct FakeGit {
    files: Vec<(&'static str, &'static str)>,
}

const TIPS: [&str; 4] =
    ["refs/heads/main", "refs/heads/release-1", "refs/heads/release-2", "refs/tags/v1"];

impl GitSource for FakeGit {
    fn checkout<'a>(
        &'a self,
        _url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        let name = reference.map_or("refs/heads/main".to_owned(), ToString::to_string);
        async move {
            if !TIPS.contains(&name.as_str()) {
                return Err(Diagnostic::new(Class::Project, format!("unknown {name}")));
            }
            let version = format!("version: {name}\n");
            let version = [("version.yaml", version.as_str())];
            let files = self.files.iter().copied().chain(version);
            let tree: Arc<dyn crate::tree::SourceTree> = Arc::new(MemoryTree::from_texts(files));
            Ok(GitCheckout { tree, commit: format!("commit of {name}") })
        }
        .boxed()
    }

    fn tips<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        let tip =
            |name: &str| GitTip { name: name.to_owned(), commit: format!("commit of {name}") };
        let tips =
            GitTips { default: Some(TIPS[0].to_owned()), all: TIPS.into_iter().map(tip).collect() };
        async move { Ok(tips) }.boxed()
    }
}

fn git(files: &[(&'static str, &'static str)]) -> VarsLoader {
    let git = FakeGit { files: files.to_vec() };
    VarsLoader { git: Some(Arc::new(git)), ..VarsLoader::default() }
}

const URL: &str = "https://user:token@git.example.com/vars.git";

#[test]
fn files_of_a_repository_are_rendered_with_its_own_templates() {
    let loader = git(&[
        ("env/a.yaml", "a: {{ name }}{% include 'env/inner.txt' %}\n"),
        ("env/inner.txt", "-inner"),
    ]);
    let entries = [
        json!({"git": {"url": URL, "path": "env/a.yaml"}}),
        json!({"git": {"url": URL, "ref": {"tag": "v1"}, "path": "version.yaml"}}),
        json!({"git": {"url": URL, "path": "none.yaml"}, "ignoreMissing": true}),
    ];
    let files = [("env/inner.txt", "not from the project")];
    let loaded = load_with(&loader, &files, json!({"name": "x"}), &entries).unwrap();
    assert_eq!(loaded, json!({"name": "x", "a": "x-inner", "version": "refs/tags/v1"}));
}

#[test]
fn only_the_file_of_a_repository_may_be_missing() {
    let loader = git(&[]);
    let entry = json!({
        "git": {"url": URL, "ref": {"branch": "nope"}, "path": "a.yaml"}, "ignoreMissing": true,
    });
    let error = load_with(&loader, &[], json!({}), &[entry]).unwrap_err();
    assert_eq!(error.describe().message, "unknown refs/heads/nope");
    let entry = json!({"git": {"url": URL, "ref": {"tag": "v1"}, "path": "none.yaml"}});
    let (error, field) = load_with(&loader, &[], json!({}), &[entry]).unwrap_err().describe_entry();
    assert_eq!(field.to_string(), "git.path");
    insta::assert_snapshot!(error.hints[0], @"searched in https://***@git.example.com/vars.git@refs/tags/v1");
}

#[test]
fn matching_files_come_as_list_by_path_and_as_tree() {
    let loader = git(&[
        ("apps/one.yaml", "name: {{ who }}\n---\nb: 2\n"),
        ("apps/two.txt", "{{ who }}"),
        ("other.md", "#"),
    ]);
    let entry = json!({
        "gitFiles": {"url": URL, "files": [
            {"glob": "apps/*.yaml", "render": true, "parseYaml": true, "yamlMultiDoc": true},
            {"glob": "apps/**"},
        ]},
        "targetPath": "found",
    });
    let loaded = load_with(&loader, &[], json!({"who": "me"}), &[entry]).unwrap();
    let one = json!({
        "file": {"glob": "apps/*.yaml", "render": true, "parseYaml": true, "yamlMultiDoc": true},
        "path": "apps/one.yaml", "size": 25, "content": "name: me\n---\nb: 2",
        "parsed": [{"name": "me"}, {"b": 2}],
    });
    let two = json!({
        "file": {"glob": "apps/**"}, "path": "apps/two.txt", "size": 9, "content": "{{ who }}",
    });
    assert_eq!(
        loaded["found"],
        json!([{
            "ref": {"branch": "main"},
            "refStr": "refs/heads/main",
            "files": [one, two],
            "filesByPath": {"apps/one.yaml": one, "apps/two.txt": two},
            "filesTree": {"apps": {"one.yaml": one, "two.txt": two}},
        }])
    );
}

#[test]
fn references_of_files_are_patterns_on_whole_names() {
    let loader = git(&[]);
    let found = |reference: Value, ignore_missing: bool| {
        let entry = json!({
            "gitFiles": {"url": URL, "ref": reference, "files": [{"glob": "version.yaml"}]},
            "targetPath": "found", "ignoreMissing": ignore_missing,
        });
        let loaded = load_with(&loader, &[], json!({}), &[entry]).map_err(|e| e.describe())?;
        let list = loaded["found"].as_array().unwrap().clone();
        Ok::<_, Diagnostic>(
            list.iter().map(|one| one["refStr"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
        )
    };
    let releases = ["refs/heads/release-1", "refs/heads/release-2"];
    assert_eq!(found(json!({"branch": "release-.*"}), false).unwrap(), releases);
    assert_eq!(found(json!({"branch": "release|main"}), false).unwrap(), ["refs/heads/main"]);
    assert_eq!(found(json!({"tag": "v[0-9]"}), false).unwrap(), ["refs/tags/v1"]);
    let commit = json!({"commit": "commit of refs/heads/release-2"});
    assert_eq!(found(commit, false).unwrap(), ["refs/heads/release-2"]);
    assert!(found(json!({"branch": "nope"}), true).unwrap().is_empty());
    assert!(found(json!({"branch": "nope"}), false).unwrap().is_empty());
    let error = found(json!({"branch": "("}), false).unwrap_err();
    assert!(error.message.starts_with("pattern \"(\" cannot be used"), "{error}");
}

fn object_loader() -> VarsLoader {
    cluster(&[
        ("ns/ConfigMap/one", json!({"name": "{{ who }}", "yaml": "a: [1]\n", "list": "- a"})),
        ("ns/ConfigMap/two", json!({"name": "second"})),
    ])
}

fn object(fields: &Value) -> Value {
    let mut source = json!({"kind": "ConfigMap", "namespace": "ns", "path": "data.name"});
    source.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"clusterObject": source, "targetPath": "v"})
}

fn load_object(fields: &Value, start: Value) -> Result<Value, Diagnostic> {
    let loaded = load_with(&object_loader(), &[], start, &[object(fields)]);
    loaded.map(|loaded| loaded["v"].clone()).map_err(|error| error.describe())
}

#[test]
fn fields_of_objects_are_read_rendered_and_parsed() {
    let read = |fields: Value| load_object(&fields, json!({"who": "me"})).unwrap();
    assert_eq!(read(json!({"name": "one"})), "{{ who }}");
    assert_eq!(read(json!({"name": "one", "render": true})), "me");
    assert_eq!(read(json!({"name": "one", "path": "data", "render": true}))["name"], "me");
    let yaml = json!({"name": "one", "path": "data.yaml", "parseYaml": true});
    assert_eq!(read(yaml), json!({"a": [1]}));
    let all = json!({"labels": {"app": "shop"}, "list": true, "apiVersion": "v1"});
    assert_eq!(read(all), json!(["{{ who }}", "second"]));
    assert_eq!(read(json!({"name": "two", "path": "$.metadata.name"})), "two");
}

#[test]
fn objects_and_fields_may_be_missing_if_they_may() {
    let missing = |fields: Value, ignore: bool| {
        let mut entry = object(&fields);
        entry["ignoreMissing"] = json!(ignore);
        let loaded = load_with(&object_loader(), &[], json!({"v": 1}), &[entry]);
        loaded.map(|loaded| loaded["v"].clone()).map_err(|error| error.to_string())
    };
    for fields in [json!({"name": "none"}), json!({"name": "one", "path": "data.none"})] {
        assert_eq!(missing(fields, true).unwrap(), json!({}));
    }
    insta::assert_snapshot!(missing(json!({"name": "none"}), false).unwrap_err(), @"ns/ConfigMap/none does not exist in the target cluster");
    insta::assert_snapshot!(
        missing(json!({"name": "one", "path": "data.none"}), false).unwrap_err(),
        @"field data.none of ConfigMap/one does not exist"
    );
}

#[test]
fn objects_are_told_apart() {
    let error = |fields: Value| load_object(&fields, json!({})).unwrap_err().to_string();
    insta::assert_snapshot!(
        error(json!({"labels": {"app": "shop"}})),
        @"ns/ConfigMap with labels app=shop matches 2 objects (use labels that only one object has, or its name)"
    );
    insta::assert_snapshot!(
        error(json!({"kind": "Nope", "name": "x"})),
        @"the target cluster serves no kind Nope"
    );
    insta::assert_snapshot!(
        error(json!({"kind": "Event", "name": "x"})),
        @"kind Event is served by events.k8s.io/v1 and v1 (say which one with `apiVersion`)"
    );
    insta::assert_snapshot!(
        error(json!({"name": "one", "path": "data.*"})),
        @"field data.* of ConfigMap/one is not one field: the path matches 3"
    );
    insta::assert_snapshot!(
        error(json!({"name": "one", "path": "data.list", "parseYaml": true})),
        @"field data.list of ConfigMap/one holds a list, expected a mapping of variables"
    );
    assert!(error(json!({"name": "one", "path": "a["})).starts_with("clusterObject.path is not"));
}

/// Answers by path; `headers` and `body` come back.
struct FakeHttp;

impl HttpSource for FakeHttp {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, Diagnostic>> {
        let path = request.url.split(['/', '?']).nth(3).unwrap_or_default();
        let (status, body) = match path {
            "vars" => (200, "a: 1\nb: '{{ not.rendered }}'\n".to_owned()),
            "docs" => (200, "a: 1\n---\na: 2\n".to_owned()),
            "nested" => (200, json!({"out": {"yaml": "x: [1]", "number": 1}}).to_string()),
            "echo" => (200, json!({"method": request.method, "body": request.body}).to_string()),
            "bad" => (200, "hunter2: [".to_owned()),
            "login" => (401, String::new()),
            _ => (404, String::new()),
        };
        async move { Ok(HttpAnswer { status, body: body.into_bytes() }) }.boxed()
    }
}

fn http(fields: Value) -> Result<Value, Diagnostic> {
    let loader = VarsLoader { http: Some(Arc::new(FakeHttp)), ..VarsLoader::default() };
    load_with(&loader, &[], json!({}), &[fields]).map_err(|error| error.describe())
}

fn url(path: &str) -> String {
    format!("https://h.example.com/{path}?token=hunter2")
}

#[test]
fn answers_are_data_and_never_rendered() {
    let loaded = http(json!({"http": {"url": url("vars")}})).unwrap();
    assert_eq!(loaded, json!({"a": 1, "b": "{{ not.rendered }}"}));
    let docs = json!({"http": {"url": url("docs")}, "multidoc": true, "targetPath": "d"});
    assert_eq!(http(docs).unwrap(), json!({"d": [{"a": 1}, {"a": 2}]}));
    let nested = json!({"http": {"url": url("nested"), "jsonPath": "out.yaml"}});
    assert_eq!(http(nested).unwrap(), json!({"x": [1]}));
    let echo = json!({"http": {"url": url("echo"), "method": "POST", "body": "hi"}});
    assert_eq!(http(echo).unwrap(), json!({"method": "POST", "body": "hi"}));
}

#[test]
fn answers_that_cannot_be_used_are_told_without_secrets() {
    let missing = json!({"http": {"url": url("none")}, "ignoreMissing": true, "targetPath": "x"});
    assert_eq!(http(missing).unwrap(), json!({"x": {}}));
    let error = |fields| {
        let text = http(fields).unwrap_err().to_string();
        assert!(!text.contains("token"), "{text}");
        text
    };
    insta::assert_snapshot!(
        error(json!({"http": {"url": url("none")}})),
        @"https://h.example.com/none?*** answers with status 404 (set ignoreMissing: true if it may be missing)"
    );
    insta::assert_snapshot!(
        error(json!({"http": {"url": url("login")}, "ignoreMissing": true})),
        @"https://h.example.com/login?*** answers with status 401 (give what the server asks for in `headers`)"
    );
    insta::assert_snapshot!(
        error(json!({"http": {"url": url("nested"), "jsonPath": "out.number"}})),
        @"the answer of https://h.example.com/nested?*** has a number at out.number, expected a text that holds YAML"
    );
    insta::assert_snapshot!(
        error(json!({"http": {"url": url("nested"), "jsonPath": "out.none"}})),
        @"out.none in the answer of https://h.example.com/nested?*** does not exist (set ignoreMissing: true if it may be missing)"
    );
    let bad = error(json!({"http": {"url": url("bad")}, "sensitive": true}));
    assert!(bad.contains("is not valid YAML") && !bad.contains("hunter2"), "{bad}");
}

/// A store that knows one secret.
struct FakeVault;

impl SecretStore<VaultSecret> for FakeVault {
    fn read<'a>(
        &'a self,
        name: &'a VaultSecret,
    ) -> BoxFuture<'a, Result<Option<Secret<String>>, Diagnostic>> {
        let text = "password: '{{ prefix }}-hunter2'\n".to_owned();
        let found = (name.path == "secret/data/app").then_some(Secret::new(text));
        async move { Ok(found) }.boxed()
    }
}

#[test]
fn secrets_of_stores_are_rendered_and_may_be_missing() {
    let secrets = SecretStores { vault: Some(Arc::new(FakeVault)), ..SecretStores::default() };
    let loader = VarsLoader { secrets, ..VarsLoader::default() };
    let read = |path: &str, ignore: bool| {
        let entry = json!({
            "vault": {"address": "https://vault.example.com", "path": path}, "ignoreMissing": ignore,
        });
        load_with(&loader, &[], json!({"prefix": "x"}), &[entry])
    };
    assert_eq!(read("secret/data/app", false).unwrap()["password"], "x-hunter2");
    assert_eq!(read("secret/data/none", true).unwrap(), json!({"prefix": "x"}));
    let error = read("secret/data/none", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "secret secret/data/none of https://vault.example.com does not exist"
    );
}

#[test]
fn files_marked_as_sensitive_are_not_quoted() {
    for text in ["hunter2: [", "a: {{ hunter2 }}", "hunter2"] {
        let entry = json!({"file": "v.yaml", "sensitive": true});
        let error = load_error(&[("v.yaml", text)], entry);
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("v.yaml") && !shown.contains("hunter2"), "{shown}");
    }
    let entry = json!({"file": "v.yaml", "sensitive": true});
    assert_eq!(load(&[("v.yaml", "a: 1")], json!({}), &[entry]), json!({"a": 1}));
}
