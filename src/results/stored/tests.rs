use std::{io::Read, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;

use super::*;
use crate::{
    deployment::Inclusion,
    object::{Object, ObjectRef},
    results::{
        BaseObject, Change, ChangeKind, CommandResultSummary, RunInfo, TargetKey, expand_objects,
    },
};

const ID: &str = "11111111-2222-4333-8444-555555555555";

fn result(objects: usize, size: usize) -> CommandResult {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let info = RunInfo {
        id: ID.to_owned(),
        project_key: ProjectKey {
            repo_key: "git://git.example.com/team/my_App.x".to_owned(),
            sub_dir: "deploy".to_owned(),
        },
        target: json!({"name": "prod"}),
        ..RunInfo::default()
    };
    let mut result = CommandResult::started("deploy", &info, &Inclusion::default(), now);
    result.target_key = TargetKey {
        target_name: "prod".to_owned(),
        cluster_id: "c".to_owned(),
        discriminator: "d".to_owned(),
    };
    result.objects = (0..objects).map(|index| object(index, size)).collect();
    result
}

/// An object whose text cannot be compressed much.
fn object(index: usize, size: usize) -> ResultObject {
    let mut state = index as u64 + 1;
    let mut noise = || {
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:08x}", state >> 32)
        };
        (0..size / 8).map(step).collect::<String>()
    };
    let tree = |text: String| {
        let name = format!("o{index}");
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": text}});
        Object::new(value).ok().map(Arc::new)
    };
    let change = Change {
        kind: ChangeKind::Update,
        json_path: "data[\"x\"]".to_owned(),
        old_value: Some("a".into()),
        new_value: Some(noise().into()),
        unified_diff: noise(),
    };
    ResultObject {
        base: BaseObject {
            reference: ObjectRef::new("v1", "ConfigMap", Some("ns"), &format!("o{index}")),
            changes: vec![change],
            new: false,
            orphan: false,
            deleted: false,
            hook: false,
        },
        rendered: tree(noise()),
        remote: tree(noise()),
        applied: tree(noise()),
    }
}

fn data(secret: &Value, key: &str) -> Value {
    let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap();
    let mut text = String::new();
    GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_result_becomes_a_secret_as_the_reference_writes_it() {
    let result = result(2, 16);
    let (secret, completeness) = command_secret(&result, "kluctl-results");
    assert_eq!(completeness, Completeness::Complete);
    assert_eq!(secret["metadata"]["name"], format!("cr-my-appx-{ID}"));
    assert_eq!(secret["metadata"]["namespace"], "kluctl-results");
    assert_eq!(
        secret["metadata"]["labels"],
        json!({"kluctl.io/result": "true", "kluctl.io/command-result-id": ID})
    );
    let annotations = &secret["metadata"]["annotations"];
    assert_eq!(annotations["kluctl.io/result-project-repo-key"], result.project_key.repo_key);
    assert_eq!(annotations["kluctl.io/result-project-subdir"], "deploy");
    let summary: CommandResultSummary =
        serde_json::from_str(annotations[COMMAND_SUMMARY].as_str().unwrap()).unwrap();
    assert_eq!(summary, result.summary());

    let reduced: CommandResult = serde_json::from_value(data(&secret, "reducedResult")).unwrap();
    assert_eq!(reduced, result.reduced());
    let objects = expand_objects(data(&secret, "compactedObjects")).unwrap();
    assert_eq!(objects, result.objects);
}

#[test]
fn names_fit_whatever_the_repository_is_called() {
    assert_eq!(secret_name("cr", ID, ""), format!("cr-{ID}"));
    let long = secret_name("vr", ID, &format!("git://h/{}", "x".repeat(90)));
    assert_eq!(long.len(), 63);
    assert_eq!(long, format!("vr-{}-{ID}", "x".repeat(23)));
}

#[test]
fn a_large_result_loses_as_little_as_possible() {
    // About half of the noise can be compressed away.
    let cases = [
        (100, 3_000, Completeness::WithoutLive),
        (100, 4_000, Completeness::WithoutObjects),
        (100, 10_000, Completeness::WithoutChanges),
    ];
    for (count, size, expected) in cases {
        let result = result(count, size);
        let (secret, completeness) = command_secret(&result, "ns");
        assert_eq!(completeness, expected, "{count} objects of {size} bytes");
        let bytes: usize = ["reducedResult", "compactedObjects"]
            .iter()
            .map(|key| STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap().len())
            .sum();
        assert!(bytes <= MOST_DATA, "{bytes} bytes");
        let stored: CommandResult = serde_json::from_value(data(&secret, "reducedResult")).unwrap();
        let told = &stored.warnings.last().unwrap().message;
        assert!(told.contains(expected.loss().unwrap()), "{told}");
        let objects = expand_objects(data(&secret, "compactedObjects")).unwrap();
        assert_eq!(objects.len(), count);
        assert!(objects.iter().all(|object| object.base.changes.len() == 1));
        assert_eq!(
            objects.iter().all(|object| object.rendered.is_some()),
            expected == Completeness::WithoutLive
        );
    }
}

#[test]
fn a_summary_with_many_messages_is_cut() {
    let mut result = result(0, 0);
    let error = |index| DeploymentError::new(None, format!("{index}: {}", "x".repeat(1000)));
    result.errors = (0..2000).map(error).collect();
    let text = command_summary(&result);
    assert!(text.len() <= MOST_SUMMARY, "{}", text.len());
    let summary: CommandResultSummary = serde_json::from_str(&text).unwrap();
    assert!(summary.errors.len() > 50, "{}", summary.errors.len());
    assert!(summary.errors.last().unwrap().message.ends_with("more"));
}
