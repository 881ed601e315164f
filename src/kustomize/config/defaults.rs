//! kustomize's default field specifications.
//!
//! One line per specification: the kinds as `Kind`, `Kind.group`, `Kind/version` or `*` for any, the path, and `+` when
//! the field is created. `PODS` and `CONFIGURED_PODS` stand for kinds with pods; their paths
//! start at the pod specification.

use std::sync::{Arc, LazyLock};

use super::{FieldSpec, FieldSpecs, NameReference, TransformerConfig};
use crate::kustomize::id::Gvk;

static SHARED: LazyLock<Arc<TransformerConfig>> = LazyLock::new(|| Arc::new(build()));

pub(super) fn shared() -> Arc<TransformerConfig> {
    SHARED.clone()
}

const NAME: &str = "* metadata/name";

const NAMESPACE: &str = "
Namespace metadata/name +
APIService.apiregistration.k8s.io spec/service/namespace +
CustomResourceDefinition.apiextensions.k8s.io spec/conversion/webhook/clientConfig/service/namespace
";

const TEMPLATE_LABELS: &str = "
* metadata/labels +
ReplicationController/v1 spec/template/metadata/labels +
Deployment spec/template/metadata/labels +
ReplicaSet spec/template/metadata/labels +
DaemonSet spec/template/metadata/labels +
StatefulSet.apps spec/template/metadata/labels +
Job.batch spec/template/metadata/labels +
CronJob.batch spec/jobTemplate/metadata/labels +
CronJob.batch spec/jobTemplate/spec/template/metadata/labels +
";

const VOLUME_CLAIM_TEMPLATE_LABELS: &str =
    "StatefulSet.apps spec/volumeClaimTemplates[]/metadata/labels +";

const SELECTORS: &str = "
Service/v1 spec/selector +
ReplicationController/v1 spec/selector +
Deployment spec/selector/matchLabels +
ReplicaSet spec/selector/matchLabels +
DaemonSet spec/selector/matchLabels +
StatefulSet.apps spec/selector/matchLabels +
Job.batch spec/selector/matchLabels
CronJob.batch spec/jobTemplate/spec/selector/matchLabels
PodDisruptionBudget.policy spec/selector/matchLabels
NetworkPolicy.networking.k8s.io spec/podSelector/matchLabels
NetworkPolicy.networking.k8s.io spec/ingress/from/podSelector/matchLabels
NetworkPolicy.networking.k8s.io spec/egress/to/podSelector/matchLabels
";

/// Below the pod specification of a Deployment or `StatefulSet`.
const POD_SELECTORS: [&str; 5] = [
    "affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "topologySpreadConstraints/labelSelector/matchLabels",
];

const ANNOTATIONS: &str = "
* metadata/annotations +
ReplicationController/v1 spec/template/metadata/annotations +
Deployment spec/template/metadata/annotations +
ReplicaSet spec/template/metadata/annotations +
DaemonSet spec/template/metadata/annotations +
StatefulSet spec/template/metadata/annotations +
Job.batch spec/template/metadata/annotations +
CronJob.batch spec/jobTemplate/metadata/annotations +
CronJob.batch spec/jobTemplate/spec/template/metadata/annotations +
";

const IMAGES: &str = "
* spec/containers[]/image +
* spec/initContainers[]/image +
* spec/volumes[]/image/reference +
* spec/template/spec/containers[]/image +
* spec/template/spec/initContainers[]/image +
* spec/template/spec/volumes[]/image/reference +
* spec/jobTemplate/spec/template/spec/volumes[]/image/reference +
";

const REPLICAS: &str = "
Deployment spec/replicas +
ReplicationController spec/replicas +
ReplicaSet spec/replicas +
StatefulSet spec/replicas +
";

/// Kinds with pods whose ConfigMap and Secret references are known, and the path to their pod specification.
const CONFIGURED_PODS: [(&str, &str); 8] = [
    ("Pod/v1", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
];

/// Kinds with pods whose other references are known.
const PODS: [(&str, &str); 7] = [
    ("Pod", "spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
];

/// Referred-to kind, then the fields that hold its name. `IngressClass` is missing on purpose: kustomize's entry for it has a
/// group that matches nothing.
const REFERENCES: [(&str, &str); 15] = [
    ("Deployment", "HorizontalPodAutoscaler spec/scaleTargetRef/name"),
    ("ReplicationController", "HorizontalPodAutoscaler spec/scaleTargetRef/name"),
    ("ReplicaSet", "HorizontalPodAutoscaler spec/scaleTargetRef/name"),
    ("StatefulSet", "HorizontalPodAutoscaler spec/scaleTargetRef/name"),
    (
        "ConfigMap/v1",
        "
CONFIGURED_PODS volumes/configMap/name
CONFIGURED_PODS containers/env/valueFrom/configMapKeyRef/name
CONFIGURED_PODS initContainers/env/valueFrom/configMapKeyRef/name
CONFIGURED_PODS containers/envFrom/configMapRef/name
CONFIGURED_PODS initContainers/envFrom/configMapRef/name
CONFIGURED_PODS volumes/projected/sources/configMap/name
Node spec/configSource/configMap
Role rules/resourceNames
ClusterRole rules/resourceNames
Ingress metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap
",
    ),
    (
        "Secret/v1",
        "
CONFIGURED_PODS volumes/secret/secretName
CONFIGURED_PODS containers/env/valueFrom/secretKeyRef/name
CONFIGURED_PODS initContainers/env/valueFrom/secretKeyRef/name
CONFIGURED_PODS containers/envFrom/secretRef/name
CONFIGURED_PODS initContainers/envFrom/secretRef/name
CONFIGURED_PODS imagePullSecrets/name
CONFIGURED_PODS volumes/projected/sources/secret/name
Ingress spec/tls/secretName
Ingress metadata/annotations/ingress.kubernetes.io\\/auth-secret
Ingress metadata/annotations/nginx.ingress.kubernetes.io\\/auth-secret
Ingress metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret
ServiceAccount imagePullSecrets/name
StorageClass parameters/secretName
StorageClass parameters/adminSecretName
StorageClass parameters/userSecretName
StorageClass parameters/secretRef
Role rules/resourceNames
ClusterRole rules/resourceNames
Service.serving.knative.dev/v1 spec/template/spec/containers/env/valueFrom/secretKeyRef/name
PersistentVolume spec/azureFile/secretName
",
    ),
    (
        "Service/v1",
        "
StatefulSet.apps spec/serviceName
Ingress spec/rules/http/paths/backend/serviceName
Ingress spec/backend/serviceName
Ingress spec/rules/http/paths/backend/service/name
Ingress spec/defaultBackend/service/name
APIService.apiregistration.k8s.io spec/service/name
ValidatingWebhookConfiguration.admissionregistration.k8s.io webhooks/clientConfig/service
MutatingWebhookConfiguration.admissionregistration.k8s.io webhooks/clientConfig/service
",
    ),
    ("Role.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io roleRef/name"),
    (
        "ClusterRole.rbac.authorization.k8s.io",
        "
RoleBinding.rbac.authorization.k8s.io roleRef/name
ClusterRoleBinding.rbac.authorization.k8s.io roleRef/name
",
    ),
    (
        "ServiceAccount/v1",
        "
RoleBinding.rbac.authorization.k8s.io subjects
ClusterRoleBinding.rbac.authorization.k8s.io subjects
PODS serviceAccountName
",
    ),
    ("PersistentVolumeClaim/v1", "PODS volumes/persistentVolumeClaim/claimName"),
    (
        "PersistentVolume/v1",
        "
PersistentVolumeClaim spec/volumeName
ClusterRole rules/resourceNames
",
    ),
    (
        "StorageClass.storage.k8s.io/v1",
        "
PersistentVolume spec/storageClassName
PersistentVolumeClaim spec/storageClassName
StatefulSet spec/volumeClaimTemplates/spec/storageClassName
",
    ),
    ("PriorityClass.scheduling.k8s.io/v1", "PODS priorityClassName"),
    (
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io spec/policyName",
    ),
];

/// Kinds with pods whose texts may hold `$(VAR)`.
const VAR_PODS: [(&str, &str); 7] = [
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("Pod", "spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
];

const VAR_POD_FIELDS: [&str; 8] = [
    "containers/args",
    "containers/command",
    "containers/env/value",
    "containers/volumeMounts/mountPath",
    "initContainers/args",
    "initContainers/command",
    "initContainers/env/value",
    "initContainers/volumeMounts/mountPath",
];

const VARS: &str = "
CronJob spec/jobTemplate/spec/template/volumes/nfs/server
DaemonSet spec/template/spec/volumes/nfs/server
Deployment spec/template/spec/volumes/nfs/server
Deployment spec/template/metadata/annotations
Ingress spec/rules/host
Ingress spec/tls/hosts
Ingress spec/tls/secretName
Job spec/template/spec/volumes/nfs/server
Pod spec/volumes/nfs/server
ReplicaSet spec/template/spec/volumes/nfs/server
Service spec/ports/port
Service spec/ports/targetPort
StatefulSet spec/volumeClaimTemplates/spec/nfs/server
PersistentVolume spec/nfs/server
* metadata/labels
* metadata/annotations
";

fn build() -> TransformerConfig {
    let template_labels = specs(TEMPLATE_LABELS);
    let claim_labels = specs(VOLUME_CLAIM_TEMPLATE_LABELS);
    let mut common_labels = specs(SELECTORS);
    for kind in ["Deployment.apps", "StatefulSet.apps"] {
        let paths = POD_SELECTORS.iter().map(|path| format!("spec/template/spec/{path}"));
        common_labels.0.extend(paths.map(|path| FieldSpec::new(kinds(kind), path, false)));
    }
    common_labels.0.extend(template_labels.0.iter().chain(&claim_labels.0).cloned());
    let mut var_references = specs(VARS);
    for (kind, pod) in VAR_PODS {
        let paths = VAR_POD_FIELDS.iter().map(|path| format!("{pod}/{path}"));
        var_references.0.extend(paths.map(|path| FieldSpec::new(kinds(kind), path, false)));
    }
    let mut config = TransformerConfig {
        name_prefix: specs(NAME),
        name_suffix: specs(NAME),
        namespace: specs(NAMESPACE),
        common_labels,
        labels: FieldSpecs::default(),
        template_labels,
        volume_claim_template_labels: claim_labels,
        common_annotations: specs(ANNOTATIONS),
        name_references: REFERENCES
            .iter()
            .map(|(target, referrers)| NameReference {
                target: kinds(target),
                referrers: specs(referrers),
            })
            .collect(),
        var_references,
        images: specs(IMAGES),
        replicas: specs(REPLICAS),
    };
    config.sort();
    config
}

fn specs(lines: &str) -> FieldSpecs {
    let mut specs = Vec::new();
    for line in lines.lines() {
        let mut words = line.split_whitespace();
        let (Some(kind), Some(path)) = (words.next(), words.next()) else { continue };
        let create = words.next() == Some("+");
        let pods: &[(&str, &str)] = match kind {
            "PODS" => &PODS,
            "CONFIGURED_PODS" => &CONFIGURED_PODS,
            _ => {
                specs.push(FieldSpec::new(kinds(kind), path, create));
                continue;
            }
        };
        specs.extend(
            pods.iter()
                .map(|(kind, pod)| FieldSpec::new(kinds(kind), format!("{pod}/{path}"), create)),
        );
    }
    FieldSpecs(specs)
}

/// Reads `Kind.group/version`; the version is behind the last `/`.
fn kinds(text: &str) -> Gvk {
    let (text, version) = text.rsplit_once('/').unwrap_or((text, ""));
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    let kind = if kind == "*" { "" } else { kind };
    Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}
