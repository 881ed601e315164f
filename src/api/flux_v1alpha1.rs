#![expect(
    clippy::duplicated_attributes,
    reason = "the lint takes keys inside separate printcolumn(...) attributes for repetitions"
)]
#![expect(clippy::struct_excessive_bools, reason = "the API has these switches")]

use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    DurationOrNever, GoDuration, LocalObjectReference,
    schemas::{default_true, is_default, preserved_object},
    status::KluctlDeploymentStatus,
};

/// API group of [`KluctlDeployment`].
pub const GROUP: &str = "flux.kluctl.io";
/// API version within [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of [`KluctlDeployment`].
pub const API_VERSION: &str = "flux.kluctl.io/v1alpha1";
/// Kind of [`KluctlDeployment`].
pub const KIND: &str = "KluctlDeployment";

/// Which project is deployed, from where, to which cluster, how and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "flux.kluctl.io",
    version = "v1alpha1",
    kind = "KluctlDeployment",
    plural = "kluctldeployments",
    shortname = "kd",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-appliers",
    namespaced,
    status = "KluctlDeploymentStatus",
    derive = "PartialEq",
    doc = "KluctlDeployment deploys one target of a Kluctl project and keeps it deployed.",
    annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled"),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.target",
        description = "Target of the project"
    ),
    printcolumn(
        name = "Deployed",
        type_ = "date",
        json_path = ".status.lastDeployResult.time",
        description = "When the target was last deployed"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the last reconciliation succeeded"
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        description = "What the last reconciliation found"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".status.lastAppliedRevision",
        description = "Revision that was last deployed without errors",
        priority = "1"
    ),
    printcolumn(
        name = "Suspended",
        type_ = "boolean",
        json_path = ".spec.suspend",
        description = "Whether reconciliation is suspended",
        priority = "1"
    ),
    printcolumn(
        name = "DryRun",
        type_ = "boolean",
        json_path = ".spec.dryRun",
        description = "Whether deployments only pretend",
        priority = "1"
    ),
    printcolumn(
        name = "Pruned",
        type_ = "date",
        json_path = ".status.lastPruneResult.time",
        description = "When the target was last pruned",
        priority = "1"
    ),
    printcolumn(
        name = "Validated",
        type_ = "date",
        json_path = ".status.lastValidateResult.time",
        description = "When the target was last validated",
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.source) != has(self.sourceRef)",
        "message": "exactly one of sourceRef and source is needed"
    },
    {
        "rule": "!(has(self.source) && has(self.path))",
        "message": "path belongs to sourceRef; with source, use source.path"
    }
]))]
pub struct KluctlDeploymentSpec {
    /// The Flux source whose artifact holds the Kluctl project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceReference>,

    /// Directory of the project (where `.kluctl.yaml` lies) inside the artifact of `sourceRef`. Defaults to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// A Git repository that the controller clones by itself, in place of `sourceRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<GitSource>,

    /// Objects that must be ready before this one is reconciled. Any kind that reports readiness by the usual status
    /// conventions can be named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,

    /// Credentials for Git repositories, OCI registries and Helm repositories that the project refers to. The first
    /// matching entry is used, before the credentials of the source.
    #[serde(default, skip_serializing_if = "Credentials::is_empty")]
    #[schemars(with = "Option<Credentials>")]
    pub credentials: Credentials,

    /// How often the project is rendered and compared with what was last deployed.
    pub interval: GoDuration,

    /// When a failed reconciliation is tried again. Defaults to `interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_interval: Option<GoDuration>,

    /// How often the target is deployed even though nothing changed, or `never`. Defaults to `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_interval: Option<DurationOrNever>,

    /// How often the deployed objects are validated, or `never` (then only after deployments). Defaults to `interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate_interval: Option<DurationOrNever>,

    /// How long one reconciliation may take, waiting for readiness included. Defaults to `deployInterval`, else to
    /// `interval`, and is then at least 30 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,

    /// Stops reconciliation until set to false again. A suspended object that is deleted leaves its deployed objects in
    /// the cluster.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub suspend: bool,

    /// Name of the target in `.kluctl.yaml`. Left out, the project is deployed without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target: Option<String>,

    /// Name to give to the chosen target, as with `kluctl deploy --target-name-override`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_name_override: Option<String>,

    /// Kubeconfig context to use in place of the target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,

    /// Service account of this namespace to impersonate while deploying. Defaults to the controller's
    /// `--default-service-account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Kubeconfig of the cluster to deploy to. Defaults to the cluster that the controller runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,

    /// Contexts of the kubeconfig to rename, in order. The controller's own cluster is the context `default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rename_contexts: Vec<RenameContext>,

    /// Decryption of SOPS-encrypted files. Accepted, but not supported yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,

    /// Credentials of Helm repositories. Accepted, but not supported yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm_credentials: Vec<HelmCredentials>,

    /// Deprecated and ignored: image registries are not queried any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registry_secrets: Vec<LocalObjectReference>,

    /// Arguments for the project, of any type, as with `kluctl deploy -a`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "preserved_object")]
    pub args: Map<String, Value>,

    /// Deprecated and ignored: image registries are not queried any more.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub update_images: bool,

    /// Fixed images; they win over those of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,

    /// Pretends all changes by server-side dry-run.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub dry_run: bool,

    /// Does not wait for deployed objects to become ready.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub no_wait: bool,

    /// Takes over fields that another field manager owns.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub force_apply: bool,

    /// Replaces (updates) an object that cannot be applied.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub replace_on_error: bool,

    /// Deletes and creates an object that cannot be applied or replaced.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub force_replace_on_error: bool,

    /// Stops at the first object that cannot be applied.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub abort_on_error: bool,

    /// Deploys only items with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_tags: Vec<String>,

    /// Leaves out items with one of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,

    /// Deploys only items in these directories, relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_deployment_dirs: Vec<String>,

    /// Leaves out items in these directories, relative to the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_deployment_dirs: Vec<String>,

    /// `full-deploy` applies everything. `poke-images`, which only replaces images, is accepted but not supported yet.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "full-deploy"))]
    pub deploy_mode: DeployMode,

    /// Deploys when the rendered objects differ from what was last deployed.
    #[serde(default = "default_true")]
    pub deploy_on_changes: bool,

    /// Validates the deployed objects: that they exist, are ready and pass the project's checks.
    #[serde(default = "default_true")]
    pub validate: bool,

    /// Deletes objects of the target that the project does not contain any more. Needs a discriminator.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub prune: bool,

    /// Deletes everything that was deployed when this object is deleted. Defaults to the value of `prune`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
}

impl KluctlDeploymentSpec {
    /// When a failed reconciliation is tried again.
    pub fn retry_interval(&self) -> Duration {
        self.retry_interval.unwrap_or(self.interval).0
    }

    /// The period of forced deployments; `None` for never, which is the default.
    pub fn deploy_period(&self) -> Option<Duration> {
        self.deploy_interval.and_then(DurationOrNever::period)
    }

    /// The period of validation; `None` when validation is off or happens only after deployments.
    pub fn validate_period(&self) -> Option<Duration> {
        if !self.validate {
            return None;
        }
        match self.validate_interval {
            Some(interval) => interval.period(),
            None => Some(self.interval.0),
        }
    }

    /// The deadline of one reconciliation, at least 30 seconds when derived from an interval.
    pub fn timeout(&self) -> Duration {
        const SHORTEST: Duration = Duration::from_secs(30);
        match self.timeout {
            Some(timeout) => timeout.0,
            None => self.deploy_period().unwrap_or(self.interval.0).max(SHORTEST),
        }
    }

    /// Whether deployed objects are deleted together with this object.
    pub fn deletes(&self) -> bool {
        self.delete.unwrap_or(self.prune)
    }
}

/// Kinds of Flux sources.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum SourceKind {
    /// A Git repository.
    GitRepository,
    /// An S3-compatible bucket.
    Bucket,
    /// An artifact in an OCI registry.
    #[serde(rename = "OCIRepository")]
    OciRepository,
    /// An artifact that a third controller offers.
    ExternalArtifact,
}

impl SourceKind {
    /// All kinds.
    pub const ALL: [Self; 4] =
        [Self::GitRepository, Self::Bucket, Self::OciRepository, Self::ExternalArtifact];

    /// The kind's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::Bucket => "Bucket",
            Self::OciRepository => "OCIRepository",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }

    /// The resource's name in the API.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::GitRepository => "gitrepositories",
            Self::Bucket => "buckets",
            Self::OciRepository => "ocirepositories",
            Self::ExternalArtifact => "externalartifacts",
        }
    }
}

/// A Flux source, in this or another namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.apiVersion) || self.apiVersion.startsWith('source.toolkit.fluxcd.io/')",
    "message": "apiVersion must belong to the group source.toolkit.fluxcd.io"
}]))]
pub struct SourceReference {
    /// API version of the source. The version that the cluster serves is used, whatever is given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the source. Defaults to the namespace of this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A Git repository that the controller clones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Address of the repository.
    pub url: String,
    /// Branch or tag to deploy. Defaults to the default branch of the repository.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Directory of the project inside the repository. Defaults to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret of this namespace with `username` and `password`, or `bearerToken`, or `identity` and `known_hosts`; optionally
    /// `ca.crt` (or `caFile`), and `tls.crt` with `tls.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A branch or tag. The tag is used when both are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// Name of a branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// An object to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.apiVersion) == has(self.kind)",
    "message": "apiVersion and kind are given together, or both left out for a KluctlDeployment"
}]))]
pub struct Dependency {
    /// API version of the object. Defaults to the one of KluctlDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub api_version: Option<String>,
    /// Kind of the object, for example Kustomization or HelmRelease. Defaults to KluctlDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object. Defaults to the namespace of this object; ignored for cluster-scoped kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// Credentials by host, for what the project refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credentials {
    /// For Git repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<HostCredentials>,
    /// For OCI registries. Accepted, but not supported yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oci: Vec<RegistryCredentials>,
    /// For Helm repositories. Accepted, but not supported yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HostCredentials>,
}

impl Credentials {
    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.git.is_empty() && self.oci.is_empty() && self.helm.is_empty()
    }
}

/// Credentials for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCredentials {
    /// Host, with port when it is not the scheme's default. `*` stands for every host and counts for ssh only.
    pub host: String,
    /// Glob on the path below the host; `*` matches within one segment, `**` across them. Defaults to every path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret of this namespace with `username` and `password`, or `bearerToken`, or `identity` and `known_hosts`; optionally
    /// `ca.crt` (or `caFile`), and `tls.crt` with `tls.key`.
    pub secret_ref: LocalObjectReference,
}

/// Credentials for one OCI registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryCredentials {
    /// Registry host, with port when it is not the scheme's default.
    pub registry: String,
    /// Glob on the repository. Defaults to every repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Secret of this namespace.
    pub secret_ref: LocalObjectReference,
}

/// Where a kubeconfig is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.secretRef)",
    "message": "kubeConfig needs secretRef"
}]))]
pub struct KubeConfig {
    /// Secret of this namespace that holds the kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretKeyReference>,
}

/// A key of a Secret in the namespace of the referring object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyReference {
    /// Name of the Secret.
    pub name: String,
    /// Key in the Secret. Defaults to `value`, then to `value.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A new name for a kubeconfig context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameContext {
    /// Name of an existing context.
    #[schemars(length(min = 1))]
    pub old_context: String,
    /// Its new name, which no context may have already.
    #[schemars(length(min = 1))]
    pub new_context: String,
}

/// How encrypted files are decrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Name of the decryption engine.
    pub provider: DecryptionProvider,
    /// Secret of this namespace with the private keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Service account of this namespace whose identity is used with a cloud's key service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// Decryption engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecryptionProvider {
    /// SOPS.
    Sops,
}

/// Credentials of one Helm repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmCredentials {
    /// Secret of this namespace with `credentialsId` or `url`, and the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// An image to use wherever a project asks for `image` (and the other fields match).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedImage {
    /// Image that the project asks for, without a tag.
    pub image: String,
    /// Image to use.
    pub result_image: String,
    /// Informational: the image that was deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Deprecated and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_image: Option<String>,
    /// Only in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Only in this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<FixedImageObject>,
    /// Only in this object, written `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Only in this container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Deprecated and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_filter: Option<String>,
    /// Informational: tags of the deployment item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Informational: directory of the deployment item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

/// An object, in the form of releases since v0.4.0 (`group` to `namespace`) or before (`id` and `v`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedImageObject {
    /// API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Old form: `<name>_<group>_<kind>`, then `_<namespace>` for namespaced objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Old form: the API version within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v: Option<String>,
}

/// What a deployment does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMode {
    /// Applies everything.
    #[default]
    FullDeploy,
    /// Replaces images only.
    PokeImages,
}
