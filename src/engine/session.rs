use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{ApiOutcome, Clock, Cluster, LiveState, ObserveRequest, Remark, observe},
    deployment::{DesiredState, Inclusion},
    object::ObjectRef,
    observer::{EngineEvent, Observer, Stage},
    results::{CommandResult, DeploymentError, RunInfo, TargetKey, ValidateResult},
};

/// What every operation on a cluster works with.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The cluster, as the user that the operation runs as.
    pub cluster: &'a Cluster,
    /// What the run knows about itself; ends up in its result.
    pub info: &'a RunInfo,
    /// Hears what happens.
    pub observer: &'a dyn Observer,
    /// Ends the run early. It still returns a result, which says what was not attempted.
    pub cancel: &'a CancellationToken,
    /// Ends the run as `cancel` does, after this time.
    pub timeout: Option<Duration>,
}

impl Session<'_> {
    /// Runs `operation` with a token that is cancelled with the session or after its timeout. Returns whether time ran out.
    pub(super) async fn limited<T>(
        &self,
        operation: impl AsyncFnOnce(CancellationToken) -> T,
    ) -> (T, bool) {
        let token = self.cancel.child_token();
        let run = operation(token.clone());
        tokio::pin!(run);
        let Some(limit) = self.timeout else { return (run.await, false) };
        tokio::select! {
            biased;
            done = &mut run => (done, false),
            () = tokio::time::sleep(limit) => {
                token.cancel();
                (run.await, true)
            }
        }
    }

    /// Runs a stage between its events, or not at all once the run is cancelled.
    pub(super) async fn stage<T>(
        &self,
        stage: Stage,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        self.observer.event(EngineEvent::StageStarted { stage });
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            done = work => Some(done),
        };
        self.observer.event(EngineEvent::StageFinished { stage });
        done
    }

    /// Reads the live side of a deployment.
    pub(super) async fn observe(
        &self,
        request: &ObserveRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<LiveState, ApiOutcome> {
        let observed = self.stage(Stage::Observe, cancel, observe(self.cluster, request)).await;
        observed.unwrap_or(Err(ApiOutcome::Interrupted))
    }

    /// An empty result of a command with what is known before it starts.
    pub(super) async fn command_result(
        &self,
        command: &str,
        inclusion: &Inclusion,
        discriminator: Option<&str>,
        clock: &Clock,
        cancel: &CancellationToken,
    ) -> CommandResult {
        let mut warnings = Vec::new();
        let cluster_id = self.cluster_id(cancel, &mut warnings).await;
        let mut result = CommandResult::started(command, self.info, inclusion, clock.started());
        result.warnings = warnings;
        result.cluster_info.cluster_id.clone_from(&cluster_id);
        result.target_key = self.target_key(cluster_id, discriminator);
        result
    }

    /// An empty result of a validation with what is known before it starts.
    pub(super) async fn validate_result(
        &self,
        discriminator: Option<&str>,
        clock: &Clock,
        cancel: &CancellationToken,
    ) -> ValidateResult {
        let mut warnings = Vec::new();
        let cluster_id = self.cluster_id(cancel, &mut warnings).await;
        let mut result = ValidateResult::started(self.info, clock.started());
        result.warnings = warnings;
        result.target_key = self.target_key(cluster_id, discriminator);
        result
    }

    fn target_key(&self, cluster_id: String, discriminator: Option<&str>) -> TargetKey {
        TargetKey {
            target_name: self.info.target_name.clone(),
            cluster_id,
            discriminator: discriminator.unwrap_or_default().to_owned(),
        }
    }

    async fn cluster_id(
        &self,
        cancel: &CancellationToken,
        warnings: &mut Vec<DeploymentError>,
    ) -> String {
        let id = tokio::select! {
            () = cancel.cancelled() => return String::new(),
            id = self.cluster.id() => id,
        };
        id.unwrap_or_else(|outcome| {
            let problem = outcome.message().unwrap_or_default();
            let message =
                format!("cannot read namespace kube-system for the cluster's id: {problem}");
            warnings.push(DeploymentError::new(None, message));
            String::new()
        })
    }
}

/// References of all objects, with the namespaces that their kinds ask for. Without knowledge of the kinds they are as
/// rendered.
pub(super) async fn references(cluster: &Cluster, desired: &DesiredState) -> Vec<ObjectRef> {
    let kinds = cluster.kinds().await.ok();
    let references = desired.objects().map(|object| {
        let reference = object.reference();
        match &kinds {
            Some(kinds) => kinds.complete(reference),
            None => reference,
        }
    });
    references.collect()
}

/// Remarks on the live side as errors or warnings of a result.
pub(super) fn remarks(remarks: &[Remark]) -> impl Iterator<Item = DeploymentError> + '_ {
    remarks
        .iter()
        .map(|remark| DeploymentError::new(remark.reference.clone(), remark.message.clone()))
}

/// What to say when the live side could not be read at all.
pub(super) fn unreadable(outcome: &ApiOutcome) -> DeploymentError {
    let problem = outcome.message().unwrap_or_default();
    DeploymentError::new(None, format!("cannot read the cluster: {problem}"))
}

/// What to say when a run did not complete.
pub(super) fn interruption(timeout: Option<Duration>, timed_out: bool) -> DeploymentError {
    let message = match timeout {
        Some(limit) if timed_out => {
            format!("the run did not complete within {} s", limit.as_secs())
        }
        _ => "the run was interrupted".to_owned(),
    };
    DeploymentError::new(None, message)
}
