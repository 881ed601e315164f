use serde_json::Value;

use crate::kustomize::{
    config::FieldSpecs,
    error::Result,
    resmap::ResMap,
    resource::Resource,
    walk::{Missing, misfit, visit},
};

/// Which subjects of role bindings get the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Subjects {
    /// Those named `default`.
    #[default]
    NamedDefault,
    /// All service accounts.
    ServiceAccounts,
    /// None.
    None,
}

/// The namespace transformer.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceTransformer<'a> {
    /// The namespace to set.
    pub namespace: &'a str,
    /// Fields besides `metadata.namespace`.
    pub specs: &'a FieldSpecs,
    /// Leave namespaces that are set.
    pub unset_only: bool,
    /// Role bindings.
    pub subjects: Subjects,
}

impl NamespaceTransformer<'_> {
    /// `namespace`: puts all objects into one namespace, except kinds known to be cluster-scoped.
    pub(crate) fn apply(&self, map: &mut ResMap) -> Result<()> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        for resource in map.iter_mut() {
            resource.remember_id();
            self.apply_to(resource)?;
        }
        map.check_unique()
    }

    /// The same for one object, without a look at its identity.
    pub(crate) fn apply_to(&self, resource: &mut Resource) -> Result<()> {
        if !resource.is_cluster_scoped() {
            self.set_in(resource.metadata_mut().entry("namespace").or_insert(Value::Null));
        }
        let is_binding = |kind: &str| matches!(kind, "RoleBinding" | "ClusterRoleBinding");
        let of_binding = is_binding(resource.kind());
        if of_binding {
            self.set_in_subjects(resource)?;
        }
        for spec in &self.specs.0 {
            let handled = spec.path == "metadata/namespace"
                || spec.path == "metadata/name" && resource.api_version() != "v1"
                || of_binding && spec.path == "subjects/namespace" && is_binding(&spec.gvk.kind);
            if handled {
                continue;
            }
            visit(resource, spec, Missing::Scalar, &mut |value| {
                if value.is_array() || value.is_object() {
                    return Err("a namespace");
                }
                self.set_in(value);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn set_in(&self, value: &mut Value) {
        let is_set = value.as_str().is_some_and(|text| !text.is_empty());
        if !(self.unset_only && is_set) {
            *value = self.namespace.into();
        }
    }

    fn set_in_subjects(&self, resource: &mut Resource) -> Result<()> {
        let wanted = |subject: &Value| match self.subjects {
            Subjects::NamedDefault => subject["name"] == "default",
            Subjects::ServiceAccounts => subject["kind"] == "ServiceAccount",
            Subjects::None => false,
        };
        let subjects = match resource.value.get_mut("subjects") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(subjects)) => subjects,
            Some(other) => {
                let found = crate::object::type_name(other);
                return Err(misfit(resource, "subjects", found, "a list"));
            }
        };
        for subject in subjects.iter_mut().filter(|subject| subject.is_object()) {
            if wanted(subject) {
                self.set_in(&mut subject["namespace"]);
            }
        }
        Ok(())
    }
}
