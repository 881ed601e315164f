//! Fields left out of diffs: the project's `ignoreForDiff`, annotations, and switches of a run.

use regex::Regex;
use serde_json::Value;

use crate::{
    diagnostic::FieldPath,
    object::{JsonPath, JsonPathError, Object, ObjectRef, annotations::numbered, delete_at},
    schema::{IgnoreRule, OneOrMany},
};

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A path is not a JSON path.
    #[error(transparent)]
    Path(#[from] JsonPathError),
    /// An expression is not a regular expression.
    #[error("{expression:?} is not a regular expression: {problem}")]
    Expression {
        /// The text.
        expression: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Rules ready for use, in order.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    scope: Option<IgnoreRule>,
    paths: Vec<JsonPath>,
    expressions: Vec<Regex>,
}

fn texts(value: Option<&OneOrMany>) -> &[String] {
    value.map_or(&[], OneOrMany::as_slice)
}

fn expression(text: &str) -> Result<Regex, IgnoreError> {
    Regex::new(text).map_err(|error| IgnoreError::Expression {
        expression: text.to_owned(),
        problem: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    })
}

impl IgnoreRules {
    /// Compiles the rules of a project.
    ///
    /// # Errors
    /// When a path or expression cannot be read.
    pub fn new(rules: &[IgnoreRule]) -> Result<Self, IgnoreError> {
        let compiled = rules.iter().map(|rule| {
            let paths = texts(rule.field_path.as_ref()).iter().map(|path| JsonPath::parse(path));
            let regexes = texts(rule.field_path_regex.as_ref()).iter().map(|text| expression(text));
            Ok(Rule {
                scope: Some(rule.clone()),
                paths: paths.collect::<Result<_, _>>()?,
                expressions: regexes.collect::<Result<_, IgnoreError>>()?,
            })
        });
        compiled.collect::<Result<_, IgnoreError>>().map(Self)
    }

    /// The rules in the annotations `kluctl.io/ignore-diff-field` and `…-field-regex` of a rendered object.
    pub(super) fn of_annotations(object: &Object) -> Result<Self, IgnoreError> {
        let paths = numbered(object, "kluctl.io/ignore-diff-field");
        let texts = numbered(object, "kluctl.io/ignore-diff-field-regex");
        if paths.is_empty() && texts.is_empty() {
            return Ok(Self::default());
        }
        let rule = Rule {
            scope: None,
            paths: paths.into_iter().map(JsonPath::parse).collect::<Result<_, _>>()?,
            expressions: texts.into_iter().map(expression).collect::<Result<_, _>>()?,
        };
        Ok(Self(vec![rule]))
    }

    /// Adds the rules of another set behind these.
    pub fn extend(&mut self, more: &Self) {
        self.0.extend(more.0.iter().cloned());
    }

    /// Removes every ignored field of the object that `reference` names from its tree.
    pub(super) fn remove_from(&self, reference: &ObjectRef, tree: &mut Value) {
        for rule in self.0.iter().filter(|rule| rule.applies_to(reference)) {
            let located = rule.paths.iter().flat_map(|path| path.locate(tree)).collect();
            remove_all(tree, located);
            if !rule.expressions.is_empty() {
                let matching = leaves(tree).into_iter().filter(|path| {
                    let text = path.to_string();
                    rule.expressions.iter().any(|expression| expression.is_match(&text))
                });
                let matching = matching.collect();
                remove_all(tree, matching);
            }
        }
    }
}

impl Rule {
    /// Whether the rule is about this object. Values that the rule or the object leaves out match anything: so a rule for a
    /// group also covers core objects, and one for a namespace cluster-scoped objects, as in the reference.
    fn applies_to(&self, reference: &ObjectRef) -> bool {
        let Some(scope) = &self.scope else { return true };
        let matches = |value: &str, wanted: &Option<String>| {
            value.is_empty() || wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        matches(&reference.group, &scope.group)
            && matches(&reference.kind, &scope.kind)
            && matches(&reference.name, &scope.name)
            && matches(reference.namespace.as_deref().unwrap_or_default(), &scope.namespace)
    }
}

/// Removes fields from the last to the first, so that list positions stay valid.
pub(crate) fn remove_all(tree: &mut Value, mut paths: Vec<FieldPath>) {
    paths.sort();
    for path in paths.iter().rev() {
        let _removed = delete_at(tree, path);
    }
}

/// The paths of all values that hold no others.
pub(crate) fn leaves(tree: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    collect_leaves(tree, &FieldPath::root(), &mut found);
    found
}

fn collect_leaves(value: &Value, at: &FieldPath, found: &mut Vec<FieldPath>) {
    match value {
        Value::Object(map) => {
            map.iter()
                .for_each(|(key, child)| collect_leaves(child, &at.child(key.as_str()), found));
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(index, child)| collect_leaves(child, &at.child(index), found)),
        _ => found.push(at.clone()),
    }
}
