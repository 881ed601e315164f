//! Sends the requests of `http` variables.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use reqwest::{
    Client, Method, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use tokio_util::sync::CancellationToken;

use crate::{
    diagnostic::{Class, Diagnostic},
    net::{self, ClientOptions, Failure, NetError, Proxies, Reach, Redirects, RetryPolicy},
    schema::HttpRequest,
    secret::redact_url,
    vars::{HttpAnswer, HttpSource},
};

/// How many bytes an answer may have.
const MAX_ANSWER: u64 = 16 << 20;
/// How long one request may take with all its attempts.
const TIMEOUT: Duration = Duration::from_mins(1);
const RETRY: RetryPolicy = RetryPolicy {
    retries: 3,
    min_wait: Duration::from_millis(500),
    max_wait: Duration::from_secs(10),
};

/// Requests over the system's certificates, within bounds of time and size, never followed to another host.
pub struct HttpVars {
    client: Client,
    reach: Reach,
    cancel: CancellationToken,
}

impl HttpVars {
    /// Requests that take these proxies, stay within reach and end with the token.
    ///
    /// # Errors
    /// When a proxy's address cannot be used.
    pub fn new(
        proxies: Proxies,
        reach: Reach,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        Self::with(&ClientOptions { proxies, reach, ..ClientOptions::default() }, cancel)
    }

    /// As [`HttpVars::new`], but redirects are followed to other hosts: for requests that carry no secrets.
    ///
    /// # Errors
    /// As [`HttpVars::new`].
    pub fn following(
        proxies: Proxies,
        reach: Reach,
        cancel: CancellationToken,
    ) -> Result<Self, Diagnostic> {
        let options = ClientOptions {
            proxies,
            reach,
            redirects: Redirects::AnyHost,
            ..ClientOptions::default()
        };
        Self::with(&options, cancel)
    }

    fn with(options: &ClientOptions, cancel: CancellationToken) -> Result<Self, Diagnostic> {
        let reach = options.reach;
        let client = net::client(options)
            .map_err(|error| Diagnostic::new(Class::Access, error.to_string()))?;
        Ok(Self { client, reach, cancel })
    }

    async fn answer(&self, request: &Parsed<'_>) -> Result<HttpAnswer, NetError> {
        self.reach.check(&request.url)?;
        let is_repeatable = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        let policy = if is_repeatable { RETRY } else { RetryPolicy::NEVER };
        let mut attempts = 1;
        loop {
            let (failure, result) = match self.once(request).await {
                Ok((answer, failure)) => (failure, Ok(answer)),
                Err(error) => (error.failure(), Err(error)),
            };
            let Some(wait) = policy.wait(attempts, failure, net::jitter()) else { return result };
            net::sleep(wait, &self.cancel).await?;
            attempts += 1;
        }
    }

    /// The answer, and what the retry rule makes of its status.
    async fn once(&self, request: &Parsed<'_>) -> Result<(HttpAnswer, Failure), NetError> {
        let Parsed { method, url, headers, body } = request;
        let sent = self.client.request(method.clone(), url.clone()).headers(headers.clone());
        let sent = match body {
            Some(body) => sent.body((*body).to_owned()),
            None => sent,
        };
        let response = sent.send().await.map_err(|error| NetError::from_reqwest(url, error))?;
        let status = response.status().as_u16();
        let retry_after = net::retry_after(response.headers());
        let body = net::read_bounded(response, MAX_ANSWER).await?;
        Ok((HttpAnswer { status, body }, Failure::Status { code: status, retry_after }))
    }
}

/// A request that can be sent.
struct Parsed<'a> {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<&'a str>,
}

impl<'a> Parsed<'a> {
    fn new(request: &'a HttpRequest) -> Result<Self, Diagnostic> {
        let shown = redact_url(&request.url);
        let fail = |what: String| Diagnostic::new(Class::Project, what);
        let url = Url::parse(&request.url)
            .map_err(|error| fail(format!("{shown} is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let message = format!("{shown} cannot be asked");
            return Err(fail(message).with_expected("an http:// or https:// URL"));
        }
        let method = request.method.as_deref().filter(|method| !method.is_empty());
        let method = method.unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| fail(format!("{method:?} is no HTTP method")))?;
        // Values may be secret and are not shown.
        let headers = request.headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).ok()?;
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        let headers = headers.collect::<Option<HeaderMap>>().ok_or_else(|| {
            fail("a header has a name or value that HTTP does not allow".to_owned())
        })?;
        Ok(Self { method, url, headers, body: request.body.as_deref() })
    }
}

impl HttpSource for HttpVars {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, Diagnostic>> {
        async move {
            let parsed = Parsed::new(request)?;
            let answer = tokio::time::timeout(TIMEOUT, self.answer(&parsed));
            let failed = |why: String| {
                let message = format!("{} cannot be asked: {why}", redact_url(&request.url));
                Diagnostic::new(Class::Transient, message)
            };
            match self.cancel.run_until_cancelled(answer).await {
                None => Err(Diagnostic::new(Class::Cancelled, "the request was interrupted")),
                Some(Err(_)) => Err(failed(format!("no answer within {}s", TIMEOUT.as_secs()))),
                Some(Ok(Err(error @ NetError::OutOfReach { .. }))) => {
                    Err(Diagnostic::new(Class::Project, error.to_string()).with_expected(
                        "an address elsewhere, or a controller with --allow-local-http-vars",
                    ))
                }
                Some(Ok(answer)) => answer.map_err(|error| failed(error.to_string())),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
