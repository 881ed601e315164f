//! Following a field specification through an object.

use serde_json::{Map, Value};

use super::{
    config::{FieldSpec, Step},
    error::{KustomizeError, Result},
    resource::Resource,
};
use crate::{
    diagnostic::{Class, Diagnostic},
    object::type_name,
};

/// What is made where a field is missing and its specification says to create it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nothing.
    Ignore,
    /// A mapping.
    Map,
    /// A scalar: the visitor gets `null` to replace.
    Scalar,
}

/// Calls `visit` on each field that a specification leads to, if it applies to the object's kind.
///
/// # Errors
/// When a scalar is in the way, or `visit` refuses the value with what it expected instead.
pub(crate) fn visit(
    resource: &mut Resource,
    spec: &FieldSpec,
    missing: Missing,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), &'static str>,
) -> Result<()> {
    if !applies(resource, spec) {
        return Ok(());
    }
    let missing = if spec.create { missing } else { Missing::Ignore };
    visit_any_kind(resource, spec, missing, visit)
}

/// As [`visit`], whatever the object's kind, and creating fields whatever the specification says.
///
/// # Errors
/// As [`visit`].
pub(crate) fn visit_any_kind(
    resource: &mut Resource,
    spec: &FieldSpec,
    missing: Missing,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), &'static str>,
) -> Result<()> {
    walk(&mut resource.value, spec.steps(), missing, visit)
        .map_err(|(found, expected)| misfit(resource, &spec.path, found, expected))
}

/// Whether a specification is for the object's kind.
fn applies(resource: &Resource, spec: &FieldSpec) -> bool {
    let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    let (group, version) =
        resource.api_version().split_once('/').unwrap_or(("", resource.api_version()));
    fits(&spec.gvk.kind, resource.kind())
        && fits(&spec.gvk.group, group)
        && fits(&spec.gvk.version, version)
}

/// The error for a value that a transformation cannot work on.
pub(crate) fn misfit(
    resource: &Resource,
    field: &str,
    found: &'static str,
    expected: &str,
) -> KustomizeError {
    KustomizeError::Transform(Box::new(
        Diagnostic::new(Class::Project, format!("found {found}"))
            .with_location(resource.at.clone())
            .with_object(resource.id().to_string())
            .with_field(field)
            .with_expected(expected),
    ))
}

type Misfit = (&'static str, &'static str);

fn walk(
    value: &mut Value,
    steps: &[Step],
    missing: Missing,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), &'static str>,
) -> Result<(), Misfit> {
    let Some((step, rest)) = steps.split_first() else {
        let found = type_name(value);
        return visit(value).map_err(|expected| (found, expected));
    };
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => {
            items.iter_mut().try_for_each(|item| walk(item, steps, missing, visit))
        }
        Value::Object(map) => match child(map, step, rest.is_empty(), missing) {
            Some(next) => walk(next, rest, missing, visit),
            None => Ok(()),
        },
        other => Err((type_name(other), "a mapping or a list")),
    }
}

/// The entry of a step, created when that is wanted.
fn child<'a>(
    map: &'a mut Map<String, Value>,
    step: &Step,
    is_last: bool,
    missing: Missing,
) -> Option<&'a mut Value> {
    let absent = map.get(&step.name).is_none_or(Value::is_null);
    if absent && step.is_list {
        // As kustomize has it, a `null` where a list belongs becomes an empty list.
        let entry = map.get_mut(&step.name)?;
        *entry = Value::Array(Vec::new());
    } else if absent && missing != Missing::Ignore {
        let scalar = is_last && missing == Missing::Scalar;
        let new = if scalar { Value::Null } else { Value::Object(Map::new()) };
        map.insert(step.name.clone(), new);
    }
    map.get_mut(&step.name)
}
