//! Writing against what `sigs.k8s.io/yaml` 1.6.0 makes of the same values, byte for byte.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::*;

#[derive(Deserialize)]
struct Probe {
    value: Value,
    yaml: String,
}

fn probes() -> Vec<Probe> {
    serde_json::from_str(include_str!("writing.json")).unwrap()
}

#[test]
fn values_are_written_as_sigs_yaml_does() {
    let mut wrong = Vec::new();
    for probe in probes() {
        let ours = emit(&probe.value);
        if ours != probe.yaml {
            wrong.push(format!("{}:\n  go   {:?}\n  ours {ours:?}", probe.value, probe.yaml));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a value is in the form that reading gives: no integral floats, no integers that configuration cuts.
fn is_normal(value: &Value) -> bool {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.unsigned_abs() <= 1 << 53,
            None => number.as_f64().is_some_and(|float| float.fract() != 0.0),
        },
        Value::Array(items) => items.iter().all(is_normal),
        Value::Object(map) => map.values().all(is_normal),
        _ => true,
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    for probe in probes().into_iter().filter(|probe| is_normal(&probe.value)) {
        for schema in [Schema::Config, Schema::Manifest] {
            let text = emit(&probe.value);
            let read = parse_document("probe.yaml", text.as_bytes(), schema);
            let read = read.map(|document| document.value);
            assert_eq!(read.as_ref(), Ok(&probe.value), "{schema:?}\n{text}");
        }
    }
}

#[test]
fn what_readers_disagree_on_is_escaped() {
    let cases = [
        (json!("a\u{2028}b"), "\"a\\Lb\"\n"),
        (json!("a\u{85}b\nc"), "\"a\\Nb\\nc\"\n"),
        (json!("\u{FEFF}x"), "\"\\uFEFFx\"\n"),
        (json!("x\u{7F}"), "\"x\\x7F\"\n"),
        (json!({"<<": "<<"}), "\"<<\": <<\n"),
        (json!("🚀"), "\"\\U0001F680\"\n"),
    ];
    for (value, expected) in cases {
        let text = emit(&value);
        assert_eq!(text, expected);
        for schema in [Schema::Config, Schema::Manifest] {
            assert_eq!(parse_document("x", text.as_bytes(), schema).unwrap().value, value);
        }
    }
}

#[test]
fn keys_whose_order_is_circular_do_no_harm() {
    let map: serde_json::Map<String, Value> = (0..200)
        .flat_map(|i| [format!("{i}"), format!("0{i}"), format!("{i}a")])
        .map(|key| (key, json!(1)))
        .collect();
    assert_eq!(emit(&Value::Object(map)).lines().count(), 600);
}

#[test]
fn documents_are_joined_by_separators() {
    insta::assert_snapshot!(emit_documents([&json!({"a": 1}), &json!([]), &json!(null)]), @r"
    a: 1
    ---
    []
    ---
    null
    ");
}
