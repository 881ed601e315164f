//! Compares reading and writing YAML with Go's `sigs.k8s.io/yaml` and kyaml, in the versions that kluctl 2.28 uses.
//!
//! `hack/yaml-probe` is the tool with those libraries; the tests build it when it is missing, and fail when they cannot.
//! The probes are those that the unit tests of `src/yaml` replay, whose answers must be what Go gives now, and texts that
//! `yaml/generate.rs` makes. `yaml/deviations.txt` says what differs and why.

#[path = "yaml/generate.rs"]
mod generate;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flux_kluctl_controller::yaml::{Schema, emit, from_document, parse_document, parse_documents};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the tool says about a text or a value.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Answer {
    config: Option<String>,
    strings: Option<BTreeMap<String, String>>,
    manifest: Option<Vec<String>>,
    yaml: String,
    error: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program() -> String {
    let output = Command::new(root().join("hack/yaml-probe/build")).output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "yaml-probe cannot be built:\n{message}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Go's answers, in the order of the questions.
fn ask(questions: impl IntoIterator<Item = Value>) -> Vec<Answer> {
    let mut child = Command::new(program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("yaml-probe starts");
    let mut lines = String::new();
    for question in questions {
        lines.push_str(&question.to_string());
        lines.push('\n');
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "yaml-probe fails");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// An anchor that contains itself overflows the stack of kyaml, so nobody asks it.
fn crashes_kyaml(text: &[u8]) -> bool {
    let read = parse_documents("probe", text, Schema::Manifest);
    read.is_err_and(|error| error.to_string().contains("contains itself"))
}

fn text_question(text: &[u8]) -> Value {
    json!({"text": STANDARD.encode(text), "config_only": crashes_kyaml(text)})
}

fn ours_as_config(text: &[u8]) -> Result<String, String> {
    let document =
        parse_document("probe", text, Schema::Config).map_err(|error| error.to_string())?;
    Ok(emit(&document.value))
}

fn ours_as_manifests(text: &[u8]) -> Result<Vec<Value>, String> {
    let documents =
        parse_documents("probe", text, Schema::Manifest).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

#[derive(Deserialize)]
struct Reading {
    text: String,
    config: Option<String>,
    strings: Option<BTreeMap<String, String>>,
    manifest: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Writing {
    value: Value,
    yaml: String,
}

#[test]
fn the_recorded_answers_are_those_of_go() {
    let path = root().join("src/yaml/tests");
    let reading: Vec<Reading> =
        serde_json::from_slice(&fs::read(path.join("reading.json")).unwrap()).unwrap();
    let writing: Vec<Writing> =
        serde_json::from_slice(&fs::read(path.join("writing.json")).unwrap()).unwrap();
    let questions = reading.iter().map(|probe| text_question(probe.text.as_bytes()));
    let questions = questions.chain(writing.iter().map(|probe| json!({"value": probe.value})));
    let answers = ask(questions);
    assert_eq!(answers.len(), reading.len() + writing.len());
    let (read, written) = answers.split_at(reading.len());
    let mut wrong = String::new();
    for (probe, answer) in reading.iter().zip(read) {
        // Two spellings of one key: the last one wins, in random order.
        if probe.text == "1: a\n'1': b\n" {
            continue;
        }
        let recorded = (&probe.config, &probe.strings, &probe.manifest);
        // A file that lists nothing but an empty object.
        let empty =
            probe.manifest.as_ref().is_some_and(|list| list.iter().all(|item| item == "{}\n"));
        let now = (&answer.config, &answer.strings, &answer.manifest);
        if recorded != now && !(empty && answer.manifest.as_ref().is_some_and(Vec::is_empty)) {
            writeln!(wrong, "{:?}\n  recorded {recorded:?}\n  now      {now:?}", probe.text)
                .unwrap();
        }
    }
    for (probe, answer) in writing.iter().zip(written) {
        if probe.yaml != answer.yaml {
            writeln!(wrong, "{}\n  {:?}\n  {:?}", probe.value, probe.yaml, answer.yaml).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The patterns of `deviations.txt`, with what they hold for.
fn deviations() -> Vec<(String, regex::Regex)> {
    let text = fs::read_to_string(root().join("tests/differential/yaml/deviations.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (schema, pattern) = line.split_once(' ').unwrap();
            (schema.to_owned(), regex::Regex::new(pattern).unwrap())
        })
        .collect()
}

/// Our manifests as kyaml hands them out: nobody keeps empty objects.
fn ours_as_written_manifests(text: &[u8]) -> Result<Vec<String>, String> {
    let manifests = ours_as_manifests(text)?;
    Ok(manifests.iter().filter(|value| **value != json!({})).map(emit).collect())
}

/// Go's libraries end silently where they cannot go on, once a document is complete; so a beginning of the text gives theirs.
fn is_cut_short(text: &[u8], agrees: impl Fn(&[u8]) -> bool) -> bool {
    (0..text.len()).any(|end| agrees(&text[..end]))
}

fn config_agrees(text: &[u8], answer: &Answer) -> bool {
    let same = |text: &[u8]| ours_as_config(text).ok() == answer.config;
    match (ours_as_config(text), &answer.config) {
        (Err(_), Some(_)) => is_cut_short(text, same),
        // Behind the first document, Go looks for where the next one begins.
        (Ok(_), None) => parse_documents("probe", text, Schema::Config).is_err(),
        (ours, theirs) => ours.ok() == *theirs,
    }
}

fn manifests_agree(text: &[u8], answer: &Answer) -> bool {
    let same = |text: &[u8]| ours_as_written_manifests(text).ok() == answer.manifest;
    // What is no mapping is no manifest, whoever says so.
    let no_manifest = |list: Vec<Value>| list.iter().any(|value| !value.is_object());
    crashes_kyaml(text)
        || same(text)
        || match ours_as_manifests(text) {
            Ok(list) => no_manifest(list),
            Err(_) => answer.manifest.is_none() || is_cut_short(text, same),
        }
}

#[test]
fn generated_texts_are_read_as_go_reads_them() {
    let texts = generate::texts();
    let deviations = deviations();
    let mut used = vec![0; deviations.len()];
    let answers = ask(texts.iter().map(|text| text_question(text)));
    let (mut problems, mut report) = (0, String::new());
    for (text, answer) in texts.iter().zip(&answers) {
        let (config, manifests) = (config_agrees(text, answer), manifests_agree(text, answer));
        if config && manifests {
            continue;
        }
        let shown = text.escape_ascii().to_string();
        let excuse = deviations.iter().position(|(schema, pattern)| {
            (schema == "both" || (config && schema == "manifest")) && pattern.is_match(&shown)
        });
        if let Some(excuse) = excuse {
            used[excuse] += 1;
            continue;
        }
        problems += 1;
        writeln!(report, "\"{shown}\"").unwrap();
        if !config {
            let (theirs, ours) =
                (answer.config.as_ref().ok_or(&answer.error), ours_as_config(text));
            writeln!(report, "  go       {theirs:?}\n  ours     {ours:?}").unwrap();
        }
        if !manifests {
            let (theirs, ours) = (&answer.manifest, ours_as_written_manifests(text));
            writeln!(report, "  kyaml    {theirs:?}\n  ours     {ours:?}").unwrap();
        }
    }
    let (count, known) = (texts.len(), used.iter().sum::<usize>());
    assert!(report.is_empty(), "{problems} of {count} texts:\n{report}");
    let idle =
        deviations.iter().zip(used).filter(|((schema, _), used)| *used == 0 && schema != "strings");
    let idle: Vec<&str> = idle.map(|((_, pattern), _)| pattern.as_str()).collect();
    assert!(idle.is_empty(), "no text differs any more for {idle:?}");
    println!("{count} texts, {known} differ");
    assert!(count > 13_000 && known * 100 < count * 5, "{known} of {count} deviate");
}

/// Emission, read back by Go, gives the same value; and it is what Go writes, byte for byte.
#[test]
fn what_is_written_is_what_go_writes_and_reads() {
    let mut values = generate::values();
    for text in generate::texts() {
        for schema in [Schema::Config, Schema::Manifest] {
            if let Ok(document) = parse_document("probe", &text, schema) {
                values.push(document.value);
            }
        }
    }
    let written: Vec<String> = values.iter().map(emit).collect();
    let mut answers = ask(values
        .iter()
        .map(|value| json!({"value": value}))
        .chain(written.iter().map(|text| text_question(text.as_bytes()))));
    let read = answers.split_off(values.len());
    let mut wrong = String::new();
    for (((value, ours), go), read) in values.iter().zip(&written).zip(&answers).zip(&read) {
        // The merge key is in quotes here, and line ends that readers disagree on are escaped.
        let special = ["\"<<\"", "\\N", "\\L", "\\P"].iter().any(|mark| ours.contains(mark));
        if go.yaml != *ours && !special {
            writeln!(wrong, "{value}\n  go   {:?}\n  ours {ours:?}", go.yaml).unwrap();
        }
        // Configuration cuts integers beyond 2^53, and has no integral floats.
        if generate::is_normal(value) && !special && read.config.as_ref() != Some(&go.yaml) {
            writeln!(wrong, "{ours:?} reads as {:?}", read.config.as_ref().ok_or(&read.error))
                .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(values.len() > 10_000);
    println!("{} values", values.len());
}

/// As a map of strings, for fields that take any scalar.
#[test]
fn generated_scalars_become_strings_as_in_go() {
    let texts: Vec<Vec<u8>> =
        generate::scalars().iter().map(|scalar| format!("a: {scalar}\n").into_bytes()).collect();
    let deviations = deviations();
    let answers = ask(texts.iter().map(|text| text_question(text)));
    let mut wrong = String::new();
    for (text, answer) in texts.iter().zip(&answers) {
        let shown = text.escape_ascii().to_string();
        let ours = parse_document("probe", text, Schema::Config)
            .and_then(|document| from_document::<BTreeMap<String, String>>("probe", &document));
        if ours.as_ref().ok() != answer.strings.as_ref()
            && !deviations.iter().any(|(_, pattern)| pattern.is_match(&shown))
        {
            writeln!(wrong, "{shown}: go {:?}, ours {ours:?}", answer.strings).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
