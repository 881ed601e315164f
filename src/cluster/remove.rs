//! Deleting an object and waiting until it is gone.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{Answer, ApiKind, ApiOutcome, Cluster, DeleteMode, ObjectEvent, WriteMode};
use crate::{
    object::ObjectRef,
    observer::{EngineEvent, Observer},
};

const POLL: Duration = Duration::from_millis(300);
/// How often at least it is told what is waited for.
const REPORT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Deletes an object and waits until it is gone, for `limit` at most. The outcome is [`ApiOutcome::Done`] or
    /// [`ApiOutcome::NotFound`] when it is gone, [`ApiOutcome::Timeout`] with what holds it when the deletion was accepted
    /// and the object is still there, and what came of the request otherwise. In a dry run nothing is waited for. With a
    /// `limit` of zero the object is looked at once. `observer` hears what holds an object that is waited for.
    pub async fn remove(
        &self,
        kind: &ApiKind,
        reference: &ObjectRef,
        mode: DeleteMode<'_>,
        limit: Duration,
        observer: &dyn Observer,
    ) -> Answer {
        let namespace = reference.namespace.as_deref();
        let mut answer = self.delete(kind, namespace, &reference.name, mode).await;
        let ApiOutcome::Done(body) = &answer.outcome else { return answer };
        // A `Status` says that nothing is left; an object may still be there, or be shown for the last time.
        if mode.write == WriteMode::DryRun || body["kind"] == "Status" {
            return answer;
        }
        let uid = body["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let deadline = Instant::now() + limit;
        let mut gone =
            Gone { cluster: self, kind, reference, uid: &uid, holding: String::new(), told: None };
        if gone.look().await == Look::Gone {
            return answer;
        }
        let is_there = limit.is_zero() || timeout_at(deadline, gone.wait(observer)).await.is_err();
        if gone.told.is_some() {
            observer.event(EngineEvent::WaitEnded { object: reference.clone() });
        }
        if is_there {
            let holding = &gone.holding;
            let message = match limit.as_secs() {
                0 => format!("the deletion was accepted and is not complete yet: {holding}"),
                limit => format!(
                    "the deletion was accepted, but the object is still there after {limit} s: {holding}"
                ),
            };
            answer.outcome = ApiOutcome::Timeout(message);
        }
        answer
    }
}

struct Gone<'a> {
    cluster: &'a Cluster,
    kind: &'a ApiKind,
    reference: &'a ObjectRef,
    uid: &'a str,
    /// What keeps the object, as far as it tells.
    holding: String,
    /// When the observer heard of it last, and what.
    told: Option<(Instant, String)>,
}

impl Gone<'_> {
    /// Returns when the object is gone.
    async fn wait(&mut self, observer: &dyn Observer) {
        let namespace = self.reference.namespace.as_deref();
        loop {
            let Look::There { version } = self.look().await else { return };
            let is_old =
                |(at, what): &(Instant, String)| *what != self.holding || at.elapsed() >= REPORT;
            if self.told.as_ref().is_none_or(is_old) {
                self.told = Some((Instant::now(), self.holding.clone()));
                let reason = format!("its deletion is not complete yet: {}", self.holding);
                observer.event(EngineEvent::Waiting { object: self.reference.clone(), reason });
            }
            let watch =
                self.cluster.watch(self.kind, namespace, &self.reference.name, &version).await;
            if let Some(mut watch) = watch {
                let until = Instant::now() + REPORT;
                while let Ok(Some(event)) = timeout_at(until, watch.next()).await {
                    if matches!(event, ObjectEvent::Gone) {
                        return;
                    }
                }
            }
            sleep(POLL).await;
        }
    }

    /// Looks once. Another object of the same name does not count.
    async fn look(&mut self) -> Look {
        let namespace = self.reference.namespace.as_deref();
        let outcome = self.cluster.get(self.kind, namespace, &self.reference.name).await.outcome;
        match &outcome {
            ApiOutcome::Done(object) if object["metadata"]["uid"] == self.uid => {
                self.holding = holding(object);
                let version = object["metadata"]["resourceVersion"].as_str();
                return Look::There { version: version.unwrap_or_default().to_owned() };
            }
            ApiOutcome::Done(_) => return Look::Gone,
            outcome if outcome.is_absent() => return Look::Gone,
            _ => {}
        }
        outcome.message().unwrap_or_default().clone_into(&mut self.holding);
        Look::There { version: String::new() }
    }
}

#[derive(PartialEq)]
enum Look {
    There { version: String },
    Gone,
}

/// Which finalizers hold an object, or what a namespace says about its content.
fn holding(object: &serde_json::Value) -> String {
    let list = |value: &serde_json::Value| {
        let names = value.as_array().into_iter().flatten().filter_map(|name| name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let finalizers = list(&object["metadata"]["finalizers"]);
    if !finalizers.is_empty() {
        return format!("held by finalizers {finalizers}");
    }
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut remaining = conditions.filter(|condition| {
        condition["status"] == "True"
            && condition["type"].as_str().is_some_and(|kind| kind.starts_with("Namespace"))
    });
    match remaining.next().and_then(|condition| condition["message"].as_str()) {
        Some(message) => message.to_owned(),
        None => "it is terminating".to_owned(),
    }
}
