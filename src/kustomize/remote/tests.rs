use std::{collections::BTreeMap, sync::Mutex};

use super::*;
use crate::{
    diagnostic::{Class, Describe},
    kustomize::{Options, build_with},
    object::Object,
    tree::MemoryTree,
};

#[test]
fn addresses_are_read_as_kustomize_reads_them() {
    for (address, url, reference, dir) in [
        ("https://host.example/org/repo", "https://host.example/org/repo", None, ""),
        (
            "https://host.example/org/repo/a/b?ref=v1",
            "https://host.example/org/repo",
            Some("v1"),
            "a/b",
        ),
        (
            "https://host.example/org/repo//a?version=v2",
            "https://host.example/org/repo",
            Some("v2"),
            "a",
        ),
        ("https://host.example/x?version=v2&ref=v1", "", None, ""),
        (
            "https://h.example/a/b/c/repo.git/sub?ref=f%2Fg",
            "https://h.example/a/b/c/repo.git",
            Some("f/g"),
            "sub",
        ),
        ("https://h.example/a/b/c//sub/", "https://h.example/a/b/c", None, "sub"),
        (
            "https://me@dev.azure.com/o/p/_git/repo/x/y",
            "https://me@dev.azure.com/o/p/_git/repo",
            None,
            "x/y",
        ),
        (
            "git@host.example:org/repo.git//x?ref=main&timeout=90s&submodules=false",
            "git@host.example:org/repo.git",
            Some("main"),
            "x",
        ),
        ("git@host.example:org/repo/x", "git@host.example:org/repo", None, "x"),
        ("ssh://git@host.example:22/org/repo//x", "ssh://git@host.example:22/org/repo", None, "x"),
        ("git::https://host.example/org/repo", "https://host.example/org/repo", None, ""),
        ("github.com/org/repo/x", "https://github.com/org/repo", None, "x"),
        ("GitHub.com:org/repo", "https://github.com/org/repo", None, ""),
        ("git@github.com/org/repo", "git@github.com:org/repo", None, ""),
        ("ssh://git@github.com/org/repo.git", "git@github.com:org/repo.git", None, ""),
        ("file:///srv/repo//x?ref=v1", "file:///srv/repo", Some("v1"), "x"),
        ("http://127.0.0.1:8080/repo.git?ref=", "http://127.0.0.1:8080/repo.git", None, ""),
    ] {
        let found = Repository::parse(address);
        if url.is_empty() {
            assert_eq!(found, None, "{address}");
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{address}"));
        assert_eq!(
            (&*found.url, found.reference.as_deref(), &*found.dir),
            (url, reference, dir),
            "{address}"
        );
    }
    for path in [
        "base",
        "../base",
        "a.yaml",
        "/a/b",
        "https://host.example/file.yaml",
        "https://host.example",
        "a@b/c",
        "a/b/c",
        "host.example/org/repo",
        "https://host.example/org/repo//../x",
        "git@host.example",
        "oci://x/y/z",
        "",
    ] {
        assert_eq!(Repository::parse(path), None, "{path}");
    }
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";

/// Names with contents.
type Texts<'a> = &'a [(&'a str, &'a str)];

/// Repositories by address and reference, files by URL, and what was asked for.
#[derive(Default)]
struct Web {
    repositories: BTreeMap<(String, Option<String>), MemoryTree>,
    files: BTreeMap<String, String>,
    asked: Mutex<Vec<String>>,
}

impl Web {
    /// Repositories by URL and reference, with their files; and files by URL.
    fn with(repositories: &[(&str, &str, Texts<'_>)], files: Texts<'_>) -> Self {
        let tree = |(url, reference, files): &(&str, &str, Texts<'_>)| {
            let reference = Some((*reference).to_owned()).filter(|text| !text.is_empty());
            (((*url).to_owned(), reference), MemoryTree::from_texts(files.iter().copied()))
        };
        let text = |(url, text): &(&str, &str)| ((*url).to_owned(), (*text).to_owned());
        Self {
            repositories: repositories.iter().map(tree).collect(),
            files: files.iter().map(text).collect(),
            asked: Mutex::default(),
        }
    }
}

impl Remotes for Web {
    fn repository(
        &self,
        repository: &Repository,
    ) -> std::result::Result<Arc<dyn SourceTree>, Diagnostic> {
        self.asked.lock().unwrap().push(repository.shown(""));
        let key = (repository.url.clone(), repository.reference.clone());
        match self.repositories.get(&key) {
            Some(tree) => Ok(Arc::new(tree.clone())),
            None => Err(Diagnostic::new(Class::Access, "no such repository")),
        }
    }

    fn file(&self, url: &str) -> std::result::Result<RemoteFile, Diagnostic> {
        self.asked.lock().unwrap().push(url.to_owned());
        let text = self.files.get(url);
        Ok(text
            .map_or(RemoteFile::Status(404), |text| RemoteFile::Content(text.clone().into_bytes())))
    }
}

fn build(web: &Web, kustomization: &str) -> Result<Vec<Object>> {
    let tree = MemoryTree::from_texts([("app/kustomization.yaml", kustomization)]);
    build_with(&tree, "app", Options::default(), Some(web))
}

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(Object::name).collect()
}

#[test]
fn repositories_are_built_in_their_own_trees() {
    let (base, above) = (MAP.replace("NAME", "base"), MAP.replace("NAME", "above"));
    let web = Web::with(
        &[(
            "https://h.example/o/r",
            "v1",
            &[
                ("deep/base/kustomization.yaml", "resources: [m.yaml, ../other]"),
                ("deep/base/m.yaml", &base),
                ("deep/other/kustomization.yaml", "resources: [m.yaml]"),
                ("deep/other/m.yaml", &above),
            ],
        )],
        &[],
    );
    let kustomization = "resources: ['https://h.example/o/r//deep/base?ref=v1']\nbuildMetadata: [originAnnotations]\nnamePrefix: p-";
    let objects = build(&web, kustomization).unwrap();
    assert_eq!(names(&objects), ["p-base", "p-above"]);
    let origin = &objects[1].value()["metadata"]["annotations"]["config.kubernetes.io/origin"];
    assert_eq!(origin, "path: deep/other/m.yaml\nrepo: https://h.example/o/r\nref: v1\n");
}

#[test]
fn files_of_repositories_stay_in_their_directory() {
    let text = MAP.replace("NAME", "x");
    let web = Web::with(
        &[(
            "https://h.example/o/r",
            "",
            &[("base/kustomization.yaml", "resources: [../m.yaml]"), ("m.yaml", &text)],
        )],
        &[],
    );
    let error = build(&web, "resources: [https://h.example/o/r//base]").unwrap_err().to_string();
    assert!(error.contains("../m.yaml is outside of base"), "{error}");
    assert!(error.contains("https://h.example/o/r//base/kustomization.yaml"), "{error}");
}

#[test]
fn cycles_through_repositories_are_found() {
    let web = Web::with(
        &[
            (
                "https://h.example/o/a",
                "",
                &[("kustomization.yaml", "resources: [https://h.example/o/b]")],
            ),
            (
                "https://h.example/o/b",
                "",
                &[("kustomization.yaml", "resources: [https://h.example/o/a]")],
            ),
        ],
        &[],
    );
    let error = build(&web, "resources: [https://h.example/o/a]").unwrap_err().to_string();
    assert!(error.contains("cannot build upon itself"), "{error}");
    let chain = ["a//kustomization.yaml", "b//kustomization.yaml", "a//"];
    let chain = chain.map(|place| format!("https://h.example/o/{place}")).join(" → ");
    assert!(error.contains(&chain), "{error}");
}

#[test]
fn files_come_from_web_servers() {
    let (one, patch) = (MAP.replace("NAME", "one"), "[{op: add, path: /data, value: {a: b}}]");
    let web = Web::with(
        &[(
            "https://h.example/o/r",
            "",
            &[
                ("x/kustomization.yaml", "resources: [m.yaml]"),
                ("x/m.yaml", &MAP.replace("NAME", "two")),
            ],
        )],
        &[
            ("https://h.example/one.yaml", &one),
            ("https://h.example/long/path/to.yaml", &MAP.replace("NAME", "three")),
            ("https://h.example/patch.yaml", patch),
            ("https://h.example/o/r/x", "<html><body class=\"a\">no yaml: at: all</body>\n"),
        ],
    );
    let kustomization = "resources: [https://h.example/one.yaml, https://h.example/o/r/x, https://h.example/long/path/to.yaml]\n\
        patches: [{path: https://h.example/patch.yaml, target: {name: one}}]";
    let objects = build(&web, kustomization).unwrap();
    assert_eq!(names(&objects), ["one", "two", "three"]);
    assert_eq!(objects[0].value()["data"]["a"], "b");
    let error = build(&web, "resources: [https://h.example/none.yaml]").unwrap_err().describe();
    assert_eq!(error.message, "https://h.example/none.yaml answers with status 404");
    assert_eq!(error.at.unwrap().to_string(), "app/kustomization.yaml:1:13");
}

#[test]
fn remote_resources_have_to_be_allowed() {
    for entry in [
        "https://u:secret@h.example/o/r",
        "git@h.example:o/r",
        "https://h.example/a.yaml",
        "github.com/o/r",
    ] {
        let tree = MemoryTree::from_texts([(
            "kustomization.yaml",
            format!("resources: ['{entry}']").as_str(),
        )]);
        let error = crate::kustomize::build(&tree, "").unwrap_err().to_string();
        assert!(error.contains("remote resources are not allowed"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn refusals_of_servers_are_shown_where_they_are_named() {
    let web = Web::default();
    let error = build(&web, "components: ['https://h.example/o/r?ref=v9']").unwrap_err().describe();
    assert_eq!((error.class, error.message.as_str()), (Class::Access, "no such repository"));
    assert_eq!(error.field.as_deref(), Some("components[0]"));
}
