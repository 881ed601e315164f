use serde_json::{Map, Value, json};

use super::super::*;
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    tree::MemoryTree,
    yaml,
};

/// Knows `{{ a.b }}` alone, which is all that the rules of targets need.
fn render(texts: &[&str], variables: &Map<String, Value>) -> Vec<Result<String, Box<Diagnostic>>> {
    texts.iter().map(|text| render_one(text, variables)).collect()
}

fn render_one(text: &str, variables: &Map<String, Value>) -> Result<String, Box<Diagnostic>> {
    let Some((head, rest)) = text.split_once("{{ ") else { return Ok(text.to_owned()) };
    let (name, tail) = rest.split_once(" }}").unwrap();
    let root = Value::Object(variables.clone());
    let found = name.split('.').try_fold(&root, |value, key| value.get(key));
    let value = match found {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => {
            let message = format!("'{name}' is undefined");
            return Err(Box::new(Diagnostic::new(Class::Project, message)));
        }
    };
    Ok(format!("{head}{value}{}", render_one(tail, variables)?))
}

fn project(text: &str) -> Project {
    Project::parse(".kluctl.yaml", text.as_bytes()).unwrap()
}

fn resolve(text: &str, request: &TargetRequest) -> Result<Target, String> {
    project(text).resolve(request, &render).map_err(|error| error.describe().to_string())
}

fn request(name: &str) -> TargetRequest {
    TargetRequest { name: Some(name.to_owned()), ..TargetRequest::default() }
}

#[test]
fn the_file_is_found_by_either_name() {
    let both = MemoryTree::from_texts([
        ("p/.kluctl.yml", "discriminator: yml\n"),
        ("p/.kluctl.yaml", "discriminator: yaml\n"),
        ("q/.kluctl.yaml", "discriminator: q\n"),
        ("q/other.yaml", "discriminator: other\n"),
    ]);
    let load = |dir, file| Project::load(&both, dir, file).unwrap();
    assert_eq!(load("p", None).config.discriminator.as_deref(), Some("yml"));
    assert_eq!(load("q", None).file.as_deref(), Some("q/.kluctl.yaml"));
    assert_eq!(load("q", Some("q/other.yaml")).config.discriminator.as_deref(), Some("other"));
    assert_eq!(load("", None).file, None);
    let error = Project::load(&both, "q", Some("q/nope.yaml")).unwrap_err();
    assert_eq!(error.describe().to_string(), "q/nope.yaml: no such file or directory");
}

#[test]
fn what_does_not_belong_there_is_refused() {
    let refused = |text: &str| {
        Project::parse(".kluctl.yaml", text.as_bytes()).unwrap_err().describe().to_string()
    };
    insta::assert_snapshot!(refused("targetz: [{name: dev}]\n"), @r#".kluctl.yaml:1:1: targetz: unknown field "targetz" (did you mean `targets`?)"#);
    insta::assert_snapshot!(refused("targets:\n- name: dev\n  contxt: x\n"), @r#".kluctl.yaml:3:3: targets[0].contxt: unknown field "contxt" (did you mean `context`?)"#);
    insta::assert_snapshot!(refused("secretsConfig: {}\n"), @r#".kluctl.yaml:1:1: secretsConfig: unknown field "secretsConfig" (a field of former Kluctl versions; remove it)"#);
    insta::assert_snapshot!(refused("args:\n- name: a\n- default: 1\n"), @r#".kluctl.yaml:3:3: args[1]: required field "name" is missing"#);
    insta::assert_snapshot!(refused("args:\n- name: ''\n"), @".kluctl.yaml:2:3: args[0].name: is empty, expected the argument's name");
    insta::assert_snapshot!(refused("targets:\n  dev: {}\n"), @".kluctl.yaml:1:1: targets: found a mapping, expected a list");
    insta::assert_snapshot!(refused("args: [a, b]\n"), @r#".kluctl.yaml:1:8: args[0]: found the string "a", expected a mapping"#);
    // Only the first document counts.
    assert_eq!(
        project("discriminator: a\n---\nnonsense: [\n").config.discriminator.as_deref(),
        Some("a")
    );
}

#[test]
fn a_project_without_targets_has_one_without_a_name() {
    let text = "discriminator: 'd-{{ target.name }}'\nargs: [{name: a, default: 1}]\n";
    let mut target = resolve(text, &TargetRequest::default()).unwrap();
    assert_eq!(target.discriminator.as_deref(), Some("d-"));
    assert_eq!(target.to_value(), json!({"name": "", "aws": {}, "discriminator": "d-"}));
    assert_eq!(target.args, json!({"a": 1}));
    target.set_context("kind-x");
    assert_eq!(target.variables()["target"]["context"], "kind-x");
    insta::assert_snapshot!(resolve(text, &request("dev")).unwrap_err(), @"target dev does not exist in the project (.kluctl.yaml defines no targets; leave the target out)");
    let none = Project::default().resolve(&request("dev"), &render).unwrap_err().describe();
    insta::assert_snapshot!(none, @"target dev does not exist in the project (the project has no .kluctl.yaml; leave the target out)");
}

const FLEET: &str = "\
discriminator: fleet-{{ target.name }}-{{ args.region }}
aws: {profile: base, serviceAccount: {name: sa, namespace: ns}}
targets:
- name: zeta
  context: zeta.example.com
  args: {region: eu}
- name: alpha
  discriminator: own-{{ target.name }}
  aws: {profile: mine}
  args: {region: us, size: 3, flags: [on, off]}
  images:
  - {image: app, resultImage: 'app:{{ args.size }}'}
- name: zeta
  args: {region: second}
- name: no-region
- name: undefined
  args:
    region: '{{ target.nope }}'
- context: nameless
- name: beta
  context: '{{ target.name }}.example.com'
  args: {region: '{{ target.name }}-{{ args.tier }}', tier: t1}
- name: '{{ args.tier }}-named'
  args: {region: x}
args:
- name: region
- {name: tier, default: t0}
";

#[test]
fn targets_are_listed_by_name_and_others_explained() {
    let list = project(FLEET).targets(&Value::Null, &render);
    let shown: Vec<Value> = list.targets.iter().map(Target::to_value).collect();
    insta::assert_snapshot!(yaml::emit(&Value::Array(shown)), @r"
        - args:
            flags:
            - true
            - false
            region: us
            size: 3
          aws:
            profile: mine
            serviceAccount:
              name: sa
              namespace: ns
          discriminator: own-alpha
          images:
          - image: app
            resultImage: app:3
          name: alpha
        - args:
            region: beta-t1
            tier: t1
          aws:
            profile: base
            serviceAccount:
              name: sa
              namespace: ns
          context: beta.example.com
          discriminator: fleet-beta-beta-t1
          name: beta
        - args:
            region: x
          aws:
            profile: base
            serviceAccount:
              name: sa
              namespace: ns
          discriminator: fleet-t0-named-x
          name: t0-named
        - args:
            region: eu
          aws:
            profile: base
            serviceAccount:
              name: sa
              namespace: ns
          context: zeta.example.com
          discriminator: fleet-zeta-eu
          name: zeta
        ");
    let warnings: Vec<String> = list.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r"
        .kluctl.yaml:13:3: targets[2]: target zeta is left out: a former one has the same name
        .kluctl.yaml:26:3: args[0].name: target no-region is left out: required argument region not set (give it a value, for example with `-a region=…` or in the target's args; arguments: region (required), tier)
        .kluctl.yaml:18:5: targets[4].args.region: target undefined is left out: 'target.nope' is undefined
        .kluctl.yaml:19:3: targets[5]: the target has no name and is left out
        ");
}

#[test]
fn a_target_is_selected_by_its_rendered_name() {
    assert_eq!(resolve(FLEET, &request("t0-named")).unwrap().args["region"], "x");
    insta::assert_snapshot!(resolve(FLEET, &request("bta")).unwrap_err(), @"target bta does not exist in the project (did you mean `beta`?; targets: zeta, alpha, no-region, undefined, beta, {{ args.tier }}-named)");
    insta::assert_snapshot!(resolve(FLEET, &request("production")).unwrap_err(), @"target production does not exist in the project (targets: zeta, alpha, no-region, undefined, beta, {{ args.tier }}-named)");
    insta::assert_snapshot!(resolve(FLEET, &request("no-region")).unwrap_err(), @".kluctl.yaml:26:3: args[0].name: target no-region cannot be used: required argument region not set (give it a value, for example with `-a region=…` or in the target's args; arguments: region (required), tier)");
    insta::assert_snapshot!(resolve(FLEET, &request("undefined")).unwrap_err(), @".kluctl.yaml:18:5: targets[4].args.region: target undefined cannot be used: 'target.nope' is undefined");
    insta::assert_snapshot!(resolve(FLEET, &TargetRequest::default()).unwrap_err(), @"a target must be selected (targets: zeta, alpha, no-region, undefined, beta, {{ args.tier }}-named)");
    // A target that fails for want of an argument works once it is given.
    let given = TargetRequest { args: json!({"region": "cli"}), ..request("no-region") };
    let target = resolve(FLEET, &given).unwrap();
    assert_eq!(target.discriminator.as_deref(), Some("fleet-no-region-cli"));
    assert_eq!(target.aws.profile.as_deref(), Some("base"));
}

#[test]
fn values_may_refer_to_each_other_in_any_order() {
    let text = "\
discriminator: '{{ args.prefix }}-{{ target.name }}'
targets:
- name: eu1
  args:
    url: https://{{ args.host }}:{{ target.args.port }}/
    host: '{{ args.prefix }}.{{ args.domain }}'
    prefix: app-{{ target.name }}
    port: 8443
    same: '{{ args.port }}'
    key-{{ target.name }}: {list: ['{{ args.prefix }}', plain]}
args:
- {name: domain, default: example.com}
- {name: untemplated, default: '{{ target.name }}'}
";
    let given = TargetRequest { args: json!({"domain": "example.org"}), ..request("eu1") };
    let target = resolve(text, &given).unwrap();
    assert_eq!(
        target.args,
        json!({
            "url": "https://app-eu1.example.org:8443/", "host": "app-eu1.example.org", "prefix": "app-eu1",
            "port": 8443, "same": "8443", "key-eu1": {"list": ["app-eu1", "plain"]},
            "domain": "example.org", "untemplated": "{{ target.name }}",
        })
    );
    assert_eq!(target.discriminator.as_deref(), Some("app-eu1-eu1"));
    assert_eq!(target.to_value()["args"].get("domain"), None);
}

#[test]
fn values_that_never_settle_are_taken_as_they_are_in_the_end() {
    let text = "targets:\n- name: t\n  args: {a: 'x{{ args.a }}'}\n";
    let target = resolve(text, &request("t")).unwrap();
    assert!(target.args["a"].as_str().unwrap().starts_with("xxxxxxxxxx"));
}

#[test]
fn overrides_come_after_rendering() {
    let text = "targets:\n- name: base\n  context: ctx\n  discriminator: d-{{ target.name }}\n  args: {from: '{{ target.name }}'}\n  images: [{image: a, resultImage: 'a:1'}]\n";
    let image = |result: &str| crate::schema::FixedImage {
        image: Some("a".into()),
        result_image: result.into(),
        ..Default::default()
    };
    let all = TargetRequest {
        name_override: Some("renamed".into()),
        context: Some("other".into()),
        images: vec![image("a:2")],
        ..request("base")
    };
    let target = resolve(text, &all).unwrap();
    assert_eq!(
        target.to_value(),
        json!({
            "name": "renamed", "context": "other", "discriminator": "d-base", "args": {"from": "base"}, "aws": {},
            "images": [{"image": "a", "resultImage": "a:1"}],
        })
    );
    assert_eq!(target.images, [image("a:1"), image("a:2")]);
    let verbatim = TargetRequest { discriminator: Some("{{ x }}".into()), ..request("base") };
    assert_eq!(resolve(text, &verbatim).unwrap().discriminator.as_deref(), Some("{{ x }}"));
    // What is empty overrides nothing.
    let empty = TargetRequest {
        name_override: Some(String::new()),
        discriminator: Some(String::new()),
        context: Some(String::new()),
        ..request("base")
    };
    assert_eq!(resolve(text, &empty).unwrap(), resolve(text, &request("base")).unwrap());
}

#[test]
fn errors_point_to_the_field_of_the_file() {
    let text = "\
discriminator: '{{ args.nope }}'
targets:
- name: a
- name: b
  discriminator: x
  args:
    list:
    - ok
    - '{{ args.missing }}'
- name: c
  discriminator: x
  images:
  - {image: a, imageRegex: b, resultImage: c}
- name: d
  discriminator: x
  images:
  - {imageRegex: '(', resultImage: c}
";
    let messages = ["a", "b", "c", "d"].map(|name| resolve(text, &request(name)).unwrap_err());
    insta::assert_snapshot!(messages.join("\n"), @r"
        .kluctl.yaml:1:1: discriminator: target a cannot be used: 'args.nope' is undefined
        .kluctl.yaml:9:7: targets[1].args.list[1]: target b cannot be used: 'args.missing' is undefined
        .kluctl.yaml:13:5: targets[2].images[0]: target c cannot be used: has both image and imageRegex, expected exactly one of image and imageRegex
        .kluctl.yaml:17:6: targets[3].images[0].imageRegex: target d cannot be used: is no regular expression: regex parse error:
            (
            ^
        error: unclosed group, expected a regular expression
        ");
}

#[test]
fn discriminators_are_label_values() {
    for good in ["a", "shop-prod", "A.b_c-9", &"x".repeat(63)] {
        assert_eq!(check_discriminator(good), None);
    }
    for bad in ["-a", "a-", "a b", "ä", "", &"x".repeat(64)] {
        assert!(check_discriminator(bad).is_some(), "{bad}");
    }
    insta::assert_snapshot!(check_discriminator("a b").unwrap(), @r#"the discriminator "a b" is not a valid label value, expected at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"#);
}
