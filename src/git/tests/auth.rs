use std::collections::BTreeMap;

use crate::git::{auth::*, *};

fn secret(name: &str, data: &[(&str, &str)]) -> GitSecret {
    let data: BTreeMap<String, Vec<u8>> =
        data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    GitSecret::from_data(format!("Secret flux-system/{name}"), &data).unwrap()
}

fn url(text: &str) -> GitUrl {
    GitUrl::parse(text).unwrap()
}

fn source(of: &str, data: &[(&str, &str)]) -> Rule {
    Rule::Source { url: url(of), secret: secret("shop", data) }
}

fn explicit(host: &str, path: Option<&str>, data: &[(&str, &str)]) -> Rule {
    Rule::Explicit {
        host: HostRule::parse(host),
        path: path.map(|path| PathGlob::parse(path).unwrap()),
        secret: secret("extra", data),
    }
}

const BASIC: &[(&str, &str)] = &[("username", "bot"), ("password", "hunter2")];
const SSH: &[(&str, &str)] =
    &[("identity", "key"), ("known_hosts", "h ssh-ed25519 x"), ("password", "hunter2")];

/// What is sent, in short.
fn login(rules: Vec<Rule>, to: &str) -> String {
    match Rules(rules).choose(&url(to)).login {
        Login::Anonymous => "-".to_owned(),
        Login::Basic { user, password } => format!("{user}:{}", password.reveal()),
        Login::Bearer { token } => format!("bearer {}", token.reveal()),
        Login::Ssh { user, keys, .. } => match &keys[..] {
            [SshKey::Private { passphrase: Some(passphrase), .. }] => {
                format!("{user} key {}", passphrase.reveal())
            }
            other => format!("{user} keys {}", other.len()),
        },
    }
}

#[test]
fn the_sources_secret_stays_with_its_scheme_host_and_port() {
    for (to, sent) in [
        ("https://h/other.git", "bot:hunter2"),
        ("https://H:443/other.git", "bot:hunter2"),
        ("http://h/other.git", "-"),
        ("https://h:8443/other.git", "-"),
        ("https://evil/other.git", "-"),
        ("https://h.evil/other.git", "-"),
        ("ssh://git@h/other.git", "-"),
    ] {
        assert_eq!(login(vec![source("https://h/shop.git", BASIC)], to), sent, "{to}");
    }
    assert_eq!(login(vec![source("http://h/shop", BASIC)], "http://h/x"), "bot:hunter2");
    assert_eq!(login(vec![source("ssh://git@h/shop", SSH)], "git@h:x"), "git key hunter2");
    assert_eq!(login(vec![source("ssh://git@h/shop", SSH)], "ssh://bob@h/x"), "bob key hunter2");
    assert_eq!(login(vec![source("ssh://git@h/shop", SSH)], "ssh://h/x"), "git key hunter2");
    assert_eq!(login(vec![source("ssh://git@h/shop", SSH)], "ssh://h:2222/x"), "-");
}

#[test]
fn the_keys_of_a_flux_secret_are_read_as_flux_does() {
    let both = [("username", "bot"), ("password", "hunter2"), ("bearerToken", "t")];
    assert_eq!(login(vec![source("https://h/a", &both)], "https://h/a"), "bearer t");
    let ca = |data: &[(&str, &str)]| {
        Rules(vec![source("https://h/a", data)]).choose(&url("https://h/a")).ca_bundle
    };
    assert_eq!(ca(&[("bearerToken", "t"), ("caFile", "old"), ("ca.crt", "new")]).unwrap(), b"new");
    assert_eq!(ca(&[("caFile", "old")]).unwrap(), b"old");
    // Certificates alone leave user and password of the URL in use.
    assert_eq!(login(vec![source("https://h/a", &[("ca.crt", "c")])], "https://u:p@h/a"), "u:p");
    for (data, reason) in [
        (&[("password", "hunter2")][..], "has a password but no username"),
        (&[("identity", "k")], "has no password and no bearerToken"),
        (&[("githubAppID", "1")], "GitHub App, which is not supported yet"),
        (&[("username", ""), ("password", "")], "has no password"),
    ] {
        let auth = Rules(vec![source("https://h/a", data)]).choose(&url("https://h/a"));
        assert_eq!(auth.login, Login::Anonymous);
        assert!(auth.trail.to_string().contains(reason), "{}", auth.trail);
    }
    let auth = Rules(vec![source("ssh://h/a", &[("identity", "k")])]).choose(&url("ssh://h/a"));
    assert!(auth.trail.to_string().contains("has no known_hosts"), "{}", auth.trail);
}

#[test]
fn explicit_entries_match_host_path_and_user() {
    for (host, path, to, fits) in [
        ("h", None, "https://h/a/b", true),
        ("H", None, "https://h/a/b", true),
        ("h:443", None, "https://h/a/b", true),
        ("h:8443", None, "https://h:8443/a/b", true),
        ("h", None, "https://h:8443/a/b", false),
        ("h", None, "https://x.h/a/b", false),
        ("*", None, "https://h/a/b", false),
        ("", None, "https://h/a/b", false),
        ("h", Some("a/*"), "https://h/a/b.git", true),
        ("h", Some("/A/*"), "https://h/a/b", true),
        ("h", Some("Team/*"), "https://h/team/b", true),
        ("h", Some("a/b.git"), "https://h/A/B", true),
        ("h", Some("a/*"), "https://h/a/b/c", false),
        ("h", Some("a/**"), "https://h/a/b/c", true),
        ("h", Some("{x,a}/[bc]"), "https://h/a/b", true),
        ("h", Some("a"), "https://h/a/b", false),
        ("h", None, "https://bot@h/a/b", true),
        ("h", None, "https://alice@h/a/b", false),
    ] {
        let sent = login(vec![explicit(host, path, BASIC)], to);
        assert_eq!(sent == "bot:hunter2", fits, "{host} {path:?} {to}: {sent}");
    }
    assert_eq!(login(vec![explicit("*", None, SSH)], "ssh://git@anywhere/x"), "git key hunter2");
    let any_user = [("username", "*"), ("password", "hunter2")];
    assert_eq!(login(vec![explicit("h", None, &any_user)], "https://bob@h/x"), "bob:hunter2");
    assert_eq!(login(vec![explicit("h", None, &any_user)], "https://h/x"), "-");
    assert!(PathGlob::parse("a[").is_err());
}

#[test]
fn the_first_that_fits_wins_and_the_others_are_remembered() {
    let other = [("username", "other"), ("password", "hunter3")];
    let rules = vec![
        explicit("x", None, BASIC),
        explicit("h", Some("b/*"), BASIC),
        explicit("h", None, &other),
        source("https://h/a", BASIC),
    ];
    assert_eq!(login(rules.clone(), "https://h/a/b"), "other:hunter3");
    let auth = Rules(rules).choose(&url("https://h/a/b"));
    assert_eq!(
        auth.trail.to_string(),
        "tried Secret flux-system/extra (user \"other\"); not used: \
         Secret flux-system/extra: is for host x, Secret flux-system/extra: is for path b/*"
    );
}

#[test]
fn the_urls_own_user_comes_last() {
    assert_eq!(login(vec![], "https://u:p@h/x"), "u:p");
    assert_eq!(login(vec![], "https://token@h/x"), "token:");
    assert_eq!(login(vec![], "ssh://u:p@h/x"), "-");
    assert_eq!(login(vec![source("https://h/a", BASIC)], "https://u:p@h/x"), "bot:hunter2");
}

#[test]
fn nothing_secret_is_shown() {
    let data = [
        ("username", "bot"),
        ("password", "hunter2"),
        ("bearerToken", "hunter2"),
        ("identity", "hunter2"),
        ("known_hosts", "h"),
        ("tls.crt", "c"),
        ("tls.key", "hunter2"),
    ];
    for to in ["https://h/x", "ssh://h/x"] {
        let rules = Rules(vec![source(to, &data), explicit("h", None, &data)]);
        let auth = rules.choose(&url(to));
        let shown = format!("{rules:?} {auth:?} {}", auth.trail);
        assert!(!shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
    }
    let binary = BTreeMap::from([("password".to_owned(), vec![0xff, 0xfe])]);
    let error = GitSecret::from_data("Secret a/b", &binary).unwrap_err();
    assert_eq!(error.to_string(), "Secret a/b: the value of \"password\" is not text");
}
