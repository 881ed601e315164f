//! Charts in OCI registries (OCI distribution specification; Helm's media types).

use std::path::Path;

use reqwest::{Response, Url, header};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Access, PullError,
    client::{Authorization, Clients, Fetch, expect_ok, hex, save},
    source::Download,
};
use crate::{
    net::read_bounded,
    secret::{Secret, redact_url},
    yaml::closest,
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
const LAYERS: [&str; 2] =
    ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];
const MAX_DOCUMENT: u64 = 4 << 20;
/// Pages of tags.
const MAX_PAGES: usize = 1000;

/// A repository of a registry as a user.
pub(super) struct Registry<'a> {
    pub(super) clients: &'a Clients,
    /// `oci://registry/path`
    pub(super) url: &'a Url,
    pub(super) access: &'a Access,
    pub(super) cancel: &'a CancellationToken,
}

impl Registry<'_> {
    fn name(&self) -> &str {
        self.url.path().trim_matches('/')
    }

    /// The API's address below the repository: `https://registry/v2/path/…`.
    fn address(&self, rest: &str) -> Result<Url, PullError> {
        let host = self.url.host_str().unwrap_or_default();
        let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        let scheme = if self.access.plain_http || is_local { "http" } else { "https" };
        let port = self.url.port().map_or_else(String::new, |port| format!(":{port}"));
        let text = format!("{scheme}://{host}{port}/v2/{}/{rest}", self.name());
        Url::parse(&text).map_err(|error| PullError::Protocol {
            url: redact_url(self.url.as_str()),
            problem: error.to_string(),
        })
    }

    /// The answer to a request, after the login that the registry asks for.
    async fn get(
        &self,
        url: &Url,
        accept: &str,
        what: &'static str,
    ) -> Result<Response, PullError> {
        let mut fetch = Fetch {
            url,
            accept,
            access: self.access,
            authorization: match &self.access.token {
                Some(token) => Authorization::Bearer(token.clone()),
                None => Authorization::None,
            },
            cancel: self.cancel,
        };
        let mut response = self.clients.get(&fetch).await?;
        if response.status().as_u16() == 401 && self.access.token.is_none() {
            fetch.authorization = self.login(&response).await?;
            response = self.clients.get(&fetch).await?;
        }
        expect_ok(response, &fetch, what)
    }

    /// What the challenge of a registry is answered with: user and password, or a token from its authorization server.
    async fn login(&self, refusal: &Response) -> Result<Authorization, PullError> {
        let challenges = refusal.headers().get_all(header::WWW_AUTHENTICATE);
        let challenges: Vec<&str> =
            challenges.iter().filter_map(|value| value.to_str().ok()).collect();
        let bearer = challenges.iter().find_map(|text| {
            let (scheme, rest) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| parameters(rest))
        });
        let Some(parameters) = bearer else {
            return Ok(match &self.access.user {
                Some(user) => Authorization::Basic(user.clone(), self.access.password.clone()),
                None => Authorization::None,
            });
        };
        let get =
            |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, v)| v.as_str());
        let invalid = |problem: &str| PullError::Protocol {
            url: redact_url(self.url.as_str()),
            problem: problem.to_owned(),
        };
        let realm = get("realm").ok_or_else(|| invalid("asks for a token, but not from where"))?;
        let mut realm =
            Url::parse(realm).map_err(|_| invalid("names no address to get a token from"))?;
        let registry = self.address("")?;
        if realm.scheme() != "https" && registry.scheme() == "https" {
            return Err(invalid("asks to send the login without TLS"));
        }
        {
            let mut query = realm.query_pairs_mut();
            for name in ["service", "scope"] {
                if let Some(value) = get(name) {
                    query.append_pair(name, value);
                }
            }
            if let Some(user) = &self.access.user {
                query.append_pair("account", user);
            }
        }
        self.token(&realm).await
    }

    async fn token(&self, realm: &Url) -> Result<Authorization, PullError> {
        let authorization = match (&self.access.user, &self.access.identity_token) {
            (_, Some(token)) => {
                // What docker stores under this name is a refresh token.
                let user = self.access.user.clone().unwrap_or_else(|| "<token>".to_owned());
                Authorization::Basic(user, Some(token.clone()))
            }
            (Some(user), None) => Authorization::Basic(user.clone(), self.access.password.clone()),
            (None, None) => Authorization::None,
        };
        let accept = "application/json";
        let fetch =
            Fetch { url: realm, accept, access: self.access, authorization, cancel: self.cancel };
        let response = expect_ok(self.clients.get(&fetch).await?, &fetch, "authorization server")?;
        let answer = document(response, realm).await?;
        let token = ["token", "access_token"].into_iter().find_map(|name| answer[name].as_str());
        let token = token.ok_or_else(|| PullError::Protocol {
            url: redact_url(realm.as_str()),
            problem: "answers without a token".to_owned(),
        })?;
        Ok(Authorization::Bearer(Secret::new(token.to_owned())))
    }

    /// All tags, as versions.
    pub(super) async fn versions(&self) -> Result<Vec<String>, PullError> {
        let mut url = self.address("tags/list?n=1000")?;
        let mut versions = Vec::new();
        for _ in 0..MAX_PAGES {
            let response = self.get(&url, "application/json", "repository of this name").await?;
            let next = next_page(&response, &url);
            let answer = document(response, &url).await?;
            let tags = answer["tags"].as_array().into_iter().flatten();
            versions.extend(tags.filter_map(|tag| Some(tag.as_str()?.replace('_', "+"))));
            match next {
                // Pages of other servers are none of this list.
                Some(next) if next.host_str() == url.host_str() && next != url => url = next,
                _ => break,
            }
        }
        Ok(versions)
    }

    /// Downloads a version of the chart into `dir`.
    pub(super) async fn download(
        &self,
        version: &str,
        dir: &Path,
        limit: u64,
    ) -> Result<Download, PullError> {
        let tag = version.replace('+', "_");
        let url = self.address(&format!("manifests/{tag}"))?;
        let response = match self.get(&url, MANIFEST, "manifest").await {
            Err(PullError::Missing { .. }) => return Err(self.no_version(version).await),
            other => other?,
        };
        let announced = response.headers().get("docker-content-digest");
        let announced = announced.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = body(response, &url).await?;
        let actual = sha256(&body);
        if let Some(expected) = announced
            && expected.starts_with("sha256:")
            && expected != actual
        {
            return Err(PullError::Digest { url: redact_url(url.as_str()), expected, actual });
        }
        let invalid = |problem: &str| PullError::Protocol {
            url: redact_url(url.as_str()),
            problem: problem.to_owned(),
        };
        let manifest: Value =
            serde_json::from_slice(&body).map_err(|_| invalid("is no manifest"))?;
        let layers = manifest["layers"].as_array().into_iter().flatten();
        let layer = layers.into_iter().find(|layer| {
            layer["mediaType"].as_str().is_some_and(|media_type| LAYERS.contains(&media_type))
        });
        let layer = layer.ok_or_else(|| invalid("is no Helm chart, it has no layer with one"))?;
        let digest = layer["digest"].as_str().unwrap_or_default().to_owned();
        let is_digest = digest
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !is_digest {
            return Err(invalid("names a layer without a SHA-256 digest"));
        }
        self.layer(&digest, dir, limit).await
    }

    async fn layer(&self, digest: &str, dir: &Path, limit: u64) -> Result<Download, PullError> {
        let url = self.address(&format!("blobs/{digest}"))?;
        let response = self.get(&url, "*/*", "layer").await?;
        let path = dir.join("chart.tgz");
        let (access, cancel) = (self.access, self.cancel);
        let fetch =
            Fetch { url: &url, accept: "*/*", access, authorization: Authorization::None, cancel };
        let actual = format!("sha256:{}", save(response, &fetch, &path, limit).await?);
        let shown = redact_url(url.as_str());
        if actual != digest.to_lowercase() {
            return Err(PullError::Digest { url: shown, expected: digest.to_owned(), actual });
        }
        Ok(Download { path, url: shown })
    }

    async fn no_version(&self, version: &str) -> PullError {
        let versions = self.versions().await.unwrap_or_default();
        let near = closest(version, versions.iter().map(String::as_str)).map(str::to_owned);
        PullError::NoVersion {
            chart: crate::tree::file_name(self.name()).to_owned(),
            version: version.to_owned(),
            closest: near.or_else(|| versions.last().cloned()),
        }
    }
}

/// The parameters of a challenge: `realm="https://…",service="…",scope="…"`.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((name, tail)) = rest.split_once('=') {
        let (value, tail) = match tail.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => tail.split_once(',').unwrap_or((tail, "")),
        };
        let name = name.trim_matches(|c: char| c == ',' || c.is_whitespace()).to_lowercase();
        found.push((name, value.to_owned()));
        rest = tail;
    }
    found
}

/// The next page, by the `Link` header.
fn next_page(response: &Response, url: &Url) -> Option<Url> {
    let link = response.headers().get(header::LINK)?.to_str().ok()?;
    let (address, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.contains("rel=\"next\"").then(|| url.join(address).ok()).flatten()
}

async fn body(response: Response, url: &Url) -> Result<Vec<u8>, PullError> {
    let read = read_bounded(response, MAX_DOCUMENT).await;
    read.map_err(|source| PullError::Net { url: redact_url(url.as_str()), source })
}

async fn document(response: Response, url: &Url) -> Result<Value, PullError> {
    let body = body(response, url).await?;
    serde_json::from_slice(&body).map_err(|_| PullError::Protocol {
        url: redact_url(url.as_str()),
        problem: "answers with something else than JSON".to_owned(),
    })
}

fn sha256(body: &[u8]) -> String {
    use sha2::{Digest, Sha256};

    format!("sha256:{}", hex(&Sha256::digest(body)))
}
