use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{FutureExt, future::BoxFuture};

use super::*;
use crate::{
    tree::MemoryTree,
    vars::{GitCheckout, GitTip, GitTips, HttpAnswer},
};

const COMMIT: &str = "0123456789012345678901234567890123456789";

/// A repository with a branch and a tag of one name, and one more branch; what was asked for.
#[derive(Default)]
struct FakeGit(Mutex<Vec<Option<GitRef>>>);

impl GitSource for FakeGit {
    fn checkout<'a>(
        &'a self,
        _url: &'a str,
        reference: Option<&'a GitRef>,
    ) -> BoxFuture<'a, Result<GitCheckout, Diagnostic>> {
        self.0.lock().unwrap().push(reference.cloned());
        let checkout = GitCheckout { tree: Arc::new(MemoryTree::new()), commit: COMMIT.to_owned() };
        async move { Ok(checkout) }.boxed()
    }

    fn tips<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<GitTips, Diagnostic>> {
        let names = ["refs/heads/main", "refs/heads/v1", "refs/tags/v1", "refs/heads/a/b"];
        let tip = |name: &&str| GitTip { name: (*name).to_owned(), commit: COMMIT.to_owned() };
        async move { Ok(GitTips { default: None, all: names.iter().map(tip).collect() }) }.boxed()
    }
}

#[derive(Default)]
struct FakeHttp(AtomicUsize);

impl HttpSource for FakeHttp {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, Diagnostic>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let status = if request.url.ends_with("missing") { 404 } else { 200 };
        async move { Ok(HttpAnswer { status, body: b"text".to_vec() }) }.boxed()
    }
}

fn with_remotes(check: impl FnOnce(&RemoteResources, &FakeGit, &FakeHttp)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (git, http) = (Arc::new(FakeGit::default()), Arc::new(FakeHttp::default()));
    let remotes = RemoteResources::new(git.clone(), http.clone(), runtime.handle().clone());
    check(&remotes, &git, &http);
}

fn repository(address: &str) -> Repository {
    Repository::parse(address).unwrap()
}

#[test]
fn references_are_what_git_takes_them_for() {
    with_remotes(|remotes, git, _| {
        for reference in ["", "?ref=main", "?ref=v1", "?ref=a/b", "?ref=refs/heads/v1"] {
            let address = format!("https://h.example/o/r{reference}");
            remotes.repository(&repository(&address)).map(|_| ()).unwrap();
        }
        remotes
            .repository(&repository(&format!("https://h.example/o/r?ref={COMMIT}")))
            .map(|_| ())
            .unwrap();
        let asked = git.0.lock().unwrap();
        let asked: Vec<String> = asked
            .iter()
            .map(|one| one.as_ref().map_or(String::new(), ToString::to_string))
            .collect();
        assert_eq!(
            asked,
            ["", "refs/heads/main", "refs/tags/v1", "refs/heads/a/b", "refs/heads/v1", COMMIT]
        );
    });
}

#[test]
fn unknown_references_are_named_with_their_neighbours() {
    with_remotes(|remotes, git, _| {
        let error = remotes.repository(&repository("https://u:p@h.example/o/r?ref=mian"));
        let error = error.map(|_| ()).unwrap_err();
        assert!(
            error.message.ends_with("h.example/o/r has no branch or tag \"mian\""),
            "{}",
            error.message
        );
        assert!(!error.message.contains(":p@"), "{}", error.message);
        assert_eq!(error.hints, ["did you mean `main`?"]);
        assert!(git.0.lock().unwrap().is_empty());
    });
}

#[test]
fn each_resource_is_asked_for_once() {
    with_remotes(|remotes, git, http| {
        for dir in ["a", "b", "a"] {
            let address = format!("https://h.example/o/r//{dir}?ref=v1");
            remotes.repository(&repository(&address)).map(|_| ()).unwrap();
        }
        assert_eq!(git.0.lock().unwrap().len(), 1);
        let used = remotes.repositories();
        assert_eq!(used.len(), 1);
        assert_eq!((used[0].commit.as_str(), used[0].sub_dirs.len()), (COMMIT, 2));
        for _ in 0..2 {
            assert_eq!(remotes.file("https://h/x").unwrap(), RemoteFile::Content(b"text".to_vec()));
            assert_eq!(remotes.file("https://h/missing").unwrap(), RemoteFile::Status(404));
        }
        assert_eq!(http.0.load(Ordering::Relaxed), 2);
    });
}
