use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{
    ClusterReader, Context, GitSource, HttpSource, SecretStores, Templates, VarsError, sources,
};
use crate::{
    diagnostic::Segment,
    object::{JsonPath, set_at, type_name},
    schema::VarsSource,
    secret::SecretTexts,
    yaml,
};

/// Loads vars entries. What lies outside of the project is handed in.
#[derive(Clone, Default)]
pub struct VarsLoader {
    /// Environment variables that `systemEnvVars` may read.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The target cluster; `None` makes cluster sources an error.
    pub cluster: Option<Arc<dyn ClusterReader>>,
    /// Git repositories; `None` makes `git` and `gitFiles` an error.
    pub git: Option<Arc<dyn GitSource>>,
    /// HTTP servers; `None` makes `http` an error.
    pub http: Option<Arc<dyn HttpSource>>,
    /// Stores of secrets.
    pub secrets: SecretStores,
    /// Learns what sensitive sources give, so that no message need tell it.
    pub masked: SecretTexts,
}

impl VarsLoader {
    /// Loads one entry and merges it into `context`, by kluctl's rules: the entry's strings are rendered with
    /// the variables so far, then `when` decides, then the source is read, put at `targetPath` and merged.
    ///
    /// `file` is the file with the entry, for relative names in templates.
    ///
    /// # Errors
    /// The first problem; `context` is unchanged then.
    pub async fn load(
        &self,
        entry: &VarsSource,
        file: &str,
        templates: &Templates,
        context: &mut Context,
    ) -> Result<(), VarsError> {
        let entry = render_entry(entry, file, templates, context)?;
        let is_used = templates.is_true(entry.when.as_deref(), context).map_err(VarsError::When)?;
        if !is_used {
            return Ok(());
        }
        let Some(value) = self.read(&entry, templates, context).await? else {
            return Ok(());
        };
        if is_sensitive(&entry) {
            self.masked.learn(&value.value);
        }
        let variables = at_target_path(entry.target_path.as_deref(), value)?;
        if entry.no_override {
            context.merge_below(variables);
        } else {
            context.merge(variables);
        }
        Ok(())
    }

    /// The value of the entry's source; `None` when it is missing, may be, and leaves nothing behind.
    async fn read(
        &self,
        entry: &VarsSource,
        templates: &Templates,
        context: &Context,
    ) -> Result<Option<Loaded>, VarsError> {
        if let Some(values) = &entry.values {
            return Ok(Some(Loaded::mapping(values.clone())));
        }
        if let Some(path) = &entry.file {
            return sources::file::read(path, entry, templates, context).map(Some);
        }
        if let Some(names) = &entry.system_env_vars {
            let read = sources::environment::read(names, &self.environment, entry.ignore_missing);
            return read.map(|variables| Some(Loaded::mapping(variables)));
        }
        if let Some(source) = &entry.git {
            let git = self.git.as_deref();
            return sources::git::read(source, entry, git, templates, context).await.map(Some);
        }
        if let Some(source) = &entry.git_files {
            let git = self.git.as_deref();
            return sources::git_files::read(source, entry, git, templates, context)
                .await
                .map(Some);
        }
        if let Some(request) = &entry.http {
            return sources::http::read(request, entry, self.http.as_deref()).await.map(Some);
        }
        if let Some(secret) = sources::secrets::read(entry, &self.secrets, templates, context).await
        {
            return secret.map(Some);
        }
        self.read_cluster(entry, templates, context).await
    }

    /// The value of a source in the target cluster.
    async fn read_cluster(
        &self,
        entry: &VarsSource,
        templates: &Templates,
        context: &Context,
    ) -> Result<Option<Loaded>, VarsError> {
        use sources::cluster::{DataKind, read};

        let cluster = self.cluster.as_deref();
        if let Some(source) = &entry.cluster_config_map {
            return read(DataKind::ConfigMap, source, entry, cluster, templates, context).await;
        }
        if let Some(source) = &entry.cluster_secret {
            return read(DataKind::Secret, source, entry, cluster, templates, context).await;
        }
        let Some(source) = &entry.cluster_object else { return Err(VarsError::NoSource) };
        sources::cluster_object::read(source, entry, cluster, templates, context).await.map(Some)
    }
}

/// Whether the values are secret: as the entry says, else by the kind of source.
fn is_sensitive(entry: &VarsSource) -> bool {
    let object = entry.cluster_object.as_ref();
    entry.sensitive.unwrap_or_else(|| {
        entry.cluster_secret.is_some()
            || object.is_some_and(|object| object.kind == "Secret")
            || entry.aws_secrets_manager.is_some()
            || entry.gcp_secret_manager.is_some()
            || entry.azure_key_vault.is_some()
            || entry.vault.is_some()
    })
}

/// What a source gave.
pub(super) struct Loaded {
    pub(super) value: Value,
    /// Where it comes from, for messages.
    pub(super) what: String,
}

impl Loaded {
    pub(super) fn mapping(variables: Map<String, Value>) -> Self {
        Self { value: Value::Object(variables), what: "the source".to_owned() }
    }
}

/// Renders every string of the entry.
fn render_entry(
    entry: &VarsSource,
    file: &str,
    templates: &Templates,
    context: &Context,
) -> Result<VarsSource, VarsError> {
    let value = serde_json::to_value(entry).unwrap_or_default();
    let rendered = templates
        .render_strings(file, value, context)
        .map_err(|(field, source)| VarsError::Entry { field, source })?;
    yaml::from_value(&rendered).map_err(VarsError::RenderedEntry)
}

/// Puts a value where `targetPath` says, or takes it as it is.
pub(super) fn at_target_path(
    path: Option<&str>,
    loaded: Loaded,
) -> Result<Map<String, Value>, VarsError> {
    let Some(text) = path.filter(|path| !path.is_empty()) else {
        return match loaded.value {
            Value::Object(variables) => Ok(variables),
            other => Err(VarsError::NotAMapping {
                what: loaded.what,
                found: type_name(&other),
                target_path_helps: true,
            }),
        };
    };
    let fail = |source| VarsError::TargetPath { path: text.to_owned(), source };
    let path = JsonPath::parse(text).map_err(|error| fail(Some(error)))?;
    let path = path.as_field_path().ok_or_else(|| fail(None))?;
    let has_only_keys = path.0.iter().all(|segment| matches!(segment, Segment::Key(_)));
    let mut root = Value::Object(Map::new());
    if !has_only_keys || path.0.is_empty() || !set_at(&mut root, &path, loaded.value) {
        return Err(fail(None));
    }
    match root {
        Value::Object(variables) => Ok(variables),
        _ => Err(fail(None)),
    }
}
