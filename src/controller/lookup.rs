use crate::cluster::{ApiKind, ApiOutcome, Cluster};

/// Reads an object as the controller itself.
pub(super) async fn get(
    cluster: &Cluster,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> ApiOutcome {
    cluster.get(kind, namespace, name).await.outcome
}
