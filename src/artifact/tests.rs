#![expect(clippy::disallowed_methods, reason = "looks at the cache directory, serves HTTP")]

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    net::{ClientOptions, RetryPolicy, client},
    tree::SourceTree,
};

/// What the test server does with one request.
#[derive(Clone)]
enum Answer {
    Status(u16, &'static str),
    File(Vec<u8>),
    /// Announces the whole file and closes after half of it.
    Truncated(Vec<u8>),
    /// One byte, then silence.
    Silent,
    /// Zeros without end and without a length.
    Endless,
    /// One byte every 20 ms, for ever.
    Trickle,
    /// The file, but not at once.
    Late(Vec<u8>),
    Reset,
}

struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Answers the n-th request (from 0) as `script` says.
    async fn start(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = script(counter.fetch_add(1, Ordering::SeqCst));
                tokio::spawn(answer_one(stream, answer));
            }
        });
        Self { address, requests }
    }

    fn artifact(&self, file: &[u8]) -> Artifact {
        Artifact {
            url: format!("http://{}/gitrepository/flux-system/shop/sha256:0.tar.gz", self.address),
            digest: digest_of("sha256", file),
            revision: "main@sha1:0".into(),
            size: Some(file.len() as u64),
        }
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer_one(mut stream: TcpStream, answer: Answer) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.ok()?);
    }
    let head = |length: usize| {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
    };
    match answer {
        Answer::Status(code, header) => {
            let text = format!(
                "HTTP/1.1 {code} X\r\n{header}content-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).await.ok()?;
        }
        Answer::File(file) => {
            stream.write_all(head(file.len()).as_bytes()).await.ok()?;
            // Gives callers the time to meet.
            tokio::time::sleep(Duration::from_millis(30)).await;
            stream.write_all(&file).await.ok()?;
        }
        Answer::Late(file) => {
            tokio::time::sleep(Duration::from_millis(250)).await;
            stream.write_all(head(file.len()).as_bytes()).await.ok()?;
            stream.write_all(&file).await.ok()?;
        }
        Answer::Truncated(file) => {
            stream.write_all(head(file.len()).as_bytes()).await.ok()?;
            stream.write_all(&file[..file.len() / 2]).await.ok()?;
        }
        Answer::Silent => {
            stream.write_all(head(100).as_bytes()).await.ok()?;
            stream.write_all(b"x").await.ok()?;
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Answer::Endless | Answer::Trickle => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.ok()?;
            loop {
                if matches!(answer, Answer::Endless) {
                    stream.write_all(&[0; 8192]).await.ok()?;
                } else {
                    stream.write_all(b"x").await.ok()?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        Answer::Reset => {
            stream.set_zero_linger().ok()?;
            return None;
        }
    }
    stream.shutdown().await.ok()
}

fn archive(text: &str) -> Vec<u8> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    builder.append_data(&mut header, "deploy/app.yaml", text.as_bytes()).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

fn digest_of(algorithm: &str, bytes: &[u8]) -> Digest {
    let digits = match algorithm {
        "sha384" => 96,
        "sha512" => 128,
        "sha1" => 40,
        _ => 64,
    };
    let kind: Digest = format!("{algorithm}:{}", "0".repeat(digits)).parse().unwrap();
    let mut hasher = kind.hasher();
    hasher.update(bytes);
    hasher.finish()
}

fn options() -> FetchOptions {
    FetchOptions {
        max_download: 1 << 20,
        retry: RetryPolicy {
            retries: 2,
            min_wait: Duration::from_millis(5),
            max_wait: Duration::from_millis(20),
        },
        timeout: Duration::from_secs(10),
        ..Default::default()
    }
}

fn open(dir: &Path, limits: StoreLimits) -> Store {
    let options =
        ClientOptions { read_timeout: Duration::from_millis(300), ..ClientOptions::default() };
    Store::open(dir, client(&options).unwrap(), limits).unwrap()
}

fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("cache"), StoreLimits::default());
    (dir, store)
}

async fn fetch(store: &Store, artifact: &Artifact) -> Result<Arc<ArtifactTree>, ArtifactError> {
    store.fetch(artifact, &options(), &CancellationToken::new()).await
}

fn app(tree: &dyn SourceTree) -> String {
    String::from_utf8(tree.read("deploy/app.yaml").unwrap().to_vec()).unwrap()
}

/// Files in a directory of the cache.
fn listed(dir: &TempDir, name: &str) -> usize {
    std::fs::read_dir(dir.path().join("cache").join(name)).unwrap().count()
}

#[test]
fn digests_are_read_as_flux_writes_them() {
    let hex = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let digest: Digest = format!("sha256:{hex}").parse().unwrap();
    assert_eq!(digest, hex.to_uppercase().parse().unwrap());
    assert_eq!(digest.to_string(), format!("sha256:{hex}"));
    assert_eq!(Digest::from_file_stem(&digest.file_stem()), Some(digest));
    for wrong in ["", "sha256:", "sha256:xyz", "md5:d3b07384d113edec49eaa6238ad5ff00", "../../x"] {
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
    // Vectors of the algorithms' own publications, for the text "abc".
    for (algorithm, start) in [
        ("sha1", "a9993e364706816aba3e25717850c26c"),
        ("sha256", "ba7816bf8f01cfea414140de5dae2223"),
        ("sha384", "cb00753f45a35e8bb5a03d699ac65007"),
        ("sha512", "ddaf35a193617abacc417349ae204131"),
        ("blake3", "6437b3ac38465133ffb63b75273a8db5"),
    ] {
        assert!(digest_of(algorithm, b"abc").hex().starts_with(start), "{algorithm}");
    }
}

#[test]
fn the_localhost_replaces_host_and_port_alone() {
    let url = "http://source-controller.flux-system.svc.cluster.local./ocirepository/a/b/sha256:12.tar.gz";
    assert_eq!(locate(url, None).unwrap().as_str(), url);
    assert_eq!(locate(url, Some("")).unwrap().as_str(), url);
    assert_eq!(
        locate(url, Some("localhost:9090")).unwrap().as_str(),
        "http://localhost:9090/ocirepository/a/b/sha256:12.tar.gz"
    );
    assert_eq!(locate("https://h:1/x", Some("[::1]")).unwrap().as_str(), "https://[::1]/x");
    assert!(locate(url, Some("http://localhost")).is_err());
    assert!(locate(url, Some("localhost/x")).is_err());
    assert!(locate("file:///etc/passwd", None).is_err());
    let error = locate("ftp://u:hunter2@h/x", None).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn every_algorithm_is_verified() {
    let file = archive("app: 1");
    let served = file.clone();
    let server = Server::start(move |_| Answer::File(served.clone())).await;
    for algorithm in ["sha1", "sha256", "sha384", "sha512", "blake3"] {
        let (_dir, store) = store();
        let artifact = Artifact { digest: digest_of(algorithm, &file), ..server.artifact(&file) };
        let tree = fetch(&store, &artifact).await.unwrap();
        assert_eq!(app(&*tree), "app: 1");

        let wrong = Artifact { digest: digest_of(algorithm, b"other"), ..artifact };
        let error = fetch(&store, &wrong).await.unwrap_err();
        assert!(matches!(error, ArtifactError::DigestMismatch { .. }), "{error}");
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn nothing_stays_of_a_failed_fetch() {
    let server = Server::start(|_| Answer::File(archive("evil"))).await;
    let (dir, store) = store();
    fetch(&store, &server.artifact(&archive("good"))).await.unwrap_err();
    assert_eq!(store.usage(), (0, 0));
    assert_eq!((listed(&dir, "tmp"), listed(&dir, "blobs"), listed(&dir, "trees")), (0, 0, 0));
}

#[tokio::test]
async fn passing_trouble_is_survived() {
    let file = archive("app: 1");
    for trouble in [
        Answer::Status(500, ""),
        Answer::Status(503, "retry-after: 0\r\n"),
        Answer::Status(429, ""),
        Answer::Truncated(file.clone()),
        Answer::Silent,
        Answer::Reset,
    ] {
        let good = file.clone();
        let server =
            Server::start(
                move |n| {
                    if n < 2 { trouble.clone() } else { Answer::File(good.clone()) }
                },
            )
            .await;
        let (_dir, store) = store();
        let tree = fetch(&store, &server.artifact(&file)).await.unwrap();
        assert_eq!((app(&*tree), server.count()), ("app: 1".to_owned(), 3));
    }
}

#[tokio::test]
async fn lasting_trouble_is_reported_after_the_retries() {
    let file = archive("app: 1");
    let server = Server::start(|_| Answer::Status(502, "")).await;
    let (_dir, store) = store();
    let error = fetch(&store, &server.artifact(&file)).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Unavailable { attempts: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("502"), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn some_answers_are_final() {
    let file = archive("app: 1");
    for (answer, class) in [
        (Answer::Status(404, ""), Class::Waiting),
        (Answer::Status(403, ""), Class::Access),
        (Answer::Status(302, "location: http://127.0.0.2:1/x\r\n"), Class::Access),
    ] {
        let server = Server::start(move |_| answer.clone()).await;
        let (dir, store) = store();
        let error = fetch(&store, &server.artifact(&file)).await.unwrap_err();
        assert_eq!((error.describe().class, server.count()), (class, 1), "{error:?}");
        assert_eq!(listed(&dir, "tmp"), 0);
    }
    let gone = ArtifactError::StorageGone { url: String::new() };
    assert!(gone.is_transient());
}

#[tokio::test]
async fn an_endless_body_is_cut_off_at_the_limit() {
    let server = Server::start(|_| Answer::Endless).await;
    for size in [None, Some(0)] {
        let (dir, store) = store();
        let artifact = Artifact { size, ..server.artifact(b"") };
        let error = fetch(&store, &artifact).await.unwrap_err();
        assert!(matches!(error, ArtifactError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
        assert_eq!(error.describe().class, Class::Project);
        assert_eq!(listed(&dir, "tmp"), 0);
    }
}

#[tokio::test]
async fn a_body_longer_than_announced_is_refused_for_now() {
    let file = archive("app: 1");
    let announced = file.len() as u64 - 1;
    for answer in [Answer::Endless, Answer::File(file.clone())] {
        let server = Server::start(move |_| answer.clone()).await;
        let (dir, store) = store();
        let artifact = Artifact { size: Some(announced), ..server.artifact(&file) };
        let error = fetch(&store, &artifact).await.unwrap_err();
        assert!(
            error.to_string().ends_with(&format!(
                "the file is longer than the {announced} bytes that the source announces"
            )),
            "{error}"
        );
        assert_eq!((error.describe().class, server.count()), (Class::Transient, 1));
        assert_eq!(listed(&dir, "tmp"), 0);
        assert_eq!(listed(&dir, "blobs"), 0);
    }
}

#[tokio::test]
async fn a_size_beyond_the_limit_is_not_even_asked_for() {
    let server = Server::start(|_| Answer::Reset).await;
    let (_dir, store) = store();
    let artifact = Artifact { size: Some(2 << 20), ..server.artifact(b"") };
    let error = fetch(&store, &artifact).await.unwrap_err();
    assert!(matches!(error, ArtifactError::TooLarge { limit: 1_048_576, .. }), "{error:?}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_slow_body_meets_the_deadline() {
    let server = Server::start(|_| Answer::Trickle).await;
    let (dir, store) = store();
    let options = FetchOptions { timeout: Duration::from_millis(400), ..options() };
    let started = Instant::now();
    let artifact = server.artifact(&[0; 1000]);
    let error = store.fetch(&artifact, &options, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Deadline { received: 1.., .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    wait_until_empty(&dir).await;
}

#[tokio::test]
async fn whose_time_is_up_leaves_the_others_their_own() {
    let file = archive("app: 1");
    let served = file.clone();
    let server = Server::start(move |_| Answer::Late(served.clone())).await;
    let (_dir, store) = store();
    let artifact = server.artifact(&file);
    let hasty = FetchOptions { timeout: Duration::from_millis(100), ..options() };
    let token = CancellationToken::new();
    let (first, second) =
        tokio::join!(store.fetch(&artifact, &hasty, &token), fetch(&store, &artifact));
    let error = first.unwrap_err();
    assert!(matches!(error, ArtifactError::Deadline { seconds: 0, .. }), "{error:?}");
    assert_eq!(app(&*second.unwrap()), "app: 1");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn who_has_no_time_for_another_attempt_learns_why_at_once() {
    let server = Server::start(|_| Answer::Status(503, "")).await;
    let (_dir, store) = store();
    let retry = RetryPolicy::flux(9);
    let options = FetchOptions { timeout: Duration::from_secs(4), retry, ..options() };
    let artifact = server.artifact(b"x");
    let started = Instant::now();
    let error = store.fetch(&artifact, &options, &CancellationToken::new()).await.unwrap_err();
    let ArtifactError::Unavailable { attempts: 1, message, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(message.contains("503") && started.elapsed() < Duration::from_secs(3), "{message}");
}

#[tokio::test]
async fn an_archive_that_contradicts_itself_is_not_downloaded_again() {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    for name in ["a", "a/b"] {
        let mut header = tar::Header::new_ustar();
        header.set_size(1);
        builder.append_data(&mut header, name, &b"x"[..]).unwrap();
    }
    let file = builder.into_inner().unwrap().finish().unwrap();
    let served = file.clone();
    let server = Server::start(move |_| Answer::File(served.clone())).await;
    let (_dir, store) = store();
    let error = fetch(&store, &server.artifact(&file)).await.unwrap_err();
    assert_eq!(error.describe().class, Class::Project, "{error:?}");
}

#[tokio::test]
async fn a_copied_layer_that_is_no_archive_is_explained() {
    let server = Server::start(|_| Answer::File(b"replicas: 3\n".to_vec())).await;
    let (dir, store) = store();
    let error = fetch(&store, &server.artifact(b"replicas: 3\n")).await.unwrap_err();
    let shown = error.describe().to_string();
    assert!(
        shown.contains("it looks like plain text") && shown.contains("layerSelector"),
        "{shown}"
    );
    assert_eq!((listed(&dir, "blobs"), store.usage().0), (0, 0));
}

#[tokio::test]
async fn callers_at_the_same_time_share_one_download() {
    let file = archive("app: 1");
    let served = file.clone();
    let server = Server::start(move |_| Answer::File(served.clone())).await;
    let (_dir, store) = store();
    let artifact = server.artifact(&file);
    let all = futures::future::join_all((0..20).map(|_| fetch(&store, &artifact))).await;
    let trees: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert!(trees.iter().all(|tree| Arc::ptr_eq(tree, &trees[0])));
    assert!(Arc::ptr_eq(&fetch(&store, &artifact).await.unwrap(), &trees[0]));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn one_cancelled_caller_leaves_the_others_alone() {
    let file = archive("app: 1");
    let served = file.clone();
    let server = Server::start(move |n| match n {
        0 => Answer::File(served.clone()),
        _ => Answer::Status(404, ""),
    })
    .await;
    let (_dir, store) = store();
    let artifact = server.artifact(&file);
    let (first, options) = (CancellationToken::new(), options());
    let cancelled = async {
        tokio::task::yield_now().await;
        first.cancel();
    };
    let (first, second, ()) =
        tokio::join!(store.fetch(&artifact, &options, &first), fetch(&store, &artifact), cancelled);
    assert_eq!(first.unwrap_err(), ArtifactError::Cancelled);
    assert_eq!(app(&*second.unwrap()), "app: 1");
}

#[tokio::test]
async fn a_download_nobody_waits_for_is_stopped() {
    let file = archive("app: 1");
    let served = file.clone();
    let server = Server::start(move |n| match n {
        0 => Answer::Trickle,
        _ => Answer::File(served.clone()),
    })
    .await;
    let (dir, store) = store();
    let artifact = server.artifact(&file);
    let left = tokio::time::timeout(Duration::from_millis(100), fetch(&store, &artifact)).await;
    assert!(left.is_err());
    assert_eq!(app(&*fetch(&store, &artifact).await.unwrap()), "app: 1");
    wait_until_empty(&dir).await;
}

async fn wait_until_empty(dir: &TempDir) {
    for _ in 0..100 {
        if listed(dir, "tmp") == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the abandoned download is still there");
}

#[tokio::test]
async fn the_least_recently_used_goes_unless_it_is_held() {
    let files: Vec<Vec<u8>> = (0..4).map(|n| archive(&format!("app: {n}"))).collect();
    let served = files.clone();
    let server = Server::start(move |n| Answer::File(served[n.min(3)].clone())).await;
    let dir = tempfile::tempdir().unwrap();
    let limits = StoreLimits { max_entries: 2, ..StoreLimits::default() };
    let store = open(&dir.path().join("cache"), limits);
    let artifacts: Vec<Artifact> = files.iter().map(|file| server.artifact(file)).collect();

    let held: Arc<dyn SourceTree> = fetch(&store, &artifacts[0]).await.unwrap();
    fetch(&store, &artifacts[1]).await.unwrap();
    fetch(&store, &artifacts[2]).await.unwrap();
    assert_eq!((store.usage().0, listed(&dir, "trees"), listed(&dir, "blobs")), (2, 2, 2));
    assert_eq!(app(&*held), "app: 0");
    assert!(Arc::ptr_eq(
        &(fetch(&store, &artifacts[0]).await.unwrap() as Arc<dyn SourceTree>),
        &held
    ));
    drop(held);
    // The first was used last, so the third has to go.
    fetch(&store, &artifacts[3]).await.unwrap();
    assert_eq!(server.count(), 4);
    fetch(&store, &artifacts[0]).await.unwrap();
    assert_eq!(server.count(), 4);

    drop(store);
    let one = StoreLimits { max_bytes: files[0].len() as u64 + 10, ..limits };
    assert_eq!(open(&dir.path().join("cache"), one).usage().0, 1);
}

#[tokio::test]
async fn a_restart_keeps_verified_files_and_trusts_nothing_else() {
    let (file, other) = (archive("app: 1"), archive("app: 2"));
    let served = [file.clone(), other.clone(), other.clone()];
    let server = Server::start(move |n| Answer::File(served[n].clone())).await;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("cache");
    let store = open(&root, StoreLimits::default());
    fetch(&store, &server.artifact(&file)).await.unwrap();
    let tampered = fetch(&store, &server.artifact(&other)).await.unwrap();
    assert_eq!(server.count(), 2);
    assert!(
        Store::open(&root, client(&ClientOptions::default()).unwrap(), StoreLimits::default())
            .is_err_and(|error| error.to_string().contains("in use by another process"))
    );
    std::fs::write(tampered.path().join("deploy/app.yaml"), "evil").unwrap();
    let blob = root.join(format!("blobs/{}.tar.gz", tampered.digest().file_stem()));
    std::fs::write(&blob, "cut by a crash").unwrap();
    std::fs::write(root.join("tmp/0.part"), "half").unwrap();
    std::fs::write(root.join("blobs/unknown"), "?").unwrap();
    drop((store, tampered));

    let store = open(&root, StoreLimits::default());
    assert_eq!((store.usage().0, listed(&dir, "tmp"), listed(&dir, "trees")), (2, 0, 0));
    assert_eq!(listed(&dir, "blobs"), 2);
    assert_eq!(app(&*fetch(&store, &server.artifact(&file)).await.unwrap()), "app: 1");
    assert_eq!(server.count(), 2);
    assert_eq!(app(&*fetch(&store, &server.artifact(&other)).await.unwrap()), "app: 2");
    assert_eq!(server.count(), 3);
}

#[test]
fn errors_do_not_show_what_urls_carry() {
    let artifact = Artifact {
        url: "http://u:hunter2@h/x?sig=hunter2".into(),
        digest: digest_of("sha256", b""),
        revision: String::new(),
        size: None,
    };
    assert!(!format!("{artifact:?}").contains("hunter2"));
}
