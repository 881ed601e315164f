//! What the status records of where objects were deployed to: all that pruning and deleting need when the spec or the project
//! says something else by now. It is written before the first object is applied, so a controller that is killed loses nothing.

use std::collections::BTreeSet;

use super::outcome::Facts;
use crate::{
    api::{
        CommandStatus, Footprint, FormerTarget, KluctlDeploymentStatus, MAX_FOOTPRINT,
        MAX_FORMER_TARGETS,
    },
    cluster,
    yaml::{self, Schema},
};

/// Notes what tells the objects that are about to be deployed from others, and where they go. What was deployed before with
/// another discriminator, or to another cluster, becomes a former target. Returns what to tell of targets that are forgotten
/// because there are too many.
pub(crate) fn record_target(status: &mut KluctlDeploymentStatus, facts: &Facts) -> Vec<String> {
    let next = FormerTarget {
        discriminator: given(facts.discriminator.as_ref()),
        cluster_id: facts.cluster_id().map(str::to_owned),
        footprint: facts.footprint.clone(),
        ..FormerTarget::default()
    };
    let mut footprint = next.footprint.clone();
    if let Some(last) = recorded(status) {
        if is_succeeded_by(&last, &next) {
            footprint = union(&footprint, &last.footprint);
        } else {
            status.former_targets.push(last);
            // What was deployed there is no record of what is here, should this controller be killed before it is.
            if let Some(result) = &mut status.last_deploy_result {
                result.objects_hash = None;
            }
        }
    }
    // Back where it was before: what is there is the present target's again.
    status.former_targets.retain(|former| {
        let is_back = is_succeeded_by(former, &next);
        if is_back {
            footprint = union(&footprint, &former.footprint);
        }
        !is_back
    });
    let surplus = status.former_targets.len().saturating_sub(MAX_FORMER_TARGETS);
    let forgotten = status.former_targets.drain(..surplus);
    let forgotten = forgotten.map(|former| left_behind(&former));
    let forgotten = forgotten.collect();
    status.footprint = footprint;
    status.raw_target = Some(raw_target(facts));
    status.discriminator = next.discriminator;
    status.cluster_id = next.cluster_id;
    status.common_labels.clear();
    forgotten
}

/// What the status records of the last deployment; `None` when nothing was deployed.
pub(crate) fn recorded(status: &KluctlDeploymentStatus) -> Option<FormerTarget> {
    let discriminator = given(status.discriminator.as_ref());
    let is_deployed = status.last_deploy_result.as_ref().is_some_and(|last| !last.dry_run);
    // The cluster is recorded right before the first object is applied.
    if discriminator.is_none() && status.cluster_id.is_none() && !is_deployed {
        return None;
    }
    Some(FormerTarget {
        discriminator,
        cluster_id: status.cluster_id.clone(),
        context: recorded_context(status),
        objects: status.last_deploy_result.as_ref().and_then(objects_of),
        footprint: status.footprint.clone(),
        pruning: false,
        message: String::new(),
    })
}

fn objects_of(last: &CommandStatus) -> Option<i64> {
    (!last.dry_run && last.applied_objects > 0).then_some(last.applied_objects)
}

/// Whether deploying `next` takes over what `last` deployed, so that nothing is left behind by the change itself. Objects
/// without a discriminator get the new one.
fn is_succeeded_by(last: &FormerTarget, next: &FormerTarget) -> bool {
    is_same_cluster(last.cluster_id.as_deref(), next.cluster_id.as_deref())
        && (last.discriminator.is_none() || last.discriminator == next.discriminator)
}

/// Whether two records mean the same cluster. One that does not name its cluster is believed to.
pub(crate) fn is_same_cluster(one: Option<&str>, other: Option<&str>) -> bool {
    let named = |id: Option<&str>| id.filter(|id| !id.is_empty()).map(str::to_owned);
    match (named(one), named(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// What may be done about the objects of a former target after a deployment to the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// What is not part of the present deployment is pruned.
    Prune,
    /// They are counted and stay, as the spec wants it.
    Count,
    /// They cannot be reached, or not be told from others; this says so.
    OutOfReach(String),
    /// Somebody else manages them by now; this says who.
    TakenOver(String),
}

/// Decides about a former target. `rivals` are the other claimants of its discriminator on the present cluster.
pub(crate) fn fate(
    former: &FormerTarget,
    cluster_id: Option<&str>,
    prunes: bool,
    rivals: &[String],
) -> Fate {
    let Some(discriminator) = &former.discriminator else {
        return Fate::OutOfReach(left_behind(former));
    };
    if !is_same_cluster(former.cluster_id.as_deref(), cluster_id) {
        return Fate::OutOfReach(left_behind(former));
    }
    if !rivals.is_empty() {
        return Fate::TakenOver(format!(
            "objects of the former discriminator {discriminator:?} are left to {}",
            rivals.join(", ")
        ));
    }
    if prunes { Fate::Prune } else { Fate::Count }
}

/// What to tell about objects of a former target that are out of reach.
pub(crate) fn left_behind(former: &FormerTarget) -> String {
    let objects = match former.objects {
        Some(1) => "1 object".to_owned(),
        Some(count) => format!("{count} objects"),
        None => "all objects".to_owned(),
    };
    let mut place = match given(former.cluster_id.as_ref()) {
        Some(cluster) => format!("on cluster {cluster}"),
        None => "on another cluster".to_owned(),
    };
    if let Some(context) = &former.context {
        place = format!("{place} (context {context})");
    }
    match &former.discriminator {
        Some(discriminator) => format!(
            "left behind {place}, where nothing is deployed any more: {objects} with discriminator {discriminator:?}; delete \
             there what carries the label kluctl.io/discriminator={discriminator}"
        ),
        None => format!(
            "left behind {place}, where nothing is deployed any more: {objects} without a discriminator; nothing tells them \
             from other objects, so they have to be removed by hand"
        ),
    }
}

/// What to tell about objects that stay because the spec does not prune. `None` when there are none.
pub(crate) fn unpruned(discriminator: &str, count: usize, is_partial: bool) -> Option<String> {
    let count = match (count, is_partial) {
        (0, false) => return None,
        (0, true) => "perhaps some objects".to_owned(),
        (1, _) => "1 object".to_owned(),
        (count, _) => format!("{count} objects"),
    };
    Some(format!(
        "{count} of the former discriminator {discriminator:?} stay behind: set spec.prune to true to have them deleted, or \
         delete what carries the label kluctl.io/discriminator={discriminator}"
    ))
}

/// What to tell about objects of a former target that pruning could not, or may not, delete.
pub(crate) fn surviving(discriminator: &str, why: &str) -> String {
    format!("objects of the former discriminator {discriminator:?} are still there: {why}")
}

/// The union of two footprints, within the bounds of a status.
pub(crate) fn union(one: &Footprint, other: &Footprint) -> Footprint {
    let merge = |one: &[String], other: &[String]| {
        let all: BTreeSet<_> = one.iter().chain(other).cloned().collect();
        all.into_iter().take(MAX_FOOTPRINT).collect()
    };
    Footprint {
        namespaces: merge(&one.namespaces, &other.namespaces),
        kinds: merge(&one.kinds, &other.kinds),
    }
}

/// What the engine found as what the status keeps.
pub(crate) fn kept(footprint: cluster::Footprint) -> Footprint {
    let found = Footprint { namespaces: footprint.namespaces, kinds: footprint.kinds };
    union(&found, &Footprint::default())
}

/// Where to search for a target's objects. `own` is the deployment's namespace, which counts in any case.
pub(crate) fn searched(footprint: &Footprint, own: &str) -> cluster::Footprint {
    let mut namespaces: BTreeSet<_> = footprint.namespaces.iter().cloned().collect();
    namespaces.insert(own.to_owned());
    cluster::Footprint {
        namespaces: namespaces.into_iter().collect(),
        kinds: footprint.kinds.clone(),
        is_partial: footprint.namespaces.len() >= MAX_FOOTPRINT
            || footprint.kinds.len() >= MAX_FOOTPRINT,
    }
}

/// The context of the last deployment, as the status records it (the Go controllers write the same field).
pub(crate) fn recorded_context(status: &KluctlDeploymentStatus) -> Option<String> {
    let text = status.raw_target.as_ref()?;
    let document =
        yaml::parse_document("status.rawTarget", text.as_bytes(), Schema::Config).ok()?;
    document.value["context"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The parts of the target that are safe to show: args may hold what came from Secrets.
pub(crate) fn raw_target(facts: &Facts) -> String {
    let parts = [
        ("name", &facts.target),
        ("context", &facts.context),
        ("discriminator", &facts.discriminator),
    ];
    let target = parts
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), serde_json::Value::from(value.clone()?))))
        .collect();
    let target = serde_json::Value::Object(target);
    yaml::emit(&target)
}

fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}
