use serde_json::json;

use super::configuration::Configuration;
use crate::kustomize::{
    decode::{Decode, Located, decoded},
    error::{KustomizeError, Result},
    kustomization::{Metadata, Raw},
    resource::Resource,
    schema::Schema,
};

decoded! {
    /// The configuration of an `IAMPolicyGenerator`.
    struct Args {
        #[expect(dead_code, reason = "known, and looked at before")]
        api_version: Option<Raw> = "apiVersion",
        #[expect(dead_code, reason = "known, and looked at before")]
        kind: Option<Raw> = "kind",
        #[expect(dead_code, reason = "known, without effect")]
        metadata: Option<Metadata> = "metadata",
        cloud: Option<Located<String>> = "cloud",
        kubernetes: KubernetesService = "kubernetesService",
        account: ServiceAccount = "serviceAccount",
    }
}

decoded! {
    /// The service account of the cluster.
    struct KubernetesService {
        name: String = "name",
        namespace: String = "namespace",
    }
}

decoded! {
    /// The service account of the cloud.
    struct ServiceAccount {
        name: String = "name",
        project_id: String = "projectId",
    }
}

/// The service account that `IAMPolicyGenerator` makes: one that acts as an account of Google Cloud.
pub(super) fn generate(configuration: &Configuration, schema: &Schema) -> Result<Resource> {
    let args = Args::decode(&configuration.node())?;
    let cloud = args.cloud.as_ref().map_or("", |cloud| &cloud.value);
    if cloud != "gke" {
        let place = args.cloud.map_or_else(|| configuration.place(), |cloud| cloud.place);
        return Err(KustomizeError::Kustomization(Box::new(
            place.problem("unknown cloud").with_expected("gke"),
        )));
    }
    if args.kubernetes.name.is_empty() {
        return Err(configuration.place().refuse("`kubernetesService.name` is needed"));
    }
    let ServiceAccount { name, project_id } = &args.account;
    let account = format!("{name}@{project_id}.iam.gserviceaccount.com");
    let mut metadata = json!({
        "name": args.kubernetes.name,
        "annotations": {"iam.gke.io/gcp-service-account": account},
    });
    if !args.kubernetes.namespace.is_empty() {
        metadata["namespace"] = args.kubernetes.namespace.into();
    }
    let value = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    Ok(Resource::new(value, configuration.at(), schema))
}
