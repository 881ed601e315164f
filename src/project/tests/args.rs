use serde_json::{Value, json};

use super::super::args::{external, parse, parse_file, with_defaults};
use crate::{diagnostic::Describe, schema::ArgDeclaration};

fn parsed(arguments: &[&str]) -> Value {
    parse(arguments.iter().copied(), None).unwrap()
}

fn refused(argument: &str) -> String {
    parse([argument], None).unwrap_err().describe().to_string()
}

#[test]
fn values_are_yaml() {
    assert_eq!(
        parsed(&[
            "b=true",
            "s='true'",
            "f=1.10",
            "i=42",
            "n=null",
            "e=",
            "l=[1,two,3.0]",
            "d=2024-05-06",
            "o=0644",
            "y=yes",
            "t=hello world",
            "eq=a=b=c",
            "m={x: 1, y: [a]}",
            "big=9007199254740993",
            "lines=|\n  a\n  b\n",
        ]),
        json!({
            "b": true, "s": "true", "f": 1.1, "i": 42, "n": null, "e": null, "l": [1, "two", 3], "d": "2024-05-06",
            "o": 420, "y": true, "t": "hello world", "eq": "a=b=c", "m": {"x": 1, "true": ["a"]},
            "big": 9_007_199_254_740_992_i64, "lines": "a\nb\n",
        })
    );
}

#[test]
fn names_lead_into_mappings_and_the_last_counts() {
    assert_eq!(
        parsed(&["deep.a.b=1", "deep.a.c=two", "x/y-z_0=1"]),
        json!({"deep": {"a": {"b": 1, "c": "two"}}, "x/y-z_0": 1})
    );
    assert_eq!(parsed(&["a=1", "a=2"]), json!({"a": 2}));
    assert_eq!(parsed(&["a={b: 1, c: 1}", "a.b=2"]), json!({"a": {"b": 2, "c": 1}}));
    assert_eq!(parsed(&["a.b=2", "a={c: 1}"]), json!({"a": {"c": 1}}));
    // What is in the way makes way.
    assert_eq!(parsed(&["a=1", "a.b.c=2"]), json!({"a": {"b": {"c": 2}}}));
}

#[test]
fn files_are_read_and_at_signs_escaped() {
    let mut read = |path: &str| match path {
        "conf/x.yaml" => Ok(b"a: 1\nb: [on]\n".to_vec()),
        _ => Err("no such file".to_owned()),
    };
    assert_eq!(
        parse(["f=@conf/x.yaml", r"l=\@handle"], Some(&mut read)).unwrap(),
        json!({"f": {"a": 1, "b": [true]}, "l": "@handle"})
    );
    let error = parse(["f=@nope"], Some(&mut read)).unwrap_err();
    assert_eq!(error.describe().to_string(), "nope: no such file");
    assert_eq!(refused("f=@x"), "x: arguments cannot be read from files here");
}

#[test]
fn other_forms_are_refused() {
    for argument in ["justaname", "=x", "a..b=1", ".a=1", "a b=1", "ä=1"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(
                refused(argument).replace(&format!("{argument:?}"), "…"),
                @"invalid argument …, expected name=value, where the name is made of letters, digits, `_`, `-`, `/` and, between keys, `.`"
            );
        }
    }
    insta::assert_snapshot!(refused("a=[1"), @r#"the value of argument a is not valid YAML: argument a:2:1: invalid YAML: expected `,` or `]` while parsing a flow sequence (is the `[` in line 1, column 1 closed?) (quote it twice to make it a text: -a name='"value"')"#);
    insta::assert_snapshot!(refused("a=`x"), @r#"the value of argument a is not valid YAML: argument a:1:1: invalid YAML: unexpected character: ``` (quote values that start with `@`, `%` or a backtick) (quote it twice to make it a text: -a name='"value"')"#);
}

#[test]
fn files_of_arguments_are_mappings() {
    assert_eq!(parse_file("a.yaml", b"").unwrap(), json!({}));
    assert_eq!(parse_file("a.yaml", b"a: {b: 1}\n").unwrap(), json!({"a": {"b": 1}}));
    let refused =
        |text: &str| parse_file("a.yaml", text.as_bytes()).unwrap_err().describe().to_string();
    insta::assert_snapshot!(refused("- a\n"), @"a.yaml holds a list, expected a mapping of names to values");
    insta::assert_snapshot!(refused("a: 1\na: 2\n"), @r#"a.yaml:2:1: the arguments in a.yaml are not valid YAML: duplicate key "a" (first defined at 1:1)"#);
}

#[test]
fn files_win_over_the_command_line_and_later_ones_over_earlier_ones() {
    let merged = external(
        json!({"name": "cli", "only": 1, "m": {"c": 3}}),
        [
            json!({"name": "one", "m": {"a": 1, "b": 1}, "list": [1, 2]}),
            json!({"m": {"b": 2}, "list": [9]}),
        ],
    );
    assert_eq!(
        merged,
        json!({"name": "one", "only": 1, "m": {"a": 1, "b": 2, "c": 3}, "list": [9]})
    );
}

fn declared(value: Value) -> Vec<ArgDeclaration> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn defaults_are_below_what_is_given() {
    let declared = declared(json!([
        {"name": "env"},
        {"name": "db", "default": {"host": "localhost", "port": 5432}},
        {"name": "a.b", "default": 5},
        {"name": "list", "default": [1, 2]},
        {"name": "off", "default": false},
    ]));
    let args = with_defaults(
        &declared,
        json!({"env": null, "db": {"host": "db"}, "list": [], "more": 1, "a": {"c": 1}}),
    );
    assert_eq!(
        args.unwrap(),
        json!({
            "env": null, "db": {"host": "db", "port": 5432}, "a": {"b": 5, "c": 1}, "list": [], "off": false, "more": 1,
        })
    );
}

#[test]
fn what_is_required_must_be_given() {
    let declared = declared(json!([
        {"name": "a"}, {"name": "b.c"}, {"name": "d", "default": null}, {"name": "e", "default": 0},
    ]));
    let refused = |given| with_defaults(&declared, given).unwrap_err().describe().to_string();
    insta::assert_snapshot!(refused(json!({})), @"required arguments a, b.c, d not set (give it a value, for example with `-a a=…` or in the target's args; arguments: a (required), b.c (required), d (required), e)");
    insta::assert_snapshot!(refused(json!({"a": 1, "b": {"c": null}})), @"required argument d not set (give it a value, for example with `-a d=…` or in the target's args; arguments: a (required), b.c (required), d (required), e)");
    assert!(with_defaults(&declared, json!({"a": 1, "b": {"c": null}, "d": ""})).is_ok());
}
