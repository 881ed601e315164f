//! Whatever comes in, reading neither panics nor loops, and what is written can be read.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::super::*;

/// Texts made of what YAML cares about, far likelier to get deep into the parser than random bytes.
fn yaml_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("b: "),
        Just(": "),
        Just("- "),
        Just("? "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(","),
        Just("'"),
        Just("\""),
        Just("|"),
        Just(">"),
        Just("|-\n"),
        Just(">+\n"),
        Just("|2\n"),
        Just("&x "),
        Just("*x"),
        Just("<<: "),
        Just("!!str "),
        Just("!t "),
        Just("#"),
        Just(" # c\n"),
        Just("\t"),
        Just("---\n"),
        Just("...\n"),
        Just("%YAML 1.1\n"),
        Just("\\"),
        Just("\r\n"),
        Just("0x1"),
        Just("1e3"),
        Just("é"),
        Just("🚀"),
        Just("\u{85}"),
        Just("\u{2028}"),
        Just("\u{feff}"),
        Just("\0"),
        Just("~"),
        Just("2024-01-02"),
        Just("\"x\ny\""),
        Just("[x,\ny]"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_992_i64..=9_007_199_254_740_992).prop_map(Value::from),
        (-1e9..1e9_f64).prop_filter("integral", |float| float.fract() != 0.0).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~\\n]{0,120}".prop_map(Value::from),
        "[a-z \\n:#'\"-]{0,200}".prop_map(Value::from),
        yaml_like().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![any::<String>(), "[a-z0-9.\n:]{0,12}", "[a-z ]{100,140}"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for schema in [Schema::Config, Schema::Manifest] {
            parse_documents("x", &bytes, schema).ok();
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in yaml_like()) {
        for schema in [Schema::Config, Schema::Manifest] {
            if let Ok(documents) = parse_documents("x", text.as_bytes(), schema) {
                for document in documents {
                    let again = parse_document("x", emit(&document.value).as_bytes(), schema);
                    prop_assert_eq!(again.map(|again| again.value), Ok(document.value));
                }
            }
        }
    }

    #[test]
    fn any_value_survives_writing_and_reading(value in value()) {
        let text = emit(&value);
        for schema in [Schema::Config, Schema::Manifest] {
            let read = parse_document("x", text.as_bytes(), schema).map(|document| document.value);
            prop_assert_eq!(read.as_ref(), Ok(&value), "{}", text);
        }
    }
}

#[test]
fn large_files_take_time_in_proportion() {
    let entry =
        "- name: x\n  \"key\": |\n    text\n\n    more\n  empty: |\n\n  list: [a, 'b', {c: d}]\n";
    let seconds = |count: usize| {
        let text = entry.repeat(count);
        let start = std::time::Instant::now();
        let documents = parse_documents("x", text.as_bytes(), Schema::Manifest).unwrap();
        assert_eq!(documents[0].value.as_array().map(Vec::len), Some(count));
        start.elapsed().as_secs_f64()
    };
    let (small, large) = (seconds(1_000), seconds(20_000));
    assert!(large < small * 100.0, "{small} s for 1,000 entries, {large} s for 20,000");
}

#[test]
fn very_many_documents_are_refused_before_they_are_read() {
    let file = |count: usize| "---\na: 1\n".repeat(count);
    assert_eq!(
        parse_documents("x.yaml", file(20_000).as_bytes(), Schema::Manifest).unwrap().len(),
        20_000
    );
    let many = file(100_000);
    let error = parse_documents("x.yaml", many.as_bytes(), Schema::Manifest).unwrap_err();
    assert_eq!(error.to_string(), "x.yaml:40001:1: more than 20000 documents in one file");
    // Only the first one is read here.
    assert_eq!(parse_document("x.yaml", many.as_bytes(), Schema::Config).unwrap().value["a"], 1);
}

/// Each quoted scalar begins on a line that the one before made longer.
#[test]
fn repairs_do_not_grow_with_each_other() {
    let lines = "a\", \"b\n".repeat(90);
    let text = format!("k:\n          x: [\"{lines}\"]");
    let document = parse_document("probe", text.as_bytes(), Schema::Config).unwrap();
    assert_eq!(document.value["k"]["x"].as_array().unwrap().len(), 91);
    let wide = format!("{}: [\"{}\"]", "k".repeat(900), "a\n".repeat(100_000));
    assert!(parse_document("probe", wide.as_bytes(), Schema::Config).is_ok());
    let wide = format!("k:\n{}x: [\"{}\"]", " ".repeat(900), "a\n".repeat(100_000));
    let error = parse_document("probe", wide.as_bytes(), Schema::Config).unwrap_err();
    assert!(error.to_string().contains("indentation in quoted scalar"), "{error}");
}
