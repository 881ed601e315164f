//! Messages and places.

use super::super::*;
use crate::diagnostic::{FieldPath, Position};
use serde_json::json;

fn refused(text: &str) -> String {
    parse_documents("app/vars.yaml", text.as_bytes(), Schema::Config).unwrap_err().to_string()
}

#[test]
fn duplicate_keys_name_both_places() {
    insta::assert_snapshot!(
        refused("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n"),
        @r#"app/vars.yaml:5:3: duplicate key "c" (first defined at 3:3)"#
    );
}

#[test]
fn syntax_errors_say_what_to_do() {
    let cases = [
        "a:\n\tb: 1\n",
        "\ta: 1\n",
        "a: b: c\n",
        "a: @b\n",
        "a: {{ x }}\n",
        "a: {{ x }}-y\n",
        "a: %b\n",
        "a: *nope\n",
        "a: [1, 2\nb: 3\n",
        "a: \"x\n",
        "a: 'x' y\n",
        "a:\n  - b\n c: d\n",
        "a: x\u{7}y\n",
        "a: .inf\n",
        "a: !!int x\n",
        "? [a]\n: b\n",
        "? {a: b}\n: c\n",
        "~: x\n",
        "a: &x [*x]\n",
        "a: &x 1\n---\nb: *x\n",
        "a:\n  <<: 5\n",
        "a: {b: c\n",
        "a\nb: c\n",
        "{{ x }}: y\n",
    ];
    let messages: Vec<String> = cases.iter().map(|text| refused(text)).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
        app/vars.yaml:2:2: invalid YAML: tabs disallowed within this context (block indentation) (indent with spaces: YAML does not allow tabs there)
        app/vars.yaml:1:2: invalid YAML: a tab is used as indentation (indent with spaces: YAML does not allow tabs there)
        app/vars.yaml:1:5: invalid YAML: mapping values are not allowed in this context (quote values that contain `: `, and check the indentation)
        app/vars.yaml:1:4: invalid YAML: unexpected character: `@` (quote values that start with `@`, `%` or a backtick)
        app/vars.yaml:1:5: a mapping cannot be a mapping key (quote texts that start with a template expression)
        app/vars.yaml:1:5: a mapping cannot be a mapping key (quote texts that start with a template expression)
        app/vars.yaml:1:4: invalid YAML: unexpected character: `%` (quote values that start with `@`, `%` or a backtick)
        app/vars.yaml:1:4: invalid YAML: found unknown anchor while parsing node (quote values that start with `*` or `&`, unless an alias or anchor is meant)
        app/vars.yaml:2:2: invalid YAML: illegal placement of `:` indicator (is the `[` in line 1, column 4 closed?)
        app/vars.yaml:1:4: invalid YAML: found unexpected end of stream while scanning a quoted scalar
        app/vars.yaml:1:8: invalid YAML: invalid trailing content after double-quoted scalar
        app/vars.yaml:3:3: invalid YAML: did not find expected key while parsing a block mapping
        app/vars.yaml:1:5: invalid YAML: the character U+0007 is not allowed (write it as an escape in double quotes, or remove it)
        app/vars.yaml:1:4: ".inf" cannot be used: infinity and NaN have no place in JSON
        app/vars.yaml:1:10: a value is tagged !!int but reads as !!str
        app/vars.yaml:1:3: a list cannot be a mapping key
        app/vars.yaml:1:3: a mapping cannot be a mapping key
        app/vars.yaml:1:1: null cannot be a mapping key
        app/vars.yaml:1:8: the anchor contains itself
        app/vars.yaml:3:4: there is no such anchor in this document
        app/vars.yaml:2:7: found the number 5, expected a mapping or a list of mappings after `<<`
        app/vars.yaml:2:1: invalid YAML: did not find expected `,` or `}` while parsing a flow mapping (is the `{` in line 1, column 4 closed?)
        app/vars.yaml:2:2: invalid YAML: mapping values are not allowed in this context (quote values that contain `: `, and check the indentation)
        app/vars.yaml:1:1: a mapping cannot be a mapping key (quote texts that start with a template expression)
        "#);
}

#[test]
fn bytes_that_are_no_text_are_named() {
    let refused =
        |bytes: &[u8]| parse_document("x", bytes, Schema::Config).unwrap_err().to_string();
    insta::assert_snapshot!(
        refused(b"a: 1\nb: \xE9t\xE9\n"),
        @"x:2:4: byte 0xE9 is not valid UTF-8; the file may be binary or in another encoding"
    );
    insta::assert_snapshot!(refused(b"\xFF\xFEa"), @"x: the text is not valid UTF-16");
}

#[test]
fn utf16_with_a_mark_is_read() {
    let text = "a: é🚀\n";
    let little: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for bytes in [little, big] {
        assert_eq!(parse_document("x", &bytes, Schema::Config).unwrap().value["a"], "é🚀");
    }
}

#[test]
fn aliases_cannot_explode() {
    let level =
        |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "));
    let text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &(1..12).map(level).collect::<String>();
    insta::assert_snapshot!(refused(&text), @"app/vars.yaml:6:20: aliases expand to too much content");
}

#[test]
fn aliases_of_long_texts_cannot_explode() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1_000].join(", "));
    assert!(refused(&text).ends_with("aliases expand to too much content"));
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 100].join(", "));
    assert!(parse_document("x", text.as_bytes(), Schema::Config).is_ok());
}

#[test]
fn nesting_is_limited() {
    assert!(
        parse_document("x", ("[".repeat(200) + &"]".repeat(200)).as_bytes(), Schema::Config)
            .is_ok()
    );
    insta::assert_snapshot!(refused(&"[".repeat(5000)), @"app/vars.yaml:1:256: invalid YAML: nested too deeply");
}

#[test]
fn positions_point_to_keys_items_and_values() {
    let text = "# c\na: 1\nb:\n- x\n- c: &y {d: é, e: 2}\nf:\n  <<: *y\n  g: |\n    text\n";
    let document = parse_document("x", text.as_bytes(), Schema::Config).unwrap();
    let positions = &document.positions;
    let at = |line, column| Some(Position { line, column });
    let path = FieldPath::root;
    assert_eq!(positions.of(&path()), at(2, 1));
    assert_eq!(positions.of(&path().child("a")), at(2, 1));
    assert_eq!(positions.of_value(&path().child("a")), at(2, 4));
    assert_eq!(positions.of(&path().child("b").child(0)), at(4, 3));
    assert_eq!(positions.of(&path().child("b").child(1).child("c")), at(5, 3));
    assert_eq!(positions.of(&path().child("b").child(1).child("c").child("e")), at(5, 16));
    // What was merged is where it was written.
    assert_eq!(positions.of(&path().child("f").child("e")), at(5, 16));
    // Unknown paths lead to the nearest known place.
    assert_eq!(positions.of(&path().child("f").child("g").child("h").child(3)), at(8, 3));
    assert_eq!(Positions::default().of(&path().child("a")), None);
}

#[test]
fn repairs_leave_positions_alone() {
    let text = "a:\n  b: \"x\ny\" # c\n  c: [1,\n2, x: y]\n  d: {e: f}\n  d: 2\n";
    let document = parse_document("x", text.as_bytes(), Schema::Config);
    insta::assert_snapshot!(document.unwrap_err(), @r#"x:7:3: duplicate key "d" (first defined at 6:3)"#);
    let document = parse_document("x", &text.as_bytes()[..text.len() - 7], Schema::Config).unwrap();
    let c = FieldPath::root().child("a").child("c");
    assert_eq!(document.positions.of(&c.child(1)), Some(Position { line: 5, column: 1 }));
    assert_eq!(
        document.positions.of(&c.child(2).child("x")),
        Some(Position { line: 5, column: 4 })
    );
}

#[test]
fn tabs_do_not_indent() {
    for text in [
        "a:\n \tb: 1\n",
        "a:\n \tb\n",
        "-\ta: 1\n",
        "a:\n\tb: 1\n",
        "- - a\n  \t- b\n",
        "a:\n \t[b]\n",
    ] {
        let message = refused(text);
        assert!(message.contains("indent with spaces"), "{text:?}: {message}");
    }
    for (text, value) in [
        ("a: |\n  all:\n  \tgo build\n", json!({"a": "all:\n\tgo build\n"})),
        ("a: |\n  \tgo\n", json!({"a": "\tgo\n"})),
        ("a:\tb\n", json!({"a": "b"})),
        ("a\t: b\n", json!({"a": "b"})),
        ("a\tb: c\n", json!({"a\tb": "c"})),
        ("a:\n  b: [\n\tc,\n\t{d: e}\n\t]\n", json!({"a": {"b": ["c", {"d": "e"}]}})),
        ("a: {\n\tb: c\n}\n", json!({"a": {"b": "c"}})),
        ("a: 'b\n\tc'\n", json!({"a": "b c"})),
        ("a: b\n \tc\n", json!({"a": "b c"})),
    ] {
        let read = parse_document("x", text.as_bytes(), Schema::Config).map(|it| it.value);
        assert_eq!(read, Ok(value), "{text:?}");
    }
}
