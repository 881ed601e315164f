use proptest::prelude::*;

use crate::git::*;

fn parse(text: &str) -> GitUrl {
    GitUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn addresses_of_one_repository_have_one_key() {
    for (text, key) in [
        ("https://GitHub.com/Org/Repo.git", "github.com/org/repo"),
        ("https://github.com/org/repo/", "github.com/org/repo"),
        ("https://github.com:443/org/repo", "github.com/org/repo"),
        ("http://github.com:80/org/repo", "github.com/org/repo"),
        ("https://github.com:80/org/repo", "github.com:80/org/repo"),
        ("ssh://git@github.com:22/org/repo.git", "github.com/org/repo"),
        ("git@github.com:org/repo.git", "github.com/org/repo"),
        ("git@GitHub.com:/org/repo.git", "github.com/org/repo"),
        ("https://user:pw@github.com/org/repo", "github.com/org/repo"),
        ("https://github.com./org/repo", "github.com/org/repo"),
        ("https://git.example.com:8443/a/b/c", "git.example.com:8443/a/b/c"),
        ("ssh://git@[::1]:2222/x", "[::1]:2222/x"),
        ("ssh://git@h/~bob/x", "h/~bob/x"),
    ] {
        assert_eq!(parse(text).key().to_string(), key, "{text}");
    }
}

#[test]
fn servers_are_asked_for_what_was_written() {
    let parts = |text: &str| {
        let url = parse(text);
        (url.scheme(), url.user().map(str::to_owned), url.port(), url.path().to_owned())
    };
    let user = |user: &str| Some(user.to_owned());
    assert_eq!(parts("git@h:org/R.git"), (Scheme::Ssh, user("git"), 22, "org/R.git".into()));
    assert_eq!(parts("git@h:/org/R.git"), (Scheme::Ssh, user("git"), 22, "/org/R.git".into()));
    assert_eq!(parts("ssh://h:2222/org/R"), (Scheme::Ssh, None, 2222, "/org/R".into()));
    assert_eq!(parts("ssh://bob@h/~bob/x"), (Scheme::Ssh, user("bob"), 22, "~bob/x".into()));
    assert_eq!(parts("http://h/Org/R.git"), (Scheme::Http, None, 80, "/Org/R.git".into()));
    let url = parse("https://b%40b:p%3Aw@h/x");
    assert_eq!(url.user(), Some("b@b"));
    assert_eq!(url.password().unwrap().reveal(), "p:w");
    assert_eq!(url.without_user(), "https://h/x");
}

#[test]
fn passwords_are_not_shown() {
    for text in ["https://u:hunter2@h/x", "https://hunter2@h/x", "ssh://u:hunter2@h/x"] {
        let url = parse(text);
        let shown = format!("{url} {url:?} {} {}", url.key(), url.without_user());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(parse("git@h:x").to_string(), "ssh://git@h/x");
    let error = GitUrl::parse("https://u:hunter2@h/x?token=hunter2").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

#[test]
fn other_addresses_are_refused_with_a_reason() {
    for (text, reason) in [
        ("file:///srv/x", "file:// is refused"),
        ("git://h/x", "unknown scheme \"git\""),
        ("ext::sh -c x", "spaces"),
        ("/srv/x", "expected an http"),
        ("./x", "expected an http"),
        ("h:x", "expected an http"),
        ("git@h:", "expected an http"),
        ("-oProxyCommand=x@h:x/y z", "spaces"),
        ("git@h:--upload-pack=x", "expected an http"),
        ("https://h", "no path"),
        ("https://h/", "no path"),
        ("https:///x", "is no Git URL"),
        ("https://h/x?y", "query"),
        ("", "expected an http"),
    ] {
        let error = GitUrl::parse(text).map(|url| url.to_string());
        assert!(error.as_ref().is_err_and(|e| e.to_string().contains(reason)), "{text}: {error:?}");
    }
}

#[test]
fn origins_are_scheme_host_and_port() {
    let same = |a: &str, b: &str| parse(a).same_origin(&parse(b));
    assert!(same("https://h/a", "https://H:443/b"));
    assert!(same("git@h:a", "ssh://other@h/b"));
    for (a, b) in [
        ("https://h/a", "http://h/a"),
        ("https://h/a", "https://h:8443/a"),
        ("https://h/a", "https://h.evil/a"),
        ("https://h/a", "ssh://h/a"),
    ] {
        assert!(!same(a, b), "{a} {b}");
    }
}

proptest! {
    #[test]
    fn no_text_panics_or_shows_a_password(
        text in "(https|http|ssh|git)?(://)?[a-zA-Z0-9:@/.%\\[\\]~ -]{0,40}",
        password in "QQ[0-9]{6}QQ",
    ) {
        let _parsed = GitUrl::parse(&text);
        for scheme in ["http", "https", "ssh"] {
            if let Ok(url) = GitUrl::parse(&format!("{scheme}://user:{password}@h/{text}")) {
                let shown = format!("{url} {url:?} {} {}", url.key(), url.without_user());
                prop_assert!(!shown.contains(&password), "{}", shown);
                prop_assert_eq!(url.password().map(|found| found.reveal().clone()), Some(password.clone()));
                // What is shown is the same repository.
                prop_assert_eq!(GitUrl::parse(&url.without_user()).map(|url| url.key()), Ok(url.key()));
            }
        }
    }
}
