//! Credentials from the command line. Each flag names the host, optionally a pattern on the path, and a value; flags with the same host
//! and pattern belong together.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::diagnostic::{Class, Diagnostic};

/// Credentials for Git repositories.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Git arguments")]
#[expect(clippy::struct_field_names, reason = "the flags are called so")]
pub(in crate::cli) struct GitFlags {
    /// User name for Git over HTTP
    #[arg(long, value_name = "HOST[/PATH]=USER")]
    pub(in crate::cli) git_username: Vec<String>,

    /// Password or token for Git over HTTP
    #[arg(long, value_name = "HOST[/PATH]=PASSWORD")]
    pub(in crate::cli) git_password: Vec<String>,

    /// Private key for Git over SSH
    #[arg(long, value_name = "HOST[/PATH]=FILE")]
    pub(in crate::cli) git_ssh_key_file: Vec<String>,

    /// Known hosts for Git over SSH
    #[arg(long, value_name = "HOST[/PATH]=FILE")]
    pub(in crate::cli) git_ssh_known_hosts_file: Vec<String>,

    /// Certificates (PEM) to trust for Git over HTTPS
    #[arg(long, value_name = "HOST[/PATH]=FILE")]
    pub(in crate::cli) git_ca_file: Vec<String>,
}

/// The Helm program, and credentials for Helm repositories.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Helm arguments")]
#[expect(clippy::struct_field_names, reason = "the flags are called so")]
pub(in crate::cli) struct HelmFlags {
    /// The program that renders Helm charts, instead of `helm` in PATH
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) helm_binary: Option<std::path::PathBuf>,

    /// User name for a Helm repository
    #[arg(long, value_name = "HOST/PATH=USER")]
    helm_username: Vec<String>,

    /// Password for a Helm repository
    #[arg(long, value_name = "HOST/PATH=PASSWORD")]
    helm_password: Vec<String>,

    /// User name and password for a Helm repository
    #[arg(long, value_name = "HOST/PATH=USER:PASSWORD")]
    helm_creds: Vec<String>,

    /// Key of the client certificate for a Helm repository
    #[arg(long, value_name = "HOST/PATH=FILE")]
    helm_key_file: Vec<String>,

    /// Client certificate for a Helm repository
    #[arg(long, value_name = "HOST/PATH=FILE")]
    helm_cert_file: Vec<String>,

    /// Certificates (PEM) to trust for a Helm repository
    #[arg(long, value_name = "HOST/PATH=FILE")]
    helm_ca_file: Vec<String>,

    /// Do not check the certificate of a Helm repository
    #[arg(long, value_name = "HOST/PATH")]
    helm_insecure_skip_tls_verify: Vec<String>,
}

/// Credentials for OCI registries.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Registry arguments")]
#[expect(clippy::struct_field_names, reason = "the flags are called so")]
pub(in crate::cli) struct RegistryFlags {
    /// User name for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=USER")]
    registry_username: Vec<String>,

    /// Password for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=PASSWORD")]
    registry_password: Vec<String>,

    /// Identity token for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=TOKEN")]
    registry_identity_token: Vec<String>,

    /// Bearer token for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=TOKEN")]
    registry_token: Vec<String>,

    /// User name and password, or a token, for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=USER:PASSWORD")]
    registry_creds: Vec<String>,

    /// Key of the client certificate for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=FILE")]
    registry_key_file: Vec<String>,

    /// Client certificate for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=FILE")]
    registry_cert_file: Vec<String>,

    /// Certificates (PEM) to trust for a registry
    #[arg(long, value_name = "HOST/REPOSITORY=FILE")]
    registry_ca_file: Vec<String>,

    /// Talk to a registry without TLS
    #[arg(long, value_name = "HOST/REPOSITORY")]
    registry_plain_http: Vec<String>,

    /// Do not check the certificate of a registry
    #[arg(long, value_name = "HOST/REPOSITORY")]
    registry_insecure_skip_tls_verify: Vec<String>,
}

/// The values for one host and path by the flag's name without its group: `username`, `ca-file`. A switch has the value `true`.
pub(in crate::cli) type Credentials<'a> = BTreeMap<&'static str, &'a str>;

/// Where credentials are for: the host, and the pattern on the path if there is one.
pub(in crate::cli) type Scope<'a> = (&'a str, Option<&'a str>);

impl GitFlags {
    /// All credentials by where they are for, in the order in which they are looked through: the first one that fits counts.
    ///
    /// # Errors
    /// Names the flag whose value has another form.
    pub(in crate::cli) fn scopes(
        &self,
    ) -> Result<IndexMap<Scope<'_>, Credentials<'_>>, Diagnostic> {
        let flags = [
            ("username", &self.git_username),
            ("password", &self.git_password),
            ("ssh-key-file", &self.git_ssh_key_file),
            ("ssh-known-hosts-file", &self.git_ssh_known_hosts_file),
            ("ca-file", &self.git_ca_file),
        ];
        scopes("git", &flags, &[])
    }
}

impl HelmFlags {
    /// As [`GitFlags::scopes`].
    ///
    /// # Errors
    /// Names the flag whose value has another form.
    pub(in crate::cli) fn scopes(
        &self,
    ) -> Result<IndexMap<Scope<'_>, Credentials<'_>>, Diagnostic> {
        let flags = [
            ("username", &self.helm_username),
            ("password", &self.helm_password),
            ("creds", &self.helm_creds),
            ("key-file", &self.helm_key_file),
            ("cert-file", &self.helm_cert_file),
            ("ca-file", &self.helm_ca_file),
        ];
        let switches = [("insecure-skip-tls-verify", &self.helm_insecure_skip_tls_verify)];
        scopes("helm", &flags, &switches)
    }
}

impl RegistryFlags {
    /// As [`GitFlags::scopes`].
    ///
    /// # Errors
    /// Names the flag whose value has another form.
    pub(in crate::cli) fn scopes(
        &self,
    ) -> Result<IndexMap<Scope<'_>, Credentials<'_>>, Diagnostic> {
        let flags = [
            ("username", &self.registry_username),
            ("password", &self.registry_password),
            ("identity-token", &self.registry_identity_token),
            ("token", &self.registry_token),
            ("creds", &self.registry_creds),
            ("key-file", &self.registry_key_file),
            ("cert-file", &self.registry_cert_file),
            ("ca-file", &self.registry_ca_file),
        ];
        let switches = [
            ("plain-http", &self.registry_plain_http),
            ("insecure-skip-tls-verify", &self.registry_insecure_skip_tls_verify),
        ];
        scopes("registry", &flags, &switches)
    }
}

type Flag<'a> = (&'static str, &'a Vec<String>);

fn scopes<'a>(
    group: &str,
    flags: &[Flag<'a>],
    switches: &[Flag<'a>],
) -> Result<IndexMap<Scope<'a>, Credentials<'a>>, Diagnostic> {
    let mut scopes: IndexMap<Scope<'a>, Credentials<'a>> = IndexMap::new();
    let invalid = |flag: &str, expected: &str| {
        // The value may be a password and is not shown.
        Diagnostic::new(Class::Project, format!("a value of --{group}-{flag} has another form"))
            .with_expected(expected)
    };
    for (flag, values) in flags {
        for text in *values {
            let pair = text.split_once('=');
            let (scope, value) = pair.ok_or_else(|| invalid(flag, "host[/path]=value"))?;
            let scope = scope_of(scope).ok_or_else(|| invalid(flag, "host[/path]=value"))?;
            scopes.entry(scope).or_default().insert(flag, value);
        }
    }
    for (flag, values) in switches {
        for text in *values {
            let scope = scope_of(text).ok_or_else(|| invalid(flag, "host[/path]"))?;
            scopes.entry(scope).or_default().insert(flag, "true");
        }
    }
    Ok(scopes)
}

fn scope_of(text: &str) -> Option<Scope<'_>> {
    let (host, path) = match text.split_once('/') {
        Some((host, path)) => (host, Some(path)),
        None => (text, None),
    };
    (!host.is_empty()).then_some((host, path))
}
