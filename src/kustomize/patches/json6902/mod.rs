//! JSON patches (RFC 6902), with negative list indexes as kustomize allows them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Problem;
use crate::{
    diagnostic::{Class, Diagnostic, SourceLocation},
    kustomize::{
        decode::{Decode, Fielded, Located, Node, decoded},
        error::{KustomizeError, Place, Result},
        id::scalar_text,
        kustomization::Raw,
        resource::Resource,
    },
    object::type_name,
    yaml::Document,
};

/// The operations of a patch, in order. Copies are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Operations(Arc<[Located<Operation>]>);

#[derive(Debug, Clone)]
struct Operation {
    path: Pointer,
    action: Action,
}

#[derive(Debug, Clone)]
enum Action {
    Add(Value),
    Replace(Value),
    Remove,
    Test(Value),
    Move { from: Pointer },
    Copy { from: Pointer },
}

decoded! {
    /// An operation as written.
    pub(crate) struct Written {
        op: String = "op",
        path: Option<String> = "path",
        from: Option<String> = "from",
        #[expect(dead_code, reason = "`null` is a value here, and is read apart")]
        value: Option<Raw> = "value",
    }
}

impl Decode for Operation {
    fn decode(node: &Node<'_>) -> Result<Self> {
        let fields = node.fields(Written::FIELDS)?;
        // Unlike kustomizations, JSON patches mind the case of their fields.
        let misspelt = |key: &&String| !Written::FIELDS.contains(&key.as_str());
        if let Some(key) = node.value.as_object().into_iter().flat_map(Map::keys).find(misspelt) {
            let problem = node.place().problem(format!("unknown field \"{key}\""));
            let hint = format!("write `{}`", key.to_lowercase());
            return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(hint))));
        }
        // `value: null` is a value.
        let value = node.value.get("value").cloned();
        let written = Written::from_fields(&fields)?;
        let place = node.place();
        let pointer = |field: &str, text: Option<String>| match text {
            None => Err(place.child(field).refuse("missing")),
            Some(text) if text.is_empty() || text.starts_with('/') => Ok(Pointer::parse(&text)),
            Some(text) => {
                let problem = place.child(field).problem(format!("found \"{text}\""));
                let problem = problem.with_expected("a JSON pointer, which starts with /");
                Err(KustomizeError::Kustomization(Box::new(problem)))
            }
        };
        let value = || value.ok_or_else(|| place.child("value").refuse("missing"));
        let action = match written.op.as_str() {
            "add" => Action::Add(value()?),
            "replace" => Action::Replace(value()?),
            "test" => Action::Test(value()?),
            "remove" => Action::Remove,
            "move" => Action::Move { from: pointer("from", written.from)? },
            "copy" => Action::Copy { from: pointer("from", written.from)? },
            other => {
                let problem = place.child("op").problem(format!("unknown operation \"{other}\""));
                let expected = "add, replace, remove, move, copy or test";
                return Err(KustomizeError::Kustomization(Box::new(
                    problem.with_expected(expected),
                )));
            }
        };
        Ok(Self { path: pointer("path", written.path)?, action })
    }
}

impl Operations {
    /// Reads the operations of a document that is a list.
    pub(super) fn decode(file: &str, document: &Document) -> Result<Self> {
        Vec::decode(&Node::root(file, document)).map(|operations| Self(operations.into()))
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies all operations to an object.
    pub(super) fn apply(&self, resource: &mut Resource) -> Result<()> {
        if resource.generated || !resource.former.is_empty() {
            // kustomize keeps its notes in annotations, so that patches find some on most objects, and count on that.
            resource.metadata_mut().entry("annotations").or_insert_with(|| Map::new().into());
        }
        for Located { value: operation, place } in self.0.iter() {
            operation
                .apply(&mut resource.value)
                .map_err(|problem| refuse(resource, place, &problem))?;
        }
        // kustomize takes the object apart for this, and puts it together without quotes.
        resource.source = None;
        Ok(())
    }
}

fn refuse(resource: &Resource, place: &Place, problem: &Problem) -> KustomizeError {
    let mut diagnostic = Diagnostic::new(Class::Project, problem.message.clone())
        .with_location(SourceLocation::clone(&place.at))
        .with_object(resource.id().to_string())
        .with_field(problem.field.clone());
    if let Some(expected) = &problem.expected {
        diagnostic = diagnostic.with_expected(expected.clone());
    }
    if let Some(hint) = &problem.hint {
        diagnostic = diagnostic.with_hint(hint.clone());
    }
    KustomizeError::Transform(Box::new(diagnostic))
}

/// A JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    fn parse(text: &str) -> Self {
        let steps = text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
        Self { text: text.to_owned(), steps: steps.collect() }
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { field: self.text.clone(), message: message.into(), expected: None, hint: None }
    }

    fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.steps.iter().try_fold(root, |value, step| match value {
            Value::Object(map) => map.get(step),
            Value::Array(list) => list.get(index(step, list.len())?),
            _ => None,
        })
    }

    /// The container of the last step, and that step.
    fn parent<'v>(&self, root: &'v mut Value) -> Result<(&'v mut Value, &str), Problem> {
        let Some((last, above)) = self.steps.split_last() else {
            return Err(self.problem("the whole object cannot be the target of this operation"));
        };
        let mut value = root;
        for (depth, step) in above.iter().enumerate() {
            let next = match value {
                Value::Object(map) => map.get_mut(step),
                Value::Array(list) => index(step, list.len()).and_then(|at| list.get_mut(at)),
                _ => None,
            };
            let missing = above.get(..=depth).unwrap_or(above).join("/");
            value = next.ok_or_else(|| {
                let mut problem = self.problem(format!("/{missing} does not exist"));
                problem.hint = Some("add the parent first".to_owned());
                problem
            })?;
        }
        Ok((value, last))
    }

    fn add(&self, root: &mut Value, new: Value) -> Result<(), Problem> {
        if self.steps.is_empty() {
            *root = new;
            return Ok(());
        }
        let (parent, last) = self.parent(root)?;
        match parent {
            Value::Object(map) => {
                map.insert(last.to_owned(), new);
                Ok(())
            }
            Value::Array(list) => {
                let at = if last == "-" { Some(list.len()) } else { insertion(last, list.len()) };
                match at {
                    Some(at) => {
                        list.insert(at, new);
                        Ok(())
                    }
                    None => Err(self.no_index(last, list.len())),
                }
            }
            other => Err(self.no_container(other)),
        }
    }

    fn remove(&self, root: &mut Value) -> Result<Value, Problem> {
        let (parent, last) = self.parent(root)?;
        match parent {
            Value::Object(map) => map.remove(last).ok_or_else(|| self.missing(map.keys())),
            Value::Array(list) => match index(last, list.len()) {
                Some(at) => Ok(list.remove(at)),
                None => Err(self.no_index(last, list.len())),
            },
            other => Err(self.no_container(other)),
        }
    }

    fn replace(&self, root: &mut Value, new: Value) -> Result<(), Problem> {
        if self.steps.is_empty() {
            *root = new;
            return Ok(());
        }
        let (parent, last) = self.parent(root)?;
        match parent {
            Value::Object(map) => {
                // RFC 6902 wants the field to exist; kustomize does not, and projects rely on it.
                map.insert(last.to_owned(), new);
                Ok(())
            }
            Value::Array(list) => {
                let len = list.len();
                let slot = index(last, len).and_then(|at| list.get_mut(at));
                *slot.ok_or_else(|| self.no_index(last, len))? = new;
                Ok(())
            }
            other => Err(self.no_container(other)),
        }
    }

    fn missing<'k>(&self, keys: impl Iterator<Item = &'k String>) -> Problem {
        let mut problem = self.problem("does not exist");
        let keys: Vec<&str> = keys.map(String::as_str).collect();
        if !keys.is_empty() {
            problem.hint = Some(format!("there is: {}", keys.join(", ")));
        }
        problem
    }

    fn no_index(&self, step: &str, len: usize) -> Problem {
        self.problem(format!("there is no item {step} in a list of {len}"))
    }

    fn no_container(&self, found: &Value) -> Problem {
        let mut problem = self.problem(format!("its parent is {}", type_name(found)));
        problem.expected = Some("a mapping or a list".to_owned());
        problem
    }
}

/// The index of an existing item; negative ones count from the end.
fn index(step: &str, len: usize) -> Option<usize> {
    let at = match step.strip_prefix('-') {
        Some(back) => len.checked_sub(back.parse().ok().filter(|back| *back > 0)?)?,
        None => step.parse().ok()?,
    };
    (at < len).then_some(at)
}

/// The index to insert at, up to the end of the list.
fn insertion(step: &str, len: usize) -> Option<usize> {
    match step.strip_prefix('-') {
        // `-1` is the place behind the last item.
        Some(back) => (len + 1).checked_sub(back.parse().ok().filter(|back| *back > 0)?),
        None => step.parse().ok().filter(|at| *at <= len),
    }
}

impl Operation {
    fn apply(&self, root: &mut Value) -> Result<(), Problem> {
        match &self.action {
            Action::Add(value) => self.path.add(root, value.clone()),
            Action::Replace(value) => self.path.replace(root, value.clone()),
            Action::Remove => self.path.remove(root).map(drop),
            Action::Move { from } => {
                let value = from.remove(root)?;
                self.path.add(root, value)
            }
            Action::Copy { from } => {
                let found = from.get(root).ok_or_else(|| from.problem("does not exist"))?;
                let value = found.clone();
                self.path.add(root, value)
            }
            Action::Test(wanted) => self.test(root, wanted),
        }
    }

    fn test(&self, root: &Value, wanted: &Value) -> Result<(), Problem> {
        let found = self.path.get(root);
        // As in kustomize, a missing field passes for `null`.
        if found.unwrap_or(&Value::Null) == wanted {
            return Ok(());
        }
        let shown =
            |value: &Value| scalar_text(value).unwrap_or_else(|| type_name(value).to_owned());
        let message = match found {
            None => "the test found nothing".to_owned(),
            Some(found) => format!("the test found {}", shown(found)),
        };
        let mut problem = self.path.problem(message);
        problem.expected = Some(shown(wanted));
        Err(problem)
    }
}

#[cfg(test)]
mod tests;
