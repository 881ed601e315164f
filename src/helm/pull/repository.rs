//! Helm repositories: an index, and archives beside it or elsewhere.

use std::{io::BufReader, path::Path};

use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::{
    Access, IndexEntry, PullError,
    client::{Authorization, Clients, Fetch, expect_ok, save},
    index::{Index, read_index},
    source::Download,
};
use crate::{secret::redact_url, yaml::closest};

/// The largest index.
const MAX_INDEX: u64 = 512 << 20;

/// A Helm repository as a user.
pub(super) struct Repository<'a> {
    pub(super) clients: &'a Clients,
    pub(super) url: &'a Url,
    pub(super) access: &'a Access,
    pub(super) cancel: &'a CancellationToken,
}

impl Repository<'_> {
    fn authorization(&self) -> Authorization {
        match &self.access.user {
            Some(user) => Authorization::Basic(user.clone(), self.access.password.clone()),
            None => Authorization::None,
        }
    }

    /// All versions of a chart, by the index. `dir` holds the index meanwhile.
    pub(super) async fn versions(
        &self,
        chart: &str,
        dir: &Path,
    ) -> Result<Vec<IndexEntry>, PullError> {
        let url = self.index_url();
        let fetch = self.fetch(&url);
        let response = expect_ok(self.clients.get(&fetch).await?, &fetch, "index.yaml")?;
        let path = dir.join("index.yaml");
        save(response, &fetch, &path, MAX_INDEX).await?;
        let (name, file) = (chart.to_owned(), path.clone());
        let read = tokio::task::spawn_blocking(move || -> Result<Index, String> {
            let file = std::fs::File::open(&file).map_err(|error| error.to_string())?;
            read_index(BufReader::with_capacity(256 << 10, file), &name)
        });
        let shown = redact_url(url.as_str());
        let read = read.await.map_err(|_| PullError::Cancelled)?;
        let index = read.map_err(|problem| PullError::Protocol { url: shown.clone(), problem })?;
        match index.entries {
            Some(entries) if !entries.is_empty() => Ok(entries),
            _ => Err(PullError::NoChart {
                repository: redact_url(self.url.as_str()),
                closest: closest(chart, index.names.iter().map(String::as_str)).map(str::to_owned),
                chart: chart.to_owned(),
            }),
        }
    }

    /// Downloads a version of a chart into `dir`.
    pub(super) async fn download(
        &self,
        chart: &str,
        version: &str,
        dir: &Path,
        limit: u64,
    ) -> Result<Download, PullError> {
        let entries = self.versions(chart, dir).await?;
        let Some(entry) = entries.iter().find(|entry| entry.version == version) else {
            let versions = entries.iter().map(|entry| entry.version.as_str());
            let near = closest(version, versions).or(entries.first().map(|e| e.version.as_str()));
            return Err(PullError::NoVersion {
                chart: chart.to_owned(),
                version: version.to_owned(),
                closest: near.map(str::to_owned),
            });
        };
        let index = self.index_url();
        let invalid =
            |problem: String| PullError::Protocol { url: redact_url(index.as_str()), problem };
        let location = entry
            .urls
            .first()
            .ok_or_else(|| invalid(format!("tells no URL of {chart} {version}")))?;
        let url = index
            .join(location)
            .map_err(|_| invalid(format!("tells {location:?} as the URL of {chart} {version}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!(
                "tells a URL of {chart} {version} that is no web address"
            )));
        }
        let is_near = url.host_str() == index.host_str()
            && url.scheme() == index.scheme()
            && url.port_or_known_default() == index.port_or_known_default();
        let (access, authorization) = if is_near || self.access.passes_everywhere {
            (self.access.clone(), self.authorization())
        } else {
            // Another host gets to see neither password nor certificate.
            let access = Access { ca_bundle: self.access.ca_bundle.clone(), ..Access::default() };
            (access, Authorization::None)
        };
        let (access, cancel) = (&access, self.cancel);
        let fetch = Fetch { url: &url, accept: "*/*", access, authorization, cancel };
        let response = expect_ok(self.clients.get(&fetch).await?, &fetch, "chart archive")?;
        let path = dir.join("chart.tgz");
        let actual = save(response, &fetch, &path, limit).await?;
        let shown = redact_url(url.as_str());
        if let Some(expected) = &entry.digest {
            let expected = expected.strip_prefix("sha256:").unwrap_or(expected).to_lowercase();
            if expected != actual {
                return Err(PullError::Digest { url: shown, expected, actual });
            }
        }
        Ok(Download { path, url: shown })
    }

    /// `index.yaml` below the URL, as Helm takes it.
    fn index_url(&self) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}/index.yaml", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    fn fetch<'b>(&'b self, url: &'b Url) -> Fetch<'b> {
        Fetch {
            url,
            accept: "*/*",
            access: self.access,
            authorization: self.authorization(),
            cancel: self.cancel,
        }
    }
}
