//! `buildMetadata`: where objects come from and what changed them.

use serde_json::Value;

use super::{
    decode::Located,
    error::{KustomizeError, Result},
    remote::Repository,
};
use crate::{secret::redact_url, yaml};

pub(crate) const ORIGIN_ANNOTATIONS: &str = "originAnnotations";
pub(crate) const TRANSFORMER_ANNOTATIONS: &str = "transformerAnnotations";
pub(crate) const MANAGED_BY_LABEL: &str = "managedByLabel";
const OPTIONS: [&str; 3] = [ORIGIN_ANNOTATIONS, TRANSFORMER_ANNOTATIONS, MANAGED_BY_LABEL];

/// The origin of an object, or a transformer that changed it, as it is written into annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file.
    File(Trail),
    /// What a file configures.
    Configured { file: Trail, by: Vec<(&'static str, String)> },
}

/// Where a directory or file is: relative to the root kustomization, or in a repository that is built upon.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    path: String,
    /// Address and reference.
    repository: Option<(String, Option<String>)>,
}

impl Trail {
    /// What is at a path, or at the address of a repository, that a kustomization here names.
    pub(crate) fn join(&self, path: &str) -> Self {
        match Repository::parse(path) {
            Some(Repository { url, reference, dir, .. }) => {
                Self { path: dir, repository: Some((redact_url(&url), reference)) }
            }
            None => Self { path: clean(&self.path, path), repository: self.repository.clone() },
        }
    }
}

impl Origin {
    /// The text of the annotation.
    pub(crate) fn to_annotation(&self) -> String {
        self.lines().into_iter().map(|line| line + "\n").collect()
    }

    /// One annotation for many.
    pub(crate) fn list_to_annotation(origins: &[Self]) -> String {
        let mut text = String::new();
        for origin in origins {
            for (index, line) in origin.lines().into_iter().enumerate() {
                text.extend([if index == 0 { "- " } else { "  " }, &line, "\n"]);
            }
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let entry = |key: &str, text: &str| {
            let text = yaml::emit(&Value::String(text.to_owned()));
            format!("{key}: {}", text.trim_end())
        };
        let repository = |trail: &Trail| {
            let (url, reference) = trail.repository.clone().unzip();
            let lines = [("repo", url), ("ref", reference.flatten())];
            lines.into_iter().filter_map(|(key, text)| Some(entry(key, &text?))).collect::<Vec<_>>()
        };
        match self {
            Self::File(file) => {
                let path = Some(entry("path", &file.path)).filter(|_| !file.path.is_empty());
                path.into_iter().chain(repository(file)).collect()
            }
            Self::Configured { file, by } => {
                let by = by.iter().map(|(key, text)| entry(&format!("  {key}"), text));
                let head = [entry("configuredIn", &file.path), "configuredBy:".to_owned()];
                repository(file).into_iter().chain(head).chain(by).collect()
            }
        }
    }
}

/// Makes origins, or none when the build does not ask for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origins {
    recorded: bool,
}

impl Origins {
    /// For the `buildMetadata` of the root kustomization.
    ///
    /// # Errors
    /// When an option is unknown.
    pub(crate) fn new(build_metadata: &[Located<String>]) -> Result<Self> {
        for Located { value: option, place } in build_metadata {
            if !OPTIONS.contains(&option.as_str()) {
                let problem = place.problem(format!("unknown option \"{option}\""));
                return Err(KustomizeError::Kustomization(Box::new(
                    problem.with_expected(OPTIONS.join(", ")),
                )));
            }
        }
        Ok(Self { recorded: !build_metadata.is_empty() })
    }

    /// The origin of an object of a file.
    pub(crate) fn file(self, base: &Trail, path: &str) -> Option<Origin> {
        self.recorded.then(|| Origin::File(base.join(path)))
    }

    /// The origin of what a field of a kustomization makes or changes.
    pub(crate) fn field(self, base: &Trail, file: &str, kind: &str) -> Option<Origin> {
        let by = || vec![("apiVersion", "builtin".to_owned()), ("kind", kind.to_owned())];
        self.recorded.then(|| Origin::Configured { file: base.join(file), by: by() })
    }

    /// The origin of what a transformer or generator of a file does.
    pub(crate) fn plugin(self, file: &Trail, configuration: &Value) -> Option<Origin> {
        let paths = [
            ("apiVersion", "/apiVersion"),
            ("kind", "/kind"),
            ("name", "/metadata/name"),
            ("namespace", "/metadata/namespace"),
        ];
        let text = |path| configuration.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let by = || paths.into_iter().filter_map(|(key, path)| Some((key, text(path)?))).collect();
        self.recorded.then(|| Origin::Configured { file: file.clone(), by: by() })
    }
}

/// A path relative to the root kustomization, which may lead out of its directory.
fn clean(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}
