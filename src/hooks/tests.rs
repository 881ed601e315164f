use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::object::Object;

fn object(annotations: &Value) -> Object {
    Object::new(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "annotations": annotations}}))
        .unwrap()
}

fn hook(annotations: &Value) -> Hook {
    let (hook, problems) = hook_of(&object(annotations));
    assert_eq!(problems, []);
    hook.unwrap()
}

#[test]
fn ordinary_and_deleted_objects_are_no_hooks() {
    assert_eq!(hook_of(&object(&json!({}))), (None, Vec::new()));
    let deleted = json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/delete": "true"});
    assert_eq!(hook_of(&object(&deleted)), (None, Vec::new()));
}

#[test]
fn moments_decide_when_a_hook_runs() {
    use Stage::{Post, Pre};
    let cases = [
        ("kluctl.io/hook", "pre-deploy", [(Pre, true), (Pre, false)].to_vec()),
        (
            "kluctl.io/hook",
            "post-deploy-initial, pre-deploy-upgrade",
            [(Post, true), (Pre, false)].to_vec(),
        ),
        ("helm.sh/hook", "pre-install,post-upgrade", [(Pre, true), (Post, false)].to_vec()),
    ];
    for (annotation, value, expected) in cases {
        let hook = hook(&json!({annotation: value}));
        for stage in [Pre, Post] {
            for initial in [true, false] {
                let runs = hook.runs(stage, initial);
                assert_eq!(
                    runs,
                    expected.contains(&(stage, initial)),
                    "{value} {stage:?} {initial}"
                );
            }
        }
    }
}

#[test]
fn defaults_and_settings() {
    let plain = hook(&json!({"kluctl.io/hook": "pre-deploy"}));
    assert_eq!((plain.weight, plain.wait, plain.timeout), (0, true, None));
    assert_eq!(plain.delete.into_iter().collect::<Vec<_>>(), [DeletePolicy::BeforeCreation]);
    let set = hook(&json!({
        "kluctl.io/hook": "pre-deploy", "kluctl.io/hook-weight": "-5", "helm.sh/hook-weight": "7",
        "kluctl.io/hook-delete-policy": "hook-failed", "helm.sh/hook-delete-policy": "hook-succeeded",
        "kluctl.io/hook-wait": "false", "kluctl.io/hook-timeout": "1h2m3.5s",
    }));
    assert_eq!((set.weight, set.wait), (-5, false));
    assert_eq!(set.timeout, Some(Duration::from_millis(3_723_500)));
    assert!(!set.is_persistent());
    assert_eq!(set.delete.len(), 2);
}

#[test]
fn mistakes_are_reported() {
    let cases = [
        (json!({"kluctl.io/hook": "sometimes"}), true),
        (json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-weight": "x"}), true),
        (json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-wait": "maybe"}), true),
        (json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-timeout": "5"}), true),
        (json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-delete-policy": "never"}), true),
        (json!({"helm.sh/hook": "pre-delete"}), false),
        (json!({"helm.sh/hook": "crd-install"}), false),
    ];
    for (annotations, is_error) in cases {
        let (_, problems) = hook_of(&object(&annotations));
        assert_eq!(problems.len(), 1, "{annotations}");
        assert_eq!(problems[0].is_error, is_error, "{annotations}");
    }
    let (unknown, _) = hook_of(&object(&json!({"helm.sh/hook": "crd-install"})));
    assert_eq!(unknown, None, "applied as a normal object");
    let (never, _) = hook_of(&object(&json!({"helm.sh/hook": "pre-delete"})));
    assert!(never.unwrap().is_never_run());
}

#[test]
fn hooks_run_by_weight_and_then_in_order() {
    let make = |weight: &str| {
        hook(&json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-weight": weight}))
    };
    let hooks: Vec<_> = ["5", "-1", "5", "0"].into_iter().map(make).enumerate().collect();
    let order: Vec<_> =
        select(&hooks, Stage::Pre, true).into_iter().map(|(position, _)| position).collect();
    assert_eq!(order, [1, 3, 0, 2]);
    assert!(select(&hooks, Stage::Post, true).is_empty());
}
