//! Reading against what Go's libraries make of the same texts: `sigs.k8s.io/yaml` 1.6.0 in strict mode, and kyaml 0.21.1
//! through its resource reader.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::*;

#[derive(Deserialize)]
struct Probe {
    text: String,
    /// The text read as configuration and written again; none when it is refused.
    config: Option<String>,
    /// The text read as a map of strings.
    strings: Option<BTreeMap<String, String>>,
    /// The text's objects, each written again.
    manifest: Option<Vec<String>>,
}

fn probes() -> Vec<Probe> {
    serde_json::from_str(include_str!("reading.json")).unwrap()
}

/// Texts that configuration is read from otherwise than by Go, on purpose or because nobody writes them, by reason.
const CONFIG_DEVIATIONS: &[(&str, &[&str])] = &[
    (
        "NEL, LS and PS are characters, as YAML 1.2 has it",
        &["a: \u{2028}\n", "a: a\u{85}b\n", "a: \"\u{85}\"\n"],
    ),
    (
        "binary data that is no text is refused, not garbled",
        &[
            "a: !!binary true\n",
            "a: !!binary null\n",
            "a: !!binary 9007199254740993\n",
            "a: !!binary 12345678901234567890\n",
            "a: !!binary 0x10\n",
            "a: !!binary /w==\n",
        ],
    ),
    (
        "`<<` as a key is written in quotes, since it would merge otherwise",
        &["'<<': v\n", "\"<<\": v\na: '<<'\n", "c:\n  '<<': {x: 1}\n"],
    ),
    (
        "a large integer is as good a key as any",
        &[
            "12345678901234567890: v\n",
            "a:\n  12345678901234567890: v\n",
            "a: {12345678901234567890: 12345678901234567890}\n",
        ],
    ),
    (
        "directives are skipped",
        &["%YAML 1.2\n---\na: yes\n", "%YAML 3.0\n---\na: 1\n", "%FOO bar\n---\na: 1\n"],
    ),
    ("keys that are equal as JSON are duplicates", &["1: a\n'1': b\n"]),
    (
        "what is merged can be overridden",
        &[
            "c:\n  <<: [{x: 1}, {x: 2}]\n",
            "a: {<<: {c: 2}, c: 3}\n",
            "x: &x {a: 1}\nz: {<<: [*x, {a: 2, d: 4}], c: 3}\n",
        ],
    ),
    ("YAML 1.2 refuses it", &["a: [-]\n", "a: \u{feff}x\n"]),
    (
        "YAML 1.2 allows it",
        &[
            "a: \"\\x41\\u00e9\\U0001F600\\t\\n\\\\\\/\\\"\\e\\0\\a\\b\\v\\f\\r\\N\\_\\L\\P\\ \"\n",
            "a: &x.y b\nc: *x.y\n",
            "- \tx\n",
            "a: |\n  \tx\n",
            "...\n",
            "...\na: 1\n",
            "a: [?x, :y]\n",
            "a: {?x: :y}\n",
            "a: [x?, y:]\n",
            "a: {a\n b: c\n d}\n",
            "a: {x\n: 1}\n",
        ],
    ),
];

/// As [`CONFIG_DEVIATIONS`], for what the string conversion adds.
const STRING_DEVIATIONS: &[(&str, &[&str])] = &[(
    "infinity and NaN are refused everywhere",
    &[
        "a: .inf\n",
        "a: .Inf\n",
        "a: .INF\n",
        "a: +.inf\n",
        "a: -.inf\n",
        "a: -.INF\n",
        "a: .nan\n",
        "a: .NaN\n",
        "a: .NAN\n",
        "a: !!float .inf\n",
        "a: !!float '.inf'\n",
    ],
)];

/// As [`CONFIG_DEVIATIONS`], for manifests.
const MANIFEST_DEVIATIONS: &[(&str, &[&str])] = &[
    (
        "impossible offsets stay text",
        &["a: 2024-01-02T03:04:05+24:00\n", "a: 2024-01-02T03:04:05+23:60\n"],
    ),
    (
        "keys that are not strings become strings, as the API server has it; kustomize fails below the top",
        &[
            "a:\n  true: v\n",
            "a: {true: true}\n",
            "a:\n  1: v\n",
            "a: {1: 1}\n",
            "a:\n  007: v\n",
            "a: {007: 007}\n",
            "a:\n  0o7: v\n",
            "a: {0o7: 0o7}\n",
            "a:\n  1.10: v\n",
            "a: {1.10: 1.10}\n",
            "a:\n  1e3: v\n",
            "a: {1e3: 1e3}\n",
            "a:\n  2024-01-02: v\n",
            "a: {2024-01-02: 2024-01-02}\n",
            "a:\n  .inf: v\n",
            "a:\n  9007199254740993: v\n",
            "a: {9007199254740993: 9007199254740993}\n",
            "a:\n  12345678901234567890: v\n",
            "a: {12345678901234567890: 12345678901234567890}\n",
            "a:\n  1e6: v\n",
            "a: {1e6: 1e6}\n",
            "a:\n  0x10: v\n",
            "a: {0x10: 0x10}\n",
        ],
    ),
    (
        "the tag `!` makes a string",
        &[
            "a: !\n",
            "a: ! true\n",
            "a: ! 1\n",
            "a: ! 007\n",
            "a: ! 0o7\n",
            "a: ! 1.10\n",
            "a: ! 1e3\n",
            "a: ! null\n",
            "a: ! ~\n",
            "a: ! 2024-01-02\n",
            "a: ! .inf\n",
            "a: ! 9007199254740993\n",
            "a: ! 12345678901234567890\n",
            "a: ! 1e6\n",
            "a: ! 0x10\n",
        ],
    ),
    ("a second merge key is fine", &["base: &b {x: 1, y: 2}\nc:\n  <<: *b\n  <<: {q: 1}\n"]),
    (
        "directives are skipped",
        &["%YAML 1.1\n---\na: yes\n", "%TAG !e! tag:example.com,2000:\n---\na: !e!x y\n"],
    ),
    (
        "folded text keeps its lines; kustomize adds some",
        &["a: >\n  x\n  y\n\n  z\n   more\n  w\n", "a: >+\n\n  x\n\n", "a: >\n x\n  y\n z\n"],
    ),
    (
        "nothing in braces is null, as elsewhere",
        &["a: {b, c: d}\n", "a: {b: , c: }\n", "a: {b:c}\n", "a: !!set {x, y}\n"],
    ),
    (
        "what follows a document is read, or refused, but not dropped",
        &["a: 1\n...\nb: 2\n", "  a: 1\n b: 2\n", "{a: 1}\n{b: 2}\n"],
    ),
];

fn known(tables: &[&[(&str, &[&str])]], text: &str) -> bool {
    tables.iter().any(|table| table.iter().any(|(_, texts)| texts.contains(&text)))
}

fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn config_is_read_as_sigs_yaml_does() {
    let mut wrong = Vec::new();
    for probe in probes() {
        let ours = parse_document("probe.yaml", probe.text.as_bytes(), Schema::Config);
        let ours = ours.map(|document| emit(&document.value));
        let agrees = ours.as_ref().ok() == probe.config.as_ref();
        if agrees == known(&[CONFIG_DEVIATIONS], &probe.text) {
            wrong.push(format!("{:?}: go {:?}, ours {ours:?}", probe.text, probe.config));
        }
    }
    report(&wrong);
}

#[test]
fn scalars_become_strings_as_in_sigs_yaml() {
    let mut wrong = Vec::new();
    for probe in probes() {
        let Some(expected) = probe.strings else { continue };
        if known(&[CONFIG_DEVIATIONS, STRING_DEVIATIONS], &probe.text) {
            continue;
        }
        let ours = parse_document("probe.yaml", probe.text.as_bytes(), Schema::Config).and_then(
            |document| from_document::<BTreeMap<String, String>>("probe.yaml", &document),
        );
        if ours.as_ref().ok() != Some(&expected) {
            wrong.push(format!("{:?}: go {expected:?}, ours {ours:?}", probe.text));
        }
    }
    report(&wrong);
}

#[test]
fn manifests_are_read_as_kustomize_does() {
    let mut wrong = Vec::new();
    for probe in probes() {
        let ours = parse_documents("probe.yaml", probe.text.as_bytes(), Schema::Manifest);
        // What is no mapping is no manifest, whoever says so.
        if ours.as_ref().is_ok_and(|docs| docs.iter().any(|doc| !doc.value.is_object())) {
            continue;
        }
        let ours = ours.map(|docs| docs.iter().map(|doc| emit(&doc.value)).collect::<Vec<_>>());
        // What deviates in configuration may or may not do so here.
        let agrees = ours.as_ref().ok() == probe.manifest.as_ref();
        let deviates = known(&[MANIFEST_DEVIATIONS], &probe.text);
        if agrees == deviates && !known(&[CONFIG_DEVIATIONS], &probe.text) {
            wrong.push(format!("{:?}: go {:?}, ours {ours:?}", probe.text, probe.manifest));
        }
    }
    report(&wrong);
}
