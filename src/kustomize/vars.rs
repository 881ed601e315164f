//! `vars`: `$(NAME)` in texts stands for a field of an object. Deprecated in kustomize, and still in use.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    config::FieldSpecs,
    decode::{Located, decoded},
    error::{KustomizeError, Place, Result},
    id::{Gvk, Id, scalar_text},
    replacements::FieldLookup,
    resmap::ResMap,
    walk::{Missing, visit},
};

decoded! {
    /// An entry of `vars`.
    pub(crate) struct Var {
        name: String = "name",
        object: ObjectReference = "objref",
        field: FieldReference = "fieldref",
    }
}

decoded! {
    /// The object whose field is meant.
    pub(crate) struct ObjectReference {
        api_version: String = "apiVersion",
        group: String = "group",
        version: String = "version",
        kind: String = "kind",
        name: String = "name",
        namespace: String = "namespace",
    }
}

decoded! {
    /// The field.
    pub(crate) struct FieldReference {
        path: String = "fieldPath",
    }
}

impl ObjectReference {
    fn gvk(&self) -> Gvk {
        if self.api_version.is_empty() {
            let Self { group, version, kind, .. } = self.clone();
            return Gvk { group, version, kind };
        }
        let mut gvk = Gvk::new(&self.api_version, &self.kind);
        if gvk.group.is_empty() {
            gvk.group.clone_from(&self.group);
        }
        gvk
    }
}

/// The vars of a build, by name.
#[derive(Debug, Default)]
pub(crate) struct VarSet(BTreeMap<String, Declared>);

#[derive(Debug)]
struct Declared {
    /// Path of the field, as written.
    path: String,
    place: Place,
}

impl VarSet {
    /// Adds the vars of a kustomization and marks the objects they read from.
    ///
    /// # Errors
    /// When a name is taken, or several objects are meant.
    pub(crate) fn declare(&mut self, vars: &[Located<Var>], map: &mut ResMap) -> Result<()> {
        for Located { value: var, place } in vars {
            let found = objects_of(var, map);
            if found.len() > 1 {
                let message = format!("var {} could mean {} objects", var.name, found.len());
                let problem = place.child("objref").problem(message);
                return Err(KustomizeError::Kustomization(Box::new(
                    problem.with_hint("give the namespace"),
                )));
            }
            if let Some(resource) = found.first().and_then(|at| map.get_mut(*at)) {
                resource.vars.push(var.name.clone());
            }
            let path = match var.field.path.as_str() {
                "" => "metadata.name".to_owned(),
                path => path.to_owned(),
            };
            self.insert(var.name.clone(), Declared { path, place: place.clone() })?;
        }
        Ok(())
    }

    /// Adds all vars of another set.
    pub(crate) fn merge(&mut self, other: Self) -> Result<()> {
        other.0.into_iter().try_for_each(|(name, var)| self.insert(name, var))
    }

    fn insert(&mut self, name: String, var: Declared) -> Result<()> {
        if let Some(first) = self.0.get(&name) {
            let problem = var.place.problem(format!("var {name} is declared twice"));
            let hint = format!("also declared at {}", first.place.at);
            return Err(KustomizeError::Kustomization(Box::new(problem.with_hint(hint))));
        }
        self.0.insert(name, var);
        Ok(())
    }

    /// Replaces `$(NAME)` in the fields specified.
    ///
    /// # Errors
    /// When the object or field of a var does not exist.
    pub(crate) fn resolve(&self, map: &mut ResMap, specs: &FieldSpecs) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut values = BTreeMap::new();
        for (name, var) in &self.0 {
            values.insert(name.as_str(), var.value(name, map)?);
        }
        for resource in map.iter_mut() {
            for spec in &specs.0 {
                visit(resource, spec, Missing::Ignore, &mut |value| {
                    match value {
                        Value::Array(items) => {
                            if items.iter().any(|item| !item.is_string()) {
                                return Err("a list of texts");
                            }
                            for item in items {
                                expand(item, &values);
                            }
                        }
                        Value::Object(map) => {
                            for value in map.values_mut() {
                                expand(value, &values);
                            }
                        }
                        scalar => expand(scalar, &values),
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

fn objects_of(var: &Var, map: &ResMap) -> Vec<usize> {
    let ObjectReference { name, namespace, .. } = &var.object;
    let wanted = Id::new(var.object.gvk(), name, namespace, false);
    let fits = |id: &Id| {
        id.gvk == wanted.gvk
            && id.name == wanted.name
            && (namespace.is_empty() || id.effective_namespace == wanted.effective_namespace)
    };
    let objects = map.iter().enumerate();
    objects
        .filter(|(_, resource)| resource.former_ids().chain([resource.id()]).any(|id| fits(&id)))
        .map(|(at, _)| at)
        .collect()
}

impl Declared {
    fn value(&self, name: &str, map: &ResMap) -> Result<Value> {
        let resource = map
            .iter()
            .find(|resource| resource.vars.iter().any(|own| own == name))
            .ok_or_else(|| {
                let message = format!("the object of var {name} does not exist");
                self.place.child("objref").refuse(message)
            })?;
        let found = FieldLookup::parse_indexed(&self.path).get(&resource.value);
        found.filter(|value| !value.is_null()).cloned().ok_or_else(|| {
            let message = format!("{} has no field {}", resource.id(), self.path);
            self.place.child("fieldref").refuse(message)
        })
    }
}

/// Expands the references in a text. A text that is nothing but a reference takes the type of the value.
fn expand(target: &mut Value, values: &BTreeMap<&str, Value>) {
    let Value::String(text) = &*target else { return };
    if !text.contains('$') {
        return;
    }
    let whole = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(value) = whole.and_then(|name| values.get(name)).filter(|value| is_scalar(value)) {
        *target = value.clone();
        return;
    }
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        expanded.push_str(before);
        let after = from.get(1..).unwrap_or_default();
        if let Some(tail) = after.strip_prefix('$') {
            expanded.push('$');
            rest = tail;
        } else if let Some((name, tail)) =
            after.strip_prefix('(').and_then(|inner| inner.split_once(')'))
        {
            match values.get(name).filter(|value| is_scalar(value)).and_then(scalar_text) {
                Some(value) => expanded.push_str(&value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = tail;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    *target = Value::String(expanded);
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}
