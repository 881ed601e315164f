//! Which fields transformers work on: kustomize's defaults, and what `configurations` and `crds` add.

mod crds;
mod defaults;
mod field_spec;
mod load;

pub(crate) use crds::load_crds;
pub(crate) use field_spec::{FieldSpec, Step, split_path};
pub(crate) use load::{load_configurations, refuse};

use std::sync::Arc;

use super::id::Gvk;

/// Two specifications of one field disagree about creating it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The field's path.
    pub path: String,
}

/// Field specifications in order, none twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSpecs(pub Vec<FieldSpec>);

impl FieldSpecs {
    /// Adds a specification unless one that covers it is there.
    pub(crate) fn merge_one(&mut self, spec: &FieldSpec) -> Result<(), Conflict> {
        let same =
            self.0.iter().find(|own| own.gvk.is_selected_by(&spec.gvk) && own.path == spec.path);
        match same {
            Some(own) if own.create != spec.create => Err(Conflict { path: spec.path.clone() }),
            Some(_) => Ok(()),
            None => {
                self.0.push(spec.clone());
                Ok(())
            }
        }
    }

    /// Adds all of another list.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Conflict> {
        other.0.iter().try_for_each(|spec| self.merge_one(spec))
    }

    fn sort(&mut self) {
        self.0.sort_by_cached_key(|spec| build_order(&spec.gvk));
    }
}

/// Where the name of one kind of object is referred to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameReference {
    /// The kind whose name is referred to.
    pub target: Gvk,
    /// The fields that hold its name.
    pub referrers: FieldSpecs,
}

/// All field specifications of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TransformerConfig {
    pub name_prefix: FieldSpecs,
    pub name_suffix: FieldSpecs,
    pub namespace: FieldSpecs,
    pub common_labels: FieldSpecs,
    pub labels: FieldSpecs,
    pub template_labels: FieldSpecs,
    pub volume_claim_template_labels: FieldSpecs,
    pub common_annotations: FieldSpecs,
    pub name_references: Vec<NameReference>,
    pub var_references: FieldSpecs,
    pub images: FieldSpecs,
    pub replicas: FieldSpecs,
}

impl TransformerConfig {
    /// kustomize's own table.
    pub(crate) fn defaults() -> Arc<Self> {
        defaults::shared()
    }

    /// Adds what another configuration has.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Conflict> {
        self.name_prefix.merge(&other.name_prefix)?;
        self.name_suffix.merge(&other.name_suffix)?;
        self.namespace.merge(&other.namespace)?;
        self.common_labels.merge(&other.common_labels)?;
        self.labels.merge(&other.labels)?;
        self.template_labels.merge(&other.template_labels)?;
        self.volume_claim_template_labels.merge(&other.volume_claim_template_labels)?;
        self.common_annotations.merge(&other.common_annotations)?;
        self.var_references.merge(&other.var_references)?;
        self.images.merge(&other.images)?;
        self.replicas.merge(&other.replicas)?;
        for reference in &other.name_references {
            self.merge_reference(reference)?;
        }
        self.sort();
        Ok(())
    }

    fn merge_reference(&mut self, reference: &NameReference) -> Result<(), Conflict> {
        let same = self.name_references.iter_mut().find(|own| own.target == reference.target);
        if let Some(own) = same {
            return own.referrers.merge(&reference.referrers);
        }
        self.name_references.push(reference.clone());
        Ok(())
    }

    fn sort(&mut self) {
        for specs in [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.volume_claim_template_labels,
            &mut self.common_annotations,
            &mut self.var_references,
            &mut self.images,
            &mut self.replicas,
        ] {
            specs.sort();
        }
        self.name_references.sort_by_cached_key(|reference| build_order(&reference.target));
    }
}

/// Merges shared configurations, without a copy when one has nothing to add.
///
/// Even the first one is merged, into an empty configuration: a specification for all kinds gives way to one of the same
/// field for some kinds that is sorted before it.
pub(crate) fn merge_shared(
    into: &mut Option<Arc<TransformerConfig>>,
    other: &Arc<TransformerConfig>,
) -> Result<(), Conflict> {
    match into {
        None if Arc::ptr_eq(other, &TransformerConfig::defaults()) => *into = Some(other.clone()),
        None => {
            let mut merged = TransformerConfig::default();
            merged.merge(other)?;
            *into = Some(Arc::new(merged));
        }
        Some(own) if Arc::ptr_eq(own, other) => {}
        // Every configuration holds the defaults, or what they gave way to.
        Some(_) if Arc::ptr_eq(other, &TransformerConfig::defaults()) => {}
        Some(own) => Arc::make_mut(own).merge(other)?,
    }
    Ok(())
}

/// Kinds in the order in which clusters like to get them; others are in between.
const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// The kinds that `sortOptions` puts first and last when it names none itself.
pub(crate) fn default_kind_order() -> (Vec<String>, Vec<String>) {
    (FIRST.map(str::to_owned).to_vec(), LAST.map(str::to_owned).to_vec())
}

/// Rank of a kind among kinds that come first and last.
pub(crate) fn kind_rank<S: AsRef<str>>(kind: &str, first: &[S], last: &[S]) -> isize {
    let position = |kinds: &[S]| kinds.iter().rposition(|own| own.as_ref() == kind);
    let signed = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
    if let Some(at) = position(last) {
        1 + signed(at)
    } else if let Some(at) = position(first) {
        signed(at) - signed(first.len())
    } else {
        0
    }
}

/// Sort key of a kind: rank, then group, version and kind, where absent parts sort behind present ones.
pub(crate) fn build_order(gvk: &Gvk) -> (isize, String) {
    (kind_rank(&gvk.kind, &FIRST, &LAST), sortable(gvk))
}

/// Group, version and kind as one text to sort by.
pub(crate) fn sortable(gvk: &Gvk) -> String {
    let part = |part: &str, absent: &str| {
        if part.is_empty() { absent.to_owned() } else { part.to_owned() }
    };
    [part(&gvk.group, "~G"), part(&gvk.version, "~V"), part(&gvk.kind, "~K")].join("_")
}
