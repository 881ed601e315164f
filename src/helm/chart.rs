//! Which chart is meant, and where its pulled copy lies (kluctl 2.28, `pkg/helm`). Pure.

use std::fmt;

use reqwest::Url;

use super::HelmError;
use crate::{
    git::GitUrl,
    schema::{GitRef, HelmChart},
    secret::{Secret, redact_url},
    tree,
};

/// Directory with pulled charts, beside `.kluctl.yaml`.
pub const PULLED_DIR: &str = ".helm-charts";

/// Where a chart comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A directory of the source, relative to the file that names it.
    Local {
        /// The path as written.
        path: String,
    },
    /// A Helm repository.
    Repository {
        /// Its URL.
        url: Url,
        /// Name of the chart in it.
        name: String,
    },
    /// A chart in an OCI registry.
    Oci {
        /// `oci://registry/path/name`.
        url: Url,
    },
    /// A directory of a Git repository.
    Git {
        /// The repository.
        url: GitUrl,
        /// Its URL as written, which may hold a password.
        address: Secret<String>,
        /// The directory; empty for the root.
        sub_dir: String,
    },
}

/// Which version of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// That of the chart itself, compared literally.
    Chart(String),
    /// A revision of the repository that holds it; `None` for its default branch.
    Git(Option<GitRef>),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chart(version) => f.write_str(version),
            Self::Git(Some(reference)) => reference.fmt(f),
            Self::Git(None) => f.write_str("HEAD"),
        }
    }
}

impl Version {
    /// The directory below the chart's.
    fn dir(&self) -> String {
        match self {
            Self::Git(None) => "unknown".to_owned(),
            other => other.to_string(),
        }
    }
}

impl Origin {
    /// The origin that a `helm-chart.yaml`, whose rules are kept, names.
    ///
    /// # Errors
    /// When a URL cannot be used.
    pub fn of(chart: &HelmChart) -> Result<Self, HelmError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(path) = given(&chart.path) {
            return Ok(Self::Local { path });
        }
        if let Some(git) = &chart.git {
            let url = GitUrl::parse(&git.url)
                .map_err(|error| HelmError::Url { url: error.url, reason: error.reason })?;
            let sub_dir = tree::join("", git.sub_dir.as_deref().unwrap_or_default())?;
            return Ok(Self::Git { url, address: Secret::new(git.url.clone()), sub_dir });
        }
        let text = given(&chart.repo).unwrap_or_default();
        let invalid = |reason: String| HelmError::Url { url: redact_url(&text), reason };
        let url = Url::parse(&text).map_err(|error| invalid(error.to_string()))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it names no host".to_owned()));
        }
        match url.scheme() {
            "oci" if last_part(url.path()).is_empty() => {
                Err(invalid("it names no chart, expected oci://registry/path/chart".to_owned()))
            }
            "oci" => Ok(Self::Oci { url }),
            "http" | "https" => {
                Ok(Self::Repository { url, name: chart.chart_name.clone().unwrap_or_default() })
            }
            scheme => Err(invalid(format!("{scheme}:// is not supported, use https or oci"))),
        }
    }

    /// The version that a `helm-chart.yaml` asks for.
    pub fn version(chart: &HelmChart) -> Version {
        match &chart.git {
            Some(git) => Version::Git(git.reference.clone()),
            None => Version::Chart(chart.chart_version.clone().unwrap_or_default()),
        }
    }

    /// What to call the chart.
    pub fn name(&self) -> String {
        match self {
            Self::Local { path } => last_part(path).to_owned(),
            Self::Repository { name, .. } => name.clone(),
            Self::Oci { url } => last_part(url.path()).to_owned(),
            Self::Git { url, sub_dir, .. } if sub_dir.is_empty() => {
                last_part(&url.key().path).to_owned()
            }
            Self::Git { sub_dir, .. } => last_part(sub_dir).to_owned(),
        }
    }

    /// The directory of all versions of the chart, below [`PULLED_DIR`]. Empty for local charts.
    ///
    /// # Errors
    /// When URL or name would lead out of that directory.
    pub fn pulled_dir(&self) -> Result<String, HelmError> {
        let server = |url: &Url, default: Option<u16>| {
            let port = url.port().filter(|port| Some(*port) != default);
            let port = port.map_or_else(String::new, |port| format!("_{port}"));
            let host = url.host_str().unwrap_or_default().to_lowercase();
            format!("{}{port}_{host}", url.scheme())
        };
        let parts = match self {
            Self::Local { .. } => return Ok(String::new()),
            Self::Repository { url, name } => {
                vec![server(url, None), url.path().to_lowercase(), name.clone()]
            }
            Self::Oci { url } => vec![server(url, None), url.path().to_lowercase()],
            Self::Git { url, sub_dir, .. } => {
                let key = url.key();
                let (host, port) = match key.host.rsplit_once(':') {
                    Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                        (host, format!("_{port}"))
                    }
                    _ => (key.host.as_str(), String::new()),
                };
                let server = format!("git_{}{port}_{host}", url.scheme().name());
                vec![server, key.path.clone(), sub_dir.to_lowercase()]
            }
        };
        below(&parts)
    }

    /// The directory of one version, below [`PULLED_DIR`].
    ///
    /// # Errors
    /// As [`Self::pulled_dir`].
    pub fn pulled_version_dir(&self, version: &Version) -> Result<String, HelmError> {
        below(&[self.pulled_dir()?, version.dir()])
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { path } => f.write_str(path),
            Self::Repository { url, name } => write!(f, "{name} of {}", redact_url(url.as_str())),
            Self::Oci { url } => f.write_str(&redact_url(url.as_str())),
            Self::Git { url, sub_dir, .. } if sub_dir.is_empty() => write!(f, "{url}"),
            Self::Git { url, sub_dir, .. } => write!(f, "{url}//{sub_dir}"),
        }
    }
}

/// The parts as one path that does not lead up anywhere.
fn below(parts: &[String]) -> Result<String, HelmError> {
    let path = parts.join("/");
    if path.split('/').any(|part| part == "..") || path.contains('\0') {
        return Err(HelmError::Url {
            url: path,
            reason: "it leads out of the directory of pulled charts".to_owned(),
        });
    }
    Ok(tree::join("", &path)?)
}

fn last_part(path: &str) -> &str {
    tree::file_name(path.trim_end_matches('/'))
}
