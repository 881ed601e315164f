//! Replaces images in live objects, and nothing else.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    DiffOptions,
    changes::changes_of,
    deploy::finished,
    session::{Session, references, remarks, unreadable},
};
use crate::{
    cluster::{ApiOutcome, Clock, Discovery, LiveKey, ObserveRequest, WriteMode},
    deployment::{DesiredState, FixedImageUse},
    diff::obfuscate_result,
    object::{Object, ObjectRef},
    observer::{EngineEvent, Stage},
    results::{
        AppliedObject, Collected, CommandResult, DeploymentError, ObjectOutcome, Operation,
        OutcomeState, collect,
    },
};

/// Objects that are changed at the same time.
const PARALLEL: usize = 8;
/// How often an object that others change meanwhile is read and changed again.
const ATTEMPTS: usize = 5;
/// Where the containers of workloads are: of pod templates, of `CronJobs`, of Pods.
const POD_SPECS: [&str; 3] =
    ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"];

/// Puts the images that `images.get_image` resolved to into the containers of the live objects, and changes nothing else.
/// Objects that are not there are warnings. Always returns a result; secrets are masked.
pub async fn poke_images(
    session: &Session<'_>,
    desired: &DesiredState,
    dry_run: bool,
) -> CommandResult {
    let work = async |cancel: CancellationToken| execute(session, desired, dry_run, &cancel).await;
    finished(session, session.limited(work).await)
}

/// What is to be changed in one object.
struct Poke<'a> {
    reference: ObjectRef,
    live: Arc<Object>,
    images: Vec<&'a FixedImageUse>,
}

async fn execute(
    session: &Session<'_>,
    desired: &DesiredState,
    dry_run: bool,
    cancel: &CancellationToken,
) -> CommandResult {
    let clock = Clock::starting_at(session.info.started);
    let discriminator = desired.discriminator.as_deref().filter(|text| !text.is_empty());
    let mut result = session
        .command_result("poke-images", &desired.inclusion, discriminator, &clock, cancel)
        .await;
    result.command.dry_run = dry_run;
    result.rendered_objects_hash.clone_from(&desired.objects_hash);
    result.seen_images = desired.images.iter().map(Into::into).collect();
    let wanted = references(session.cluster, desired).await;
    let request = ObserveRequest { references: &wanted, ..ObserveRequest::default() };
    let live = session.observe(&request, cancel).await;
    let (live, kinds) = match (live, session.cluster.kinds().await) {
        (Ok(live), Ok(kinds)) => (live, kinds),
        (Err(outcome), _) | (_, Err(outcome)) => {
            result.errors.push(unreadable(&outcome));
            result.interrupted = cancel.is_cancelled();
            result.finish(clock.now());
            return result;
        }
    };
    result.errors.extend(remarks(&live.errors));
    result.warnings.extend(remarks(&live.warnings));
    let mut pokes = Vec::new();
    for (reference, images) in images_by_object(desired, &kinds) {
        match live.get(&reference) {
            Some(live) => pokes.push(Poke { reference, live: live.clone(), images }),
            None => result.warnings.push(DeploymentError::new(
                Some(reference),
                "is not in the cluster, so its images are not replaced",
            )),
        }
    }
    let mut applied = Vec::new();
    for (reference, poked) in poke_all(session, pokes, &kinds, dry_run, cancel).await {
        let state = match poked {
            Ok(object) => {
                session.observer.event(EngineEvent::ObjectApplied { object: reference.clone() });
                applied.push(AppliedObject { object, hook: false, new: false });
                OutcomeState::Done
            }
            Err(message) => {
                result.errors.push(DeploymentError::new(Some(reference.clone()), message.clone()));
                OutcomeState::Failed { message }
            }
        };
        result.outcomes.push(ObjectOutcome { reference, operation: Operation::Apply, state });
    }
    let compared = changes_of(desired, &live, &applied, DiffOptions::default());
    result.errors.extend(compared.errors);
    result.objects = collect(Collected {
        rendered: desired.objects().collect(),
        live: Some(&live),
        applied,
        changes: compared.changes,
        ..Collected::default()
    });
    result.interrupted = cancel.is_cancelled();
    if !session.info.show_secrets {
        obfuscate_result(&mut result);
    }
    result.finish(clock.now());
    result
}

/// The images of each object that has any, by object.
fn images_by_object<'a>(
    desired: &'a DesiredState,
    kinds: &Discovery,
) -> Vec<(ObjectRef, Vec<&'a FixedImageUse>)> {
    let mut found: BTreeMap<LiveKey, (ObjectRef, Vec<&FixedImageUse>)> = BTreeMap::new();
    for image in &desired.images {
        let reference = kinds.complete(image.object.clone());
        let entry = found.entry(LiveKey::from(&reference));
        entry.or_insert_with(|| (reference, Vec::new())).1.push(image);
    }
    found.into_values().collect()
}

/// Changes all objects, and tells of each what came of it.
async fn poke_all(
    session: &Session<'_>,
    pokes: Vec<Poke<'_>>,
    kinds: &Discovery,
    dry_run: bool,
    cancel: &CancellationToken,
) -> Vec<(ObjectRef, Result<Arc<Object>, String>)> {
    let work = pokes.into_iter().map(|poke| async move {
        let poked = tokio::select! {
            biased;
            () = cancel.cancelled() => Err("interrupted; it may have been changed".to_owned()),
            poked = poke_one(session, &poke, kinds, dry_run) => poked,
        };
        (poke.reference, poked)
    });
    // Collected before they are streamed: a closure over borrowed items in a stream hides that the future is `Send`.
    let work: Vec<_> = work.collect();
    let never = CancellationToken::new();
    let poked = stream::iter(work).buffered(PARALLEL).collect();
    session.stage(Stage::Apply, &never, poked).await.unwrap_or_default()
}

async fn poke_one(
    session: &Session<'_>,
    poke: &Poke<'_>,
    kinds: &Discovery,
    dry_run: bool,
) -> Result<Arc<Object>, String> {
    let reference = &poke.reference;
    let kind = kinds.of_reference(reference).ok_or("the cluster does not serve this kind")?;
    let mode = if dry_run { WriteMode::DryRun } else { WriteMode::Real };
    let mut live = poke.live.clone();
    for _ in 0..ATTEMPTS {
        let Some(changed) = with_images(&live, &poke.images) else { return Ok(live) };
        let outcome = session.cluster.replace(kind, &changed, mode).await.outcome;
        let outdated = match outcome {
            ApiOutcome::Done(value) => return as_object(value),
            ApiOutcome::Outdated(message) => message,
            outcome => return Err(outcome.message().unwrap_or_default().to_owned()),
        };
        let namespace = reference.namespace.as_deref();
        live = match session.cluster.get(kind, namespace, &reference.name).await.outcome {
            ApiOutcome::Done(value) => as_object(value)?,
            outcome => return Err(outcome.message().unwrap_or(&outdated).to_owned()),
        };
    }
    Err(format!("others changed it {ATTEMPTS} times while its images were to be replaced"))
}

fn as_object(value: Value) -> Result<Arc<Object>, String> {
    Object::new(value).map(Arc::new).map_err(|error| error.to_string())
}

/// The object with the images in the containers that they are for; `None` when they are there already.
fn with_images(live: &Object, images: &[&FixedImageUse]) -> Option<Value> {
    let mut tree = live.value().clone();
    let mut is_changed = false;
    for path in POD_SPECS {
        for list in ["containers", "initContainers"] {
            let containers = tree.pointer_mut(&format!("{path}/{list}"));
            for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
                let name = container["name"].as_str().unwrap_or_default();
                let image = images.iter().find(|image| image.container == name);
                let Some(image) = image else { continue };
                if container["image"] != image.result_image.as_str() {
                    container["image"] = image.result_image.as_str().into();
                    is_changed = true;
                }
            }
        }
    }
    is_changed.then_some(tree)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(container: &str, result: &str) -> FixedImageUse {
        FixedImageUse {
            image: "asked".to_owned(),
            result_image: result.to_owned(),
            deployed_image: None,
            namespace: String::new(),
            object: ObjectRef::new("apps/v1", "Deployment", Some("ns"), "web"),
            deployment: "Deployment/web".to_owned(),
            container: container.to_owned(),
            deploy_tags: Vec::new(),
            deployment_dir: String::new(),
        }
    }

    fn object(kind: &str, spec: &Value) -> Object {
        Object::new(
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}),
        )
        .unwrap()
    }

    #[test]
    fn images_go_to_the_containers_of_their_names() {
        type Shape = fn(Value) -> Value;

        let pod = json!({
            "containers": [{"name": "main", "image": "old"}, {"name": "other", "image": "kept"}],
            "initContainers": [{"name": "main", "image": "old"}],
        });
        let expected = json!({
            "containers": [{"name": "main", "image": "new"}, {"name": "other", "image": "kept"}],
            "initContainers": [{"name": "main", "image": "new"}],
        });
        let shapes: [(&str, Shape); 3] = [
            ("Deployment", |pod| json!({"template": {"spec": pod}})),
            ("CronJob", |pod| json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}})),
            ("Pod", |pod| pod),
        ];
        let image = image("main", "new");
        for (kind, shape) in shapes {
            let changed = with_images(&object(kind, &shape(pod.clone())), &[&image]).unwrap();
            assert_eq!(changed["spec"], shape(expected.clone()), "{kind}");
        }
    }

    #[test]
    fn an_object_with_its_images_is_left_alone() {
        let pod = json!({"containers": [{"name": "main", "image": "new"}]});
        let object = object("Pod", &pod);
        assert!(with_images(&object, &[&image("main", "new")]).is_none());
        assert!(with_images(&object, &[&image("side", "x")]).is_none());
    }
}
