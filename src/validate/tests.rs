use jiff::Timestamp;
use serde_json::{Value, json};

use super::judge;
use crate::{object::Object, readiness::Facts};

fn job(annotations: &Value, status: &Value) -> Object {
    Object::new(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "x", "annotations": annotations}, "status": status}))
    .unwrap()
}

/// Errors about a desired object with annotations and a live object with annotations and status.
fn errors(desired: &Value, live: Option<(Value, Value)>) -> Vec<String> {
    let facts = Facts { has_status: Some(true), now: Timestamp::UNIX_EPOCH };
    let live = live.map(|(annotations, status)| job(&annotations, &status));
    judge(&job(desired, &json!({})), live.as_ref(), &facts).errors
}

#[test]
fn what_is_wanted_must_be_there_and_ready() {
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let none = json!({});
    assert_eq!(errors(&none, None), ["object not found"]);
    assert_eq!(errors(&none, Some((none.clone(), json!({})))), ["the job has not completed"]);
    assert_eq!(errors(&none, Some((none.clone(), complete))), [""; 0]);
    let ignored = json!({"kluctl.io/validate-ignore": "true"});
    assert_eq!(errors(&none, Some((ignored, json!({})))), [""; 0]);
}

#[test]
fn what_is_on_its_way_is_told_from_what_failed() {
    let facts = Facts { has_status: Some(true), now: Timestamp::UNIX_EPOCH };
    let desired = job(&json!({}), &json!({}));
    let is_progressing = |live: Option<&Object>| judge(&desired, live, &facts).is_progressing;
    assert!(is_progressing(Some(&desired)));
    let failed = json!({"conditions": [{"type": "Failed", "status": "True", "message": "no"}]});
    assert!(!is_progressing(Some(&job(&json!({}), &failed))));
    assert!(!is_progressing(None), "what is missing does not come by itself");
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    assert!(!is_progressing(Some(&job(&json!({}), &complete))));
    let unwanted = job(&json!({"kluctl.io/delete": "true"}), &json!({}));
    assert!(!judge(&unwanted, Some(&desired), &facts).is_progressing);
    let mut going = desired.value().clone();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let going = Object::new(going).unwrap();
    assert!(judge(&unwanted, Some(&going), &facts).is_progressing);
}

#[test]
fn what_is_marked_for_deletion_must_be_gone() {
    let delete = json!({"kluctl.io/delete": "true"});
    assert_eq!(errors(&delete, None), [""; 0]);
    let live = Some((json!({}), json!({})));
    assert_eq!(errors(&delete, live), ["is marked for deletion but still exists"]);
}

#[test]
fn hooks_are_expected_only_when_they_stay() {
    let cases = [
        (json!({"kluctl.io/hook": "post-deploy"}), true),
        (
            json!({"kluctl.io/hook": "post-deploy", "kluctl.io/hook-delete-policy": "hook-failed"}),
            true,
        ),
        (
            json!({"kluctl.io/hook": "post-deploy", "kluctl.io/hook-delete-policy": "hook-succeeded"}),
            false,
        ),
        (json!({"helm.sh/hook": "pre-delete"}), false),
    ];
    for (annotations, expected) in cases {
        assert_eq!(!errors(&annotations, None).is_empty(), expected, "{annotations}");
    }
}

#[test]
fn objects_report_results_of_their_own() {
    let facts = Facts { has_status: Some(true), now: Timestamp::UNIX_EPOCH };
    let live = job(&json!({"validate-result.kluctl.io/check": "fine", "other": "x"}), &json!({}));
    let finding = judge(&job(&json!({}), &json!({})), Some(&live), &facts);
    assert_eq!(
        finding.results,
        [("validate-result.kluctl.io/check".to_owned(), "fine".to_owned())]
    );
}
