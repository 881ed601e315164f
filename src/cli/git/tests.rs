#![expect(clippy::disallowed_methods, reason = "writes files that the user would have")]

use std::{collections::BTreeMap, fs};

use super::{helper, rules::rules, *};
use crate::cli::flags::GitFlags;
use crate::git::{
    Auth,
    auth::{HostTrust, SshKey},
};

/// A home directory with files, and variables.
struct User {
    home: tempfile::TempDir,
    environment: Environment,
}

impl User {
    fn new(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        variables.insert("HOME".into(), home.path().display().to_string());
        let working_dir = home.path().to_owned();
        let environment = Environment {
            variables,
            working_dir,
            program_dir: None,
            is_terminal: false,
            shows_results: false,
            can_ask: false,
        };
        Self { home, environment }
    }

    fn rules(&self, flags: &GitFlags) -> Result<Rules, Diagnostic> {
        rules(&self.environment, flags)
    }

    fn auth(&self, flags: &GitFlags, url: &str) -> Auth {
        self.rules(flags).unwrap().choose(&GitUrl::parse(url).unwrap())
    }

    /// What is used for a URL: user and secrets, and what is said about it.
    fn choose(&self, flags: &GitFlags, url: &str) -> (String, String) {
        let auth = self.auth(flags, url);
        let secret = match &auth.login {
            Login::Basic { user, password } => format!("{user}:{}", password.reveal()),
            Login::Ssh { user, keys, .. } => {
                let key = |key: &SshKey| match key {
                    SshKey::Private { identity, .. } => identity.reveal().clone(),
                    SshKey::Agent(socket) => socket.display().to_string(),
                };
                format!("{user}:{}", keys.iter().map(key).collect::<Vec<_>>().join(","))
            }
            other => format!("{other:?}"),
        };
        (secret, auth.trail.to_string())
    }

    fn trusted(&self, flags: &GitFlags) -> HostTrust {
        let Login::Ssh { host_keys, .. } = self.auth(flags, "git@h:x").login else {
            panic!("no SSH")
        };
        host_keys
    }

    fn known(&self, flags: &GitFlags) -> String {
        match self.trusted(flags) {
            HostTrust::Known(text) => text,
            HostTrust::Any => panic!("all are trusted"),
        }
    }
}

fn list(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn flags_come_before_variables_and_those_before_stores() {
    let store = "# mine\nhttps://stored:p4@h\nhttps://stored:secret-5@other.example/some/path\nbroken\n\
                 https://no-password@h\n";
    let files = [
        ("key", "variable-key"),
        (".git-credentials", store),
        (".config/git/credentials", "https://xdg:p6@third.example:8443\n"),
    ];
    let variables = [
        ("KLUCTL_GIT_10_HOST", "h"),
        ("KLUCTL_GIT_10_USERNAME", "ten"),
        ("KLUCTL_GIT_10_PASSWORD", "p10"),
        ("KLUCTL_GIT_2_HOST", "h"),
        ("KLUCTL_GIT_2_PATH", "team/*"),
        ("KLUCTL_GIT_2_USERNAME", "two"),
        ("KLUCTL_GIT_2_PASSWORD", "p2"),
        ("KLUCTL_GIT_HOST", "h"),
        ("KLUCTL_GIT_PATH", "plain/**"),
        ("KLUCTL_GIT_USERNAME", "plain"),
        ("KLUCTL_GIT_PASSWORD", "p0"),
        ("KLUCTL_GIT_3_HOST", "*"),
        ("KLUCTL_GIT_3_SSH_KEY", "~/key"),
    ];
    let user = User::new(&variables, &files);
    let flags = GitFlags {
        git_username: list(&["h/flag/*=flag"]),
        git_password: list(&["h/flag/*=p=1"]),
        ..GitFlags::default()
    };
    for (url, expected) in [
        ("https://h/flag/x.git", "flag:p=1"),
        ("https://h/plain/a/b", "plain:p0"),
        ("https://h/team/x", "two:p2"),
        ("https://h/x", "ten:p10"),
        // Names of users have to agree.
        ("https://stored@h/x", "stored:p4"),
        ("https://other.example/x", "stored:secret-5"),
        ("https://third.example:8443/x", "xdg:p6"),
        ("https://third.example/x", "Anonymous"),
        ("http://other.example/x", "Anonymous"),
        ("https://unknown.example/x", "Anonymous"),
        ("ssh://me@anywhere/x", "me:variable-key"),
    ] {
        assert_eq!(user.choose(&flags, url).0, expected, "{url}");
    }
    let (_, trail) = user.choose(&flags, "https://other.example/x");
    assert!(trail.contains(".git-credentials (user \"stored\")"), "{trail}");
    assert!(trail.contains("--git-* for h/flag/*: is for host h"), "{trail}");
    assert!(!trail.contains("secret-5") && !trail.contains("p=1"), "{trail}");
}

#[test]
fn the_first_flag_that_fits_counts() {
    let user = User::new(&[], &[]);
    let chosen = |scopes: [&str; 2]| {
        let values = |value: &str| scopes.iter().map(|scope| format!("{scope}={value}")).collect();
        let flags = GitFlags {
            git_username: scopes.iter().map(|scope| format!("{scope}=for-{scope}")).collect(),
            git_password: values("pw"),
            ..GitFlags::default()
        };
        user.choose(&flags, "https://h/a/x").0
    };
    assert_eq!(chosen(["h/a/*", "h"]), "for-h/a/*:pw");
    assert_eq!(chosen(["h", "h/a/*"]), "for-h:pw");
}

#[test]
fn keys_and_known_hosts_are_those_of_ssh() {
    let files = [
        (".ssh/id_ed25519", "ed"),
        (".ssh/id_rsa", "rsa"),
        (".ssh/known_hosts", "h ssh-ed25519 own"),
        ("a", "h ssh-ed25519 a"),
        ("b", "h ssh-ed25519 b"),
        ("flagged", "h ssh-ed25519 flagged"),
        ("key", "flag-key"),
    ];
    let none = GitFlags::default();
    let mut user = User::new(&[("SSH_AUTH_SOCK", "/run/agent")], &files);
    let (keys, trail) = user.choose(&none, "git@h:x");
    assert_eq!(keys, "git:/run/agent,rsa,ed");
    let origin = "the SSH agent, ~/.ssh/id_rsa, ~/.ssh/id_ed25519 (user \"git\")";
    assert!(trail.contains(origin), "{trail}");
    let (anonymous, trail) = user.choose(&none, "ssh://h/x");
    assert_eq!(anonymous, "Anonymous");
    assert!(trail.contains("need a URL that names the user"), "{trail}");

    assert!(user.known(&none).contains("own"));
    let home = user.home.path().display().to_string();
    let flags = GitFlags {
        git_ssh_key_file: vec![format!("h={home}/key")],
        git_ssh_known_hosts_file: vec![format!("h={home}/flagged")],
        ..GitFlags::default()
    };
    assert_eq!(user.known(&flags), "h ssh-ed25519 flagged");
    let paths = format!("{home}/a:{home}/b:{home}/missing");
    user.environment.variables.insert("SSH_KNOWN_HOSTS".into(), paths);
    let text = user.known(&none);
    assert!(text.contains("ssh-ed25519 a\n") && text.contains("ssh-ed25519 b\n"), "{text}");
    assert!(!text.contains("own"), "{text}");
    let off = "KLUCTL_SSH_DISABLE_STRICT_HOST_KEY_CHECKING";
    user.environment.variables.insert(off.into(), "true".into());
    assert_eq!(user.trusted(&none), HostTrust::Any);
    assert_eq!(user.known(&flags), "h ssh-ed25519 flagged", "what is given counts all the same");
}

#[test]
fn certificates_alone_are_added_to_the_login() {
    let user = User::new(&[], &[("ca.pem", "pem"), (".git-credentials", "https://u:p@h")]);
    let home = user.home.path().display();
    let flags = GitFlags { git_ca_file: vec![format!("h={home}/ca.pem")], ..GitFlags::default() };
    let auth = user.auth(&flags, "https://h/x");
    assert_eq!(auth.ca_bundle.as_deref(), Some(&b"pem"[..]));
    assert!(matches!(auth.login, Login::Basic { .. }), "{:?}", auth.login);
    let auth = user.auth(&flags, "https://other/x");
    assert_eq!((auth.ca_bundle, auth.login), (None, Login::Anonymous));
    // Whatever the order in which they are looked through.
    let flags =
        GitFlags { git_username: list(&["h/x=bot"]), git_password: list(&["h/x=pw"]), ..flags };
    let auth = user.auth(&flags, "https://h/x");
    assert_eq!(auth.ca_bundle.as_deref(), Some(&b"pem"[..]));
    assert!(matches!(auth.login, Login::Basic { user, .. } if user == "bot"));
}

#[test]
fn wrong_flags_are_explained_without_what_is_secret() {
    let user = User::new(&[], &[]);
    let shown = |flags: GitFlags| user.rules(&flags).unwrap_err().to_string();
    let text = shown(GitFlags { git_password: list(&["hunter2"]), ..GitFlags::default() });
    assert!(text.contains("--git-password") && !text.contains("hunter2"), "{text}");
    let text =
        shown(GitFlags { git_ssh_key_file: list(&["h=/nowhere/key"]), ..GitFlags::default() });
    assert!(text.contains("/nowhere/key does not exist"), "{text}");
    let text = shown(GitFlags { git_username: list(&["h/a[=x"]), ..GitFlags::default() });
    assert!(text.contains("--git-* for h/a[") && text.contains("is no glob"), "{text}");
}

#[test]
fn the_answer_of_a_helper_is_for_its_server_alone() {
    let url = GitUrl::parse("https://h/x").unwrap();
    let text = "protocol=https\nhost=h\nusername=u\npassword=p=w\n";
    let rules = Rules(vec![helper::answer(&url, text).unwrap()]);
    let Login::Basic { user, password } = rules.choose(&url).login else { panic!("no login") };
    assert_eq!((user.as_str(), password.reveal().as_str()), ("u", "p=w"));
    assert_eq!(rules.choose(&GitUrl::parse("https://other/x").unwrap()).login, Login::Anonymous);
    assert!(helper::answer(&url, "username=u\npassword=\n").is_none());
    assert!(helper::answer(&url, "").is_none());
}
