//! The loop around [`decide::next`](super::decide::next) for one object.

use std::{borrow::Cow, hash::Hasher, sync::Arc, time::Duration};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    body::for_apply,
    conflict::{ConflictError, resolve},
    decide::{Known, Request, State, Step, after_unknown_field, next},
    dry_run::StandIn,
    plan::PlannedObject,
    run::{Applied, ApplyOptions, ProviderStates},
};
use crate::{
    cluster::{ApiKind, ApiOutcome, Cluster, DeleteMode, FieldConflict, WriteMode},
    diff::mask_text,
    object::Object,
    observer::{Observer, Rest},
    schema::ConflictRule,
};

/// How one object is applied.
pub(super) struct Conversation<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) options: &'a ApplyOptions,
    pub(super) providers: &'a ProviderStates,
    pub(super) rules: &'a [ConflictRule],
    pub(super) target: &'a PlannedObject,
    /// Whether the namespace is known not to exist.
    pub(super) lacks_namespace: bool,
    /// Whether a dry run has to take a new name because the object would have been deleted by now.
    pub(super) renamed: bool,
    pub(super) observer: &'a dyn Observer,
    pub(super) cancel: &'a CancellationToken,
}

/// How a conversation ended.
pub(super) struct Verdict {
    /// The object as applied, or why it is not.
    pub(super) result: Result<Applied, String>,
    /// Remarks of the API server and of the way there.
    pub(super) warnings: Vec<String>,
    /// Whether the API server could not be reached.
    pub(super) unreachable: bool,
}

/// The mutable side of a conversation.
struct Talk<'a> {
    it: &'a Conversation<'a>,
    body: Cow<'a, Value>,
    resolved: Option<Value>,
    stand_in: Option<StandIn>,
    /// Whether the namespace does not exist, so that a stand-in has to go elsewhere.
    lacks_namespace: bool,
    live: Option<Arc<Object>>,
    warnings: Vec<String>,
    unreachable: bool,
}

impl Conversation<'_> {
    /// Applies the object.
    pub(super) async fn run(&self) -> Verdict {
        let object = &self.target.object;
        if object.name().is_empty() {
            let message = "metadata.name is required: metadata.generateName does not work with server-side apply";
            let result = Err(message.to_owned());
            return Verdict { result, warnings: Vec::new(), unreachable: false };
        }
        let mut talk = Talk {
            it: self,
            body: for_apply(object.value()),
            resolved: None,
            stand_in: None,
            lacks_namespace: self.lacks_namespace,
            live: self.target.live.clone(),
            warnings: Vec::new(),
            unreachable: false,
        };
        let result = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                Err("interrupted; it may have been applied".to_owned())
            }
            result = talk.run() => result,
        };
        let mask = |text: String| mask_text(object, &text);
        Verdict {
            result: result.map_err(mask),
            warnings: talk.warnings.into_iter().map(mask).collect(),
            unreachable: talk.unreachable,
        }
    }

    fn known(&self, live: Option<&Arc<Object>>) -> Known {
        Known {
            live: live.is_some(),
            keep: self.target.is_kept(),
            namespace: self.providers.of(self.target.namespace_from),
            kind: self.providers.of(self.target.kind_from),
        }
    }

    fn mode(&self) -> WriteMode {
        if self.options.policy.dry_run { WriteMode::DryRun } else { WriteMode::Real }
    }
}

impl Talk<'_> {
    async fn run(&mut self) -> Result<Applied, String> {
        let target = self.it.target;
        let first = if self.it.renamed || self.it.lacks_namespace {
            Request::ApplyStandIn
        } else {
            Request::Apply
        };
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(target.reference.to_string().as_bytes());
        let mut state = State::new(first.clone(), hasher.finish());
        let mut step = Step::Send(first);
        loop {
            let request = match step {
                Step::Send(request) => request,
                Step::Pause(pause, request) => {
                    tokio::time::sleep(pause).await;
                    request
                }
                Step::RefreshKinds(pause, request) => {
                    tokio::time::sleep(pause).await;
                    // A failure shows when the kind is looked up again.
                    let _kinds = self.it.cluster.refresh_kinds().await;
                    request
                }
                Step::AwaitNamespace(request) => {
                    self.it.providers.settled(target.namespace_from).await;
                    request
                }
                Step::AwaitKind(request) => {
                    self.it.providers.settled(target.kind_from).await;
                    let _kinds = self.it.cluster.refresh_kinds().await;
                    request
                }
                Step::Resolve(conflicts) => match self.resolve(&conflicts) {
                    Ok(()) => Request::ApplyResolved,
                    Err(error @ ConflictError::UnknownField { .. }) => {
                        step = after_unknown_field(&mut state, &error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error.to_string()),
                },
                Step::StandIn { warning } => {
                    self.warnings.append(&mut state.warnings);
                    self.warnings.push(warning);
                    return Ok(target.object.clone());
                }
                Step::Fail { message } => {
                    self.unreachable = state.unreachable;
                    self.warnings.append(&mut state.warnings);
                    return Err(message);
                }
                // Handled where the answer is.
                Step::Done => return Ok(target.object.clone()),
            };
            let outcome = self.send(&request).await;
            step = next(
                &mut state,
                &outcome,
                self.it.known(self.live.as_ref()),
                &self.it.options.policy,
            );
            if step == Step::Done
                && let ApiOutcome::Done(value) = outcome
            {
                self.warnings.append(&mut state.warnings);
                return self.applied(value);
            }
        }
    }

    /// The answer as an object, under its own name.
    fn applied(&self, value: Value) -> Result<Applied, String> {
        let object = match &self.stand_in {
            Some(stand_in) => stand_in.undo(value, &self.it.target.reference),
            None => Object::new(value).ok(),
        };
        object.map(Arc::new).ok_or_else(|| "the API server's answer is not an object".to_owned())
    }

    async fn send(&mut self, request: &Request) -> ApiOutcome {
        let kind = match self.kind().await {
            Ok(kind) => kind,
            Err(outcome) => return outcome,
        };
        let (cluster, mode) = (self.it.cluster, self.it.mode());
        let reference = &self.it.target.reference;
        let answer = match request {
            Request::Apply | Request::ApplyAnew => {
                cluster.apply(&kind, &self.body, mode, false).await
            }
            Request::ApplyForced => cluster.apply(&kind, &self.body, mode, true).await,
            Request::ApplyResolved => {
                let body = self.resolved.as_ref().unwrap_or(&self.body);
                cluster.apply(&kind, body, mode, true).await
            }
            Request::ApplyStandIn => {
                let stand_in = StandIn::new(&self.body, reference, !self.lacks_namespace);
                let answer = cluster.apply(&kind, &stand_in.body, mode, false).await;
                self.stand_in = Some(stand_in);
                answer
            }
            Request::Replace => cluster.replace(&kind, &self.versioned(), mode).await,
            Request::Delete => {
                let mode = DeleteMode { write: mode, uid: None };
                let limit = self.it.options.readiness_timeout.max(Duration::from_secs(1));
                let rest = Rest::new(self.it.observer);
                let answer = cluster.remove(&kind, reference, mode, limit, &rest).await;
                rest.over().await;
                answer
            }
            Request::Read => {
                let namespace = reference.namespace.as_deref();
                cluster.get(&kind, namespace, &reference.name).await
            }
        };
        self.warnings.extend(answer.warnings);
        self.lacks_namespace |= matches!(answer.outcome, ApiOutcome::NoSuchNamespace(_));
        if *request == Request::Read
            && let ApiOutcome::Done(value) = &answer.outcome
        {
            self.live = Object::new(value.clone()).ok().map(Arc::new);
        }
        answer.outcome
    }

    /// The desired object at the version of the live one.
    fn versioned(&self) -> Value {
        let mut body = self.body.clone().into_owned();
        if let Some(live) = &self.live {
            body["metadata"]["resourceVersion"] =
                live.value()["metadata"]["resourceVersion"].clone();
        }
        body
    }

    async fn kind(&self) -> Result<Arc<ApiKind>, ApiOutcome> {
        let reference = &self.it.target.reference;
        let kinds = self.it.cluster.kinds().await?;
        kinds.of_reference(reference).cloned().ok_or_else(|| {
            let (api_version, kind) = (reference.api_version(), &reference.kind);
            ApiOutcome::NoSuchKind(format!("the cluster serves no kind {kind} in {api_version}"))
        })
    }

    /// Decides the conflicting fields; what is left of the object is sent next.
    fn resolve(&mut self, conflicts: &[FieldConflict]) -> Result<(), ConflictError> {
        let Some(live) = &self.live else { return Ok(()) };
        let desired = Object::new(self.body.clone().into_owned());
        let desired = desired.unwrap_or_else(|_| Object::clone(&self.it.target.object));
        let resolution = resolve(&desired, live, conflicts, self.it.rules)?;
        self.warnings.extend(resolution.lost.into_iter().map(|lost| {
            format!(
                "field {} is left as it is, because another manager owns it: {}",
                lost.field, lost.message
            )
        }));
        self.resolved = Some(resolution.body);
        Ok(())
    }
}
