//! Telling objects of the other API group that they share their target.

use std::collections::BTreeMap;

use super::{
    lookup::{self, Found},
    notify::{Notice, Subject},
    ownership::{Claimant, GITOPS_GROUP},
    pass::Pass,
    summarize::{Event, Severity, Token},
};
use crate::{
    api::{KIND, reason},
    cluster::{Cluster, Discovery},
    object::ObjectRef,
};

/// Writes a Warning Event about each object of the other API group that is a rival now and was none when the pass began: its
/// own controller knows nothing of claims. What cannot be told is only logged.
pub(super) async fn tell(pass: &Pass, rivals: &[Claimant]) {
    let is_known = |rival: &Claimant| pass.status.rivals.contains(&rival.to_string());
    let news = rivals.iter().filter(|rival| rival.group == GITOPS_GROUP && !is_known(rival));
    for rival in news {
        match subject(&pass.context.own, rival).await {
            Ok(subject) => pass.context.notifier.notify_kubernetes(&Notice {
                subject,
                event: event(pass),
                at: super::now(),
                revision: None,
                origin_revision: None,
                reconcile_id: pass.id.clone(),
            }),
            Err(why) => tracing::warn!(%rival, "a rival was not told of the conflict: {why}"),
        }
    }
}

async fn subject(cluster: &Cluster, rival: &Claimant) -> Result<Subject, String> {
    let choose = |kinds: &Discovery| kinds.preferred(GITOPS_GROUP, KIND).cloned();
    let found = lookup::find(cluster, choose, &rival.name.namespace, &rival.name.name).await;
    let why = match found {
        Ok(Found::Object(object)) => {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let api_version = object["apiVersion"].as_str().unwrap_or_default();
            return Ok(Subject {
                object: ObjectRef::new(api_version, KIND, Some(text("namespace")), text("name")),
                uid: text("uid").to_owned(),
                resource_version: text("resourceVersion").to_owned(),
                annotations: BTreeMap::new(),
            });
        }
        Ok(Found::NoKind) => None,
        Ok(Found::Refused(_, outcome)) | Err(outcome) => outcome.message().map(str::to_owned),
    };
    Err(why.unwrap_or_else(|| "it is gone".to_owned()))
}

fn event(pass: &Pass) -> Event {
    let me = Claimant::ours(&pass.key);
    let discriminator = pass.status.claim.as_ref().map(|claim| claim.discriminator.as_str());
    let message = format!(
        "discriminator {:?} on the same cluster is also claimed by {me}, which is refused as long as this object deploys there",
        discriminator.unwrap_or_default()
    );
    Event {
        severity: Severity::Error,
        reason: reason::OWNERSHIP_CONFLICT,
        message,
        finishes: false,
        token: Token::Always,
    }
}
