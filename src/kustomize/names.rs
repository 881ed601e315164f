//! Name references: when an object got another name, those who refer to it follow.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    config::{FieldSpec, TransformerConfig},
    error::{KustomizeError, Result},
    id::{Gvk, Id, is_no_namespace, scalar_text},
    resmap::ResMap,
    resource::Resource,
    walk::{Missing, visit_any_kind},
};
use crate::{
    diagnostic::{Class, Diagnostic},
    object::type_name,
};

/// An object that others may refer to.
struct Candidate {
    id: Id,
    former: Vec<Id>,
    name: String,
    namespace: String,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

/// All objects that had another identity before, by former name.
struct Candidates {
    list: Vec<Candidate>,
    by_former_name: HashMap<String, Vec<usize>>,
    /// Of all objects by original namespace: the present ones, for identity and as written.
    origins: HashMap<String, HashSet<(String, String)>>,
}

impl Candidates {
    fn new(map: &ResMap) -> Self {
        let mut list = Vec::new();
        let mut by_former_name: HashMap<String, Vec<usize>> = HashMap::new();
        let mut origins: HashMap<String, HashSet<(String, String)>> = HashMap::new();
        for resource in map.iter() {
            let present = resource.id().effective_namespace;
            let original = resource.original_id().effective_namespace;
            let place = (present, resource.namespace().to_owned());
            origins.entry(original).or_default().insert(place);
        }
        for resource in map.iter().filter(|resource| !resource.former.is_empty()) {
            let names: HashSet<&str> = resource.former.iter().map(|f| f.name.as_str()).collect();
            for name in names {
                by_former_name.entry(name.to_owned()).or_default().push(list.len());
            }
            list.push(Candidate {
                id: resource.id(),
                former: resource.former_ids().collect(),
                name: resource.name().to_owned(),
                namespace: resource.namespace().to_owned(),
                prefixes: resource.prefixes.clone(),
                suffixes: resource.suffixes.clone(),
            });
        }
        Self { list, by_former_name, origins }
    }

    fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Candidate> {
        let found = self.by_former_name.get(name).into_iter().flatten();
        found.filter_map(|at| self.list.get(*at))
    }
}

/// Updates all references to objects that were renamed or got another namespace.
///
/// # Errors
/// When a reference could mean several objects that now have different names.
pub(crate) fn update_references(map: &mut ResMap, config: &TransformerConfig) -> Result<()> {
    map.iter().try_for_each(check_subjects)?;
    let candidates = Candidates::new(map);
    if candidates.list.is_empty() {
        return Ok(());
    }
    for resource in map.iter_mut() {
        let original = resource.original_id().gvk;
        let mut referrer = None;
        for reference in &config.name_references {
            for spec in &reference.referrers.0 {
                if original.is_selected_by(&spec.gvk) {
                    let referrer = referrer.get_or_insert_with(|| Referrer::new(resource));
                    referrer.update(resource, spec, &reference.target, &candidates)?;
                }
            }
        }
    }
    Ok(())
}

/// # Errors
/// When a service account of a role binding has a namespace that is no text.
fn check_subjects(resource: &Resource) -> Result<()> {
    if resource.kind() != "RoleBinding" {
        return Ok(());
    }
    let subjects = resource.value.get("subjects").and_then(Value::as_array);
    let misfit = subjects.into_iter().flatten().find_map(|subject| {
        let namespace = subject.get("namespace").filter(|namespace| !namespace.is_string())?;
        (subject["kind"] == "ServiceAccount").then_some(namespace)
    });
    misfit.map_or(Ok(()), |found| {
        Err(super::walk::misfit(resource, "subjects.namespace", type_name(found), "a namespace"))
    })
}

/// What decides which objects a referrer can mean.
struct Referrer {
    id: Id,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
    /// Namespaces of the service accounts that a role binding names.
    subject_namespaces: HashSet<String>,
    role: Option<Gvk>,
}

impl Referrer {
    fn new(resource: &Resource) -> Self {
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let subjects = resource.value.get("subjects").and_then(Value::as_array);
        let subject_namespaces = subjects
            .filter(|_| resource.kind() == "RoleBinding")
            .into_iter()
            .flatten()
            .filter(|subject| subject["kind"] == "ServiceAccount")
            .filter_map(|subject| text(subject, "namespace"))
            .collect();
        let role = resource.value.get("roleRef").and_then(|role| {
            let (group, kind) = (text(role, "apiGroup")?, text(role, "kind")?);
            Some(Gvk { group, kind, version: String::new() })
        });
        Self {
            id: resource.id(),
            prefixes: resource.prefixes.clone(),
            suffixes: resource.suffixes.clone(),
            subject_namespaces,
            role,
        }
    }

    fn update(
        &self,
        resource: &mut Resource,
        spec: &FieldSpec,
        target: &Gvk,
        candidates: &Candidates,
    ) -> Result<()> {
        let mut ambiguous = None;
        let pick = Pick { referrer: self, target, path: &spec.path, candidates };
        // The specification was chosen by the original kind; a patch may have changed it since.
        visit_any_kind(resource, spec, Missing::Ignore, &mut |value| {
            let outcome = match value {
                Value::Array(items) => items.iter_mut().try_for_each(|item| pick.update(item)),
                value => pick.update(value),
            };
            match outcome {
                Ok(()) => Ok(()),
                Err(Failure::Expected(expected)) => Err(expected),
                Err(Failure::Ambiguous(found)) => {
                    ambiguous = Some(found);
                    Ok(())
                }
            }
        })?;
        match ambiguous {
            None => Ok(()),
            Some((name, found)) => Err(self.refuse(resource, &spec.path, &name, &found)),
        }
    }

    fn refuse(&self, resource: &Resource, path: &str, name: &str, found: &[Id]) -> KustomizeError {
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let message = format!("\"{name}\" could mean several objects: {}", found.join(", "));
        KustomizeError::Transform(Box::new(
            Diagnostic::new(Class::Project, message)
                .with_location(resource.at.clone())
                .with_object(self.id.to_string())
                .with_field(path)
                .with_hint("give the objects different names before prefixes and suffixes"),
        ))
    }
}

enum Failure {
    Expected(&'static str),
    Ambiguous((String, Vec<Id>)),
}

/// Finds what one reference means.
struct Pick<'a> {
    referrer: &'a Referrer,
    target: &'a Gvk,
    path: &'a str,
    candidates: &'a Candidates,
}

impl<'a> Pick<'a> {
    /// Updates a reference, which is a name or a mapping with `name` and maybe `namespace`.
    fn update(&self, value: &mut Value) -> Result<(), Failure> {
        match value {
            Value::Null => Ok(()),
            Value::Array(_) => Err(Failure::Expected("a name, or a mapping with `name`")),
            Value::Object(map) => {
                let Some(name) = map.get("name").and_then(scalar_text) else {
                    return Err(Failure::Expected("a mapping with `name`"));
                };
                let namespace = map.get("namespace").map(|n| scalar_text(n).unwrap_or_default());
                let found = self.choose(&name, namespace.as_deref(), true)?;
                if let Some(Candidate { name, namespace, .. }) = found {
                    map.insert("name".to_owned(), name.as_str().into());
                    if !namespace.is_empty() {
                        map.insert("namespace".to_owned(), namespace.as_str().into());
                    }
                }
                Ok(())
            }
            scalar => {
                let name = scalar_text(scalar).unwrap_or_default();
                if let Some(found) = self.choose(&name, None, false)?
                    && found.name != name
                {
                    *scalar = found.name.as_str().into();
                }
                Ok(())
            }
        }
    }

    fn choose(
        &self,
        name: &str,
        namespace: Option<&str>,
        with_namespace: bool,
    ) -> Result<Option<&'a Candidate>, Failure> {
        let in_reach: Vec<&Candidate> =
            self.candidates.named(name).filter(|candidate| self.is_in_reach(candidate)).collect();
        let fits = |candidate: &&Candidate| {
            candidate.former.iter().any(|id| id.gvk.is_selected_by(self.target))
                && self.fits_role(candidate)
                && self.fits_namespace(candidate)
        };
        let mut found: Vec<&Candidate> = match namespace {
            None => in_reach.into_iter().filter(fits).collect(),
            Some(wanted) => self.of_namespace(&in_reach, wanted).into_iter().filter(fits).collect(),
        };
        if found.len() == 1 {
            return Ok(found.pop());
        }
        found.retain(|candidate| self.same_affixes(candidate, true));
        if found.len() > 1 {
            found.retain(|candidate| self.same_affixes(candidate, false));
        }
        let Some(first) = found.first().copied() else { return Ok(None) };
        let same = |other: &&Candidate| {
            other.name == first.name && (!with_namespace || other.namespace == first.namespace)
        };
        if found.iter().all(same) {
            return Ok(Some(first));
        }
        let ids = found.into_iter().map(|candidate| candidate.id.clone()).collect();
        Err(Failure::Ambiguous((name.to_owned(), ids)))
    }

    /// Cluster-scoped objects refer to anything, namespaced ones to their own namespace and what is in none; role bindings
    /// also to where their service accounts are.
    fn is_in_reach(&self, candidate: &Candidate) -> bool {
        self.reaches(&candidate.id.effective_namespace, &candidate.namespace)
    }

    fn reaches(&self, effective_namespace: &str, namespace: &str) -> bool {
        self.referrer.id.is_cluster_scoped()
            || is_no_namespace(effective_namespace)
            || effective_namespace == self.referrer.id.effective_namespace
            || self.referrer.subject_namespaces.contains(namespace)
    }

    /// Those whose original namespace is the one wanted or, if nothing was ever in it, the present one.
    fn of_namespace<'c>(&self, in_reach: &[&'c Candidate], wanted: &str) -> Vec<&'c Candidate> {
        let originally = |candidate: &Candidate| {
            candidate.former.first().is_some_and(|id| id.effective_namespace == wanted)
        };
        let places = self.candidates.origins.get(wanted).into_iter().flatten();
        let any_originally =
            places.into_iter().any(|(effective, written)| self.reaches(effective, written));
        let fits = |candidate: &&&Candidate| {
            if any_originally {
                originally(candidate)
            } else {
                candidate.id.effective_namespace == wanted
            }
        };
        in_reach.iter().filter(fits).copied().collect()
    }

    /// A role reference says itself which kind of role it means.
    fn fits_role(&self, candidate: &Candidate) -> bool {
        match &self.referrer.role {
            Some(role) if self.path.ends_with("roleRef/name") => {
                candidate.former.iter().any(|id| id.gvk.is_selected_by(role))
            }
            _ => true,
        }
    }

    fn fits_namespace(&self, candidate: &Candidate) -> bool {
        self.referrer.id.is_cluster_scoped()
            || candidate.id.is_cluster_scoped()
            // Role bindings may name service accounts of other namespaces.
            || candidate.id.gvk.kind == "ServiceAccount"
            || candidate.id.effective_namespace == self.referrer.id.effective_namespace
    }

    /// Whether both went through the same kustomizations, as far as prefixes and suffixes tell.
    fn same_affixes(&self, candidate: &Candidate, empty_fits: bool) -> bool {
        let fits = |a: &[String], b: &[String]| {
            empty_fits && (a.is_empty() || b.is_empty()) || same_ending(a, b)
        };
        fits(&self.referrer.prefixes, &candidate.prefixes)
            && fits(&self.referrer.suffixes, &candidate.suffixes)
    }
}

/// Whether the shorter list is the end of the longer one; an empty list is the end of an empty one only.
fn same_ending(a: &[String], b: &[String]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
}
