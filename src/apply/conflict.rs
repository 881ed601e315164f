//! What to do about fields that other managers own (kluctl 2.28).

use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::Value;

use super::managed_fields::{Element, for_each_field, locate, notation};
use crate::{
    cluster::FieldConflict,
    diagnostic::FieldPath,
    diff::{leaves, remove_all},
    object::{
        JsonPath, JsonPathError, Object, ObjectRef,
        annotations::{is_set, numbered},
        get_at,
    },
    schema::{ConflictAction, ConflictRule, OneOrMany},
};

/// Why conflicts cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConflictError {
    /// A rule's path is not a JSON path.
    #[error("conflict resolution: {0}")]
    Path(#[from] JsonPathError),
    /// A rule's expression is not a regular expression.
    #[error("conflict resolution: {0:?} is not a regular expression")]
    Expression(String),
    /// The managed fields do not know the field: they changed since the object was read.
    #[error("{message}: field {field} is not in the managed fields of the live object")]
    UnknownField {
        /// The field in the API server's notation.
        field: String,
        /// The API server's words.
        message: String,
    },
    /// Several fields have this notation, as keys may contain dots.
    #[error("{message}: field {field} is ambiguous")]
    Ambiguous {
        /// The field in the API server's notation.
        field: String,
        /// The API server's words.
        message: String,
    },
}

/// How conflicts were resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The desired object without the fields that are left to others, to be applied with force.
    pub body: Value,
    /// Fields that are left to others although their values differ, with the API server's words.
    pub lost: Vec<FieldConflict>,
}

/// Decides each conflicting field: what a rule or annotation says; otherwise it is taken over when one of its managers is
/// kluctl itself or a tool in a person's hand, and left to its owner when not.
///
/// `rules` are the project's, lowest precedence first; annotations of `desired` go above them, and ignoring above forcing.
///
/// # Errors
/// When a rule cannot be read or a field cannot be found.
pub fn resolve(
    desired: &Object,
    live: &Object,
    conflicts: &[FieldConflict],
    rules: &[ConflictRule],
) -> Result<Resolution, ConflictError> {
    let owners = owners_of(live, conflicts);
    let actions = actions(desired, live, rules)?;
    let mut dropped = Vec::new();
    let mut lost = Vec::new();
    for conflict in conflicts {
        let unknown = || ConflictError::UnknownField {
            field: conflict.field.clone(),
            message: conflict.message.clone(),
        };
        let owners = owners.get(conflict.field.as_str()).ok_or_else(unknown)?;
        let mut places = owners.paths.iter().filter_map(|path| {
            let ours = locate(desired.value(), path)?;
            Some((ours, locate(live.value(), path)?))
        });
        let (ours, theirs) = places.next().ok_or_else(unknown)?;
        if places.next().is_some() {
            return Err(ConflictError::Ambiguous {
                field: conflict.field.clone(),
                message: conflict.message.clone(),
            });
        }
        let action = actions.get(&ours).or_else(|| actions.get(&theirs)).copied();
        let keep = match action {
            Some(ConflictAction::ForceApply) => true,
            Some(ConflictAction::Ignore) => false,
            None => owners.managers.iter().any(|manager| is_overwritable(manager)),
        };
        if !keep {
            let differs = get_at(desired.value(), &ours) != get_at(live.value(), &theirs);
            if differs && action.is_none() {
                lost.push(conflict.clone());
            }
            dropped.push(ours);
        }
    }
    let mut body = desired.value().clone();
    remove_all(&mut body, dropped);
    Ok(Resolution { body, lost })
}

/// Managers whose fields are taken over without being told to.
fn is_overwritable(manager: &str) -> bool {
    const EXACT: [&str; 4] = ["kluctl", "kubectl", "rancher", "k9s"];
    const PREFIX: [&str; 2] = ["kluctl-", "kubectl-"];
    EXACT.contains(&manager) || PREFIX.iter().any(|prefix| manager.starts_with(prefix))
}

#[derive(Default)]
struct Owners<'a> {
    paths: Vec<Vec<Element>>,
    managers: Vec<&'a str>,
}

/// Paths and managers of the conflicting fields.
fn owners_of<'a>(live: &'a Object, conflicts: &[FieldConflict]) -> HashMap<String, Owners<'a>> {
    let wanted: HashSet<&str> = conflicts.iter().map(|conflict| conflict.field.as_str()).collect();
    let mut found: HashMap<String, Owners<'a>> = HashMap::new();
    for_each_field(live, |manager, path| {
        let field = notation(path);
        if !wanted.contains(field.as_str()) {
            return;
        }
        let owners = found.entry(field).or_default();
        if !owners.paths.iter().any(|known| known == path) {
            owners.paths.push(path.to_vec());
        }
        owners.managers.push(manager);
    });
    found
}

type Actions = HashMap<FieldPath, ConflictAction>;

/// The action per field, later rules overriding earlier ones.
fn actions(
    desired: &Object,
    live: &Object,
    rules: &[ConflictRule],
) -> Result<Actions, ConflictError> {
    let mut actions = Actions::new();
    let reference = desired.reference();
    for rule in rules.iter().filter(|rule| applies_to(rule, &reference)) {
        let mut set = |paths: Vec<FieldPath>| {
            actions.extend(paths.into_iter().map(|path| (path, rule.action)));
        };
        for path in texts(rule.field_path.as_ref()) {
            set(matching_paths(desired, live, path)?);
        }
        for expression in texts(rule.field_path_regex.as_ref()) {
            let expression = regex(expression)?;
            let matching = leaves(desired.value())
                .into_iter()
                .filter(|path| expression.is_match(&path.to_string()));
            set(matching.collect());
        }
        for expression in texts(rule.manager.as_ref()) {
            set(managed_paths(live, expression)?);
        }
    }
    annotated_actions(desired, live, &mut actions)?;
    Ok(actions)
}

/// What the annotations of the desired object say; ignoring comes last and so wins.
fn annotated_actions(
    desired: &Object,
    live: &Object,
    actions: &mut Actions,
) -> Result<(), ConflictError> {
    let table = [
        ("kluctl.io/force-apply", ConflictAction::ForceApply),
        ("kluctl.io/ignore-conflicts", ConflictAction::Ignore),
    ];
    for (annotation, action) in table {
        if is_set(desired, annotation) {
            let paths = matching_paths(desired, live, "..")?;
            actions.extend(paths.into_iter().map(|path| (path, action)));
        }
        for expression in numbered(desired, &format!("{annotation}-manager")) {
            let paths = managed_paths(live, expression)?;
            actions.extend(paths.into_iter().map(|path| (path, action)));
        }
        for path in numbered(desired, &format!("{annotation}-field")) {
            let paths = matching_paths(desired, live, path)?;
            actions.extend(paths.into_iter().map(|path| (path, action)));
        }
    }
    Ok(())
}

/// The fields of either object that a JSON path names.
fn matching_paths(
    desired: &Object,
    live: &Object,
    path: &str,
) -> Result<Vec<FieldPath>, ConflictError> {
    let path = JsonPath::parse(path)?;
    let mut found = path.locate(desired.value());
    found.extend(path.locate(live.value()));
    Ok(found)
}

/// The fields that managers of a matching name own.
fn managed_paths(live: &Object, expression: &str) -> Result<Vec<FieldPath>, ConflictError> {
    let expression = regex(expression)?;
    let mut found = Vec::new();
    for_each_field(live, |manager, path| {
        if expression.is_match(manager) {
            found.extend(locate(live.value(), path));
        }
    });
    Ok(found)
}

fn texts(value: Option<&OneOrMany>) -> &[String] {
    value.map_or(&[], OneOrMany::as_slice)
}

fn regex(text: &str) -> Result<Regex, ConflictError> {
    Regex::new(text).map_err(|_| ConflictError::Expression(text.to_owned()))
}

/// Whether a rule is about this object; what either side leaves out matches anything, as in the reference.
fn applies_to(rule: &ConflictRule, reference: &ObjectRef) -> bool {
    let matches = |value: &str, wanted: &Option<String>| {
        value.is_empty() || wanted.as_deref().is_none_or(|wanted| wanted == value)
    };
    matches(&reference.group, &rule.group)
        && matches(&reference.kind, &rule.kind)
        && matches(&reference.name, &rule.name)
        && matches(reference.namespace.as_deref().unwrap_or_default(), &rule.namespace)
}
