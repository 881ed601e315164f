//! What the stages of a reconciliation hand to [`summarize`](super::summarize).

use std::time::Duration;

use jiff::Timestamp;

use super::{identity::ClusterIdentity, ownership::Target};
use crate::{
    api::{
        CommandStatus, DependentRepository, Footprint, FormerTarget, ObjectFailure, ValidateStatus,
        reason,
    },
    diagnostic::{Class, Describe, Diagnostic},
    secret::SecretTexts,
};

/// What a failure means for the time to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Only a change by a person helps: Stalled, no requeue.
    Stalled,
    /// The source has nothing to deploy yet, which is no failure: Ready stays open, short requeue, no error event.
    Pending,
    /// Something is not there yet: short requeue, no error event.
    Waiting,
    /// Tried again after the retry interval.
    Retry,
    /// The API server or network is in trouble: tried again with growing delays, at most the retry interval.
    Backoff,
    /// The run was interrupted; tried again at once, by whoever is the leader then.
    Interrupted,
}

/// Why a reconciliation ended before it could deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Reason of the conditions.
    pub reason: &'static str,
    /// What happens next.
    pub outlook: Outlook,
    /// Text for conditions and events, without secrets.
    pub message: String,
    /// Delay in place of the outlook's usual one.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure with the usual delay.
    pub(crate) fn new(reason: &'static str, outlook: Outlook, message: impl Into<String>) -> Self {
        Self { reason, outlook, message: message.into(), retry_after: None }
    }

    /// A failure that only a change of the spec resolves.
    pub(crate) fn stalled(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(reason, Outlook::Stalled, message)
    }

    /// Something that is not there yet.
    pub(crate) fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(reason, Outlook::Waiting, message)
    }

    /// A failure that is tried again after the retry interval.
    pub(crate) fn retry(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(reason, Outlook::Retry, message)
    }

    /// The end of a run that was stopped from outside; what it did is not recorded, and done again by the next run.
    pub(crate) fn interrupted(reason: &'static str) -> Self {
        Self::new(reason, Outlook::Interrupted, "the reconciliation was interrupted")
    }

    /// A module's error under the reason of the stage it happened in; its class decides what happens next.
    pub(crate) fn describe(reason: &'static str, error: &dyn Describe) -> Self {
        Self::from_diagnostic(reason, &error.describe())
    }

    /// As [`Failure::describe`], for a diagnostic that is at hand.
    pub(crate) fn from_diagnostic(reason: &'static str, diagnostic: &Diagnostic) -> Self {
        let (reason, outlook) = match diagnostic.class {
            Class::Spec if reason == reason::PREPARE_FAILED => {
                (reason::INVALID_SPEC, Outlook::Stalled)
            }
            Class::Spec => (reason, Outlook::Stalled),
            Class::Waiting => (reason, Outlook::Waiting),
            Class::Transient => (reason, Outlook::Backoff),
            Class::Cancelled => (reason, Outlook::Interrupted),
            Class::Project | Class::Access | Class::Object | Class::Internal => {
                (reason, Outlook::Retry)
            }
        };
        Self::new(reason, outlook, diagnostic.to_string())
    }
}

/// What became known on the way; parts stay empty when the run ended before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Revision of the source.
    pub revision: Option<String>,
    /// Digest of the artifact.
    pub digest: Option<String>,
    /// Revision of the application's source.
    pub origin_revision: Option<String>,
    /// Name of the target after overrides.
    pub target: Option<String>,
    /// Kubeconfig context used.
    pub context: Option<String>,
    /// Discriminator of the target.
    pub discriminator: Option<String>,
    /// The cluster deployed to.
    pub cluster: Option<ClusterIdentity>,
    /// Namespaces and kinds of the rendered objects; known when they are to be deployed.
    pub footprint: Footprint,
    /// SHA-256 over the rendered objects.
    pub objects_hash: Option<String>,
    /// Included repositories and their commits.
    pub repositories: Vec<DependentRepository>,
    /// Things to tell the user that do not prevent anything.
    pub warnings: Vec<String>,
}

impl Facts {
    /// Identity of the cluster deployed to.
    pub(crate) fn cluster_id(&self) -> Option<&str> {
        self.cluster.as_ref().map(|cluster| cluster.id.as_str())
    }

    /// The target, if it can be told from others.
    pub(crate) fn target_claimed(&self) -> Option<Target> {
        let (cluster, discriminator) = (self.cluster.clone()?, self.discriminator.clone()?);
        Some(Target { cluster, discriminator })
    }
}

/// What a deployment or prune did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandOutcome {
    /// The part that is kept in status.
    pub status: CommandStatus,
    /// Objects that failed.
    pub failed: Vec<ObjectFailure>,
    /// Objects that should be gone and are not confirmed to be.
    pub survivors: Vec<ObjectFailure>,
    /// Things to tell the user.
    pub warnings: Vec<String>,
}

impl CommandOutcome {
    /// Whether it did all it should, so that nothing is to be tried again.
    pub(crate) fn is_good(&self) -> bool {
        self.status.succeeded() && self.survivors.is_empty()
    }

    /// The same without what is secret.
    pub(crate) fn masked(mut self, secrets: &SecretTexts) -> Self {
        self.status.error = self.status.error.map(|text| secrets.mask(&text));
        mask_failures(&mut self.failed, secrets);
        mask_failures(&mut self.survivors, secrets);
        self.warnings.iter_mut().for_each(|text| *text = secrets.mask(text));
        self
    }
}

fn mask_failures(failures: &mut [ObjectFailure], secrets: &SecretTexts) {
    for failure in failures {
        failure.message = secrets.mask(&failure.message);
    }
}

/// What a validation found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValidateOutcome {
    /// The part that is kept in status.
    pub status: ValidateStatus,
    /// Objects that are not as they should be.
    pub failed: Vec<ObjectFailure>,
}

impl ValidateOutcome {
    /// The same without what is secret.
    pub(crate) fn masked(mut self, secrets: &SecretTexts) -> Self {
        self.status.error = self.status.error.map(|text| secrets.mask(&text));
        mask_failures(&mut self.failed, secrets);
        self
    }
}

/// What was done, in order. A stage that was not due, or not reached, is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Done {
    /// The deployment.
    pub deploy: Option<CommandOutcome>,
    /// The prune.
    pub prune: Option<CommandOutcome>,
    /// The validation.
    pub validate: Option<ValidateOutcome>,
    /// Former targets whose objects are not known to be gone, if they were looked at.
    pub former: Option<Vec<FormerTarget>>,
    /// Whether nothing but what was rendered is left of the present target.
    pub is_swept: bool,
    /// Things to tell the user that somebody may have to act on.
    pub notes: Vec<String>,
}

impl Done {
    /// Whether anything was done in the cluster.
    pub(crate) fn changed_something(&self) -> bool {
        [&self.deploy, &self.prune].into_iter().flatten().any(|outcome| {
            let status = &outcome.status;
            status.new_objects
                + status.changed_objects
                + status.deleted_objects
                + status.hook_objects
                > 0
        })
    }
}

/// How a reconciliation ended.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one per reconciliation, and passed by reference")]
pub(crate) enum Ending {
    /// Before anything was deployed.
    Failed(Failure),
    /// With whatever was due done, well or not.
    Done(Done),
}

/// A number as it stands in status.
pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// `earlier + period`, saturating.
pub(crate) fn after(earlier: Timestamp, period: Duration) -> Timestamp {
    earlier.saturating_add(period).unwrap_or(Timestamp::MAX)
}

/// Time from `now` to `due`, zero when it has passed.
pub(crate) fn until(now: Timestamp, due: Timestamp) -> Duration {
    Duration::try_from(due.duration_since(now)).unwrap_or(Duration::ZERO)
}
