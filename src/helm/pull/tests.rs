#![expect(clippy::disallowed_methods, reason = "looks at what is left in directories")]

use std::{collections::BTreeMap, fmt::Write as _, fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use reqwest::Url;
use tokio_util::sync::CancellationToken;
use wiremock::{
    Mock, MockServer, Request, ResponseTemplate,
    matchers::{header, method, path, query_param},
};

use super::{
    super::{Origin, SemVer, semver::Constraint},
    client::hex,
    *,
};
use crate::{diagnostic::Describe, secret::Secret};

#[test]
fn indexes_are_read_for_one_chart() {
    let text = r#"
apiVersion: v1
entries:
  other: [{version: 9.9.9, urls: [x], nested: {a: [{b: c}]}}]
  web:
  - annotations: {a: "b"}
    created: "2024-01-01T00:00:00Z"
    digest: sha256:aa
    urls: [https://h/web-1.2.3.tgz, second]
    version: 1.2.3
    dependencies: [{name: x, version: 7.7.7}]
  - {version: "1.10", urls: [web-1.10.tgz], maintainers: [{name: ü}]}
  - {name: web}
generated: "now"
"#;
    let index = read_index(text.as_bytes(), "web").unwrap();
    let entry = |version: &str, urls: &[&str], digest: Option<&str>| IndexEntry {
        version: version.to_owned(),
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        digest: digest.map(str::to_owned),
    };
    assert_eq!(
        index.entries.unwrap(),
        [
            entry("1.2.3", &["https://h/web-1.2.3.tgz", "second"], Some("sha256:aa")),
            entry("1.10", &["web-1.10.tgz"], None),
        ]
    );
    assert_eq!(index.names, ["other"]);
    let json = r#"{"apiVersion": "v1", "entries": {"web": [{"version": "1", "urls": ["u"]}]}}"#;
    assert_eq!(
        read_index(json.as_bytes(), "web").unwrap().entries.unwrap(),
        [entry("1", &["u"], None)]
    );
    assert_eq!(
        read_index("apiVersion: v1\nentries: {}\n".as_bytes(), "web").unwrap().entries,
        None
    );
    for (text, words) in [
        ("<html>not found</html>", "no index"),
        ("a: b\n", "no index"),
        ("apiVersion: v1\nentries: [a]\n", "entries is no mapping"),
        ("apiVersion: v1\nentries: {web: [", ""),
    ] {
        let message = read_index(text.as_bytes(), "web").unwrap_err();
        assert!(message.contains(words), "{text}: {message}");
    }
    assert_eq!(read_index(&b"apiVersion: \xff\n"[..], "web").unwrap_err(), "is not UTF-8");
}

#[test]
fn versions_are_ordered_and_constrained_as_helm_does() {
    let version = |text: &str| SemVer::parse(text).unwrap_or_else(|| panic!("{text}"));
    let ordered = [
        "0.1",
        "v1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.2",
        "v1.10.0+build",
    ];
    for pair in ordered.windows(2) {
        assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
    }
    for text in ["", "x", "1.x", "1.2.3.4", "1..2", "1.2.3-", "latest"] {
        assert_eq!(SemVer::parse(text), None, "{text}");
    }
    for (constraint, yes, no) in [
        ("*", "0.0.0 1.2.3", "1.0.0-rc.1"),
        ("1.2.3", "1.2.3 v1.2.3", "1.2.4"),
        ("1.2", "1.2.0 1.2.9", "1.3.0"),
        ("1.x", "1.0.0 1.9.9", "2.0.0"),
        ("!=1.2.3", "1.2.4", "1.2.3"),
        ("!=1.2", "1.3.0", "1.2.7"),
        (">1.2", "1.3.0", "1.2.9"),
        (">1", "2.0.0", "1.9.0"),
        (">1.2.3", "1.2.4", "1.2.3"),
        (">=1.2", "1.2.0", "1.1.9"),
        ("<1.2", "1.1.9", "1.2.0"),
        ("<=1.2", "1.2.9", "1.3.0"),
        ("<=1.2.3", "1.2.3", "1.2.4"),
        ("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0"),
        ("~1", "1.0.0 1.9.0", "2.0.0"),
        ("^1.2.3", "1.2.3 1.9.0", "2.0.0 1.2.2"),
        ("^0.2.3", "0.2.3 0.2.9", "0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0.0", "0.0.9", "0.1.0"),
        ("^0", "0.9.0", "1.0.0"),
        ("1.2 - 1.4.5", "1.2.0 1.4.5", "1.4.6 1.1.9"),
        (">= 1.2, < 2.0.0 || >=4", "1.5.0 4.0.0", "2.0.0 3.9.9"),
        (">=1.2 <1.4", "1.3.0", "1.4.0"),
        (">=1.0.0-0", "1.0.0-rc.1 1.0.0", "0.9.0"),
        ("~1.0.0-beta.2", "1.0.0-beta.3 1.0.1", "1.0.0-beta.1"),
    ] {
        let parsed = Constraint::parse(constraint).unwrap();
        for text in yes.split(' ') {
            assert!(parsed.allows(&version(text)), "{constraint} allows {text}");
        }
        for text in no.split(' ') {
            assert!(!parsed.allows(&version(text)), "{constraint} refuses {text}");
        }
    }
    for text in ["", ">", "1.2.3.4", "abc", ">>1", "1 ||"] {
        assert!(Constraint::parse(text).is_err(), "{text}");
    }
}

#[test]
fn credentials_are_chosen_by_host_port_and_path() {
    let rule = |host: &str, path: Option<&str>, user: &str| {
        let access = Access { user: Some(user.to_owned()), ..Access::default() };
        AccessRule::new(host, path, access).unwrap()
    };
    let rules = AccessRules(vec![
        rule("h.example", Some("team/*"), "team"),
        rule("h.example", Some("deep/**"), "deep"),
        rule("h.example:8443", None, "port"),
        rule("other.example", None, "other"),
    ]);
    for (url, user) in [
        ("https://h.example/team/charts", Some("team")),
        ("https://H.example/team/charts/", Some("team")),
        ("https://h.example/team/a/b", None),
        ("https://h.example/deep/a/b", Some("deep")),
        ("https://h.example:8443/x", Some("port")),
        ("https://other.example", Some("other")),
        ("https://other.example:444", None),
        ("https://me:pw@unknown.example", Some("me")),
        ("https://sub.other.example", None),
    ] {
        let access = rules.choose(&Url::parse(url).unwrap());
        assert_eq!(access.user.as_deref(), user, "{url}");
    }
    assert!(AccessRule::new("h", Some("a[b"), Access::default()).is_err());
}

/// A chart archive with these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn web(version: &str) -> Vec<u8> {
    let chart = format!("apiVersion: v2\nname: web\nversion: {version}\n");
    archive(&[("web/Chart.yaml", &chart), ("web/templates/a.yaml", "kind: A\n")])
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};

    hex(&Sha256::digest(bytes))
}

fn puller(dir: &Path, rules: AccessRules) -> Puller {
    Puller::new(PullOptions {
        repositories: rules.clone(),
        registries: rules,
        ..PullOptions::new(dir.to_owned())
    })
}

fn login(url: &str) -> AccessRules {
    let url = Url::parse(url).unwrap();
    let access = Access {
        origin: "the test".to_owned(),
        user: Some("anna".to_owned()),
        password: Some(Secret::new("hunter2".to_owned())),
        ..Access::default()
    };
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    AccessRules(vec![AccessRule::new(&host, None, access).unwrap()])
}

/// `anna:hunter2`
const BASIC: &str = "Basic YW5uYTpodW50ZXIy";

fn origin(url: &str) -> Origin {
    let url = Url::parse(url).unwrap();
    if url.scheme() == "oci" {
        Origin::Oci { url }
    } else {
        Origin::Repository { url, name: "web".to_owned() }
    }
}

async fn serve(server: &MockServer, route: &str, answer: ResponseTemplate) {
    Mock::given(method("GET")).and(path(route)).respond_with(answer).mount(server).await;
}

fn ok(body: impl Into<Vec<u8>>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_bytes(body)
}

fn index(entries: &[(&str, &str, &str)]) -> String {
    let mut text = "apiVersion: v1\nentries:\n  web:\n".to_owned();
    for (version, url, digest) in entries {
        writeln!(text, "  - {{version: {version}, urls: ['{url}'], digest: '{digest}'}}").unwrap();
    }
    text
}

fn sent_secrets(requests: &[Request]) -> usize {
    requests.iter().filter(|request| request.headers.contains_key("authorization")).count()
}

#[tokio::test]
async fn charts_of_a_repository_are_pulled_with_its_credentials_only() {
    let (server, elsewhere) = (MockServer::start().await, MockServer::start().await);
    let (near, far) = (web("1.0.0"), web("2.0.0"));
    let away = format!("{}/web-2.0.0.tgz", elsewhere.uri());
    let entries = [
        ("2.0.0", away.as_str(), sha256(&far)),
        ("1.0.0", "files/web-1.0.0.tgz", format!("sha256:{}", sha256(&near))),
        ("3.0.0", "redirect.tgz", String::new()),
    ];
    let entries: Vec<(&str, &str, &str)> =
        entries.iter().map(|(v, u, d)| (*v, *u, d.as_str())).collect();
    for (route, body) in [
        ("/charts/index.yaml", index(&entries).into_bytes()),
        ("/charts/files/web-1.0.0.tgz", near),
    ] {
        Mock::given(path(route))
            .and(header("authorization", BASIC))
            .respond_with(ok(body))
            .mount(&server)
            .await;
    }
    let redirect = ResponseTemplate::new(302)
        .insert_header("location", format!("{}/moved.tgz", elsewhere.uri()));
    serve(&server, "/charts/redirect.tgz", redirect).await;
    serve(&elsewhere, "/web-2.0.0.tgz", ok(far)).await;
    serve(&elsewhere, "/moved.tgz", ok(web("3.0.0"))).await;

    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let url = format!("{}/charts/", server.uri());
    let puller = puller(dir.path(), login(&url));
    let mut versions = puller.versions(&origin(&url), &cancel).await.unwrap();
    versions.sort();
    assert_eq!(versions, ["1.0.0", "2.0.0", "3.0.0"]);
    for version in versions {
        let pulled = puller.pull(&origin(&url), &version, &cancel).await.unwrap();
        assert_eq!(pulled.metadata.version, version);
        assert!(pulled.path().join("templates/a.yaml").is_file());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left over");
    assert_eq!(elsewhere.received_requests().await.unwrap().len(), 2);
    assert_eq!(sent_secrets(&elsewhere.received_requests().await.unwrap()), 0);
}

#[tokio::test]
async fn what_a_repository_does_wrong_is_told_and_leaves_nothing() {
    let server = MockServer::start().await;
    let wrong_digest = "0".repeat(64);
    let bomb = archive(&[
        ("web/Chart.yaml", "name: web\nversion: 6.0.0\n"),
        ("web/big", &"x".repeat(3 << 20)),
    ]);
    let entries = [
        ("1.0.0", "digest.tgz", wrong_digest.as_str()),
        ("2.0.0", "gone.tgz", ""),
        ("3.0.0", "damaged.tgz", ""),
        ("4.0.0", "other.tgz", ""),
        ("5.0.0", "escape.tgz", ""),
        ("6.0.0", "bomb.tgz", ""),
        ("7.0.0", "version.tgz", ""),
        ("8.0.0", "file:///etc/passwd", ""),
    ];
    serve(&server, "/index.yaml", ok(index(&entries))).await;
    serve(&server, "/digest.tgz", ok(web("1.0.0"))).await;
    serve(&server, "/damaged.tgz", ok(&web("3.0.0")[..60])).await;
    serve(&server, "/other.tgz", ok(archive(&[("x/Chart.yaml", "name: x\nversion: 4.0.0\n")])))
        .await;
    serve(&server, "/bomb.tgz", ok(bomb)).await;
    serve(&server, "/version.tgz", ok(web("7.0.1"))).await;
    let mut tar = archive(&[]);
    {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..11].copy_from_slice(b"../outside\0");
        header.set_size(1);
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        tar.clear();
        tar.extend(builder.into_inner().unwrap().finish().unwrap());
    }
    serve(&server, "/escape.tgz", ok(tar)).await;

    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let mut options = PullOptions::new(dir.path().join("work"));
    options.unpack.max_bytes = 1 << 20;
    let puller = Puller::new(options);
    let url = server.uri();
    let expected = BTreeMap::from([
        ("1.0.0", "was announced"),
        ("2.0.0", "there is no chart archive"),
        ("3.0.0", "/damaged.tgz"),
        ("4.0.0", "holds chart x, not web"),
        ("5.0.0", "../outside"),
        ("6.0.0", "more than 1048576 bytes"),
        ("7.0.0", "holds version 7.0.1, not 7.0.0"),
        ("8.0.0", "no web address"),
        ("8.0.1", "chart web has no version 8.0.1 (there is 8.0.0)"),
    ]);
    for (version, words) in expected {
        let error = puller.pull(&origin(&url), version, &cancel).await.unwrap_err();
        let text = error.describe().to_string();
        assert!(text.contains(words), "{version}: {text}");
    }
    assert_eq!(fs::read_dir(dir.path().join("work")).unwrap().count(), 0);
    assert!(!dir.path().join("outside").exists());
    let missing = Origin::Repository { url: Url::parse(&url).unwrap(), name: "wbe".to_owned() };
    let text = puller.versions(&missing, &cancel).await.unwrap_err().describe().to_string();
    assert!(text.contains("has no chart wbe") && text.contains("did you mean web?"), "{text}");
    let text =
        puller.versions(&origin(&format!("{url}/none")), &cancel).await.unwrap_err().to_string();
    assert!(text.contains("there is no index.yaml"), "{text}");
}

#[tokio::test]
async fn refused_credentials_are_told_without_the_password() {
    let server = MockServer::start().await;
    serve(&server, "/index.yaml", ResponseTemplate::new(401)).await;
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let error =
        puller(dir.path(), login(&server.uri())).versions(&origin(&server.uri()), &cancel).await;
    let text = format!("{} {:?}", error.as_ref().unwrap_err().describe(), error);
    assert!(text.contains("asked as anna (from the test)") && !text.contains("hunter2"), "{text}");
    let error =
        puller(dir.path(), AccessRules::default()).versions(&origin(&server.uri()), &cancel).await;
    assert!(error.unwrap_err().to_string().contains("asked without credentials"));
}

#[tokio::test]
async fn a_busy_server_is_asked_again() {
    let server = MockServer::start().await;
    Mock::given(path("/index.yaml"))
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    serve(&server, "/index.yaml", ok(index(&[("1.0.0", "x", "")]))).await;
    let dir = tempfile::tempdir().unwrap();
    let puller = puller(dir.path(), AccessRules::default());
    let found = puller.versions(&origin(&server.uri()), &CancellationToken::new()).await;
    assert_eq!(found.unwrap(), ["1.0.0"]);
}

#[tokio::test]
async fn charts_of_a_registry_are_pulled_with_a_token() {
    let (server, blobs) = (MockServer::start().await, MockServer::start().await);
    let chart = web("1.0.0+build.5");
    let digest = format!("sha256:{}", sha256(&chart));
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "layers": [
            {"mediaType": "application/vnd.cncf.helm.chart.provenance.v1.prov", "digest": "sha256:00"},
            {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": digest},
        ],
    });
    let bearer = || header("authorization", "Bearer t0ken");
    let challenge = format!(
        "Bearer realm=\"{}/token\",service=\"reg\",scope=\"repository:org/web:pull\"",
        server.uri()
    );
    Mock::given(path("/token"))
        .and(header("authorization", BASIC))
        .and(query_param("service", "reg"))
        .and(query_param("scope", "repository:org/web:pull"))
        .respond_with(ok(r#"{"token": "t0ken"}"#))
        .mount(&server)
        .await;
    let blob =
        ResponseTemplate::new(307).insert_header("location", format!("{}/blob", blobs.uri()));
    let tags = ok(r#"{"tags": ["1.0.0_build.5"]}"#)
        .insert_header("link", "</v2/org/web/tags/more>; rel=\"next\"");
    for (route, answer) in [
        ("/v2/org/web/manifests/1.0.0_build.5", ok(manifest.to_string())),
        (&*format!("/v2/org/web/blobs/{digest}"), blob),
        ("/v2/org/web/tags/list", tags),
        ("/v2/org/web/tags/more", ok(r#"{"tags": ["2.0.0"]}"#)),
    ] {
        Mock::given(path(route)).and(bearer()).respond_with(answer).mount(&server).await;
    }
    let refusal = ResponseTemplate::new(401).insert_header("www-authenticate", challenge.as_str());
    Mock::given(method("GET")).respond_with(refusal).with_priority(10).mount(&server).await;
    serve(&blobs, "/blob", ok(chart)).await;

    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let address = server.uri().replace("http://", "oci://");
    let puller = puller(dir.path(), login(&server.uri()));
    let web = origin(&format!("{address}/org/web"));
    assert_eq!(puller.versions(&web, &cancel).await.unwrap(), ["1.0.0+build.5", "2.0.0"]);
    let pulled = puller.pull(&web, "1.0.0+build.5", &cancel).await.unwrap();
    assert_eq!(pulled.metadata.name, "web");
    assert_eq!(sent_secrets(&blobs.received_requests().await.unwrap()), 0);
}

#[tokio::test]
async fn a_registry_cannot_pass_off_another_chart() {
    let server = MockServer::start().await;
    let wrong = format!("sha256:{}", "0".repeat(64));
    let layer = |digest: &str| {
        let media_type = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
        serde_json::json!({"layers": [{"mediaType": media_type, "digest": digest}]}).to_string()
    };
    serve(&server, "/v2/web/manifests/1.0.0", ok(layer(&wrong))).await;
    serve(&server, &format!("/v2/web/blobs/{wrong}"), ok(web("1.0.0"))).await;
    serve(&server, "/v2/web/manifests/2.0.0", ok(r#"{"layers": []}"#)).await;
    serve(&server, "/v2/web/manifests/3.0.0", ok(layer("sha256:../../x"))).await;
    let forged = ok(layer(&wrong)).insert_header("docker-content-digest", wrong.as_str());
    serve(&server, "/v2/web/manifests/4.0.0", forged).await;
    serve(&server, "/v2/web/tags/list", ok(r#"{"tags": ["1.0.0"]}"#)).await;
    let dir = tempfile::tempdir().unwrap();
    let puller = puller(dir.path(), AccessRules::default());
    let web = origin(&server.uri().replace("http://", "oci://")).clone();
    let Origin::Oci { url } = web else { panic!() };
    let web = Origin::Oci { url: url.join("/web").unwrap() };
    for (version, words) in [
        ("1.0.0", "was announced"),
        ("2.0.0", "is no Helm chart"),
        ("3.0.0", "without a SHA-256 digest"),
        ("4.0.0", "was announced"),
        ("5.0.0", "chart web has no version 5.0.0"),
    ] {
        let error = puller.pull(&web, version, &CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().contains(words), "{version}: {error}");
    }
}

#[tokio::test]
async fn large_indexes_are_read_as_they_come() {
    let mut text = Vec::from("apiVersion: v1\nentries:\n");
    for chart in 0..2000 {
        writeln!(text, "  chart-{chart}:").unwrap();
        for version in 0..10 {
            writeln!(
                text,
                "  - {{version: 1.{version}.0, urls: [x.tgz], description: some words}}"
            )
            .unwrap();
        }
    }
    let found = read_index(&text[..], "chart-1999").unwrap();
    assert_eq!((found.entries.unwrap().len(), found.names.len()), (10, 1999));
}
