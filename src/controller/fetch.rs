//! Everything that a KluctlDeployment refers to, read before anything is rendered: the source object and its artifact (or a
//! clone), dependencies, the kubeconfig. The result is a value; the stages after it look nothing up but the target cluster.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    context::Context,
    dependencies::{DependencyState, OwnSource, assess},
    includes::GitCredentials,
    lookup::{self, Found},
    outcome::{Facts, Failure, Outlook},
    secrets,
    triggers::SourceKey,
};
use crate::{
    api::{
        self, Artifact, Dependency, FluxSource, KluctlDeploymentSpec, NamespacedName, SOURCE_GROUP,
        SourceReference, reason,
    },
    artifact::{self, FetchOptions},
    cluster::{
        ApiOutcome, Discovery,
        connect::ServiceAccount,
        kubeconfig::{Contexts, Rename, secret_key},
    },
    diagnostic::Describe,
    git,
    net::RetryPolicy,
    secret::redact_text,
    tree::{SourceTree, join},
};

/// What is deployed, as whom, and where to choose the cluster from.
pub(crate) struct Inputs {
    /// The deployment.
    pub deployment: NamespacedName,
    /// Files of the source.
    pub tree: Arc<dyn SourceTree>,
    /// Directory of the project in them.
    pub project_dir: String,
    /// Credentials for included repositories.
    pub credentials: GitCredentials,
    /// Contexts that the target may name.
    pub contexts: Contexts,
    /// Account to act as.
    pub account: Option<ServiceAccount>,
}

/// Reads what `spec` refers to. `facts` learns the revision as soon as it is known, also when something fails later.
/// A download ends at `deadline`; for the rest the caller sees to it.
///
/// # Errors
/// A [`Failure`] that says what happens next. Nothing was changed anywhere.
pub(crate) async fn fetch(
    context: &Context,
    key: &NamespacedName,
    spec: &KluctlDeploymentSpec,
    facts: &mut Facts,
    deadline: Instant,
    cancel: &CancellationToken,
) -> Result<Inputs, Failure> {
    refuse_unsupported(spec)?;
    check_cycle(context, key)?;
    let (tree, path, credentials) = match (&spec.source_ref, &spec.source) {
        (Some(reference), _) => {
            let (source, artifact) = read_source(context, key, spec, reference).await?;
            facts.revision = Some(artifact.revision.clone());
            facts.digest = artifact.digest();
            facts.origin_revision = artifact.origin_revision().map(str::to_owned);
            let own = source_key(key, reference);
            let own = OwnSource { key: &own, revision: &artifact.revision };
            check_dependencies(context, key, spec, Some(own)).await?;
            let tree = download(context, deadline, &artifact, cancel).await?;
            let credentials = GitCredentials::of_source(key, spec, reference, &source);
            (tree as Arc<dyn SourceTree>, spec.path.as_deref(), credentials)
        }
        (None, Some(source)) => {
            check_dependencies(context, key, spec, None).await?;
            let credentials = GitCredentials::of_clone(key, spec, source);
            let checkout = clone(context, source, &credentials, cancel).await?;
            facts.revision = Some(checkout.resolved.revision());
            facts.digest = Some(format!("sha1:{}", checkout.resolved.commit));
            (checkout.tree, source.path.as_deref(), credentials)
        }
        (None, None) => {
            let message = "spec: exactly one of sourceRef and source is needed";
            return Err(Failure::stalled(reason::INVALID_SPEC, message));
        }
    };
    let project_dir = project_dir(&*tree, path)?;
    let contexts = read_contexts(context, key, spec).await?;
    let account = account(context, key, spec);
    let deployment = key.clone();
    Ok(Inputs { deployment, tree, project_dir, credentials, contexts, account })
}

/// What the schema accepts and this release does not do.
fn refuse_unsupported(spec: &KluctlDeploymentSpec) -> Result<(), Failure> {
    let used = [
        (spec.decryption.is_some(), "spec.decryption (SOPS)"),
        (spec.deploy_mode == api::DeployMode::PokeImages, "spec.deployMode: poke-images"),
    ];
    match used.iter().find(|(is_used, _)| *is_used) {
        Some((_, field)) => {
            let message = format!("{field} is not supported by this release; remove it to deploy");
            Err(Failure::stalled(reason::UNSUPPORTED_FEATURE, message))
        }
        None => Ok(()),
    }
}

fn check_cycle(context: &Context, key: &NamespacedName) -> Result<(), Failure> {
    let Some(cycle) = context.state.dependency_cycle(key) else { return Ok(()) };
    let names: Vec<_> = cycle.iter().map(ToString::to_string).collect();
    let message = format!("spec.dependsOn: the dependencies form a circle: {}", names.join(" -> "));
    Err(Failure::stalled(reason::DEPENDENCY_CYCLE, message))
}

fn source_key(key: &NamespacedName, reference: &SourceReference) -> SourceKey {
    let namespace = reference.namespace.as_ref().unwrap_or(&key.namespace);
    SourceKey { kind: reference.kind, name: NamespacedName::new(namespace, &reference.name) }
}

/// Reads the source object and its artifact. What it says about its health is not asked: an artifact stays good when a later
/// fetch fails, and between two patches of one run the conditions speak of another revision.
async fn read_source(
    context: &Context,
    key: &NamespacedName,
    spec: &KluctlDeploymentSpec,
    reference: &SourceReference,
) -> Result<(FluxSource, Artifact), Failure> {
    let source = source_key(key, reference);
    let shown = format!("{} {}", source.kind.name(), source.name);
    if context.options.no_cross_namespace_refs && source.name.namespace != key.namespace {
        let path = format!("{}/{}", source.kind.name(), source.name);
        let message =
            format!("can't access '{path}', cross-namespace references have been blocked");
        return Err(Failure::stalled(reason::ACCESS_DENIED, message));
    }
    let failed =
        |what: &str, outcome: &ApiOutcome| secrets::refused(reason::ARTIFACT_FAILED, what, outcome);
    let missing = |message: String| Failure {
        // A watch tells when it comes, so there is no hurry.
        retry_after: Some(spec.retry_interval()),
        ..Failure::waiting(reason::ARTIFACT_FAILED, message)
    };
    let NamespacedName { namespace, name } = &source.name;
    let choose = |kinds: &Discovery| kinds.preferred(SOURCE_GROUP, source.kind.name()).cloned();
    let found = lookup::find(&context.own, choose, namespace, name).await;
    let object = match found.map_err(|o| failed("the kinds of the cluster cannot be listed", &o))? {
        Found::Object(object) => object,
        Found::NoKind => {
            return Err(missing(format!(
                "{shown}: the cluster does not serve {} of {SOURCE_GROUP}; is source-controller installed?",
                source.kind.name()
            )));
        }
        Found::Refused(_, outcome) if outcome.is_absent() => {
            return Err(missing(format!("{shown} not found")));
        }
        Found::Refused(_, outcome) => {
            return Err(failed(&format!("{shown} cannot be read"), &outcome));
        }
    };
    let found = FluxSource::read(&object);
    let Some(artifact) = found.status.artifact.clone() else {
        let mut message = format!("{shown} has no artifact yet");
        if let Some(why) = ready_message(&object) {
            message = format!("{message}: {why}");
        }
        return Err(Failure::new(reason::SOURCE_NOT_READY, Outlook::Pending, message));
    };
    Ok((found, artifact))
}

/// Why a source is not ready, in its own words; they quote URLs, possibly with passwords.
fn ready_message(source: &serde_json::Value) -> Option<String> {
    let conditions = source["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|c| c["type"] == api::READY && c["status"] == "False")?;
    Some(redact_text(ready["message"].as_str()?))
}

async fn download(
    context: &Context,
    deadline: Instant,
    artifact: &Artifact,
    cancel: &CancellationToken,
) -> Result<Arc<artifact::ArtifactTree>, Failure> {
    let failed = |error: &dyn Describe| Failure::describe(reason::ARTIFACT_FAILED, error);
    let Some(digest) = artifact.digest() else {
        let message = format!("the artifact of revision {} has no digest", artifact.revision);
        return Err(Failure::waiting(reason::ARTIFACT_FAILED, message));
    };
    let digest = digest.parse().map_err(|error: artifact::DigestError| {
        Failure::waiting(reason::ARTIFACT_FAILED, format!("the artifact's digest: {error}"))
    })?;
    let wanted = artifact::Artifact {
        url: artifact.url.clone(),
        digest,
        revision: artifact.revision.clone(),
        size: artifact.size.and_then(|size| u64::try_from(size).ok()),
    };
    let longest = FetchOptions::default().timeout;
    let options = FetchOptions {
        timeout: deadline.saturating_duration_since(Instant::now()).min(longest),
        retry: RetryPolicy::flux(context.options.http_retry),
        localhost: context.options.source_localhost.clone(),
        proxies: context.options.proxies.clone(),
        ..FetchOptions::default()
    };
    context.artifacts.fetch(&wanted, &options, cancel).await.map_err(|error| failed(&error))
}

async fn clone(
    context: &Context,
    source: &api::GitSource,
    credentials: &GitCredentials,
    cancel: &CancellationToken,
) -> Result<git::GitCheckout, Failure> {
    let failed = |error: &dyn Describe| Failure::describe(reason::PREPARE_FAILED, error);
    let url = git::GitUrl::parse(&source.url).map_err(|error| {
        Failure::stalled(reason::INVALID_SPEC, format!("spec.source.url: {error}"))
    })?;
    let reference = source.reference.clone().unwrap_or_default();
    let given = |name: Option<String>| name.filter(|name| !name.is_empty());
    let reference = given(reference.tag)
        .map(git::Reference::Tag)
        .or_else(|| given(reference.branch).map(git::Reference::Branch))
        .unwrap_or_default();
    let auth = credentials.rules(&context.own).await?.choose(&url);
    let checkout = context.repositories.checkout(&url, &reference, &auth, cancel).await;
    checkout.map_err(|error| failed(&error))
}

/// The directory of the project, which must be there.
fn project_dir(tree: &dyn SourceTree, path: Option<&str>) -> Result<String, Failure> {
    let path = path.unwrap_or_default();
    let dir = join("", path)
        .map_err(|error| Failure::stalled(reason::INVALID_SPEC, format!("path: {error}")))?;
    if dir.is_empty() || tree.is_dir(&dir) {
        return Ok(dir);
    }
    let message = format!("path {path:?}: the source has no such directory");
    Err(Failure::retry(reason::PREPARE_FAILED, message))
}

/// Checks all dependencies, each read from the API server itself.
async fn check_dependencies(
    context: &Context,
    key: &NamespacedName,
    spec: &KluctlDeploymentSpec,
    own: Option<OwnSource<'_>>,
) -> Result<(), Failure> {
    for (index, dependency) in spec.depends_on.iter().enumerate() {
        check_dependency(context, key, index, dependency, own).await?;
    }
    Ok(())
}

async fn check_dependency(
    context: &Context,
    key: &NamespacedName,
    index: usize,
    dependency: &Dependency,
    own: Option<OwnSource<'_>>,
) -> Result<(), Failure> {
    let api_version = dependency.api_version.as_deref().unwrap_or(api::API_VERSION);
    let kind = dependency.kind.as_deref().unwrap_or(api::KIND);
    let namespace = dependency.namespace.as_ref().unwrap_or(&key.namespace);
    let shown = format!("{kind} {namespace}/{}", dependency.name);
    if context.options.no_cross_namespace_refs && *namespace != key.namespace {
        let message = format!(
            "spec.dependsOn[{index}]: can't access '{shown}', cross-namespace references have been blocked"
        );
        return Err(Failure::stalled(reason::ACCESS_DENIED, message));
    }
    let not_ready = |why: &str| {
        Failure::waiting(
            reason::DEPENDENCY_NOT_READY,
            format!("dependency {shown} is not ready: {why}"),
        )
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // A version that is no longer served does not make a dependency unready.
    let choose = |kinds: &Discovery| {
        kinds.find(group, version, kind).or_else(|| kinds.preferred(group, kind)).cloned()
    };
    let found = lookup::find(&context.own, choose, namespace, &dependency.name).await;
    let found = found.map_err(|outcome| {
        let what = "the kinds of the cluster cannot be listed";
        secrets::refused(reason::DEPENDENCY_NOT_READY, what, &outcome)
    })?;
    match found {
        Found::Object(object) => match assess(&object, own) {
            DependencyState::Ready => Ok(()),
            DependencyState::NotReady(why) => Err(not_ready(&redact_text(&why))),
        },
        Found::NoKind => {
            Err(not_ready(&format!("the cluster does not serve {api_version} {kind}")))
        }
        Found::Refused(_, outcome) if outcome.is_absent() => Err(not_ready("it does not exist")),
        Found::Refused(found, outcome) if outcome.is_refused() => {
            let hint = format!("grant the controller get on {}.{group}", found.plural);
            let message = outcome.message().unwrap_or_default();
            Err(Failure::new(
                reason::DEPENDENCY_NOT_READY,
                Outlook::Retry,
                format!("dependency {shown} cannot be read: {message} ({hint})"),
            ))
        }
        Found::Refused(_, outcome) => Err(secrets::refused(
            reason::DEPENDENCY_NOT_READY,
            &format!("dependency {shown} cannot be read"),
            &outcome,
        )),
    }
}

/// The contexts to choose from: those of the kubeconfig Secret, or the controller's own cluster as `default`; renamed.
pub(crate) async fn read_contexts(
    context: &Context,
    key: &NamespacedName,
    spec: &KluctlDeploymentSpec,
) -> Result<Contexts, Failure> {
    let failed = |error: &dyn Describe| Failure::describe(reason::PREPARE_FAILED, error);
    let mut contexts = match spec.kube_config.as_ref().and_then(|config| config.secret_ref.as_ref())
    {
        None => Contexts::own(),
        Some(reference) => {
            let field = "spec.kubeConfig.secretRef";
            let name = NamespacedName::new(&key.namespace, &reference.name);
            let secret = secrets::read(&context.own, &name, field, reason::PREPARE_FAILED).await?;
            let keys = secret.data.keys().map(String::as_str);
            let in_secret = |failure: Failure| Failure {
                message: format!("{field}: {}: {}", secret.origin, failure.message),
                ..failure
            };
            let wanted = secret_key(keys, reference.key.as_deref())
                .map_err(|error| in_secret(failed(&error)))?;
            let text = secret.data.get(wanted).map(Vec::as_slice).unwrap_or_default();
            Contexts::from_kubeconfig(text, context.options.guards)
                .map_err(|error| in_secret(failed(&error)))?
        }
    };
    let renames: Vec<_> = spec
        .rename_contexts
        .iter()
        .map(|rename| Rename { old: rename.old_context.clone(), new: rename.new_context.clone() })
        .collect();
    contexts.rename(&renames).map_err(|error| failed(&error))?;
    Ok(contexts)
}

/// The account to act as. It is applied on top of a kubeconfig, too.
pub(crate) fn account(
    context: &Context,
    key: &NamespacedName,
    spec: &KluctlDeploymentSpec,
) -> Option<ServiceAccount> {
    let given = spec.service_account_name.as_ref().filter(|name| !name.is_empty());
    let name = given.or(context.options.default_service_account.as_ref())?;
    Some(ServiceAccount { namespace: key.namespace.clone(), name: name.clone() })
}
