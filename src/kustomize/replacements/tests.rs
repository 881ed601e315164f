use serde_json::json;

use super::{path::FieldPattern, *};

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call sites")]
fn write(mut root: Value, path: &str, value: Value, options: &Options) -> Result<Value, String> {
    FieldPattern::parse(path)?.write(&mut root, &value, options)?;
    Ok(root)
}

fn create() -> Options {
    Options { create: true, ..Options::default() }
}

#[test]
fn paths_lead_through_lists_and_quoted_names() {
    let root =
        json!({"a": {"b.c": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]}, "l": ["p", "q"]});
    for (path, expected) in [
        ("a.[b.c].[name=y].v", json!(2)),
        ("a.b\\.c.0.v", json!(1)),
        ("a.[b.c].-.name", json!("y")),
        ("l.1", json!("q")),
    ] {
        assert_eq!(FieldLookup::parse(path).get(&root), Some(&expected), "{path}");
    }
    assert_eq!(FieldLookup::parse_indexed("l[0]").get(&root), Some(&json!("p")));
    assert_eq!(FieldLookup::parse("a.x.y").get(&root), None);
}

#[test]
fn scalars_keep_their_type() {
    let root = json!({"n": 80, "s": "80", "b": false});
    let options = Options::default();
    assert_eq!(write(root.clone(), "n", json!("81"), &options).unwrap()["n"], json!(81));
    assert_eq!(write(root.clone(), "s", json!(81), &options).unwrap()["s"], json!("81"));
    assert_eq!(write(root.clone(), "b", json!("true"), &options).unwrap()["b"], json!(true));
    let error = write(root.clone(), "n", json!("x"), &options).unwrap_err();
    assert_eq!(error, "the field holds a number, which \"x\" is not");
    let error = write(root, "b", json!("x"), &options).unwrap_err();
    assert_eq!(error, "the field is true or false, which \"x\" is not");
}

#[test]
fn several_items_can_match() {
    let root =
        json!({"c": [{"name": "a1", "v": ""}, {"name": "a2", "v": ""}, {"name": "b", "v": ""}]});
    let written = write(root.clone(), "c.[name=^a].v", json!("x"), &Options::default()).unwrap();
    assert_eq!(
        written["c"],
        json!([{"name": "a1", "v": "x"}, {"name": "a2", "v": "x"}, {"name": "b", "v": ""}])
    );
    let written = write(root, "c.*.v", json!("x"), &Options::default()).unwrap();
    assert!(written["c"].as_array().unwrap().iter().all(|item| item["v"] == "x"));
}

#[test]
fn parts_of_texts_are_replaced() {
    let with = |delimiter: &str, index| Options {
        delimiter: delimiter.to_owned(),
        index,
        ..Options::default()
    };
    let root = json!({"s": "a:b:c"});
    for (index, expected) in [(0, "x:b:c"), (2, "a:b:x"), (9, "a:b:c:x"), (-1, "x:a:b:c")] {
        let written = write(root.clone(), "s", json!("x"), &with(":", index)).unwrap();
        assert_eq!(written["s"], expected);
    }
}

#[test]
fn missing_fields_are_created_on_demand() {
    let message = write(json!({}), "a.b", json!("x"), &Options::default()).unwrap_err();
    assert_eq!(message, "the field does not exist");
    assert_eq!(
        write(json!({}), "a.b", json!("8080"), &create()).unwrap(),
        json!({"a": {"b": 8080}})
    );
    let written = write(json!({"l": []}), "l.[name=n].v", json!(1), &create()).unwrap();
    assert_eq!(written, json!({"l": [{"name": "n", "v": 1}]}));
    assert_eq!(write(json!({"l": []}), "l.0", json!(1), &create()).unwrap(), json!({"l": [1]}));
}

#[test]
fn texts_that_hold_json_or_yaml_are_edited() {
    let options = Options::default();
    let root =
        json!({"data": {"c.json": "{\"db\": {\"host\": \"a\"}}", "c.yaml": "db:\n  host: a\n"}});
    let written = write(root.clone(), "data.[c.json].db.host", json!("b"), &options).unwrap();
    assert_eq!(written["data"]["c.json"], "{\"db\":{\"host\":\"b\"}}");
    let written = write(root, "data.[c.yaml].db.host", json!("b"), &options).unwrap();
    assert_eq!(written["data"]["c.yaml"], "db:\n  host: b");
}

#[test]
fn yaml_texts_keep_order_comments_and_style() {
    let old = "# settings\nz: \"1\"   # first\na:\n  - host: 'it''s'\n    port: 80 # a port\n  - {host: b, port: 81}\nm: one, two\n";
    let root = json!({ "data": old });
    for (path, new, from, to) in [
        ("data.z", json!("a \"b\""), "\"1\"", "\"a \\\"b\\\"\""),
        ("data.a.0.host", json!("its"), "'it''s'", "'its'"),
        ("data.a.0.port", json!("8080"), "80 #", "8080 #"),
        ("data.a.1.host", json!("c: d"), "{host: b", "{host: 'c: d'"),
        ("data.m", json!("three"), "one, two", "three"),
        ("data.a.[host=b].port", json!(1), "81}", "1}"),
    ] {
        let written = write(root.clone(), path, new, &Options::default()).unwrap();
        assert_eq!(written["data"], old.replace(from, to).trim_end(), "{path}");
    }
}

#[test]
fn new_fields_are_written_behind_the_others_of_a_yaml_text() {
    for (old, path, expected) in [
        ("b: 1\na: 2", "data.c", "b: 1\na: 2\nc: x"),
        ("b:\n  d: 1 # one\n\na: 2\n", "data.b.c", "b:\n  d: 1 # one\n  c: x\n\na: 2"),
        ("b:\n- n: 1\n  m: 2\n- n: 3\n", "data.b.0.c", "b:\n- n: 1\n  m: 2\n  c: x\n- n: 3"),
        ("b:\n- 1\n- 2\n", "data.c", "b:\n- 1\n- 2\nc: x"),
        ("b: {}\na: 1\n", "data.b.c", "a: 1\nb:\n  c: x"),
    ] {
        let written = write(json!({ "data": old }), path, json!("x"), &create()).unwrap();
        assert_eq!(written["data"], expected, "{old}");
    }
}

#[test]
fn shared_parts_of_a_yaml_text_are_written_out() {
    let old = "a: &x {host: long-name}\nb:\n  <<: *x\n  port: 1\nc:\n  <<: *x\n";
    let root = json!({ "data": old });
    let written = write(root, "data.*.host", json!("n"), &Options::default()).unwrap();
    assert_eq!(
        written["data"],
        "a:\n  host: \"n\"\nb:\n  host: \"n\"\n  port: 1\nc:\n  host: \"n\""
    );
}
