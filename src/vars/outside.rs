//! What variables may come from outside of the project: the traits that fronts implement.

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;

use crate::{
    diagnostic::{Class, Diagnostic},
    schema::{AwsSecret, AzureSecret, GcpSecret, GitRef, HttpRequest, VaultSecret},
    secret::Secret,
    tree::SourceTree,
};

/// Reads objects of the target cluster for variables. Implementations retry and time out on their own.
pub trait ClusterReader: Send + Sync {
    /// The API versions that serve a kind, each group's preferred one, sorted. Empty when no group serves it.
    ///
    /// # Errors
    /// When the API server cannot be asked, as data for the user.
    fn api_versions<'a>(&'a self, kind: &'a str) -> BoxFuture<'a, Result<Vec<String>, Diagnostic>>;

    /// The object, or `None` when it does not exist. `namespace` is empty for cluster-scoped objects.
    ///
    /// # Errors
    /// When the API server cannot be asked or refuses, as data for the user.
    fn get<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Diagnostic>>;

    /// The objects that have all these labels, in one namespace or, when it is empty, in all; sorted by namespace and name.
    ///
    /// # Errors
    /// As [`ClusterReader::get`].
    fn list<'a>(
        &'a self,
        api_version: &'a str,
        kind: &'a str,
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<Vec<Value>, Diagnostic>>;
}

/// One revision of a Git repository.
#[derive(Clone)]
pub struct GitCheckout {
    /// The files at that revision, without `.git`.
    pub tree: Arc<dyn SourceTree>,
    /// The commit, in hex.
    pub commit: String,
}

/// A branch or tag, with the commit it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitTip {
    /// `refs/heads/…` or `refs/tags/…`.
    pub name: String,
    /// The commit, in hex; that of an annotated tag is what it points to.
    pub commit: String,
}

/// The branches and tags of a Git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitTips {
    /// The full name of the default branch.
    pub default: Option<String>,
    /// All of them, sorted by name.
    pub all: Vec<GitTip>,
}

/// Where Git repositories come from. Implementations bound time and size, retry, and fetch a revision once however often it is
/// asked for.
pub trait GitSource: Send + Sync {
    /// The files of `url` at `reference`, or of its default branch.
    ///
    /// # Errors
    /// When the repository or the reference does not exist or may not be read, as data for the user, without credentials.
    fn checkout<'a>(
        &'a self,
        url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>>;

    /// The branches and tags of `url`.
    ///
    /// # Errors
    /// As [`GitSource::checkout`]. Unless implemented, that branches cannot be listed here.
    fn tips<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        let message = "the branches of a repository cannot be listed here";
        async move { Err(Diagnostic::new(Class::Project, message)) }.boxed()
    }
}

/// What an HTTP server answered in the end, redirects followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Sends the requests of `http` sources. Implementations bound time and size, retry what is safe to repeat, and never take a
/// request with its headers to another host.
pub trait HttpSource: Send + Sync {
    /// The answer, whatever its status.
    ///
    /// # Errors
    /// When there is none, or it is too large, as data for the user, without credentials.
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, Diagnostic>>;
}

/// Reads secrets from a store; `Name` is the source as the project writes it. Implementations retry and time out on their own.
pub trait SecretStore<Name>: Send + Sync {
    /// The text of the secret, or `None` when it does not exist.
    ///
    /// # Errors
    /// When the store cannot be asked or refuses, as data for the user, without any secret.
    fn read<'a>(
        &'a self,
        name: &'a Name,
    ) -> BoxFuture<'a, Result<Option<Secret<String>>, Diagnostic>>;
}

/// The stores of secrets that a front offers; the use of one that is missing is an error.
#[derive(Clone, Default)]
pub struct SecretStores {
    /// AWS Secrets Manager, for `awsSecretsManager`.
    pub aws: Option<Arc<dyn SecretStore<AwsSecret>>>,
    /// Google Secret Manager, for `gcpSecretManager`.
    pub gcp: Option<Arc<dyn SecretStore<GcpSecret>>>,
    /// Azure Key Vault, for `azureKeyVault`.
    pub azure: Option<Arc<dyn SecretStore<AzureSecret>>>,
    /// `HashiCorp` Vault, for `vault`.
    pub vault: Option<Arc<dyn SecretStore<VaultSecret>>>,
}
