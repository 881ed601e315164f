//! The order of kinds, for applying and for deleting, as one table each.

/// Position of a kind when the objects of one item are applied: namespaces, then definitions of kinds, then the rest in
/// the order given. Objects that others need come first, so that one item can hold both.
pub fn apply_rank(group: &str, kind: &str) -> u8 {
    match (group, kind) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 1,
        _ => 2,
    }
}

/// Position of a kind when objects are deleted.
///
/// Namespaces take everything inside with them and go first. Custom resources follow while the operators that finalise
/// them still run; then workloads; then what those use; accounts and rights nearly last; definitions of kinds last.
pub fn delete_rank(group: &str, kind: &str) -> u8 {
    match (group, kind) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 5,
        ("", "ServiceAccount") | ("rbac.authorization.k8s.io", _) => 4,
        ("apps" | "batch", _)
        | ("", "Pod" | "ReplicationController" | "Service")
        | ("networking.k8s.io", "Ingress") => 2,
        (group, _) if is_custom(group) => 1,
        _ => 3,
    }
}

/// Whether a group is not one of Kubernetes' own.
fn is_custom(group: &str) -> bool {
    const OWN: [&str; 5] = ["", "apps", "batch", "autoscaling", "policy"];
    !OWN.contains(&group)
        && (!group.ends_with(".k8s.io")
            || group.ends_with(".x-k8s.io")
            || group == "gateway.networking.k8s.io"
            || group == "snapshot.storage.k8s.io")
}
