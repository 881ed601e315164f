//! Git's smart HTTP protocol over the client of [`crate::net`]; gix speaks, this carries.

use std::{
    any::Any,
    io::{self, BufRead, Cursor, Read, Write},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use gix_transport::Protocol;
use gix_transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse, Transport,
};
use reqwest::{
    Client, Request, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT},
};
use tokio_util::bytes::Bytes;

use super::{
    Auth, GitUrl, Login,
    operation::{Failure, Operation},
};
use crate::net::{Failure as Retry, NetError, retry_after};

/// A connection to a repository.
pub(super) fn connect(
    client: Client,
    url: &GitUrl,
    auth: &Auth,
    operation: &Arc<Operation>,
) -> io::Result<Transport<Carrier>> {
    let refused = |message: String| operation.fail(Failure::Refused(message));
    let address = url.without_user();
    let address = gix::url::parse(address.as_str()).map_err(|error| refused(error.to_string()))?;
    let carrier = Carrier::new(client, url, auth, operation)?;
    Ok(Transport::new_http(carrier, address, Protocol::V2, false))
}

fn authorization(
    login: &Login,
) -> Result<Option<HeaderValue>, reqwest::header::InvalidHeaderValue> {
    let text = match login {
        Login::Basic { user, password } => {
            format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())))
        }
        Login::Bearer { token } => format!("Bearer {}", token.reveal().trim()),
        Login::Anonymous | Login::Ssh { .. } => return Ok(None),
    };
    let mut value = HeaderValue::from_str(&text)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Carries requests. Credentials go to the scheme, host and port that they are for, and nowhere else.
pub(super) struct Carrier {
    client: Client,
    origin: Url,
    authorization: Option<HeaderValue>,
    operation: Arc<Operation>,
    redirected: Option<String>,
}

impl Carrier {
    pub(super) fn new(
        client: Client,
        url: &GitUrl,
        auth: &Auth,
        operation: &Arc<Operation>,
    ) -> io::Result<Self> {
        let origin = Url::parse(&url.without_user());
        let origin = origin.map_err(|e| operation.fail(Failure::Refused(e.to_string())))?;
        let authorization = authorization(&auth.login).map_err(|_| {
            let message = "the credentials cannot be sent in a header".to_owned();
            operation.fail(Failure::Denied(message))
        })?;
        let operation = operation.clone();
        Ok(Self { client, origin, authorization, operation, redirected: None })
    }

    pub(super) fn request(
        &self,
        method: reqwest::Method,
        url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> io::Result<Request> {
        let url = Url::parse(url)
            .map_err(|error| self.operation.fail(Failure::Refused(error.to_string())))?;
        let mut request = Request::new(method, url);
        for header in headers {
            let Some((name, value)) = header.as_ref().split_once(':') else {
                continue;
            };
            if let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_str(value.trim()))
                && name != USER_AGENT
            {
                request.headers_mut().append(name, value);
            }
        }
        if let Some(authorization) = &self.authorization
            && request.url().origin() == self.origin.origin()
        {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

/// Sends a request and judges the answer's status.
fn send(client: &Client, operation: &Operation, request: Request) -> io::Result<Response> {
    let url = request.url().clone();
    let sent = operation.wait(client.execute(request))?;
    let response =
        sent.map_err(|error| net_failure(operation, NetError::from_reqwest(&url, error)))?;
    let status = response.status();
    Err(operation.fail(match status.as_u16() {
        200 => return Ok(response),
        401 | 403 | 407 => Failure::Denied(format!("the server answered {status}")),
        404 | 410 => Failure::NotFound,
        code @ (408 | 429 | 500 | 502..=599) => Failure::Again {
            retry: Retry::Status { code, retry_after: retry_after(response.headers()) },
            message: format!("the server answered {status}"),
        },
        _ => Failure::Refused(format!("the server answered {status}")),
    }))
}

fn net_failure(operation: &Operation, error: NetError) -> io::Error {
    operation.fail(match error.failure() {
        Retry::Final => Failure::Net(error),
        retry => Failure::Again { retry, message: error.to_string() },
    })
}

fn header_lines(response: &Response) -> Cursor<Vec<u8>> {
    let mut lines = Vec::new();
    for (name, value) in response.headers() {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value.as_bytes());
        lines.push(b'\n');
    }
    Cursor::new(lines)
}

fn lift(error: io::Error) -> gix::error::Error {
    gix::error::Error::from_error(error)
}

impl Http for Carrier {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::error::Result<GetResponse<Headers, Body>> {
        let request = self.request(reqwest::Method::GET, url, headers).map_err(lift)?;
        let response = send(&self.client, &self.operation, request).map_err(lift)?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or("nothing known");
        if !kind.starts_with("application/x-git-") {
            let message = format!(
                "the answer is {kind}, not Git's protocol; is this the URL of a repository, and is a login needed?"
            );
            return Err(lift(self.operation.fail(Failure::Refused(message))));
        }
        // Later requests go to where this one was led, within the same host.
        let tail = url.strip_prefix(base_url).unwrap_or_default();
        self.redirected = response.url().as_str().strip_suffix(tail).map(str::to_owned);
        let exchange = Exchange::answered(self.operation.clone(), response);
        Ok(GetResponse {
            headers: Headers { exchange: exchange.clone(), lines: None },
            body: Body { exchange, chunk: Bytes::new() },
        })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::error::Result<PostResponse<Headers, Body, PostBody>> {
        let request = self.request(reqwest::Method::POST, url, headers).map_err(lift)?;
        // What a fetch says is short, so it is collected and sent when the answer is first looked at.
        let exchange = Exchange::pending(self.operation.clone(), self.client.clone(), request);
        Ok(PostResponse {
            post_body: PostBody { exchange: exchange.clone() },
            headers: Headers { exchange: exchange.clone(), lines: None },
            body: Body { exchange, chunk: Bytes::new() },
        })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::error::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected.clone()
    }
}

/// One request and its answer, shared by the request's body and the answer's two readers.
#[derive(Clone)]
struct Exchange {
    operation: Arc<Operation>,
    state: Arc<Mutex<State>>,
}

enum State {
    Pending { client: Client, request: Box<Request>, body: Vec<u8> },
    Answered { response: Response, lines: Cursor<Vec<u8>> },
    Failed,
}

impl Exchange {
    fn pending(operation: Arc<Operation>, client: Client, request: Request) -> Self {
        let state = State::Pending { client, request: Box::new(request), body: Vec::new() };
        Self { operation, state: Arc::new(Mutex::new(state)) }
    }

    fn answered(operation: Arc<Operation>, response: Response) -> Self {
        let lines = header_lines(&response);
        Self { operation, state: Arc::new(Mutex::new(State::Answered { response, lines })) }
    }

    /// Gives the answer to `read`, after sending the request if that has not been done yet.
    fn answer<T>(
        &self,
        read: impl FnOnce(&mut Response, &Cursor<Vec<u8>>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Pending { .. } = &*state
            && let State::Pending { client, mut request, body } =
                std::mem::replace(&mut *state, State::Failed)
        {
            *request.body_mut() = Some(body.into());
            let response = send(&client, &self.operation, *request)?;
            let lines = header_lines(&response);
            *state = State::Answered { response, lines };
        }
        match &mut *state {
            State::Answered { response, lines } => read(response, lines),
            State::Pending { .. } | State::Failed => {
                Err(io::Error::new(io::ErrorKind::BrokenPipe, "the request failed before"))
            }
        }
    }
}

/// The body of a request that is being written.
pub(super) struct PostBody {
    exchange: Exchange,
}

impl Write for PostBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.exchange.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Pending { body, .. } => body.extend_from_slice(bytes),
            State::Answered { .. } | State::Failed => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The answer's headers, one per line.
pub(super) struct Headers {
    exchange: Exchange,
    lines: Option<Cursor<Vec<u8>>>,
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.lines.is_none() {
            self.lines = Some(self.exchange.answer(|_, lines| Ok(lines.clone()))?);
        }
        self.lines.get_or_insert_default().fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(lines) = &mut self.lines {
            lines.consume(amount);
        }
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

/// The answer's body, chunk by chunk.
pub(super) struct Body {
    exchange: Exchange,
    chunk: Bytes,
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() {
            let operation = &self.exchange.operation;
            let next = self.exchange.answer(|response, _| {
                let url = response.url().clone();
                let chunk = operation.wait(response.chunk())?;
                chunk.map_err(|error| net_failure(operation, NetError::from_reqwest(&url, error)))
            })?;
            let Some(chunk) = next else {
                break;
            };
            operation.count(chunk.len())?;
            self.chunk = chunk;
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        drop(self.chunk.split_to(amount.min(self.chunk.len())));
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

fn read_buffered(reader: &mut impl BufRead, buffer: &mut [u8]) -> io::Result<usize> {
    let available = reader.fill_buf()?;
    let amount = available.len().min(buffer.len());
    buffer[..amount].copy_from_slice(&available[..amount]);
    reader.consume(amount);
    Ok(amount)
}
