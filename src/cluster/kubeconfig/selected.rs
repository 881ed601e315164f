//! One context of a kubeconfig: complete, and allowed by the guards.

use kube::config::{AuthInfo, Cluster, Kubeconfig};

use super::{DEFAULT_CONTEXT, Guards, KubeconfigError};

/// A kubeconfig with this context alone, under the name `default`.
pub(super) fn reduce(config: &Kubeconfig, name: &str) -> Result<Kubeconfig, KubeconfigError> {
    let dangling = |what, missing: &str| KubeconfigError::Dangling {
        context: name.to_owned(),
        what,
        name: missing.to_owned(),
    };
    let mut context = config
        .contexts
        .iter()
        .find(|context| context.name == name)
        .cloned()
        .ok_or_else(|| dangling("context", name))?;
    let inner = context.context.as_mut().ok_or_else(|| dangling("cluster", ""))?;
    let mut cluster = config
        .clusters
        .iter()
        .find(|cluster| cluster.name == inner.cluster && cluster.cluster.is_some())
        .cloned()
        .ok_or_else(|| dangling("cluster", &inner.cluster))?;
    let user_name = inner.user.clone().filter(|user| !user.is_empty());
    let user = match user_name {
        None => None,
        Some(user) => Some(
            config
                .auth_infos
                .iter()
                .find(|info| info.name == user)
                .cloned()
                .ok_or_else(|| dangling("user", &user))?,
        ),
    };
    DEFAULT_CONTEXT.clone_into(&mut context.name);
    DEFAULT_CONTEXT.clone_into(&mut cluster.name);
    DEFAULT_CONTEXT.clone_into(&mut inner.cluster);
    inner.user = user.as_ref().map(|_| DEFAULT_CONTEXT.to_owned());
    Ok(Kubeconfig {
        clusters: vec![cluster],
        contexts: vec![context],
        auth_infos: user
            .map(|mut user| {
                DEFAULT_CONTEXT.clone_into(&mut user.name);
                user
            })
            .into_iter()
            .collect(),
        current_context: Some(DEFAULT_CONTEXT.to_owned()),
        ..Kubeconfig::default()
    })
}

/// Makes sure that a reduced kubeconfig names a server, and asks for nothing that the guards forbid.
pub(super) fn check(
    config: &Kubeconfig,
    context: &str,
    guards: Guards,
) -> Result<(), KubeconfigError> {
    let refused = |reason: String, hint| {
        Err(KubeconfigError::Refused { context: context.to_owned(), reason, hint })
    };
    let clusters = config.clusters.iter().filter_map(|named| named.cluster.as_ref());
    for cluster in clusters {
        if cluster.server.as_deref().unwrap_or_default().is_empty() {
            return refused(
                "its cluster has no server".to_owned(),
                "set clusters[].cluster.server",
            );
        }
        if let Some(reason) = insecure(cluster).filter(|_| !guards.allow_insecure_tls) {
            return refused(
                reason.to_owned(),
                "set certificate-authority-data, or start the controller with --insecure-kubeconfig-tls",
            );
        }
    }
    for user in config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        if let Some(exec) = user.exec.as_ref().filter(|_| !guards.allow_exec) {
            let command = exec.command.as_deref().unwrap_or_default();
            return refused(
                format!("it runs the program {command:?} to get credentials"),
                "use a token or a client certificate, or start the controller with --insecure-kubeconfig-exec",
            );
        }
        if let Some(provider) = &user.auth_provider {
            return refused(
                format!("it uses the auth-provider {:?}, which is not supported", provider.name),
                "use a token or a client certificate",
            );
        }
    }
    if let Some((field, hint)) = file_reference(config).filter(|_| !guards.allow_files) {
        return refused(format!("{field} refers to a file on the controller's disk"), hint);
    }
    Ok(())
}

fn insecure(cluster: &Cluster) -> Option<&'static str> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Some("insecure-skip-tls-verify is set");
    }
    let server = cluster.server.as_deref().unwrap_or_default().to_ascii_lowercase();
    (!server.starts_with("https://")).then_some("its server is not an https:// address")
}

/// The first field that names a file, and what to use instead.
fn file_reference(config: &Kubeconfig) -> Option<(&'static str, &'static str)> {
    let is_set = |field: &Option<String>| field.as_ref().is_some_and(|value| !value.is_empty());
    let of_cluster = |cluster: &Cluster| {
        // Inline data wins over the file, which then is not read.
        (is_set(&cluster.certificate_authority) && !is_set(&cluster.certificate_authority_data))
            .then_some(("certificate-authority", "use certificate-authority-data, or start the controller with --insecure-kubeconfig-exec"))
    };
    let of_user = |user: &AuthInfo| {
        if is_set(&user.token_file) {
            Some((
                "tokenFile",
                "use token, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else if is_set(&user.client_certificate) && !is_set(&user.client_certificate_data) {
            Some((
                "client-certificate",
                "use client-certificate-data, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else if is_set(&user.client_key) && user.client_key_data.is_none() {
            Some((
                "client-key",
                "use client-key-data, or start the controller with --insecure-kubeconfig-exec",
            ))
        } else {
            None
        }
    };
    let clusters = config.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let users = config.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    clusters.filter_map(of_cluster).chain(users.filter_map(of_user)).next()
}
