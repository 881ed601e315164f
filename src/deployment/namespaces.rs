//! Gives objects the namespace that their scope asks for (kluctl 2.28).

use std::collections::HashMap;

use super::DesiredItem;
use crate::object::Object;

/// Tells whether a kind is namespaced, as the target cluster has it.
pub trait ScopeLookup: Send + Sync {
    /// `None` when the cluster does not know the kind.
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool>;
}

/// Annotation with the namespace that a Helm chart was rendered for.
const HELM_NAMESPACE: &str = "kluctl.io/helm-install-namespace";

/// Puts namespaced objects without a namespace into `default` (or that of their Helm chart), and takes the namespace from
/// cluster-scoped ones. CRDs of the deployment itself win over what the cluster says; unknown kinds stay as they are.
pub(super) fn fix_namespaces(items: &mut [DesiredItem], cluster: &dyn ScopeLookup) {
    let own = scopes_of_crds(items);
    for object in items.iter_mut().flat_map(|item| &mut item.objects) {
        let reference = object.reference();
        let key = (reference.group.clone(), reference.kind.clone());
        let known = own.get(&key).copied();
        let known = known.or_else(|| cluster.is_namespaced(&reference.group, &reference.kind));
        let helm_namespace = object.annotation(HELM_NAMESPACE).map(str::to_owned);
        let has_namespace = reference.namespace.is_some();
        let is_right = known.is_none_or(|namespaced| namespaced == has_namespace);
        if is_right && helm_namespace.is_none() {
            continue;
        }
        let object = std::sync::Arc::make_mut(object);
        object.remove_annotation(HELM_NAMESPACE);
        match known {
            Some(true) if !has_namespace => {
                object.set_namespace(Some(helm_namespace.as_deref().unwrap_or("default")));
            }
            Some(false) => object.set_namespace(None),
            _ => {}
        }
    }
}

/// Group and kind of each custom resource the items define, and whether it is namespaced.
fn scopes_of_crds(items: &[DesiredItem]) -> HashMap<(String, String), bool> {
    let objects = items.iter().flat_map(|item| &item.objects);
    objects.filter_map(|object| scope_of_crd(object)).collect()
}

fn scope_of_crd(object: &Object) -> Option<((String, String), bool)> {
    let is_crd = object.kind() == "CustomResourceDefinition"
        && object.api_version().starts_with("apiextensions.k8s.io/");
    let spec = &object.value()["spec"];
    let group = spec["group"].as_str().filter(|_| is_crd)?;
    let kind = spec["names"]["kind"].as_str()?;
    let namespaced = spec["scope"].as_str()? == "Namespaced";
    Some(((group.to_owned(), kind.to_owned()), namespaced))
}
