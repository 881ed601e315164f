//! Checks the rules of `docs/architecture.md` against the source: layers, purity, dependency reasons.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "cargo wants `.rs` as well")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Modules by layer. A module uses modules of lower layers, and within its layer those that [`SIDEWAYS`] names.
const LAYERS: &[&[&str]] = &[
    &["diagnostic", "secret", "yaml", "object"],
    &["api", "observer", "schema"],
    &["tree", "net", "archive", "artifact", "git", "helm", "cluster"],
    &["jinja", "kustomize", "vars", "project", "deployment"],
    &["results", "diff", "readiness", "hooks", "apply", "prune", "validate"],
    &["engine"],
    &["controller"],
    &["cli", "telemetry"],
];

/// The uses within a layer: the first may use the others.
const SIDEWAYS: &[(&str, &[&str])] = &[
    ("secret", &["diagnostic"]),
    ("yaml", &["diagnostic"]),
    ("object", &["diagnostic", "yaml"]),
    ("artifact", &["net", "archive", "tree"]),
    ("archive", &["tree"]),
    ("git", &["net", "tree"]),
    ("helm", &["git", "net", "archive", "tree"]),
    ("cluster", &["net"]),
    ("vars", &["jinja"]),
    ("project", &["jinja", "vars"]),
    ("deployment", &["project", "vars", "jinja", "kustomize"]),
    ("readiness", &["results"]),
    ("diff", &["results"]),
    ("apply", &["hooks", "diff", "readiness", "results"]),
    ("prune", &["results"]),
    ("validate", &["hooks", "readiness", "results"]),
    ("cli", &["telemetry"]),
];

/// Code that decides and computes: no async, no environment, clock, files or network.
const PURE: &[&str] = &[
    "diagnostic",
    "secret.rs",
    "yaml",
    "object",
    "schema",
    "jinja",
    "kustomize",
    "hooks",
    "diff",
    "cluster/kubeconfig.rs",
    "cluster/outcome.rs",
    "artifact/digest.rs",
    "git/auth.rs",
    "git/known_hosts.rs",
    "git/reference.rs",
    "helm/output.rs",
    "deployment/inclusion.rs",
    "deployment/desired.rs",
    "readiness/assess.rs",
    "apply/plan.rs",
    "apply/decide.rs",
    "apply/conflict.rs",
    "prune/plan.rs",
    "validate/rules.rs",
    "controller/decide.rs",
    "controller/schedule.rs",
    "controller/requests.rs",
    "controller/summarize.rs",
    "controller/summarize/events.rs",
    "controller/ownership.rs",
    "controller/triggers.rs",
    "controller/dependencies.rs",
];

/// What pure code does not contain.
const IMPURE: &[&str] = &[
    "async fn",
    ".await",
    "std::fs",
    "std::env",
    "std::net",
    "tokio::",
    "reqwest::",
    "kube::Client",
    "SystemTime::now",
    "Timestamp::now",
    "Instant::now",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below `dir` that are not tests, with their paths relative to `src`.
fn sources(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                found.extend(sources(&path));
            }
        } else if name.ends_with(".rs")
            && !name.starts_with("tests")
            && !name.ends_with("_tests.rs")
        {
            let text = fs::read_to_string(&path).unwrap();
            // Unit tests at the end of a file may use whatever they like.
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
            found.push((path.strip_prefix(root().join("src")).unwrap().to_owned(), code));
        }
    }
    found.sort();
    found
}

/// The code without comments, so that documentation may name what code may not use.
fn without_comments(code: &str) -> String {
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn module_of(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The top-level modules of the crate that the code names.
fn used_modules(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let groups = if let Some(group) = rest.strip_prefix('{') {
            top_level_names(group)
        } else {
            vec![name(rest)]
        };
        used.extend(groups.into_iter().filter(|name| !name.is_empty()));
    }
    used
}

fn name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first name of each element of a `{a::b, c::{d, e}}` group, given the text after its opening brace.
fn top_level_names(group: &str) -> Vec<String> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_usize, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_use_only_lower_layers() {
    let mut wrong = Vec::new();
    for (path, code) in sources(&root().join("src")) {
        let module = module_of(&path);
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let Some(layer) = layer_of(&module) else {
            wrong.push(format!("{}: module `{module}` is in no layer", path.display()));
            continue;
        };
        let beside =
            SIDEWAYS.iter().find(|(user, _)| *user == module).map_or(&[][..], |(_, used)| used);
        for used in used_modules(&without_comments(&code)) {
            let Some(other) = layer_of(&used) else { continue };
            let allowed = other < layer
                || used == module
                || (other == layer && beside.contains(&used.as_str()));
            if !allowed {
                wrong.push(format!("{}: `{module}` must not use `{used}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_code_is_pure() {
    let mut wrong = Vec::new();
    for (path, code) in sources(&root().join("src")) {
        let shown = path.display().to_string();
        if !PURE.iter().any(|pure| shown == *pure || shown.starts_with(&format!("{pure}/"))) {
            continue;
        }
        let code = without_comments(&code);
        wrong.extend(
            IMPURE
                .iter()
                .filter(|word| code.contains(*word))
                .map(|word| format!("{shown}: `{word}`")),
        );
    }
    assert!(wrong.is_empty(), "pure modules contain:\n{}", wrong.join("\n"));
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let mut missing = Vec::new();
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (in_dependencies, line.split_once(" = "))
            && !reasons.contains(&format!("`{name}`"))
        {
            missing.push(name.to_owned());
        }
    }
    assert!(missing.is_empty(), "docs/dependencies.md gives no reason for: {}", missing.join(", "));
}

#[test]
fn unfinished_marks_do_not_land() {
    let mut found = Vec::new();
    for (path, code) in sources(&root().join("src")) {
        let marks = ["todo!(", "unimplemented!(", "FIXME", "#[ignore"];
        found.extend(
            marks
                .iter()
                .filter(|mark| code.contains(*mark))
                .map(|mark| format!("{}: {mark}", path.display())),
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
