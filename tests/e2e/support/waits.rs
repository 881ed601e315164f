//! Waiting for what should happen soon, and telling what happened instead.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use kube::api::ListParams;
use serde_json::Value;

use super::{
    Case,
    case::{PATIENCE, is_at_work, is_unreachable},
    check_conditions,
    conditions::condition,
};

impl Case {
    /// Waits until a requested reconciliation has ended, whatever its outcome.
    pub(crate) async fn wait_handled(&self, name: &str, token: &str) -> Result<Value> {
        self.wait_deployment(name, "the handled request", |object| {
            object["status"]["lastHandledReconcileAt"] == token
                && condition(object, "Ready").is_some_and(|ready| ready["status"] != "Unknown")
        })
        .await
    }

    /// Polls until `done` says so.
    pub(crate) async fn wait_until<F>(&self, what: &str, mut done: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<bool>>,
    {
        let deadline = Instant::now() + PATIENCE;
        while !done().await? {
            if Instant::now() > deadline {
                bail!("never came to pass: {what}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Polls an object until it is as wanted; tells what it looked like when it never was.
    pub(crate) async fn wait_for(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.get(api_version, kind, name).await;
            // An API server that restarts refuses connections for a moment.
            let object = match found {
                Err(error) if is_unreachable(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
                found => found?.unwrap_or(Value::Null),
            };
            if wanted(&object) {
                return Ok(object);
            }
            if Instant::now() > deadline {
                bail!(
                    "{kind}/{name}: never saw {what}:\n{}",
                    serde_json::to_string_pretty(&object)?
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for a Kubernetes Event of the test's namespace with this reason whose message contains `text`.
    pub(crate) async fn wait_event(&self, reason: &str, text: &str) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        let events = self.api("v1", "Event", Some(&self.namespace));
        let fields = ListParams::default().fields(&format!("reason={reason}"));
        loop {
            let found = events.list(&fields).await?.items;
            let found = found.into_iter().map(serde_json::to_value);
            let found = found.collect::<serde_json::Result<Vec<_>>>()?;
            let is_it =
                |event: &&Value| event["message"].as_str().is_some_and(|m| m.contains(text));
            if let Some(event) = found.iter().find(is_it) {
                return Ok(event.clone());
            }
            if Instant::now() > deadline {
                bail!("no event {reason} with {text:?} among {found:#?}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until an object is gone.
    pub(crate) async fn wait_gone(&self, api_version: &str, kind: &str, name: &str) -> Result<()> {
        self.wait_for(api_version, kind, name, "its end", Value::is_null).await.map(|_| ())
    }

    /// Waits for a KluctlDeployment's settled state and checks the rules for conditions.
    pub(crate) async fn wait_deployment(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let settled = |object: &Value| wanted(object) && !is_at_work(object);
        let object = self
            .wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", name, what, settled)
            .await?;
        check_conditions(&object)?;
        Ok(object)
    }

    /// Waits until a KluctlDeployment is Ready=True for its current generation.
    pub(crate) async fn wait_ready(&self, name: &str) -> Result<Value> {
        self.wait_deployment(name, "Ready=True", |object| {
            condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    /// Waits until a KluctlDeployment is Ready=True with a revision that ends in `commit`.
    pub(crate) async fn wait_ready_at(&self, name: &str, commit: &str) -> Result<Value> {
        self.wait_deployment(name, "Ready=True at the commit", |object| {
            condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
                && object["status"]["lastAppliedRevision"]
                    .as_str()
                    .is_some_and(|r| r.ends_with(commit))
        })
        .await
    }

    /// Waits until Ready=False with this reason; returns the object.
    pub(crate) async fn wait_failed(&self, name: &str, reason: &str) -> Result<Value> {
        self.wait_deployment(name, &format!("Ready=False, {reason}"), |object| {
            condition(object, "Ready")
                .is_some_and(|ready| ready["status"] == "False" && ready["reason"] == reason)
        })
        .await
    }
}
