//! From an [`Access`] to a [`kube::Client`].
//!
//! Every client connects within 10 seconds, waits at most 30 seconds for the head of an answer (bodies and watches take their
//! own time), repeats nothing by itself and has no limit on requests per second: parallelism is bounded by the callers, and
//! the API server has priority and fairness.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use reqwest::header::{HeaderValue, USER_AGENT};
use tower::timeout::TimeoutLayer;

use super::{
    kubeconfig::{Access, Contexts, DEFAULT_CONTEXT, Guards, KubeconfigError},
    recent::{AccessKey, Recent},
};
use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    net::Proxies,
    secret::redact_text,
};

/// How the program itself reaches its cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Own {
    /// The kubeconfig that `KUBECONFIG` or the home directory has, else the pod's service account. Only fronts choose this.
    #[default]
    Infer,
    /// The pod's service account.
    InCluster,
    /// A kubeconfig on disk.
    File {
        /// The file; `None` for those that `KUBECONFIG` or the home directory has.
        path: Option<PathBuf>,
        /// The context; `None` for the current one.
        context: Option<String>,
    },
}

/// A service account to act as.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ServiceAccount {
    /// The user name that the API server knows it by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// What clients have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The `User-Agent` header, which audit logs show.
    pub user_agent: String,
    /// Time for TCP and TLS.
    pub connect_timeout: Duration,
    /// Time until the head of an answer.
    pub request_timeout: Duration,
    /// Clients kept by [`Clients`].
    pub max_clients: usize,
    /// Proxies of the environment, for clusters whose kubeconfig names none.
    pub proxies: Proxies,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!("flux-kluctl-controller/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            max_clients: 64,
            proxies: Proxies::default(),
        }
    }
}

/// Why no client could be made. No request has been sent at this point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No kubeconfig and no service account.
    #[error("there is no access to a cluster: {message}")]
    NoAccess {
        /// What was looked for.
        message: String,
    },
    /// The context is not there, or not allowed.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// Certificates, keys, addresses or an exec plugin that do not work.
    #[error("the access to the cluster cannot be used: {message}")]
    Setup {
        /// What does not work.
        message: String,
    },
}

impl Describe for ConnectError {
    fn describe(&self) -> Diagnostic {
        match self {
            Self::Kubeconfig(error) => error.describe(),
            Self::NoAccess { .. } => Diagnostic::new(Class::Access, self.to_string())
                .with_hint("run inside of a cluster, or give a kubeconfig"),
            Self::Setup { .. } => Diagnostic::new(Class::Access, self.to_string()),
        }
    }
}

/// The configuration that the program itself uses, timeouts and user agent set.
///
/// # Errors
/// When there is none, or it cannot be used.
pub async fn own_config(own: &Own, options: &ConnectOptions) -> Result<Config, ConnectError> {
    let config = match own {
        Own::Infer => Config::infer().await.map_err(no_access)?,
        Own::InCluster => Config::incluster().map_err(no_access)?,
        Own::File { path, context } => {
            let loaded = match path {
                Some(path) => Kubeconfig::read_from(path),
                None => Kubeconfig::read(),
            };
            let contexts = Contexts::from_loaded(loaded.map_err(no_access)?, Guards::NONE)?;
            match contexts.select(context.as_deref())? {
                Access::Own => return Err(no_access("the kubeconfig is empty")),
                Access::Kubeconfig { config, .. } => remote_config(&config).await?,
            }
        }
    };
    Ok(with_options(config, options))
}

/// A client for `config`, as `account` if one is given. Must be called within a tokio runtime; blocking, when the
/// configuration refers to files or to an exec plugin.
///
/// # Errors
/// [`ConnectError::Setup`].
pub fn client(
    config: Config,
    account: Option<&ServiceAccount>,
    options: &ConnectOptions,
) -> Result<Client, ConnectError> {
    let mut config = with_options(config, options);
    if let Some(account) = account {
        impersonate(&mut config.auth_info, account);
    }
    let builder = ClientBuilder::try_from(config).map_err(setup)?;
    Ok(builder.with_layer(&TimeoutLayer::new(options.request_timeout)).build())
}

/// Clients by access and service account, made once and kept while they are in use, so that deployments which act alike
/// share their connections.
pub struct Clients {
    own: Config,
    options: ConnectOptions,
    recent: Recent<Client>,
}

impl Clients {
    /// An empty cache; `own` is what [`Access::Own`] stands for.
    pub fn new(own: Config, options: ConnectOptions) -> Self {
        Self { own, recent: Recent::new(options.max_clients), options }
    }

    /// The client for an access, as `account` if one is given.
    ///
    /// # Errors
    /// [`ConnectError::Setup`] when certificates, keys or addresses cannot be used.
    pub async fn get(
        &self,
        access: &Access,
        account: Option<&ServiceAccount>,
    ) -> Result<Client, ConnectError> {
        let key = AccessKey::new(access, account);
        if let Some(client) = key.and_then(|key| self.recent.get(key)) {
            return Ok(client);
        }
        let config = match access {
            Access::Own => self.own.clone(),
            Access::Kubeconfig { config, .. } => remote_config(config).await?,
        };
        let (account, options) = (account.cloned(), self.options.clone());
        let made =
            tokio::task::spawn_blocking(move || client(config, account.as_ref(), &options)).await;
        let client = made.map_err(setup)??;
        if let Some(key) = key {
            self.recent.keep(key, client.clone());
        }
        Ok(client)
    }

    /// Number of clients kept.
    #[expect(clippy::len_without_is_empty, reason = "for observation only")]
    pub fn len(&self) -> usize {
        self.recent.len()
    }
}

async fn remote_config(config: &Arc<Kubeconfig>) -> Result<Config, ConnectError> {
    let options =
        KubeConfigOptions { context: Some(DEFAULT_CONTEXT.to_owned()), ..Default::default() };
    Config::from_custom_kubeconfig((**config).clone(), &options).await.map_err(setup)
}

fn with_options(mut config: Config, options: &ConnectOptions) -> Config {
    config.connect_timeout = Some(options.connect_timeout);
    config.write_timeout = Some(options.request_timeout);
    // Callers know what may be repeated, and count attempts.
    config.default_retry = false;
    keep_to_exceptions(&mut config, &options.proxies);
    if let Ok(agent) = HeaderValue::from_str(&options.user_agent) {
        config.headers.retain(|(name, _)| *name != USER_AGENT);
        config.headers.push((USER_AGENT, agent));
    }
    config
}

/// Undoes what kube does by itself: it takes the environment's HTTPS proxy for every cluster, whatever `NO_PROXY` says.
fn keep_to_exceptions(config: &mut Config, proxies: &Proxies) {
    let is_from_environment =
        config.proxy_url.as_ref().is_some_and(|proxy| proxies.is_https(&proxy.to_string()));
    let is_exception =
        config.cluster_url.to_string().parse().is_ok_and(|url| proxies.select(&url).is_none());
    if is_from_environment && is_exception {
        config.proxy_url = None;
    }
}

/// Acts as the service account instead of whom the kubeconfig asks to impersonate.
fn impersonate(user: &mut AuthInfo, account: &ServiceAccount) {
    user.impersonate = Some(account.to_string());
    // The API server adds a service account's groups by itself when none are given.
    user.impersonate_groups = None;
    user.impersonate_uid = None;
    user.impersonate_user_extra = None;
}

fn no_access(error: impl fmt::Display) -> ConnectError {
    ConnectError::NoAccess { message: redact_text(&error.to_string()) }
}

fn setup(error: impl fmt::Display) -> ConnectError {
    ConnectError::Setup { message: redact_text(&error.to_string()) }
}
