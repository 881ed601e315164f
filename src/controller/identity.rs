//! Which cluster it is that an access leads to.
//!
//! A cluster is known by the UID of its namespace `kube-system`, which not every account may read. Then others are asked that
//! lead to the same cluster: whoever the kubeconfig is for, before impersonation; the controller itself, when the address is
//! the one of its own cluster; and what the object recorded of the same address before. In the end the address stands in.
//!
//! Two claims are about one cluster when their UIDs are equal, or, where one of them has none, their addresses.

use reqwest::Url;

use super::{context::Context, outcome::Failure, record::is_same_cluster, secrets};
use crate::{
    api::{KluctlDeploymentStatus, reason},
    cluster::{Cluster, connect::ServiceAccount, kubeconfig::Access},
    diagnostic::Describe,
};

/// The address of the controller's own cluster, by whichever address it reaches it.
const OWN_SERVER: &str = "https://kubernetes.default.svc";
/// Names under which pods find the API server of their own cluster.
const OWN_HOSTS: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What a cluster is known by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClusterIdentity {
    /// UID of its namespace `kube-system`, or `server` when nobody may read that.
    pub id: String,
    /// Address of its API server in one spelling; empty when it is not known.
    pub server: String,
}

impl ClusterIdentity {
    /// Whether both are the same cluster, as far as that is known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let by_address = self.is_address() || other.is_address();
        self.id == other.id
            || (by_address && !self.server.is_empty() && self.server == other.server)
    }

    /// Whether the address stands in for the UID.
    fn is_address(&self) -> bool {
        self.id == self.server
    }

    /// Brings this and what the status records into line, when one of them knows the UID and the other just the address.
    pub(crate) fn settle(&mut self, status: &mut KluctlDeploymentStatus) {
        if self.is_address() {
            let claim = status.claim.as_ref().filter(|claim| claim.server == self.server);
            let known = claim.map(|claim| &claim.cluster_id);
            // The claim may be on another target; only what was deployed is known to be there.
            let known = known.filter(|id| is_same_cluster(Some(id), status.cluster_id.as_deref()));
            if let Some(id) = known {
                self.id.clone_from(id);
            }
            return;
        }
        let former = status.former_targets.iter_mut().map(|former| &mut former.cluster_id);
        for id in former.chain([&mut status.cluster_id]).flatten() {
            if *id == self.server {
                id.clone_from(&self.id);
            }
        }
        if let Some(claim) = status.claim.as_mut().filter(|claim| claim.cluster_id == self.server) {
            claim.cluster_id.clone_from(&self.id);
        }
    }
}

/// Finds out which cluster `cluster` is, which is reached by `access` as `account`.
///
/// # Errors
/// When the API server does not answer.
pub(crate) async fn identify(
    context: &Context,
    cluster: &Cluster,
    access: &Access,
    account: Option<&ServiceAccount>,
) -> Result<ClusterIdentity, Failure> {
    let server = match access {
        Access::Own => OWN_SERVER.to_owned(),
        Access::Kubeconfig { config, .. } => {
            let mut clusters = config.clusters.iter().filter_map(|named| named.cluster.as_ref());
            let server = clusters.find_map(|cluster| cluster.server.as_deref());
            normalized(server.unwrap_or_default(), context.clusters.own_server())
        }
    };
    let mut id = String::new();
    if matches!(access, Access::Kubeconfig { .. }) {
        id = ask(cluster).await?;
        if id.is_empty() && account.is_some() {
            let as_given = context.clusters.get(access, None).await;
            let as_given = as_given.map_err(|error| {
                Failure::describe(reason::PREPARE_FAILED, &error as &dyn Describe)
            })?;
            id = ask(&as_given).await?;
        }
    }
    if id.is_empty() && server == OWN_SERVER {
        id = ask(&context.own).await?;
    }
    if id.is_empty() {
        id.clone_from(&server);
    }
    Ok(ClusterIdentity { id, server })
}

async fn ask(cluster: &Cluster) -> Result<String, Failure> {
    let what = "the identity of the target cluster (namespace kube-system) cannot be read";
    cluster.id().await.map_err(|outcome| secrets::refused(reason::PREPARE_FAILED, what, &outcome))
}

/// An address in one spelling, without credentials; `own` is where the controller's own API server is.
fn normalized(server: &str, own: &str) -> String {
    let (server, own) = (spelled(server), spelled(own));
    let url = server.parse::<Url>().ok();
    let is_own_host =
        url.is_some_and(|url| url.host_str().is_some_and(|host| OWN_HOSTS.contains(&host)));
    if server == own || is_own_host { OWN_SERVER.to_owned() } else { server }
}

fn spelled(server: &str) -> String {
    let Ok(mut url) = server.parse::<Url>() else { return crate::secret::redact_url(server) };
    // Neither can fail where there is a host, and without one there is nothing to remove.
    let _removed = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(id: &str, server: &str) -> ClusterIdentity {
        ClusterIdentity { id: id.into(), server: server.into() }
    }

    #[test]
    fn addresses_have_one_spelling_and_the_own_cluster_one_address() {
        for (server, expected) in [
            ("https://Api.Example.com:443/", "https://api.example.com"),
            (
                "https://u:p@api.example.com/k8s/clusters/c-1/?a=b",
                "https://api.example.com/k8s/clusters/c-1",
            ),
            ("https://10.96.0.1:443", OWN_SERVER),
            ("https://kubernetes.default.svc/", OWN_SERVER),
            ("https://kubernetes.default.svc.cluster.local:443", OWN_SERVER),
            ("https://10.96.0.2", "https://10.96.0.2"),
        ] {
            assert_eq!(normalized(server, "https://10.96.0.1/"), expected, "{server}");
        }
    }

    #[test]
    fn clusters_are_the_same_by_uid_or_else_by_address() {
        for (one, other, expected) in [
            (identity("u", "https://a"), identity("u", "https://b"), true),
            (identity("u", "https://a"), identity("v", "https://a"), false),
            (identity("u", "https://a"), identity("https://a", "https://a"), true),
            (identity("u", "https://a"), identity("https://b", "https://b"), false),
            (identity("u", ""), identity("v", ""), false),
            (identity("", ""), identity("v", ""), false),
        ] {
            assert_eq!(one.is_same(&other), expected, "{one:?} and {other:?}");
            assert_eq!(other.is_same(&one), expected, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn rights_that_come_and_go_do_not_change_the_cluster() {
        let status = |id: &str| -> KluctlDeploymentStatus {
            serde_json::from_value(json!({
                "clusterId": id, "formerTargets": [{"clusterId": id}, {"clusterId": "w"}],
                "claim": {"clusterId": id, "server": "https://a", "discriminator": "d", "state": "Granted"},
            }))
            .unwrap()
        };
        let mut by_address = status("https://a");
        let mut known = identity("u", "https://a");
        known.settle(&mut by_address);
        assert_eq!((by_address, known), (status("u"), identity("u", "https://a")));

        let mut by_uid = status("u");
        let mut unknown = identity("https://a", "https://a");
        unknown.settle(&mut by_uid);
        assert_eq!((by_uid, unknown), (status("u"), identity("u", "https://a")));

        let mut elsewhere = identity("https://b", "https://b");
        elsewhere.settle(&mut status("u"));
        assert_eq!(elsewhere, identity("https://b", "https://b"));
    }
}
