use reqwest::Url;

use super::ArtifactError;
use crate::secret::redact_url;

/// The URL to download from. With `localhost` (the value of `SOURCE_CONTROLLER_LOCALHOST`, `host` or `host:port`) host and
/// port are replaced by it, for controllers that run outside of the cluster.
///
/// # Errors
/// [`ArtifactError::Url`] when it is not an http or https URL, or `localhost` is no host.
pub fn locate(url: &str, localhost: Option<&str>) -> Result<Url, ArtifactError> {
    let problem = |message: String| ArtifactError::Url { url: redact_url(url), message };
    let mut parsed = Url::parse(url).map_err(|error| problem(error.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(problem(format!("scheme {:?}, expected http or https", parsed.scheme())));
    }
    let Some(localhost) = localhost.filter(|localhost| !localhost.is_empty()) else {
        return Ok(parsed);
    };
    let wrong = || problem(format!("{localhost:?} is not of the form host or host:port"));
    let base = Url::parse(&format!("{}://{localhost}", parsed.scheme())).map_err(|_| wrong())?;
    if base.path() != "/" || base.query().is_some() || !base.username().is_empty() {
        return Err(wrong());
    }
    parsed.set_host(base.host_str()).map_err(|_| wrong())?;
    parsed.set_port(base.port()).map_err(|()| wrong())?;
    Ok(parsed)
}
