//! Remote resources, from a Git server and a web server on this machine.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
};

use super::program;

const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\ndata:\n  from: VERSION\n";

/// A Git server with one repository, `org/base.git`, and a web server.
struct Servers {
    git: Child,
    git_url: String,
    web_url: String,
    scratch: tempfile::TempDir,
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.git.kill().ok();
        self.git.wait().ok();
    }
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", error(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn manifest(name: &str, version: &str) -> String {
    MAP.replace("NAME", name).replace("VERSION", version)
}

impl Servers {
    fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("git");
        fs::create_dir_all(root.join("org")).unwrap();
        let mut server =
            Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("hack/git-http-server"))
                .arg("--root")
                .arg(&root)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("hack/git-http-server");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let git_url = line.trim().to_owned();
        let web_url = serve(BTreeMap::from([
            ("/one.yaml".to_owned(), manifest("one", "web")),
            ("/deep/er/two.yaml".to_owned(), manifest("two", "web")),
            (
                "/patch.yaml".to_owned(),
                "- {op: add, path: /data/patched, value: remotely}\n".to_owned(),
            ),
        ]));
        let servers = Self { git: server, git_url, web_url, scratch };
        servers.publish(&root.join("org/base.git"));
        servers
    }

    /// Two commits, of which the first has a tag.
    fn publish(&self, bare: &Path) {
        let work = self.scratch.path().join("work");
        fs::create_dir_all(&work).unwrap();
        git(&work, &["init", "--quiet", "--bare", &bare.display().to_string()]);
        git(&work, &["init", "--quiet"]);
        for version in ["v1", "v2"] {
            let component =
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n";
            let onward = format!("resources: ['{}/org/base.git//app?ref=v1']\n", self.git_url);
            write(
                &work,
                &[
                    ("kustomization.yaml", "resources: [app]\n"),
                    ("app/kustomization.yaml", "resources: [map.yaml, ../lib]\nnamePrefix: app-\n"),
                    ("app/map.yaml", &manifest("map", version)),
                    (
                        "lib/kustomization.yaml",
                        "resources: [lib.yaml]\nconfigMapGenerator: [{name: made, files: [lib.yaml]}]\n",
                    ),
                    ("lib/lib.yaml", &manifest("lib", version)),
                    ("component/kustomization.yaml", component),
                    ("onward/kustomization.yaml", &onward),
                    ("outside/kustomization.yaml", "resources: [../lib/lib.yaml]\n"),
                    ("above/kustomization.yaml", "resources: [../../elsewhere]\n"),
                    (
                        "cycle/kustomization.yaml",
                        &format!("resources: ['{}/org/base.git//cycle']\n", self.git_url),
                    ),
                    ("no/readme", "no kustomization\n"),
                ],
            );
            git(&work, &["add", "--all"]);
            git(&work, &["commit", "--quiet", "--message", version]);
            git(&work, &["push", "--quiet", &bare.display().to_string(), "HEAD:refs/heads/main"]);
            if version == "v1" {
                git(&work, &["push", "--quiet", &bare.display().to_string(), "HEAD:refs/tags/v1"]);
            }
        }
    }

    fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    fn ours(&self, args: &[&str], dir: &Path) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kluctl"))
            .args(["kustomize", "build"])
            .args(args)
            .current_dir(dir)
            .env("KLUCTL_CACHE_DIR", self.scratch.path().join("cache"))
            .output()
            .unwrap()
    }
}

/// Serves texts by path until the process ends; returns the URL without a slash at the end.
fn serve(files: BTreeMap<String, String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut request = String::new();
            reader.read_line(&mut request).ok();
            let mut header = String::new();
            while reader.read_line(&mut header).is_ok_and(|read| read > 2) {
                header.clear();
            }
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match files.get(path) {
                Some(text) => ("200 OK", text.as_str()),
                None => ("404 Not Found", "nothing here"),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .ok();
        }
    });
    format!("http://{address}")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn theirs(args: &[&str], dir: &Path) -> Output {
    Command::new(program()).arg("build").args(args).current_dir(dir).output().unwrap()
}

#[test]
fn kustomize_agrees_on_remote_resources() {
    let servers = Servers::start();
    let base = format!("{}/org/base.git", servers.git_url);
    let web = &servers.web_url;
    let first = git(&servers.work(), &["rev-parse", "HEAD~1"]);
    let overlays = [
        ("the default branch", true, format!("resources: ['{base}//app']")),
        ("the root of a repository", true, format!("resources: ['{base}']")),
        ("a tag", true, format!("resources: ['{base}//app?ref=v1']")),
        ("a branch, after the suffix", true, format!("resources: ['{base}/app?ref=main']")),
        ("a commit", true, format!("resources: ['{base}//app?ref={first}']")),
        (
            "a version",
            true,
            format!("resources: ['{base}//app?version=v1&timeout=30s&submodules=false']"),
        ),
        ("two versions", true, format!("resources: ['{base}//app?ref=v1', prefixed]")),
        ("a base of a base", true, format!("resources: ['{base}//onward']")),
        (
            "a component",
            true,
            format!("resources: ['{base}//app']\ncomponents: ['{base}//component?ref=main']"),
        ),
        (
            "origins",
            true,
            format!(
                "resources: ['{base}//app?ref=v1', '{web}/one.yaml']\nnamePrefix: x-\nbuildMetadata: [originAnnotations, transformerAnnotations]"
            ),
        ),
        ("files", true, format!("resources: ['{web}/one.yaml', '{web}/deep/er/two.yaml']")),
        (
            "a patch",
            true,
            format!(
                "resources: ['{web}/one.yaml']\npatches: [{{path: '{web}/patch.yaml', target: {{name: one}}}}]"
            ),
        ),
        (
            "a generated file",
            true,
            format!("configMapGenerator: [{{name: g, files: ['key={web}/patch.yaml']}}]"),
        ),
        ("a missing file", false, format!("resources: ['{web}/none.yaml']")),
        ("a missing directory", false, format!("resources: ['{base}//none']")),
        ("no kustomization", false, format!("resources: ['{base}//no']")),
        ("an unknown reference", false, format!("resources: ['{base}//app?ref=v9']")),
        (
            "an unknown repository",
            false,
            format!("resources: ['{}/org/none.git//app']", servers.git_url),
        ),
        ("a file beside its directory", false, format!("resources: ['{base}//outside']")),
        ("a directory above the repository", false, format!("resources: ['{base}//above']")),
        ("a cycle", false, format!("resources: ['{base}//cycle']")),
        ("a component as resource", false, format!("resources: ['{base}//component']")),
    ];
    let mut failures = Vec::new();
    for (what, is_built, kustomization) in &overlays {
        let dir = servers.scratch.path().join("overlay");
        fs::remove_dir_all(&dir).ok();
        let prefixed = format!("resources: ['{base}//app?ref=main']\nnamePrefix: p-\n");
        write(
            &dir,
            &[("kustomization.yaml", kustomization), ("prefixed/kustomization.yaml", &prefixed)],
        );
        let (ours, theirs) = (servers.ours(&["."], &dir), theirs(&["."], &dir));
        let same = ours.status.code() == theirs.status.code() && ours.stdout == theirs.stdout;
        if !same || theirs.status.success() != *is_built {
            let texts = [&ours.stdout, &theirs.stdout]
                .map(|text| String::from_utf8_lossy(text).into_owned());
            failures.push(format!("== {what}\n{texts:?}\n{}\n{}", error(&ours), error(&theirs)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_command_builds_what_an_address_names() {
    let servers = Servers::start();
    let base = format!("{}/org/base.git", servers.git_url);
    let dir = servers.scratch.path();
    let address = format!("{base}//app?ref=v1");
    let (ours, theirs) = (servers.ours(&[&address], dir), theirs(&[&address], dir));
    assert!(theirs.status.success(), "{}", error(&theirs));
    assert!(ours.stdout == theirs.stdout, "{}", error(&ours));
    let outside =
        servers.ours(&[&format!("{base}//outside"), "--load-restrictor=LoadRestrictionsNone"], dir);
    assert!(
        error(&outside).contains("../lib/lib.yaml is outside of outside"),
        "{}",
        error(&outside)
    );
    for (args, expected) in [
        (vec![address.as_str(), "--no-remote-bases"], "is a remote kustomization"),
        (vec!["overlay", "--no-remote-bases"], "remote resources are not allowed: http"),
    ] {
        write(dir, &[("overlay/kustomization.yaml", &format!("resources: ['{base}//app']\n"))]);
        let output = servers.ours(&args, dir);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(error(&output).contains(expected), "{}", error(&output));
        assert!(output.stdout.is_empty());
    }
}
