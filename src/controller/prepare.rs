//! From the inputs to the desired state, through the engine, and to the cluster that it is for.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{
    charts::{ChartCredentials, RemoteCharts},
    context::Context,
    fetch::Inputs,
    identity::identify,
    includes::Includes,
    observe::RunObserver,
    outcome::{Facts, Failure},
    readings::Readings,
};
use crate::{
    api::{DependentRepository, FixedImageObject, KluctlDeploymentSpec, reason},
    cluster::{Cluster, kubeconfig::Access},
    deployment::Inclusion,
    diagnostic::{Class, Describe},
    engine::{Charts, EngineError, Externals, HttpVars, PrepareRequest, Prepared, Source},
    object::ObjectRef,
    project::TargetRequest,
    schema::FixedImage,
    secret::SecretTexts,
    vars::{GitSource, HttpSource},
};

/// How many problems of a project are told at once.
const MOST_PROBLEMS: usize = 5;

/// A complete render, and where it goes. Only who has one may deploy or prune.
pub(crate) struct Rendered {
    /// The target's cluster, as the account that deploys.
    pub cluster: Cluster,
    /// The project, the target and the desired state.
    pub prepared: Prepared,
    /// Values of sensitive variables, which no message may hold.
    pub masked: SecretTexts,
}

/// Renders the target. `facts` learns what becomes known, also when something fails later.
///
/// # Errors
/// A [`Failure`] that names file, line and field. Nothing was changed anywhere.
pub(crate) async fn prepare(
    context: &Context,
    spec: &KluctlDeploymentSpec,
    inputs: Inputs,
    facts: &mut Facts,
    now: Timestamp,
    observer: &RunObserver,
    cancel: &CancellationToken,
) -> Result<Rendered, Failure> {
    let failed = |error: &dyn Describe| Failure::describe(reason::PREPARE_FAILED, error);
    let Inputs { deployment, tree, project_dir, credentials, contexts, account } = inputs;
    let request = PrepareRequest {
        source: Source { tree, project_dir, config_file: None },
        target: target_request(spec)?,
        inclusion: inclusion(spec),
        jinja: context.engine.template_options(now),
    };
    let mut resolved = context
        .engine
        .resolve_target(&request, cancel)
        .await
        .map_err(|error| project_failure(&error))?;

    let access = contexts.select(resolved.target.context.as_deref()).map_err(|e| failed(&e))?;
    let chosen = resolved.target.context.clone().unwrap_or_else(|| contexts.current().to_owned());
    resolved.target.context = Some(chosen.clone());
    let name = &resolved.target.name;
    facts.target = Some(name.clone()).filter(|name| !name.is_empty());
    facts.context = Some(chosen);
    let cluster = context.clusters.get(&access, account.as_ref()).await.map_err(|e| failed(&e))?;
    facts.cluster = Some(identify(context, &cluster, &access, account.as_ref()).await?);

    let includes = Includes::new(
        context.own.clone(),
        context.repositories.clone(),
        credentials,
        cancel.clone(),
    );
    let refused = |diagnostic| Failure::from_diagnostic(reason::PREPARE_FAILED, &diagnostic);
    let options = &context.options;
    let (proxies, reach) = (&options.proxies, options.http_vars_reach);
    let http = HttpVars::new(proxies.clone(), reach, cancel.clone()).map_err(refused)?;
    let downloads: Option<Arc<dyn HttpSource>> = if options.no_remote_bases {
        None
    } else {
        let downloads = HttpVars::following(proxies.clone(), reach, cancel.clone());
        Some(Arc::new(downloads.map_err(refused)?))
    };
    let git: Arc<dyn GitSource> = Arc::new(includes);
    let charts = RemoteCharts {
        cluster: context.own.clone(),
        credentials: ChartCredentials::of(&deployment.namespace, spec),
        cache_dir: options.cache_dir.join("helm"),
        proxies: options.proxies.clone(),
        reach,
        git: git.clone(),
        now,
        cancel: cancel.clone(),
        charts: OnceCell::new(),
    };
    let (renderer, source) = (context.charts.clone(), Some(Arc::new(charts) as _));
    let externals = Externals {
        git: Some(git),
        http: Some(Arc::new(http)),
        helm: Some(Charts { renderer, source, kube_version: None }),
        downloads,
        masked: observer.masked().clone(),
        ..Externals::default()
    };
    let masked = observer.masked().clone();
    let mut externals = externals.with_cluster(&cluster).await.map_err(refused)?;
    // Only the Secrets of the controller's own cluster are watched.
    let reader = externals.cluster.clone().filter(|_| matches!(access, Access::Own));
    let readings =
        reader.map(|reader| Arc::new(Readings::new(reader, context.state.clone(), deployment)));
    if let Some(readings) = &readings {
        externals.cluster = Some(readings.clone());
    }
    let engine = &context.engine;
    let prepared = engine.prepare_target(&request, resolved, &externals, observer, cancel).await;
    if let (Ok(_), Some(readings)) = (&prepared, &readings) {
        readings.settle();
    }
    let prepared = prepared.map_err(|error| {
        let failure = project_failure(&error);
        Failure { message: masked.mask(&failure.message), ..failure }
    })?;

    let desired = &prepared.desired;
    facts.discriminator = desired.discriminator.clone().filter(|text| !text.is_empty());
    facts.objects_hash = Some(desired.objects_hash.clone());
    facts.warnings = desired.warnings.iter().map(|warning| masked.mask(warning)).collect();
    facts.repositories = prepared
        .git_repositories
        .iter()
        .map(|repository| DependentRepository {
            url: repository.url.clone(),
            reference: repository.reference.as_ref().map(ToString::to_string),
            commit: repository.commit.clone(),
        })
        .collect();
    if spec.prune && facts.discriminator.is_none() {
        let message = "spec.prune: pruning without a discriminator is refused, as nothing would tell this deployment's \
                       objects from others; set `discriminator` in .kluctl.yaml, or prune to false";
        return Err(Failure::retry(reason::PREPARE_FAILED, message));
    }
    Ok(Rendered { cluster, prepared, masked })
}

/// The part of the project that the spec asks for.
pub(crate) fn inclusion(spec: &KluctlDeploymentSpec) -> Inclusion {
    Inclusion {
        include_tags: spec.include_tags.clone(),
        exclude_tags: spec.exclude_tags.clone(),
        include_dirs: spec.include_deployment_dirs.clone(),
        exclude_dirs: spec.exclude_deployment_dirs.clone(),
    }
}

fn target_request(spec: &KluctlDeploymentSpec) -> Result<TargetRequest, Failure> {
    Ok(TargetRequest {
        name: spec.target.clone(),
        name_override: spec.target_name_override.clone(),
        args: Value::Object(spec.args.clone()),
        discriminator: None,
        images: spec
            .images
            .iter()
            .enumerate()
            .map(|(index, image)| fixed_image(index, image))
            .collect::<Result<_, _>>()?,
        context: spec.context.clone(),
    })
}

/// A fixed image in the engine's terms. Fields that were deprecated long ago are dropped, as the Go controllers do.
fn fixed_image(index: usize, image: &crate::api::FixedImage) -> Result<FixedImage, Failure> {
    let object = image.object.as_ref().map(|object| object_reference(index, object)).transpose()?;
    Ok(FixedImage {
        image: Some(image.image.clone()),
        image_regex: None,
        result_image: image.result_image.clone(),
        deployed_image: image.deployed_image.clone(),
        namespace: image.namespace.clone(),
        object,
        deployment: image.deployment.clone(),
        container: image.container.clone(),
        deploy_tags: image.deploy_tags.clone(),
        deployment_dir: image.deployment_dir.clone(),
    })
}

fn object_reference(index: usize, object: &FixedImageObject) -> Result<ObjectRef, Failure> {
    if let Some(id) = &object.id {
        // Releases before v0.4.0: names and kinds have no underscores.
        let parts: Vec<&str> = id.split('_').collect();
        let (name, group, kind, namespace) = match parts[..] {
            [name, group, kind] => (name, group, kind, None),
            [name, group, kind, namespace] => (name, group, kind, Some(namespace.to_owned())),
            _ => {
                let message = format!(
                    "spec.images[{index}].object.id: {id:?} is not <name>_<group>_<kind> or <name>_<group>_<kind>_<namespace>"
                );
                return Err(Failure::stalled(reason::INVALID_SPEC, message));
            }
        };
        return Ok(ObjectRef {
            group: group.to_owned(),
            version: object.v.clone().unwrap_or_default(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace,
        });
    }
    Ok(ObjectRef {
        group: object.group.clone().unwrap_or_default(),
        version: object.version.clone().unwrap_or_default(),
        kind: object.kind.clone().unwrap_or_default(),
        name: object.name.clone().unwrap_or_default(),
        namespace: object.namespace.clone().filter(|namespace| !namespace.is_empty()),
    })
}

/// The problems of a project, the first few of them in full.
fn project_failure(error: &EngineError) -> Failure {
    let problems = error.diagnostics();
    let Some(first) = problems.first() else {
        return Failure::retry(reason::PREPARE_FAILED, error.to_string());
    };
    let failure = Failure::from_diagnostic(reason::PREPARE_FAILED, first);
    // A spec problem that the project shows is one of the two together; either may change.
    let failure = match first.class {
        Class::Spec => Failure::retry(reason::PREPARE_FAILED, failure.message),
        _ => failure,
    };
    let mut lines: Vec<String> =
        problems.iter().take(MOST_PROBLEMS).map(ToString::to_string).collect();
    if problems.len() > MOST_PROBLEMS {
        lines.push(format!("and {} more problems", problems.len() - MOST_PROBLEMS));
    }
    Failure { message: lines.join("\n"), ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_images_of_all_releases_are_understood() {
        let old = FixedImageObject {
            id: Some("web_apps_Deployment_shop".into()),
            v: Some("v1".into()),
            ..FixedImageObject::default()
        };
        let new = FixedImageObject {
            group: Some("apps".into()),
            version: Some("v1".into()),
            kind: Some("Deployment".into()),
            name: Some("web".into()),
            namespace: Some("shop".into()),
            ..FixedImageObject::default()
        };
        let expected = ObjectRef::new("apps/v1", "Deployment", Some("shop"), "web");
        assert_eq!(object_reference(0, &old), Ok(expected.clone()));
        assert_eq!(object_reference(0, &new), Ok(expected));
        let core = FixedImageObject { id: Some("web__Pod".into()), ..FixedImageObject::default() };
        assert_eq!(object_reference(0, &core).unwrap().to_string(), "Pod/web");
        let bad = FixedImageObject { id: Some("web".into()), ..FixedImageObject::default() };
        let failure = object_reference(3, &bad).unwrap_err();
        assert!(failure.message.starts_with("spec.images[3].object.id"), "{}", failure.message);
    }
}
