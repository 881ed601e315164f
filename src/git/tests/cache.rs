#![expect(clippy::disallowed_methods, reason = "looks at the cache directory")]

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::server::{Fault, Origin, Server, git};
use crate::{
    diagnostic::{Class, Describe},
    git::{
        auth::{GitSecret, Rule},
        fetch::{Refusal, judge},
        remote::Depth,
        *,
    },
    net::RetryPolicy,
    tree::SourceTree,
};

fn options() -> CacheOptions {
    CacheOptions {
        timeout: Duration::from_secs(20),
        read_timeout: Duration::from_secs(10),
        retry: RetryPolicy {
            retries: 2,
            min_wait: Duration::from_millis(5),
            max_wait: Duration::from_millis(20),
        },
        ..CacheOptions::default()
    }
}

fn cache() -> (TempDir, Cache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(&dir.path().join("git"), options()).unwrap();
    (dir, cache)
}

fn repositories(dir: &TempDir) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir.path().join("git")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

async fn checkout(
    cache: &Cache,
    url: &str,
    reference: &Reference,
) -> Result<GitCheckout, GitError> {
    checkout_as(cache, url, reference, &Rules::default()).await
}

async fn checkout_as(
    cache: &Cache,
    url: &str,
    reference: &Reference,
    rules: &Rules,
) -> Result<GitCheckout, GitError> {
    let url = GitUrl::parse(url)?;
    cache.checkout(&url, reference, &rules.choose(&url), &CancellationToken::new()).await
}

fn rules(of: &str, data: &[(&str, &str)]) -> Rules {
    let data: BTreeMap<String, Vec<u8>> =
        data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    let secret = GitSecret::from_data("Secret flux-system/shop", &data).unwrap();
    Rules(vec![Rule::Source { url: GitUrl::parse(of).unwrap(), secret }])
}

fn text(tree: &dyn SourceTree, path: &str) -> String {
    String::from_utf8(tree.read(path).unwrap().to_vec()).unwrap()
}

fn branch(name: &str) -> Reference {
    Reference::Branch(name.into())
}

#[tokio::test]
async fn every_kind_of_reference_gives_its_files() {
    let origin = Origin::new();
    let first = origin.id("HEAD");
    origin.write("deploy/app.yaml", "app: 2\n");
    let second = origin.push("main");
    let server = Server::start(origin.repos(), None).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    for (reference, commit, name, app) in [
        (Reference::Default, &second, Some("refs/heads/main"), "app: 2\n"),
        (branch("main"), &second, Some("refs/heads/main"), "app: 2\n"),
        (branch("feat/x"), &first, Some("refs/heads/feat/x"), "app: 1\n"),
        (Reference::Tag("v1".into()), &first, Some("refs/tags/v1"), "app: 1\n"),
        (Reference::Tag("light".into()), &first, Some("refs/tags/light"), "app: 1\n"),
        (Reference::Name("refs/heads/main".into()), &second, Some("refs/heads/main"), "app: 2\n"),
        (Reference::Commit(first.clone()), &first, None, "app: 1\n"),
    ] {
        let checkout = checkout(&cache, &url, &reference).await.unwrap();
        assert_eq!(checkout.resolved.commit, *commit, "{reference}");
        assert_eq!(checkout.resolved.name.as_deref(), name, "{reference}");
        assert_eq!(text(&*checkout.tree, "deploy/app.yaml"), app, "{reference}");
    }
    // Two commits, two downloads.
    assert_eq!(server.fetches(), 2);
}

#[tokio::test]
async fn a_commit_comes_without_its_history_and_the_next_one_without_what_is_known() {
    let origin = Origin::new();
    for n in 0..5 {
        origin.write("top.yaml", &format!("top: {n}\n"));
        origin.push("main");
    }
    let server = Server::start(origin.repos(), None).await;
    let (dir, cache) = cache();
    let url = server.url("shop.git");
    checkout(&cache, &url, &branch("main")).await.unwrap();
    origin.write("top.yaml", "top: new\n");
    origin.push("main");
    let checkout = checkout(&cache, &url, &branch("main")).await.unwrap();
    assert_eq!(text(&*checkout.tree, "top.yaml"), "top: new\n");
    assert_eq!(text(&*checkout.tree, "deploy/app.yaml"), "app: 1\n");

    let repository = repositories(&dir).remove(0).join("g0");
    git(&repository, &["init", "-q", "--bare", "."]);
    let all = git(&repository, &["cat-file", "--batch-check", "--batch-all-objects"]);
    assert_eq!(all.lines().filter(|line| line.contains(" commit ")).count(), 2);
    // The second pack brings a commit, the root tree and one file.
    assert_eq!(all.lines().filter(|line| line.contains(" tree ")).count(), 2 + 2);
    let second = server.seen().into_iter().rfind(|seen| seen.body.contains("want ")).unwrap();
    assert!(second.body.contains("have ") && second.body.contains("deepen 1"), "{}", second.body);
}

#[tokio::test]
async fn credentials_are_needed_and_named() {
    let origin = Origin::new();
    for (wanted, data, shown) in [
        // Base64 of bot:hunter2.
        (
            "Basic Ym90Omh1bnRlcjI=",
            &[("username", "bot"), ("password", "hunter2")][..],
            "Secret flux-system/shop (user \"bot\")",
        ),
        (
            "Bearer hunter2",
            &[("bearerToken", "hunter2\n")],
            "Secret flux-system/shop (bearer token)",
        ),
    ] {
        let server = Server::start(origin.repos(), Some(wanted)).await;
        let (_dir, cache) = cache();
        let url = server.url("shop.git");
        let ok = checkout_as(&cache, &url, &branch("main"), &rules(&url, data)).await.unwrap();
        assert_eq!(text(&*ok.tree, "top.yaml"), "top: 1\n");
        // Sent with the first request, not only after a refusal.
        assert!(server.seen().iter().all(|seen| seen.authorization.as_deref() == Some(wanted)));

        let error = checkout(&cache, &url, &branch("main")).await.unwrap_err();
        assert!(matches!(&error, GitError::Denied { .. }), "{error:?}");
        assert!(error.to_string().contains("401"), "{error}");
        assert!(error.to_string().contains("tried without credentials"), "{error}");

        let wrong: Vec<(&str, &str)> =
            data.iter().map(|(k, v)| (*k, if *v == "bot" { *v } else { "hunter3" })).collect();
        let rules = rules(&url, &wrong);
        let error = checkout_as(&cache, &url, &branch("main"), &rules).await.unwrap_err();
        assert!(error.to_string().contains(shown), "{error}");
        let text = format!("{error} {error:?} {}", error.describe());
        assert!(!text.contains("hunter"), "{text}");
        assert_eq!(error.describe().class, Class::Access);
    }
}

#[tokio::test]
async fn the_cache_does_not_open_doors() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), Some("Bearer t")).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    let allowed = rules(&url, &[("bearerToken", "t")]);
    let commit = Reference::Commit(origin.id("HEAD"));
    checkout_as(&cache, &url, &commit, &allowed).await.unwrap();
    // The files are on disk now, but whoever has no access still has none.
    let error = checkout(&cache, &url, &commit).await.unwrap_err();
    assert!(matches!(error, GitError::Denied { .. }), "{error:?}");
}

#[tokio::test]
async fn credentials_do_not_follow_redirects_elsewhere() {
    let origin = Origin::new();
    let other = Server::start(origin.repos(), None).await;
    let to = other.url("shop.git/info/refs");
    let server =
        Server::scripted(origin.repos(), None, move |_, _| Some(Fault::Redirect(to.clone()))).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    let rules = rules(&url, &[("bearerToken", "t")]);
    let error = checkout_as(&cache, &url, &branch("main"), &rules).await.unwrap_err();
    assert!(matches!(error, GitError::Net { .. }), "{error:?}");
    assert!(error.describe().to_string().contains("another host"), "{}", error.describe());
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn redirects_within_the_host_are_followed_with_credentials() {
    let origin = Origin::new();
    let server = Server::scripted(origin.repos(), Some("Bearer t"), |_, path| {
        path.starts_with("/old").then(|| Fault::Redirect("/shop.git/info/refs".into()))
    })
    .await;
    let (_dir, cache) = cache();
    let url = server.url("old");
    let rules = rules(&url, &[("bearerToken", "t")]);
    let ok = checkout_as(&cache, &url, &branch("main"), &rules).await.unwrap();
    assert_eq!(text(&*ok.tree, "top.yaml"), "top: 1\n");
    let paths: Vec<String> = server.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths[..2], ["/old/info/refs", "/shop.git/info/refs"]);
    assert!(paths[2..].iter().all(|path| path == "/shop.git/git-upload-pack"), "{paths:?}");
}

#[tokio::test]
async fn unknown_things_are_named() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    let shown = async |url: &str, reference: Reference| {
        checkout(&cache, url, &reference).await.unwrap_err().describe()
    };
    let unknown = shown(&url, branch("mian")).await;
    assert_eq!(unknown.class, Class::Project);
    assert_eq!(
        unknown.to_string(),
        format!(
            "unknown branch \"mian\" of {url} (did you mean `main`?; branches: feat/x, main; tags: light, v1)"
        )
    );
    let gone = shown(&server.url("gone.git"), branch("main")).await;
    assert!(gone.message.contains("repository not found, or not visible"), "{gone}");
    let commit = shown(&url, Reference::Commit("2".repeat(40))).await;
    assert!(commit.message.contains("has no commit 2222"), "{commit}");
    let short = shown(&url, Reference::Commit("abc".into())).await;
    assert!(short.message.contains("expected 40 hexadecimal digits"), "{short}");

    git(&origin.repos(), &["init", "-q", "--bare", "empty.git"]);
    let empty = shown(&server.url("empty.git"), Reference::Default).await;
    assert_eq!(empty.message, format!("{} is empty", server.url("empty.git")));

    let tree = origin.id("HEAD^{tree}");
    origin.git(&["tag", "-a", "tree", "-m", "x", &tree]);
    origin.git(&["push", "-q", "origin", "tree"]);
    let no_commit = shown(&url, Reference::Tag("tree".into())).await;
    assert!(no_commit.message.contains("leads to a tree, not to a commit"), "{no_commit}");
}

#[tokio::test]
async fn a_commit_that_is_not_given_by_itself_comes_with_the_rest() {
    let origin = Origin::new();
    let first = origin.id("HEAD");
    origin.git(&["push", "-q", "origin", ":feat/x", ":v1", ":light"]);
    origin.write("top.yaml", "top: 2\n");
    origin.push("main");
    // Protocol 0 serves only what references point to.
    let server = Server::old(origin.repos()).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    checkout(&cache, &url, &branch("main")).await.unwrap();
    let old = checkout(&cache, &url, &Reference::Commit(first)).await.unwrap();
    assert_eq!(text(&*old.tree, "top.yaml"), "top: 1\n");
    let error = checkout(&cache, &url, &Reference::Commit("2".repeat(40))).await.unwrap_err();
    assert!(matches!(error, GitError::UnknownCommit { .. }), "{error:?}");
}

#[tokio::test]
async fn passing_trouble_is_survived() {
    let origin = Origin::new();
    for fault in [Fault::Status(503), Fault::Status(429), Fault::Truncate] {
        for at in 0..3 {
            let fault = fault.clone();
            let script = move |number: usize, _: &str| (number == at).then(|| fault.clone());
            let server = Server::scripted(origin.repos(), None, script).await;
            let (_dir, cache) = cache();
            let result = checkout(&cache, &server.url("shop.git"), &branch("main")).await;
            // A truncated answer is a broken protocol, but never a wrong tree.
            match result {
                Ok(checkout) => assert_eq!(text(&*checkout.tree, "top.yaml"), "top: 1\n"),
                Err(error) => {
                    assert_eq!(error.describe().class, Class::Transient, "{error:?}");
                    let again = checkout(&cache, &server.url("shop.git"), &branch("main")).await;
                    assert_eq!(text(&*again.unwrap().tree, "top.yaml"), "top: 1\n");
                }
            }
        }
    }
}

#[tokio::test]
async fn lasting_trouble_ends_with_the_retries() {
    let origin = Origin::new();
    let server = Server::scripted(origin.repos(), None, |_, _| Some(Fault::Status(502))).await;
    let (_dir, cache) = cache();
    let error = checkout(&cache, &server.url("shop.git"), &branch("main")).await.unwrap_err();
    assert!(matches!(&error, GitError::Unavailable { attempts: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("502"), "{error}");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_login_page_is_recognised() {
    let origin = Origin::new();
    let server = Server::scripted(origin.repos(), None, |_, _| Some(Fault::Page)).await;
    let (_dir, cache) = cache();
    let error = checkout(&cache, &server.url("shop.git"), &branch("main")).await.unwrap_err();
    assert!(error.to_string().contains("the answer is text/html, not Git's protocol"), "{error}");
}

#[test]
fn refused_fetches_are_told_apart() {
    let given = Reference::Commit("1".repeat(40));
    for (reference, depth, message, refusal) in [
        (&given, Depth::One, "upload-pack: not our ref 1", Refusal::NotByItself),
        (&given, Depth::Full, "upload-pack: not our ref 1", Refusal::Other),
        (&branch("main"), Depth::One, "upload-pack: not our ref 1", Refusal::Moved),
        (&branch("main"), Depth::One, "something else", Refusal::Other),
    ] {
        assert_eq!(judge(reference, depth, message), refusal, "{reference} {message}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_meets_the_deadline() {
    let origin = Origin::new();
    for at in 0..3 {
        let script = move |number: usize, _: &str| (number == at).then_some(Fault::Hang);
        let server = Server::scripted(origin.repos(), None, script).await;
        let dir = tempfile::tempdir().unwrap();
        let options = CacheOptions { timeout: Duration::from_millis(800), ..options() };
        let cache = Cache::open(dir.path(), options).unwrap();
        let started = Instant::now();
        let error = checkout(&cache, &server.url("shop.git"), &branch("main")).await.unwrap_err();
        assert!(matches!(error, GitError::Deadline { .. }), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn cancelling_ends_it_at_once() {
    let origin = Origin::new();
    let server = Server::scripted(origin.repos(), None, |_, _| Some(Fault::Hang)).await;
    let (_dir, cache) = cache();
    let url = GitUrl::parse(&server.url("shop.git")).unwrap();
    let cancel = CancellationToken::new();
    let soon = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let started = Instant::now();
    let auth = Auth::default();
    let (result, ()) =
        tokio::join!(cache.checkout(&url, &Reference::Default, &auth, &cancel), soon);
    assert_eq!(result.unwrap_err(), GitError::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn too_much_is_refused() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let small = CacheOptions { max_fetch: 1200, max_file: 1000, ..options() };
    let cache = Cache::open(dir.path(), small.clone()).unwrap();
    let url = server.url("shop.git");
    let error = checkout(&cache, &url, &branch("main")).await.unwrap_err();
    assert!(matches!(error, GitError::TooLarge { limit: 1200, .. }), "{error:?}");
    let cache = Cache::open(dir.path(), CacheOptions { max_fetch: 1 << 20, ..small }).unwrap();
    let tree = checkout(&cache, &url, &branch("main")).await.unwrap().tree;
    let error = tree.read("large.bin").unwrap_err();
    assert_eq!(error.to_string(), "large.bin: has 5000 bytes, at most 1000 are read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_download_once() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let (dir, cache) = cache();
    // A second cache on the same directory stands for another process.
    let other = Cache::open(&dir.path().join("git"), options()).unwrap();
    let url = server.url("shop.git");
    let main = branch("main");
    let all = (0..12).map(|n| checkout(if n % 2 == 0 { &cache } else { &other }, &url, &main));
    for result in futures::future::join_all(all).await {
        assert_eq!(text(&*result.unwrap().tree, "deploy/app.yaml"), "app: 1\n");
    }
    assert_eq!(server.fetches(), 1);
}

#[tokio::test]
async fn a_repository_that_hangs_leaves_room_for_others() {
    let origin = Origin::new();
    let hanging = Server::scripted(origin.repos(), None, |_, _| Some(Fault::Hang)).await;
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions { max_parallel: 3, ..options() };
    let cache = Cache::open(dir.path(), options).unwrap();
    let (stuck, main) = (hanging.url("shop.git"), branch("main"));
    let stuck = futures::future::join_all((0..10).map(|_| checkout(&cache, &stuck, &main)));
    let other = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        checkout(&cache, &server.url("shop.git"), &main).await
    };
    tokio::select! {
        _ = stuck => panic!("the server hangs"),
        other = other => assert_eq!(text(&*other.unwrap().tree, "top.yaml"), "top: 1\n"),
    }
}

#[tokio::test]
async fn a_restart_finds_what_is_there() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let (dir, cache) = cache();
    let url = server.url("shop.git");
    drop(checkout(&cache, &url, &branch("main")).await.unwrap());
    drop(cache);
    let pack = repositories(&dir).remove(0).join("g0/objects/pack");
    std::fs::write(pack.join(".tmpABC"), "half a pack").unwrap();
    let cache = Cache::open(&dir.path().join("git"), options()).unwrap();
    let again = checkout(&cache, &url, &branch("main")).await.unwrap();
    assert_eq!(text(&*again.tree, "top.yaml"), "top: 1\n");
    assert_eq!(server.fetches(), 1);
    assert!(!pack.join(".tmpABC").exists());
}

#[tokio::test]
async fn a_damaged_cache_is_started_anew() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let (dir, cache) = cache();
    let url = server.url("shop.git");
    drop(checkout(&cache, &url, &branch("main")).await.unwrap());
    for entry in std::fs::read_dir(repositories(&dir)[0].join("g0/objects/pack")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let again = checkout(&cache, &url, &branch("main")).await.unwrap();
    assert_eq!(text(&*again.tree, "top.yaml"), "top: 1\n");
    assert_eq!(server.fetches(), 2);
}

#[tokio::test]
async fn a_repository_with_many_packs_is_started_anew() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions { max_packs: 2, ..options() };
    let cache = Cache::open(&dir.path().join("git"), options).unwrap();
    let url = server.url("shop.git");
    let mut held = Vec::new();
    for n in 0..4 {
        origin.write("top.yaml", &format!("top: {n}\n"));
        origin.push("main");
        held.push(checkout(&cache, &url, &branch("main")).await.unwrap());
    }
    let repository = repositories(&dir).remove(0);
    assert!(repository.join("g0").exists() && repository.join("g1").exists());
    for (n, checkout) in held.iter().enumerate() {
        assert_eq!(text(&*checkout.tree, "top.yaml"), format!("top: {n}\n"));
        assert_eq!(text(&*checkout.tree, "deploy/app.yaml"), "app: 1\n");
    }
    held.drain(..2);
    assert!(!repository.join("g0").exists() && repository.join("g1").exists());
}

#[tokio::test]
async fn the_repository_used_longest_ago_goes_unless_it_is_held() {
    let origin = Origin::new();
    let copies = ["a.git", "b.git", "c.git"];
    for copy in copies {
        git(&origin.repos(), &["clone", "-q", "--bare", "shop.git", copy]);
    }
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions { max_repositories: 1, ..options() };
    let cache = Cache::open(&dir.path().join("git"), options).unwrap();
    let names = || {
        let mut names: Vec<char> = repositories(&dir)
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().chars().next().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    let held = checkout(&cache, &server.url("a.git"), &branch("main")).await.unwrap();
    drop(checkout(&cache, &server.url("b.git"), &branch("main")).await.unwrap());
    drop(checkout(&cache, &server.url("c.git"), &branch("main")).await.unwrap());
    assert_eq!(names(), ['a', 'c']);
    assert_eq!(text(&*held.tree, "top.yaml"), "top: 1\n");
}

#[tokio::test]
async fn history_is_downloaded_when_somebody_asks_for_it() {
    let origin = Origin::new();
    origin.write("top.yaml", "top: 2\n");
    let second = origin.push("main");
    origin.write("deploy/app.yaml", "app: 3\n");
    let third = origin.push("main");
    let server = Server::start(origin.repos(), None).await;
    let (_dir, cache) = cache();
    let url = server.url("shop.git");
    let found = checkout(&cache, &url, &branch("main")).await.unwrap();
    let latest = async |found: &GitCheckout, path: &'static str| {
        let tree = found.tree.clone();
        let found = tokio::task::spawn_blocking(move || tree.latest_commit(path)).await.unwrap();
        found.map_err(|error| error.to_string())
    };
    assert_eq!(server.fetches(), 1);
    assert_eq!(latest(&found, "deploy/app.yaml").await, Ok(Some(third)));
    assert_eq!(latest(&found, "top.yaml").await, Ok(Some(second)));
    assert_eq!(latest(&found, "large.bin").await, Ok(Some(origin.id("light"))));
    assert_eq!(latest(&found, "no.yaml").await, Err("no.yaml: it is not in the commit".into()));
    assert_eq!(server.fetches(), 2, "once for the files, once for the history");

    // A later commit comes without its history again.
    origin.write("top.yaml", "top: 4\n");
    let fourth = origin.push("main");
    let found = checkout(&cache, &url, &branch("main")).await.unwrap();
    assert_eq!(latest(&found, "top.yaml").await, Ok(Some(fourth)));
    assert_eq!(latest(&found, "large.bin").await, Ok(Some(origin.id("light"))));
}

#[tokio::test]
async fn bytes_on_disk_are_bounded() {
    let origin = Origin::new();
    let copies: Vec<String> = (0..5).map(|n| format!("r{n}.git")).collect();
    for copy in &copies {
        git(&origin.repos(), &["clone", "-q", "--bare", "shop.git", copy]);
    }
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let used = || -> u64 { crate::git::mirror::disk_usage(&dir.path().join("git")) };
    let root = dir.path().join("git");
    let cache = Cache::open(&root, options()).unwrap();
    checkout(&cache, &server.url("shop.git"), &branch("main")).await.unwrap();
    let one = used();
    let max_bytes = one * 5 / 2;
    let cache = Cache::open(&root, CacheOptions { max_bytes, ..options() }).unwrap();
    for copy in &copies {
        checkout(&cache, &server.url(copy), &branch("main")).await.unwrap();
        assert!(used() <= max_bytes, "{} of {max_bytes} bytes", used());
    }
    assert_eq!(repositories(&dir).len(), 2);
    // One repository that changes again and again does not grow for ever, either.
    for n in 0..12 {
        // What hardly compresses, and is new each time.
        let digests = (0..one / 200).flat_map(|at| Sha256::digest(format!("{n} {at}")));
        let noise = STANDARD.encode(digests.collect::<Vec<u8>>());
        origin.write("large.bin", &noise);
        origin.push("main");
        checkout(&cache, &server.url("shop.git"), &branch("main")).await.unwrap();
        assert!(used() <= max_bytes, "{} of {max_bytes} bytes", used());
    }
}

#[tokio::test]
async fn branches_and_tags_are_listed_with_their_commits() {
    let origin = Origin::new();
    let first = origin.id("HEAD");
    origin.write("deploy/app.yaml", "app: 2\n");
    let second = origin.push("main");
    let server = Server::start(origin.repos(), None).await;
    let (_dir, cache) = cache();
    let url = GitUrl::parse(&server.url("shop.git")).unwrap();
    let (default, tips) =
        cache.tips(&url, &Auth::default(), &CancellationToken::new()).await.unwrap();
    assert_eq!(default.name.as_deref(), Some("refs/heads/main"));
    let tips: Vec<(&str, &str)> =
        tips.iter().map(|tip| (tip.name.as_deref().unwrap(), tip.commit.as_str())).collect();
    assert!(tips.contains(&("refs/heads/main", &second)), "{tips:?}");
    assert!(tips.contains(&("refs/heads/feat/x", &first)), "{tips:?}");
    // An annotated tag leads to its commit.
    assert!(tips.contains(&("refs/tags/v1", &first)), "{tips:?}");
    assert!(tips.is_sorted());
    assert_eq!(server.fetches(), 0);
}

#[tokio::test]
async fn resolving_downloads_nothing() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let (dir, cache) = cache();
    let url = GitUrl::parse(&server.url("shop.git")).unwrap();
    let cancel = CancellationToken::new();
    let auth = Auth::default();
    let resolved = cache.resolve(&url, &Reference::Tag("v1".into()), &auth, &cancel).await.unwrap();
    assert_eq!(resolved.revision(), format!("v1@sha1:{}", origin.id("HEAD")));
    assert_eq!(server.fetches(), 0);
    assert!(repositories(&dir).is_empty());
}

#[test]
fn a_cache_directory_that_cannot_be_is_named() {
    let error = Cache::open(Path::new("/proc/nope"), options()).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Git cache /proc/nope: "), "{error}");
}
