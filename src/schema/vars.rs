use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{GitRef, Violations, git::check_git_url};
use crate::diagnostic::FieldPath;

/// An entry of `vars`: where variables come from and how they are merged (kluctl 2.28).
///
/// Exactly one of the source fields is set; [`VarsSource::kind`] says which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("oneOf" = super::json_schema::exactly_one_of(&VarsSource::KINDS)))]
pub struct VarsSource {
    /// A missing source gives no variables instead of an error.
    #[serde(skip_serializing_if = "is_false")]
    pub ignore_missing: bool,
    /// Variables that exist already win over those of this source.
    #[serde(skip_serializing_if = "is_false")]
    pub no_override: bool,
    /// Whether the values are masked when shown; the default depends on the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<bool>,
    /// The source holds several YAML documents and gives a list; needs `targetPath`.
    #[serde(skip_serializing_if = "is_false")]
    pub multidoc: bool,

    /// The variables themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Map<String, Value>>,
    /// A file of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A file of a Git repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFile>,
    /// Files of a Git repository, over several refs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_files: Option<GitFiles>,
    /// A key of a `ConfigMap` in the target cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_config_map: Option<ClusterData>,
    /// A key of a Secret in the target cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_secret: Option<ClusterData>,
    /// A field of any object in the target cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_object: Option<ClusterObject>,
    /// Environment variables, as a tree whose leaves are `NAME` or `NAME:default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_env_vars: Option<Value>,
    /// An HTTP response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpRequest>,
    /// A secret of AWS Secrets Manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_secrets_manager: Option<AwsSecret>,
    /// A secret of Google Secret Manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_secret_manager: Option<GcpSecret>,
    /// A secret of Azure Key Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_key_vault: Option<AzureSecret>,
    /// A secret of `HashiCorp` Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultSecret>,

    /// Where the value is put; left out, the value must be a mapping and is merged at the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_path: Option<String>,
    /// Expression that decides whether the source is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,

    /// Written into results, refused in projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub rendered_vars: Option<Map<String, Value>>,
    /// Written into results, without effect in projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub rendered_sensitive: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The `git` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitFile {
    /// Repository.
    pub url: String,
    /// Revision; left out, the default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// File in the repository.
    pub path: String,
}

impl GitFile {
    fn check(&self, path: &FieldPath, violations: &mut Violations) {
        check_git_url(&self.url, &path.child("url"), violations);
        if let Some(reference) = &self.reference {
            reference.check(&path.child("ref"), violations);
        }
        require(&self.path, "path", path, violations);
    }
}

/// The `gitFiles` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitFiles {
    /// Repository.
    pub url: String,
    /// Refs, branch and tag being anchored regular expressions; left out, the default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Which files, and how they are read; the first matching entry applies.
    #[serde(default)]
    pub files: Vec<GitFilesEntry>,
}

impl GitFiles {
    fn check(&self, path: &FieldPath, violations: &mut Violations) {
        check_git_url(&self.url, &path.child("url"), violations);
        if let Some(reference) = &self.reference {
            reference.check(&path.child("ref"), violations);
        }
        for (index, file) in self.files.iter().enumerate() {
            require(&file.glob, "glob", &path.child("files").child(index), violations);
        }
    }
}

/// An entry of `gitFiles.files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitFilesEntry {
    /// Pattern on the path in the repository.
    pub glob: String,
    /// Render the file as a template.
    #[serde(default, skip_serializing_if = "is_false")]
    pub render: bool,
    /// Parse the file as YAML.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parse_yaml: bool,
    /// The file holds several documents.
    #[serde(default, skip_serializing_if = "is_false")]
    pub yaml_multi_doc: bool,
}

/// The `clusterConfigMap` and `clusterSecret` sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterData {
    /// Object name; either this or `labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels that exactly one object has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Namespace of the object.
    pub namespace: String,
    /// Key in `data`.
    pub key: String,
    /// Deprecated: use `targetPath` of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_path: Option<String>,
}

impl ClusterData {
    fn check(&self, path: &FieldPath, violations: &mut Violations) {
        check_name_or_labels(self.name.as_deref(), &self.labels, path, violations);
        require(&self.namespace, "namespace", path, violations);
        require(&self.key, "key", path, violations);
    }
}

/// The `clusterObject` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterObject {
    /// Kind.
    pub kind: String,
    /// API version; left out, the only group that serves the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Object name; either this or `labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels of the object, or with `list` of the objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All matching objects, as a list.
    #[serde(default)]
    pub list: bool,
    /// JSON path of the value.
    pub path: String,
    /// Render strings found there as templates.
    #[serde(default)]
    pub render: bool,
    /// Parse the string found there as YAML.
    #[serde(default)]
    pub parse_yaml: bool,
}

impl ClusterObject {
    fn check(&self, path: &FieldPath, violations: &mut Violations) {
        check_name_or_labels(self.name.as_deref(), &self.labels, path, violations);
        require(&self.kind, "kind", path, violations);
        require(&self.path, "path", path, violations);
    }
}

/// The `http` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpRequest {
    /// URL.
    pub url: String,
    /// Method; left out, `GET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Request body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Request headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// JSON path of a string in the response that holds the YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
}

/// The `awsSecretsManager` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwsSecret {
    /// Name or ARN; a name needs `region`.
    pub secret_name: String,
    /// AWS region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// AWS profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The `gcpSecretManager` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GcpSecret {
    /// Full resource name, with version.
    pub secret_name: String,
}

/// The `azureKeyVault` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AzureSecret {
    /// URI of the vault.
    pub vault_uri: String,
    /// Name of the secret.
    pub secret_name: String,
}

/// The `vault` source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultSecret {
    /// URL of the Vault server.
    pub address: String,
    /// Path of a KV v2 secret, with mount and `data`.
    pub path: String,
}

impl VarsSource {
    /// Names of the source fields.
    pub(super) const KINDS: [&str; 13] = [
        "values",
        "file",
        "git",
        "gitFiles",
        "clusterConfigMap",
        "clusterSecret",
        "clusterObject",
        "systemEnvVars",
        "http",
        "awsSecretsManager",
        "gcpSecretManager",
        "azureKeyVault",
        "vault",
    ];

    /// The source fields that are set, by name; one after [`VarsSource::check`] found nothing.
    pub fn kinds(&self) -> Vec<&'static str> {
        let is_set = [
            self.values.is_some(),
            self.file.is_some(),
            self.git.is_some(),
            self.git_files.is_some(),
            self.cluster_config_map.is_some(),
            self.cluster_secret.is_some(),
            self.cluster_object.is_some(),
            self.system_env_vars.is_some(),
            self.http.is_some(),
            self.aws_secrets_manager.is_some(),
            self.gcp_secret_manager.is_some(),
            self.azure_key_vault.is_some(),
            self.vault.is_some(),
        ];
        Self::KINDS.into_iter().zip(is_set).filter_map(|(name, set)| set.then_some(name)).collect()
    }

    /// Checks the rules between fields; `path` leads to this entry.
    pub fn check(&self, path: &FieldPath, violations: &mut Violations) {
        match self.kinds().as_slice() {
            [] => violations.add(
                path.clone(),
                "has no source",
                format!("one of {}", Self::KINDS.join(", ")),
            ),
            [_] => {}
            several => {
                let message = format!("has several sources: {}", several.join(", "));
                violations.add(path.clone(), message, "one source; write a list entry for each");
            }
        }
        if self.multidoc && self.target_path.as_ref().is_none_or(String::is_empty) {
            let message = "multidoc gives a list, which cannot be merged at the root";
            violations.add(path.clone(), message, "a targetPath");
        }
        if self.rendered_vars.as_ref().is_some_and(|vars| !vars.is_empty()) {
            let message = "is written into results and cannot be set";
            violations.add(path.child("renderedVars"), message, "no such field");
        }
        self.check_source(path, violations);
    }

    fn check_source(&self, path: &FieldPath, violations: &mut Violations) {
        if let Some(source) = &self.cluster_config_map {
            source.check(&path.child("clusterConfigMap"), violations);
        }
        if let Some(source) = &self.cluster_secret {
            source.check(&path.child("clusterSecret"), violations);
        }
        if let Some(source) = &self.cluster_object {
            source.check(&path.child("clusterObject"), violations);
        }
        if let Some(source) = &self.git {
            source.check(&path.child("git"), violations);
        }
        if let Some(source) = &self.git_files {
            source.check(&path.child("gitFiles"), violations);
        }
        let required = [
            ("http", "url", self.http.as_ref().map(|source| &source.url)),
            (
                "awsSecretsManager",
                "secretName",
                self.aws_secrets_manager.as_ref().map(|source| &source.secret_name),
            ),
            (
                "gcpSecretManager",
                "secretName",
                self.gcp_secret_manager.as_ref().map(|source| &source.secret_name),
            ),
            (
                "azureKeyVault",
                "vaultUri",
                self.azure_key_vault.as_ref().map(|source| &source.vault_uri),
            ),
            (
                "azureKeyVault",
                "secretName",
                self.azure_key_vault.as_ref().map(|source| &source.secret_name),
            ),
            ("vault", "address", self.vault.as_ref().map(|source| &source.address)),
            ("vault", "path", self.vault.as_ref().map(|source| &source.path)),
        ];
        for (kind, field, value) in required {
            if let Some(value) = value {
                require(value, field, &path.child(kind), violations);
            }
        }
    }
}

fn require(value: &str, field: &str, path: &FieldPath, violations: &mut Violations) {
    if value.is_empty() {
        violations.add(path.child(field), "is empty", "a non-empty string");
    }
}

fn check_name_or_labels(
    name: Option<&str>,
    labels: &BTreeMap<String, String>,
    path: &FieldPath,
    violations: &mut Violations,
) {
    let expected = "exactly one of name and labels";
    match (name.is_some_and(|name| !name.is_empty()), labels.is_empty()) {
        (false, true) => violations.add(path.clone(), "names no object", expected),
        (true, false) => violations.add(path.clone(), "has both name and labels", expected),
        _ => {}
    }
}
