//! Reading into types.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Item {
    path: Option<String>,
    tags: Vec<String>,
    wait_readiness: bool,
    replicas: i32,
    labels: BTreeMap<String, String>,
    vars: Value,
    nested: Option<Box<Item>>,
    items: Vec<Item>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    action: Option<Action>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Ignore,
    ForceApply,
    Rename { to: String },
    Count(u8),
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    let document = parse_document("deployment.yaml", text.as_bytes(), Schema::Config).unwrap();
    from_document("deployment.yaml", &document).map_err(|error| error.to_string())
}

#[test]
fn fields_match_whatever_their_case() {
    let item: Item = read("PATH: x\nWaitreadiness: yes\n").unwrap();
    assert_eq!(item, Item { path: Some("x".into()), wait_readiness: true, ..Item::default() });
    insta::assert_snapshot!(read::<Item>("path: x\nPath: y\n").unwrap_err(), @r#"deployment.yaml:1:1: path: field "path" is given twice, in different spellings"#);
}

#[test]
fn scalars_become_text_where_text_is_wanted() {
    let item: Item =
        read("path: 1.10\ntags: [1, true, 1e3, 123456789012345678, 1.0, 1e6, 2024-01-02, 0x10, x, ~]\nlabels: {a: 1.5, b: no, c: 12345678901234567890}\n")
            .unwrap();
    assert_eq!(item.path.as_deref(), Some("1.1"));
    assert_eq!(
        item.tags,
        ["1", "true", "1000", "123456789012345678", "1", "1e+06", "2024-01-02", "16", "x", ""]
    );
    let labels: Vec<&str> = item.labels.values().map(String::as_str).collect();
    assert_eq!(labels, ["1.5", "false", "12345678901234567890"]);
}

#[test]
fn free_values_stay_as_they_are() {
    let item: Item = read("vars: {a: 1.0, b: yes, c: 9007199254740993}\n").unwrap();
    assert_eq!(item.vars, json!({"a": 1, "b": true, "c": 9_007_199_254_740_992_i64}));
}

#[test]
fn null_means_not_given() {
    let item: Item = read("path:\ntags: ~\nreplicas: null\nnested:\nwaitReadiness:\n").unwrap();
    assert_eq!(item, Item::default());
    assert_eq!(read::<Item>("").unwrap(), Item::default());
    assert_eq!(read::<Vec<Item>>("- ~\n").unwrap(), [Item::default()]);
    insta::assert_snapshot!(read::<Named>("name:\n").unwrap_err(), @r#"deployment.yaml:1:1: required field "name" is missing"#);
}

#[test]
fn unknown_fields_are_refused_with_a_hint() {
    insta::assert_snapshot!(read::<Item>("path: x\nitems:\n- path: y\n  tgas: [a]\n").unwrap_err(), @r#"deployment.yaml:4:3: items[0].tgas: unknown field "tgas" (did you mean `tags`?)"#);
    insta::assert_snapshot!(read::<Named>("name: x\nfoo: 1\n").unwrap_err(), @r#"deployment.yaml:2:1: foo: unknown field "foo" (known fields: name, action)"#);
    // Also when it is null.
    insta::assert_snapshot!(read::<Named>("name: x\nfoo:\n").unwrap_err(), @r#"deployment.yaml:2:1: foo: unknown field "foo" (known fields: name, action)"#);
}

#[test]
fn types_are_checked_with_their_place() {
    let cases = [
        "tags: x\n",
        "tags:\n- a\n- b: c\n",
        "path: [x]\n",
        "waitReadiness: \"yes\"\n",
        "replicas: 1.5\n",
        "replicas: 99999999999\n",
        "replicas: x\n",
        "labels: [a]\n",
        "labels:\n  a:\n    b: c\n",
        "nested:\n  nested:\n    replicas: {}\n",
        "items:\n- path: a\n- 5\n",
        "- a\n",
        "x\n",
    ];
    let messages: Vec<String> = cases.iter().map(|text| read::<Item>(text).unwrap_err()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
        deployment.yaml:1:1: tags: found the string "x", expected a list
        deployment.yaml:3:3: tags[1]: found a mapping, expected a string
        deployment.yaml:1:1: path: found a list, expected a string
        deployment.yaml:1:1: waitReadiness: found the string "yes", expected true or false
        deployment.yaml:1:1: replicas: found the number 1.5, expected an integer of 32 bits
        deployment.yaml:1:1: replicas: found the number 99999999999, expected an integer of 32 bits
        deployment.yaml:1:1: replicas: found the string "x", expected an integer of 32 bits
        deployment.yaml:1:1: labels: found a list, expected a mapping
        deployment.yaml:2:3: labels["a"]: found a mapping, expected a string
        deployment.yaml:3:5: nested.nested.replicas: found a mapping, expected an integer of 32 bits
        deployment.yaml:3:3: items[1]: found the number 5, expected a mapping
        deployment.yaml:1:1: found a list, expected a mapping
        deployment.yaml:1:1: found the string "x", expected a mapping
        "#);
}

#[test]
fn enums_are_words_or_single_keys() {
    assert_eq!(
        read::<Named>("name: x\naction: force-apply\n").unwrap().action,
        Some(Action::ForceApply)
    );
    assert_eq!(
        read::<Named>("name: x\naction: {rename: {to: z}}\n").unwrap().action,
        Some(Action::Rename { to: "z".into() })
    );
    assert_eq!(
        read::<Named>("name: x\naction: {count: 5}\n").unwrap().action,
        Some(Action::Count(5))
    );
    insta::assert_snapshot!(read::<Named>("name: x\naction: forced\n").unwrap_err(), @r#"deployment.yaml:2:1: action: found "forced", expected one of "ignore", "force-apply", "rename", "count""#);
    insta::assert_snapshot!(read::<Named>("name: x\naction: {rename: {}, ignore: {}}\n").unwrap_err(), @"deployment.yaml:2:1: action: found a mapping, expected a mapping with exactly one key");
    insta::assert_snapshot!(read::<Named>("name: x\naction:\n  rename: {too: y}\n").unwrap_err(), @r#"deployment.yaml:3:12: action.rename.too: unknown field "too" (did you mean `to`?)"#);
}

#[test]
fn values_without_a_text_are_read_the_same() {
    assert_eq!(from_value::<Vec<String>>(&json!([1, 2.5, true])).unwrap(), ["1", "2.5", "true"]);
    insta::assert_snapshot!(from_value::<Named>(&json!({"name": {"a": 1}})).unwrap_err(), @"name: found a mapping, expected a string");
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Repository {
    url: String,
    #[serde(default)]
    sub_dir: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[test]
fn a_text_may_stand_for_a_mapping() {
    let read_all = |text: &str| read::<Vec<TextOr<Repository>>>(text);
    let full = Repository { url: "1.1".into(), sub_dir: None, tags: vec!["2".into()] };
    assert_eq!(
        read_all("- x\n- {URL: 1.10, subdir: ~, tags: [2]}\n").unwrap(),
        [TextOr::Text("x".into()), TextOr::Fields(full)]
    );
    insta::assert_snapshot!(read_all("- {url: x, suDir: y}\n").unwrap_err(), @r#"deployment.yaml:1:12: $[0].suDir: unknown field "suDir" (did you mean `subDir`?)"#);
    insta::assert_snapshot!(read_all("- url: x\n  tags: [{}]\n").unwrap_err(), @"deployment.yaml:2:10: $[0].tags[0]: found a mapping, expected a string");
    insta::assert_snapshot!(read_all("- {subDir: x}\n").unwrap_err(), @r#"deployment.yaml:1:3: $[0]: required field "url" is missing"#);
    insta::assert_snapshot!(read_all("- [x]\n").unwrap_err(), @"deployment.yaml:1:3: $[0]: found a list, expected a string or a mapping");
}

#[test]
fn all_problems_of_a_document_are_gathered() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        name: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        items: Vec<Entry>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        #[expect(dead_code, reason = "only read")]
        path: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only read")]
        barrier: bool,
    }
    let read = |text: &str| {
        let document = parse_document("x.yaml", text.as_bytes(), Schema::Config).unwrap();
        let errors = from_document_gathering::<File>("x.yaml", &document);
        errors
            .map(drop)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    assert!(read("name: a\nitems: [{path: b}]\n").is_ok());
    let text =
        "name: [a]\nnmae: x\nitems:\n- path: {}\n  barier: true\n- path: a\n  barrier: maybe\n";
    insta::assert_snapshot!(read(text).unwrap_err(), @r#"
    x.yaml:1:1: name: found a list, expected a string
    x.yaml:2:1: nmae: unknown field "nmae" (did you mean `name`?)
    x.yaml:4:3: items[0].path: found a mapping, expected a string
    x.yaml:5:3: items[0].barier: unknown field "barier" (did you mean `barrier`?)
    x.yaml:7:3: items[1].barrier: found the string "maybe", expected true or false
    "#);
}
