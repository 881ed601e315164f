//! A Git server for tests: the real `git http-backend` behind a small HTTP front that can misbehave.
#![expect(clippy::disallowed_methods, reason = "runs a server and the git program")]

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Response, StatusCode},
};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, net::TcpListener};

/// A repository on disk, made by the git program.
pub(super) struct Origin {
    dir: TempDir,
}

impl Origin {
    /// Branches `main` and `feat/x`, tags `v1` (annotated) and `light`, links, a submodule, and files for each.
    pub(super) fn new() -> Self {
        let origin = Self { dir: tempfile::tempdir().unwrap() };
        let work = origin.work();
        std::fs::create_dir_all(work.join("deploy/base")).unwrap();
        origin.git(&["init", "-q", "-b", "main"]);
        origin.write("deploy/app.yaml", "app: 1\n");
        origin.write("deploy/base/x.yaml", "x: 1\n");
        origin.write("top.yaml", "top: 1\n");
        origin.write("large.bin", &"x".repeat(5000));
        let link = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, work.join(name)).unwrap();
        };
        link("deploy/link.yaml", "base/x.yaml");
        link("dir-link", "deploy/base");
        link("up.yaml", "deploy/../top.yaml");
        link("outside", "../../etc/passwd");
        link("absolute", "/etc/passwd");
        link("dangling", "nowhere");
        link("loop", "loop");
        origin.git(&["add", "."]);
        let submodule = format!("160000,{},sub", "1".repeat(40));
        origin.git(&["update-index", "--add", "--cacheinfo", &submodule]);
        origin.commit("first");
        origin.git(&["tag", "light"]);
        origin.git(&["tag", "-a", "v1", "-m", "one"]);
        origin.git(&["branch", "feat/x"]);
        origin.git(&["clone", "-q", "--bare", ".", "../repos/shop.git"]);
        origin.git(&["remote", "add", "origin", "../repos/shop.git"]);
        origin
    }

    pub(super) fn work(&self) -> PathBuf {
        let work = self.dir.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        work
    }

    /// The directory with the bare repositories.
    pub(super) fn repos(&self) -> PathBuf {
        self.dir.path().join("repos")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.work().join(path), text).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Commits everything and pushes to `branch`; returns the commit.
    pub(super) fn push(&self, branch: &str) -> String {
        self.git(&["add", "."]);
        self.commit("change");
        self.git(&["push", "-q", "-f", "origin", &format!("HEAD:refs/heads/{branch}")]);
        self.id("HEAD")
    }

    pub(super) fn id(&self, revision: &str) -> String {
        self.git(&["rev-parse", revision])
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        git(&self.work(), args)
    }
}

/// Runs the git program without any configuration from outside.
pub(super) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What the front does with a request before the backend sees it.
#[derive(Clone)]
pub(super) enum Fault {
    Status(u16),
    Redirect(String),
    /// The backend's answer, cut in the middle.
    Truncate,
    /// A page for people, as of a login form.
    Page,
    /// Never answers.
    Hang,
}

/// What decides about faults: the request's number, from 0, and its path.
type Script = dyn Fn(usize, &str) -> Option<Fault> + Send + Sync;

/// The running front.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Vec<Seen>>>,
}

/// A request as the front saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) body: String,
}

#[derive(Clone)]
struct Front {
    repos: PathBuf,
    /// The `Authorization` header that is asked for.
    wanted: Option<String>,
    script: Arc<Script>,
    log: Arc<Mutex<Vec<Seen>>>,
    old_protocol: bool,
}

impl Server {
    pub(super) async fn start(repos: PathBuf, wanted: Option<&str>) -> Self {
        Self::scripted(repos, wanted, |_, _| None).await
    }

    pub(super) async fn scripted(
        repos: PathBuf,
        wanted: Option<&str>,
        script: impl Fn(usize, &str) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        Self::run(repos, wanted, script, false).await
    }

    /// A server that knows nothing of protocol version 2.
    pub(super) async fn old(repos: PathBuf) -> Self {
        Self::run(repos, None, |_, _| None, true).await
    }

    async fn run(
        repos: PathBuf,
        wanted: Option<&str>,
        script: impl Fn(usize, &str) -> Option<Fault> + Send + Sync + 'static,
        old_protocol: bool,
    ) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let front = Front {
            repos,
            wanted: wanted.map(str::to_owned),
            script: Arc::new(script),
            log: log.clone(),
            old_protocol,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = axum::Router::new().fallback(answer).with_state(front);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, log }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// How many fetches (as against listings of references) were asked for.
    pub(super) fn fetches(&self) -> usize {
        self.seen().iter().filter(|seen| seen.body.contains("want ")).count()
    }
}

async fn answer(State(front): State<Front>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let path = head.uri.path().to_owned();
    let authorization =
        head.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let number = {
        let mut log = front.log.lock().unwrap();
        log.push(Seen {
            path: path.clone(),
            authorization: authorization.clone(),
            body: String::from_utf8_lossy(&body).into_owned(),
        });
        log.len() - 1
    };
    let status = |code: u16| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    };
    let fault = (front.script)(number, &path);
    match &fault {
        Some(Fault::Status(code)) => return status(*code),
        Some(Fault::Redirect(to)) => {
            let mut response = status(302);
            let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let to = format!("{to}{query}");
            response.headers_mut().insert("location", to.parse().unwrap());
            return response;
        }
        Some(Fault::Page) => {
            let mut response = Response::new(Body::from("<html>Sign in</html>"));
            response.headers_mut().insert("content-type", "text/html".parse().unwrap());
            return response;
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Truncate) | None => {}
    }
    if front.wanted.is_some() && front.wanted != authorization {
        let mut response = status(401);
        response.headers_mut().insert("www-authenticate", "Basic realm=git".parse().unwrap());
        return response;
    }
    let query = head.uri.query().unwrap_or_default().to_owned();
    let output = backend(&front, head.method.as_str(), &path, &query, &head.headers, &body).await;
    respond(&output, matches!(fault, Some(Fault::Truncate)))
}

/// Runs `git http-backend` as a CGI program.
async fn backend(
    front: &Front,
    method: &str,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Vec<u8> {
    let header = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let protocol = if front.old_protocol { String::new() } else { header("git-protocol") };
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &front.repos)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body).await.unwrap();
    child.wait_with_output().await.unwrap().stdout
}

/// Makes an HTTP answer of a CGI program's output.
fn respond(output: &[u8], is_cut: bool) -> Response<Body> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(output[..end].to_vec()).unwrap();
    let headers: HashMap<String, String> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let status = headers.get("status").map_or(200, |status| status[..3].parse().unwrap());
    let mut body = output[end + 4..].to_vec();
    if is_cut {
        body.truncate(body.len() / 2);
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    if let Some(kind) = headers.get("content-type") {
        response.headers_mut().insert("content-type", kind.parse().unwrap());
    }
    response
}
