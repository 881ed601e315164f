//! Which requests by annotation are open. The values are opaque tokens: only equality counts.

use std::collections::BTreeMap;

use crate::api::{DEPLOY_REQUESTED_AT, FORCE_AT, KluctlDeploymentStatus, REQUESTED_AT};

/// Requests that an object carries and its status does not list as handled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// Token of a requested reconciliation.
    pub reconcile: Option<String>,
    /// Token of a requested deployment.
    pub deploy: Option<String>,
    /// Whether Flux's one-time force is asked for, which is a deployment here.
    pub force: bool,
    /// Value of the force annotation, handled or not; it is remembered as seen.
    pub force_seen: Option<String>,
}

impl Requests {
    /// The open requests among `annotations`.
    ///
    /// Flux's force counts only together with a new `requestedAt` of the same value, and once.
    pub(crate) fn open(
        annotations: &BTreeMap<String, String>,
        status: &KluctlDeploymentStatus,
    ) -> Self {
        let unhandled = |key: &str, handled: &Option<String>| {
            annotations.get(key).filter(|token| Some(*token) != handled.as_ref()).cloned()
        };
        let reconcile = unhandled(REQUESTED_AT, &status.last_handled_reconcile_at);
        let force_seen = annotations.get(FORCE_AT).cloned();
        let force = force_seen.is_some()
            && force_seen == reconcile
            && force_seen != status.last_handled_force_at;
        Self {
            deploy: unhandled(DEPLOY_REQUESTED_AT, &status.last_handled_deploy_at),
            reconcile,
            force,
            force_seen,
        }
    }

    /// Whether a deployment is asked for, whatever the objects hash says.
    pub(crate) fn deploys(&self) -> bool {
        self.force || self.deploy.is_some()
    }
}
