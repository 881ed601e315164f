#![expect(
    clippy::duplicated_attributes,
    reason = "the lint takes keys inside separate printcolumn(...) attributes for repetitions"
)]
#![expect(clippy::struct_excessive_bools, reason = "the API has these switches")]

mod access;
mod mode;
mod origin;

pub use access::{
    Credentials, Decryption, DecryptionProvider, HelmCredentials, HostCredentials, KubeConfig,
    RegistryCredentials, RenameContext, SecretKeyReference,
};
pub use mode::{DeployMode, FixedImage, FixedImageObject};
pub use origin::{Dependency, GitRef, GitSource, SourceKind, SourceReference};

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

    /// Credentials of Helm repositories by URL, as releases before v0.17.0 have them. `credentials.helm` comes first.
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
