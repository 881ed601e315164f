//! Runs the projects in `tests/golden` through the program and compares what it prints.
//!
//! Each folder is a case: `cmd` has the arguments, `project/` is the working directory, `env` has variables, `note` says what
//! the case is about. A case that succeeds has the expected `stdout`; one that fails has an `error` that ends in
//! `| must mention: …`, words that the message has in any case. Output is compared document by document as YAML, in order;
//! a plain scalar that readers of YAML 1.1 and 1.2 take for different things is never equal to a quoted one.
//!
//! What cases below 300 expect was recorded from the reference. Those from 300 on are written here, after the reference's
//! documentation and source.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use yaml_rust2::{
    Event,
    parser::{EventReceiver, Parser},
    scanner::TScalarStyle,
};

/// A YAML value with scalars as any reader has to take them.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    /// A plain scalar whose meaning depends on the reader.
    Ambiguous(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

fn regex(pattern: &str) -> regex::Regex {
    regex::Regex::new(pattern).unwrap()
}

fn plain_scalar(text: &str) -> Node {
    let lower = text.to_lowercase();
    if matches!(lower.as_str(), "" | "~" | "null") {
        return Node::Null;
    }
    if matches!(lower.as_str(), "true" | "false") {
        return Node::Bool(lower == "true");
    }
    let ambiguous = [
        r"^(y|yes|on|n|no|off)$",
        r"^[-+]?0[xob][0-9a-f_]+$",
        r"^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$",
        r"^\d{4}-\d\d?-\d\d?([t ].*)?$",
        r"^[-+]?0[0-9_]+$",
    ];
    if ambiguous.iter().any(|pattern| regex(pattern).is_match(&lower)) {
        return Node::Ambiguous(text.to_owned());
    }
    let number = regex(r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)(e[-+]?[0-9]+)?$");
    if number.is_match(&lower) {
        return Node::Number(normal_number(&lower.replace('_', "")));
    }
    Node::Text(text.to_owned())
}

/// A decimal number as sign, digits without leading and trailing zeros, and exponent.
fn normal_number(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa.trim_start_matches('+')),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let exponent = exponent.parse::<i64>().unwrap() - i64::try_from(fraction.len()).unwrap();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let short = digits.trim_end_matches('0');
    let exponent = exponent + i64::try_from(digits.len() - short.len()).unwrap();
    format!("{sign}{short}e{exponent}")
}

/// Builds the documents of a stream from its events.
#[derive(Default)]
struct Builder {
    documents: Vec<Node>,
    /// Open collections; a mapping has the key that waits for its value.
    open: Vec<(Node, Option<String>)>,
    problem: Option<String>,
}

impl Builder {
    fn add(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.documents.push(node),
            Some((Node::List(items), _)) => items.push(node),
            Some((Node::Map(entries), key)) => match key.take() {
                Some(key) => {
                    if entries.insert(key.clone(), node).is_some() {
                        self.problem = Some(format!("duplicate key {key}"));
                    }
                }
                None => *key = Some(key_text(&node)),
            },
            Some(_) => unreachable!("only collections are open"),
        }
    }

    fn close(&mut self) {
        if let Some((node, _)) = self.open.pop() {
            self.add(node);
        }
    }
}

fn key_text(node: &Node) -> String {
    match node {
        Node::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl EventReceiver for Builder {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Scalar(text, TScalarStyle::Plain, ..) => self.add(plain_scalar(&text)),
            Event::Scalar(text, ..) => self.add(Node::Text(text)),
            Event::SequenceStart(..) => self.open.push((Node::List(Vec::new()), None)),
            Event::MappingStart(..) => self.open.push((Node::Map(BTreeMap::new()), None)),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(_) => self.problem = Some("an alias".to_owned()),
            _ => {}
        }
    }
}

/// The documents of a YAML stream that are not empty; `None` when the text is no YAML.
fn documents(text: &str) -> Option<Vec<Node>> {
    let mut builder = Builder::default();
    Parser::new_from_str(text).load(&mut builder, true).ok()?;
    if builder.problem.is_some() {
        return None;
    }
    builder.documents.retain(|document| *document != Node::Null);
    Some(builder.documents)
}

/// Splits a line into words as a shell does, without expansions.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.trim().chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_dir(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The program that `HELM` names, which projects with charts need.
fn helm(project: &Path) -> OsString {
    let has_chart = files_below(project).iter().any(|path| path.ends_with("helm-chart.yaml"));
    match std::env::var_os("HELM") {
        Some(program) => program,
        None if has_chart => panic!(
            "HELM must name the helm program: `go install helm.sh/helm/v4/cmd/helm@v4.2.2`, or run `make test`"
        ),
        None => OsString::new(),
    }
}

/// Runs a case in a copy outside of any Git repository, with nothing of the user's environment.
fn run(case: &Path) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let (project, home) = (dir.path().join("project"), dir.path().join("home"));
    fs::create_dir(&home).unwrap();
    copy_dir(&case.join("project"), &project);
    let variables = read(&case.join("env"));
    let output = Command::new(env!("CARGO_BIN_EXE_kluctl"))
        .args(shell_words(&read(&case.join("cmd"))))
        .current_dir(&project)
        .stdin(Stdio::null())
        .env_clear()
        .env("HOME", &home)
        .env("KUBECONFIG", home.join("no-kubeconfig"))
        .env("KLUCTL_HELM_BINARY", helm(&project))
        .envs(variables.lines().filter_map(|line| line.split_once('=')))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Lists the files below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn what_fails_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    fs::create_dir_all(project.join("app")).unwrap();
    fs::write(project.join("deployment.yaml"), "deployments: [{path: app}, {path: bad}]\n")
        .unwrap();
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";
    fs::write(project.join("app/cm.yaml"), manifest).unwrap();
    let render = || {
        let output = Command::new(env!("CARGO_BIN_EXE_kluctl"))
            .args(["render", "--offline-kubernetes", "--render-output-dir", "../out"])
            .current_dir(&project)
            .env_clear()
            .env("HOME", dir.path())
            .env("TMPDIR", dir.path())
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"");
        (output.status.code(), files_below(&dir.path().join("out")).len())
    };
    // A missing directory, a template that fails, an object that Kubernetes refuses.
    assert_eq!(render(), (Some(1), 0));
    fs::create_dir(project.join("bad")).unwrap();
    fs::write(project.join("bad/cm.yaml"), "{{ nope }}\n").unwrap();
    assert_eq!(render(), (Some(1), 0));
    fs::write(project.join("bad/cm.yaml"), manifest.replace("cm", "Not_Valid")).unwrap();
    assert_eq!(render(), (Some(1), 0));
    fs::write(project.join("bad/cm.yaml"), manifest.replace("cm", "other")).unwrap();
    assert_eq!(render(), (Some(0), 6));
}

/// What is wrong with the outcome of a case.
fn problem(case: &Path) -> Option<String> {
    let Run { code, stdout, stderr } = run(case);
    let wanted: i32 = read(&case.join("exit")).trim().parse().unwrap_or_default();
    if code != Some(wanted) {
        return Some(format!("exit code {code:?}, expected {wanted}\n{stderr}"));
    }
    if case.join("error").exists() {
        let error = read(&case.join("error"));
        let words = error.trim().rsplit_once("| must mention: ").map_or("", |(_, words)| words);
        let shown = format!("{stdout}{stderr}").to_lowercase();
        let missing: Vec<&str> =
            words.split(", ").filter(|word| !shown.contains(&word.to_lowercase())).collect();
        let says = || format!("the message lacks {}:\n{stderr}", missing.join(", "));
        return (!missing.is_empty()).then(says);
    }
    let expected = read(&case.join("stdout"));
    let equal = stdout == expected
        || documents(&expected).is_some_and(|wanted| documents(&stdout) == Some(wanted));
    let differs = || {
        let diff = similar::TextDiff::from_lines(expected.as_str(), stdout.as_str());
        format!("standard output differs\n{}", diff.unified_diff().header("expected", "printed"))
    };
    (!equal).then(differs)
}

#[test]
fn golden_projects_print_what_is_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 100, "only {} cases found", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            let note = read(&case.join("note"));
            problem(case).map(|problem| format!("{name}: {}\n{problem}", note.trim()))
        })
        .collect();
    let count = failures.len();
    assert!(failures.is_empty(), "{count} of {} failed:\n\n{}", cases.len(), failures.join("\n"));
}

#[test]
fn comparing_is_strict_about_meaning_and_lenient_about_form() {
    let same = |a: &str, b: &str| documents(a) == documents(b);
    assert!(same("a: 1\nb: x\n", "b: \"x\"\na: 1.0\n"));
    assert!(same("---\na: 1\n---\n", "a: 1"));
    assert!(same("1e3", "1000"));
    assert!(!same("a: \"1\"", "a: 1"));
    assert!(!same("a: on", "a: \"on\""));
    assert!(!same("a: 0644", "a: \"0644\""));
    assert!(!same("a: 2024-01-02", "a: \"2024-01-02\""));
    assert!(!same("a: 1\n---\nb: 1", "b: 1\n---\na: 1"));
    assert_eq!(documents("a: 1\na: 2\n"), None);
    assert_eq!(
        shell_words(r#"-a s="'true'" -a 'x y'=1 """#),
        ["-a", "s='true'", "-a", "x y=1", ""]
    );
}
