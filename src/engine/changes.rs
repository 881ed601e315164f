use std::collections::HashMap;

use super::DiffOptions;
use crate::{
    cluster::{LiveKey, LiveState},
    deployment::DesiredState,
    diff::{IgnoreRules, diff},
    object::{Object, ObjectRef},
    results::{AppliedObject, Change, DeploymentError, is_younger, reference_for_diff},
    schema::{IgnoreRule, OneOrMany},
};

/// Changes by object.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<(ObjectRef, Vec<Change>)>,
    pub(super) errors: Vec<DeploymentError>,
}

/// Compares what was there before with what was applied, object by object. Objects with `kluctl.io/diff-name` are compared
/// with the youngest live object of that name.
pub(super) fn changes_of(
    desired: &DesiredState,
    live: &LiveState,
    applied: &[AppliedObject],
    options: DiffOptions,
) -> Changes {
    let mut found = Changes::default();
    let by_diff_name = by_diff_name(live);
    let applied: HashMap<LiveKey, &Object> = applied
        .iter()
        .map(|applied| (LiveKey::from(&applied.object.reference()), applied.object.as_ref()))
        .collect();
    let run_rules = switched_rules(options);
    for item in &desired.items {
        let rules = match IgnoreRules::new(&item.ignore_for_diff) {
            Ok(mut rules) => {
                rules.extend(&run_rules);
                rules
            }
            Err(error) => {
                let message = format!("ignoreForDiff of {}: {error}", item.dir);
                found.errors.push(DeploymentError::new(None, message));
                continue;
            }
        };
        for object in &item.objects {
            let reference = reference_for_diff(object);
            let Some(after) = applied_counterpart(&applied, object) else { continue };
            let after_key = LiveKey::from(&reference_for_diff(after));
            let Some(before) = by_diff_name.get(&after_key) else { continue };
            match diff(before, after, object, &rules) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => found.changes.push((reference_for_diff(after), changes)),
                Err(error) => {
                    found.errors.push(DeploymentError::new(Some(reference), error.to_string()));
                }
            }
        }
    }
    found
}

/// The applied version of a rendered object, which may have got its namespace only there.
fn applied_counterpart<'a>(
    applied: &HashMap<LiveKey, &'a Object>,
    object: &Object,
) -> Option<&'a Object> {
    let mut reference = object.reference();
    if let Some(found) = applied.get(&LiveKey::from(&reference)) {
        return Some(found);
    }
    reference.namespace = match reference.namespace {
        None => Some(crate::cluster::DEFAULT_NAMESPACE.to_owned()),
        Some(_) => None,
    };
    applied.get(&LiveKey::from(&reference)).copied()
}

fn by_diff_name(live: &LiveState) -> HashMap<LiveKey, &Object> {
    let mut found: HashMap<LiveKey, &Object> = HashMap::new();
    for object in live.objects() {
        let key = LiveKey::from(&reference_for_diff(object));
        let slot = found.entry(key).or_insert(object);
        if is_younger(object, slot) {
            *slot = object;
        }
    }
    found
}

/// The rules that the switches of a run stand for.
fn switched_rules(options: DiffOptions) -> IgnoreRules {
    let mut rules = Vec::new();
    let mut rule = |path: Option<&str>, expression: Option<&str>| {
        let one = |text: &str| OneOrMany::One(text.to_owned());
        rules.push(IgnoreRule {
            field_path: path.map(one),
            field_path_regex: expression.map(one),
            group: None,
            kind: None,
            name: None,
            namespace: None,
        });
    };
    let tags = r#"^metadata\.labels\["kluctl\.io/tag-.*"\]"#;
    if options.ignore_tags || options.ignore_kluctl_metadata {
        rule(None, Some(tags));
    }
    if options.ignore_labels {
        rule(Some("metadata.labels.*"), None);
    }
    if options.ignore_annotations {
        rule(Some("metadata.annotations.*"), None);
    }
    if options.ignore_kluctl_metadata {
        rule(Some(r#"metadata.labels["kluctl.io/discriminator"]"#), None);
        rule(Some(r#"metadata.annotations["kluctl.io/deployment-item-dir"]"#), None);
    }
    // The rules above are valid; were one not, it would ignore nothing.
    IgnoreRules::new(&rules).unwrap_or_default()
}
