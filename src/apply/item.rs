//! One item of a run: deletions, hooks before, objects, waits, hooks after.

use std::{collections::HashMap, time::Duration};

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::{
    converse::Conversation,
    decide::Provider,
    plan::{ItemPlan, PlannedHook, PlannedObject, selected},
    run::{Applied, ApplyReport, ApplyRun, ProviderStates},
};
use crate::{
    cluster::{ApiOutcome, DeleteMode, LiveKey, WriteMode},
    hooks::DeletePolicy,
    object::ObjectRef,
    observer::{EngineEvent, Observer, Rest},
    readiness::Waiter,
    results::{AppliedObject, DeploymentError, ObjectOutcome, Operation, OutcomeState},
    schema::ObjectSelector,
};

/// Waits of one item at the same time.
const PARALLEL_WAITS: usize = 16;

pub(super) struct ItemRun<'a> {
    run: &'a ApplyRun<'a>,
    plan: &'a ItemPlan,
    index: usize,
    providers: &'a ProviderStates,
    /// Cancelled with the run, and by the first error when that is to abort it.
    stop: &'a CancellationToken,
    report: ApplyReport,
    /// Where the outcome of an object is in the report.
    slots: HashMap<(Operation, LiveKey), usize>,
    applied_count: usize,
}

impl<'a> ItemRun<'a> {
    pub(super) fn new(
        run: &'a ApplyRun<'a>,
        index: usize,
        providers: &'a ProviderStates,
        stop: &'a CancellationToken,
    ) -> Self {
        let plan = &run.plan.items[index];
        let mut item = Self {
            run,
            plan,
            index,
            providers,
            stop,
            report: ApplyReport::default(),
            slots: HashMap::new(),
            applied_count: 0,
        };
        plan.deletes.iter().for_each(|reference| item.planned(reference, Operation::Delete));
        let hooks = |hooks: &'a [PlannedHook]| hooks.iter().map(|hook| &hook.target.reference);
        hooks(&plan.pre_hooks).for_each(|reference| item.planned(reference, Operation::Hook));
        let objects = plan.applies.iter().map(|object| &object.reference);
        objects.for_each(|reference| item.planned(reference, Operation::Apply));
        if !run.options.no_wait && !run.options.policy.dry_run {
            plan.waits.iter().for_each(|reference| item.planned(reference, Operation::Wait));
        }
        hooks(&plan.post_hooks).for_each(|reference| item.planned(reference, Operation::Hook));
        item
    }

    /// Runs the item; returns its part of the report.
    pub(super) async fn run(mut self) -> ApplyReport {
        if !self.stop.is_cancelled() {
            let item = self.plan.name.clone();
            let objects = self.plan.applies.len();
            self.run.observer.event(EngineEvent::ItemStarted { item: item.clone(), objects });
            self.remark();
            self.delete_objects().await;
            self.hooks(&self.plan.pre_hooks).await;
            self.apply_objects().await;
            self.wait_for_objects().await;
            self.hooks(&self.plan.post_hooks).await;
            let failed = self.report.outcomes.iter();
            let failed =
                failed.filter(|outcome| matches!(outcome.state, OutcomeState::Failed { .. }));
            let failed = failed.count();
            let applied = self.applied_count;
            self.run.observer.event(EngineEvent::ItemFinished { item, applied, failed });
        }
        // Whoever waits for a namespace or kind of this item need not wait any longer.
        for object in self.targets() {
            if self.providers.of(object.provides) == Provider::Pending {
                self.providers.set(object.provides, Provider::Failed);
            }
        }
        // Not waiting for what could not be applied is no failure of its own.
        let slots = &self.slots;
        let outcomes = &self.report.outcomes;
        let is_moot = |outcome: &ObjectOutcome| {
            let slot = slots.get(&(Operation::Apply, LiveKey::from(&outcome.reference)));
            outcome.operation == Operation::Wait
                && matches!(outcome.state, OutcomeState::NotAttempted { .. })
                && slot.is_some_and(|slot| !outcomes[*slot].is_done())
        };
        let moot: Vec<bool> = outcomes.iter().map(is_moot).collect();
        let mut moot = moot.into_iter();
        self.report.outcomes.retain(|_| !moot.next().unwrap_or(false));
        self.report
    }

    fn targets(&self) -> impl Iterator<Item = &'a PlannedObject> + use<'a> {
        let plan = self.plan;
        let hooks = plan.pre_hooks.iter().chain(&plan.post_hooks).map(|hook| &hook.target);
        plan.applies.iter().chain(hooks)
    }

    fn planned(&mut self, reference: &ObjectRef, operation: Operation) {
        self.slots.insert((operation, LiveKey::from(reference)), self.report.outcomes.len());
        let reason = "not attempted because the run ended before".to_owned();
        self.report.outcomes.push(ObjectOutcome {
            reference: reference.clone(),
            operation,
            state: OutcomeState::NotAttempted { reason },
        });
    }

    fn settle(&mut self, reference: &ObjectRef, operation: Operation, state: OutcomeState) {
        if let Some(slot) = self.slots.get(&(operation, LiveKey::from(reference))) {
            self.report.outcomes[*slot].state = state;
        }
    }

    fn done(&mut self, reference: &ObjectRef, operation: Operation) {
        self.settle(reference, operation, OutcomeState::Done);
    }

    fn failed(&mut self, reference: &ObjectRef, operation: Operation, message: String) {
        self.error(Some(reference.clone()), message.clone());
        self.settle(reference, operation, OutcomeState::Failed { message });
    }

    fn error(&mut self, reference: Option<ObjectRef>, message: String) {
        self.report.errors.push(DeploymentError::new(reference, message));
        if self.run.options.abort_on_error {
            self.stop.cancel();
        }
    }

    fn warn(&mut self, reference: &ObjectRef, warnings: Vec<String>) {
        let warnings = warnings.into_iter();
        let warnings = warnings.map(|text| DeploymentError::new(Some(reference.clone()), text));
        self.report.warnings.extend(warnings);
    }

    fn remark(&mut self) {
        for remark in &self.plan.remarks {
            if remark.is_error {
                self.error(Some(remark.reference.clone()), remark.message.clone());
            } else {
                self.warn(&remark.reference, vec![remark.message.clone()]);
            }
        }
    }

    /// What selectors name whose kinds were not known when the run was planned, after asking for the kinds again.
    async fn late(
        &mut self,
        selectors: &[ObjectSelector],
    ) -> Vec<(ObjectSelector, Vec<ObjectRef>)> {
        if selectors.is_empty() || self.stop.is_cancelled() {
            return Vec::new();
        }
        let kinds = tokio::select! {
            () = self.stop.cancelled() => return Vec::new(),
            kinds = self.run.cluster.refresh_kinds() => kinds,
        };
        match kinds {
            Ok(kinds) => selectors
                .iter()
                .map(|selector| (selector.clone(), selected(selector, &kinds)))
                .collect(),
            Err(outcome) => {
                let problem = outcome.message().unwrap_or_default();
                self.error(None, format!("cannot read the kinds of the cluster: {problem}"));
                Vec::new()
            }
        }
    }

    async fn delete_objects(&mut self) {
        for (selector, references) in self.late(&self.plan.late_deletes).await {
            if references.is_empty() {
                let message = format!("{} cannot exist: no kind matches it", shown(&selector));
                self.report.warnings.push(DeploymentError::new(None, message));
            }
            for reference in references {
                self.planned(&reference, Operation::Delete);
                self.delete_object(&reference).await;
            }
        }
        for reference in &self.plan.deletes {
            if self.stop.is_cancelled() {
                return;
            }
            self.delete_object(reference).await;
        }
    }

    /// Deletes an object that the deployment wants gone.
    async fn delete_object(&mut self, reference: &ObjectRef) {
        match self.delete(reference, !self.run.options.no_wait).await {
            Ok(was_there) => {
                if was_there {
                    self.report.deleted.push(reference.clone());
                }
                self.done(reference, Operation::Delete);
            }
            Err(message) => self.failed(reference, Operation::Delete, message),
        }
    }

    /// Deletes an object and, with `wait`, waits until it is gone. Returns whether it was there, or why it is not deleted.
    async fn delete(&mut self, reference: &ObjectRef, wait: bool) -> Result<bool, String> {
        let kinds = self.run.cluster.kinds().await;
        let kinds = kinds.map_err(|outcome| outcome.message().unwrap_or_default().to_owned())?;
        // An object of a kind that is not served does not exist.
        let Some(kind) = kinds.of_reference(reference).cloned() else { return Ok(false) };
        let options = self.run.options;
        let write = if options.policy.dry_run { WriteMode::DryRun } else { WriteMode::Real };
        let mode = DeleteMode { write, uid: None };
        let cluster = self.run.cluster;
        let rest = Rest::new(self.run.observer);
        let removal = async {
            if wait {
                cluster.remove(&kind, reference, mode, options.readiness_timeout, &rest).await
            } else {
                cluster.delete(&kind, reference.namespace.as_deref(), &reference.name, mode).await
            }
        };
        let answer = tokio::select! {
            biased;
            () = self.stop.cancelled() => ApiOutcome::Interrupted.into(),
            answer = removal => answer,
        };
        rest.over().await;
        self.warn(reference, answer.warnings);
        match answer.outcome {
            ApiOutcome::Done(_) => {
                self.run.observer.event(EngineEvent::ObjectDeleted { object: reference.clone() });
                Ok(true)
            }
            outcome if outcome.is_absent() => Ok(false),
            outcome => Err(outcome.message().unwrap_or_default().to_owned()),
        }
    }

    async fn apply_objects(&mut self) {
        for object in &self.plan.applies {
            if self.stop.is_cancelled() {
                return;
            }
            let applied = self.apply(object, Operation::Apply, false).await;
            self.applied_count += usize::from(applied);
        }
    }

    /// Applies one object. Returns whether that worked.
    async fn apply(&mut self, target: &PlannedObject, operation: Operation, renamed: bool) -> bool {
        let reference = &target.reference;
        let verdict = match self.unchanged(target) {
            Some(object) => Ok(object),
            None => self.converse(target, renamed).await,
        };
        let state = if verdict.is_ok() { Provider::Done } else { Provider::Failed };
        self.providers.set(target.provides, state);
        match verdict {
            Ok(object) => {
                let hook = operation == Operation::Hook;
                let new = !hook && target.live.is_none();
                self.report.applied.push(AppliedObject { object, hook, new });
                self.done(reference, operation);
                self.run.observer.event(EngineEvent::ObjectApplied { object: reference.clone() });
                true
            }
            Err(message) => {
                self.failed(reference, operation, message);
                false
            }
        }
    }

    /// Applies one object by talking to the API server.
    async fn converse(&mut self, target: &PlannedObject, renamed: bool) -> Result<Applied, String> {
        let dry_run = self.run.options.policy.dry_run;
        let namespace = target.reference.namespace.as_deref();
        let conversation = Conversation {
            cluster: self.run.cluster,
            options: self.run.options,
            providers: self.providers,
            rules: &self.run.desired.items[self.index].conflict_resolution,
            target,
            lacks_namespace: dry_run
                && target.namespace_from.is_some()
                && namespace.is_some_and(|name| self.run.live.lacks_namespace(name)),
            renamed: renamed && dry_run,
            observer: self.run.observer,
            cancel: self.run.cancel,
        };
        let verdict = conversation.run().await;
        self.warn(&target.reference, verdict.warnings);
        if verdict.unreachable {
            // Whatever else is planned would only wait as long, one after the other.
            self.stop.cancel();
        }
        verdict.result
    }

    /// The live object, when it is known to be as desired.
    fn unchanged(&self, target: &PlannedObject) -> Option<Applied> {
        let live = target.live.as_ref()?;
        let known = self.run.options.known_versions.get(&LiveKey::from(&target.reference))?;
        (live.value()["metadata"]["resourceVersion"] == known.as_str()).then(|| live.clone())
    }

    async fn wait_for_objects(&mut self) {
        let options = self.run.options;
        if options.no_wait || options.policy.dry_run {
            return;
        }
        let mut waits = self.plan.waits.clone();
        for (selector, references) in self.late(&self.plan.late_waits).await {
            if references.is_empty() {
                let message = format!("cannot wait for {}: no kind matches it", shown(&selector));
                self.error(None, message);
            }
            for reference in &references {
                self.planned(reference, Operation::Wait);
            }
            waits.extend(references);
        }
        // What could not be applied does not become ready either.
        waits.retain(|reference| {
            let slot = self.slots.get(&(Operation::Apply, LiveKey::from(reference)));
            slot.is_none_or(|slot| self.report.outcomes[*slot].is_done())
        });
        if self.stop.is_cancelled() {
            return;
        }
        let limit = options.readiness_timeout;
        let rest = Rest::new(self.run.observer);
        let (this, observer) = (&self, &rest);
        // Made before they are streamed: a closure over borrowed items in a stream hides that the future is `Send`.
        let waiting: Vec<_> = waits
            .iter()
            .map(
                |reference| async move { (reference, this.wait(reference, limit, observer).await) },
            )
            .collect();
        let waited: Vec<_> = stream::iter(waiting).buffered(PARALLEL_WAITS).collect().await;
        rest.over().await;
        for (reference, result) in waited {
            self.waited(reference, Operation::Wait, result);
        }
    }

    async fn wait(
        &self,
        reference: &ObjectRef,
        limit: Duration,
        observer: &dyn Observer,
    ) -> Result<Vec<String>, String> {
        let kinds = self.run.cluster.kinds().await;
        let kinds = kinds.map_err(|outcome| outcome.message().unwrap_or_default().to_owned())?;
        let kind = kinds.of_reference(reference).ok_or("the cluster does not serve its kind")?;
        let waiter = Waiter {
            cluster: self.run.cluster,
            clock: self.run.clock,
            observer,
            cancel: self.stop,
        };
        waiter.ready(kind, reference, limit).await.map_err(|error| error.to_string())
    }

    fn waited(
        &mut self,
        reference: &ObjectRef,
        operation: Operation,
        result: Result<Vec<String>, String>,
    ) -> bool {
        match result {
            Ok(warnings) => {
                self.warn(reference, warnings);
                self.done(reference, operation);
                true
            }
            Err(message) => {
                self.failed(reference, operation, message);
                false
            }
        }
    }

    /// Runs the hooks of one side: deletes those that are to be created anew, applies and waits one by one, then deletes in
    /// reverse order by success or failure. Only hooks that were waited for are deleted afterwards.
    async fn hooks(&mut self, hooks: &[PlannedHook]) {
        for hook in hooks {
            if self.stop.is_cancelled() {
                return;
            }
            if is_replaced(hook) {
                self.delete_hook(hook, "before it is created anew").await;
            }
        }
        let options = self.run.options;
        let mut waited = Vec::new();
        for hook in hooks {
            if self.stop.is_cancelled() {
                return;
            }
            let reference = &hook.target.reference;
            if !self.apply(&hook.target, Operation::Hook, is_replaced(hook)).await {
                continue;
            }
            if !hook.hook.wait || options.no_wait || options.policy.dry_run {
                continue;
            }
            let limit = hook.hook.timeout.unwrap_or(options.readiness_timeout);
            let rest = Rest::new(self.run.observer);
            let result = self.wait(reference, limit, &rest).await;
            rest.over().await;
            let succeeded = self.waited(reference, Operation::Hook, result);
            waited.push((hook, succeeded));
        }
        for (hook, succeeded) in waited.into_iter().rev() {
            let policy = if succeeded { DeletePolicy::Succeeded } else { DeletePolicy::Failed };
            if hook.hook.delete.contains(&policy) && !self.run.cancel.is_cancelled() {
                self.delete_hook(hook, "after it ran").await;
            }
        }
    }

    /// Deletes a hook's object. Its outcome stays what running the hook made it.
    async fn delete_hook(&mut self, hook: &PlannedHook, moment: &str) {
        let reference = &hook.target.reference;
        if let Err(message) = self.delete(reference, true).await {
            let message = format!("the hook was not deleted {moment}: {message}");
            self.error(Some(reference.clone()), message);
        }
    }
}

/// Whether a hook that exists is to be created anew.
fn is_replaced(hook: &PlannedHook) -> bool {
    hook.hook.delete.contains(&DeletePolicy::BeforeCreation) && hook.target.live.is_some()
}

fn shown(selector: &ObjectSelector) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".to_owned());
    let namespace = selector.namespace.as_ref().map(|name| format!("{name}/")).unwrap_or_default();
    format!("{namespace}{}.{}/{}", part(&selector.kind), part(&selector.group), selector.name)
}
