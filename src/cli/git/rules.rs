//! Where a user's credentials for Git are, in the order in which they are looked through.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    cli::{
        environment::{Environment, read_file},
        flags::GitFlags,
    },
    diagnostic::{Class, Diagnostic},
    git::{
        GitUrl, Rules, Scheme,
        auth::{AuthError, GitSecret, HostRule, HostTrust, PathGlob, Rule, SshKey},
    },
    secret::Secret,
};

/// The user's credentials: flags, variables, credential stores, SSH agent and keys.
///
/// # Errors
/// When a flag or variable names a file that cannot be read, or a pattern that is none.
pub(super) fn rules(environment: &Environment, flags: &GitFlags) -> Result<Rules, Diagnostic> {
    let host_keys = host_trust(environment);
    let mut rules = Vec::new();
    for ((host, path), given) in flags.scopes()? {
        let get = |flag: &str| given.get(flag).copied();
        let entry = Entry {
            username: get("username"),
            password: get("password"),
            ssh_key: get("ssh-key-file"),
            known_hosts: get("ssh-known-hosts-file"),
            ca: get("ca-file"),
        };
        let below = path.map(|path| format!("/{path}")).unwrap_or_default();
        let origin = format!("--git-* for {host}{below}");
        rules.push(explicit(environment, &origin, (host, path), &entry, &host_keys)?);
    }
    for (number, set) in sets(environment) {
        let get = |name: &str| set.get(name).copied().filter(|value| !value.is_empty());
        let Some(host) = get("HOST") else { continue };
        let number = number.map_or_else(String::new, |number| format!("{number}_"));
        let entry = Entry {
            username: get("USERNAME"),
            password: get("PASSWORD"),
            ssh_key: get("SSH_KEY"),
            known_hosts: get("SSH_KNOWN_HOSTS"),
            ca: get("CA_BUNDLE"),
        };
        let origin = format!("KLUCTL_GIT_{number}*");
        rules.push(explicit(environment, &origin, (host, get("PATH")), &entry, &host_keys)?);
    }
    for path in stores(environment) {
        // Stores are used as far as they are there.
        let text = read_file(&path).unwrap_or_default();
        rules.extend(stored(&path.display().to_string(), &String::from_utf8_lossy(&text)));
    }
    rules.extend(own_keys(environment, host_keys));
    Ok(Rules(rules))
}

/// What flags or variables say about one host and path. Keys, known hosts and certificates are files.
struct Entry<'a> {
    username: Option<&'a str>,
    password: Option<&'a str>,
    ssh_key: Option<&'a str>,
    known_hosts: Option<&'a str>,
    ca: Option<&'a str>,
}

fn explicit(
    environment: &Environment,
    origin: &str,
    (host, path): (&str, Option<&str>),
    entry: &Entry<'_>,
    host_keys: &HostTrust,
) -> Result<Rule, Diagnostic> {
    let invalid = |error: AuthError| Diagnostic::new(Class::Access, format!("{origin}: {error}"));
    let text = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    let file = |path: Option<&str>| {
        path.map(|path| read_file(&environment.path(Path::new(path)))).transpose()
    };
    let values = [
        ("username", text(entry.username)),
        ("password", text(entry.password)),
        ("identity", file(entry.ssh_key)?),
        ("known_hosts", file(entry.known_hosts)?),
        ("ca.crt", file(entry.ca)?),
    ];
    let data: BTreeMap<String, Vec<u8>> =
        values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let path = path.map(PathGlob::parse).transpose().map_err(&invalid)?;
    let secret = GitSecret::from_data(origin, &data).map_err(&invalid)?;
    let secret = secret.or_trust(host_keys.clone());
    Ok(Rule::Explicit { host: HostRule::parse(host), path, secret })
}

/// A set of credentials: `KLUCTL_GIT_<NAME>` or `KLUCTL_GIT_<n>_<NAME>`.
type Set<'a> = BTreeMap<&'a str, &'a str>;

/// The sets of credentials, the one without a number first.
fn sets(environment: &Environment) -> BTreeMap<Option<u32>, Set<'_>> {
    let mut sets: BTreeMap<Option<u32>, Set<'_>> = BTreeMap::new();
    for (variable, value) in &environment.variables {
        let Some(rest) = variable.strip_prefix("KLUCTL_GIT_") else { continue };
        let (number, name) = match rest.split_once('_') {
            Some((number, name)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                (number.parse().ok(), name)
            }
            _ => (None, rest),
        };
        sets.entry(number).or_default().insert(name, value);
    }
    sets
}

/// The files of git's `store` helper, and where Kluctl looks for one.
fn stores(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.get("HOME").map(Path::new);
    let config = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| home.map(|home| home.join(".config")));
    let mut stores: Vec<PathBuf> =
        home.map(|home| home.join(".git-credentials")).into_iter().collect();
    if let Some(config) = config {
        stores.extend([config.join(".git-credentials"), config.join("git/credentials")]);
    }
    stores
}

/// The lines of a credential store: URLs with user and password, whose path has no meaning.
pub(super) fn stored(origin: &str, text: &str) -> Vec<Rule> {
    let line = |line: &str| {
        let line = line.trim();
        let url = GitUrl::parse(line).or_else(|_| GitUrl::parse(&format!("{line}/-"))).ok()?;
        let is_usable = url.scheme() != Scheme::Ssh
            && url.user().is_some_and(|user| !user.is_empty())
            && url.password().is_some();
        is_usable.then(|| Rule::Stored { origin: origin.to_owned(), url })
    };
    text.lines().filter_map(line).collect()
}

/// The SSH agent, and the keys that ssh takes when it is told nothing.
fn own_keys(environment: &Environment, host_keys: HostTrust) -> Option<Rule> {
    let mut keys = Vec::new();
    let mut origins = Vec::new();
    if let Some(socket) = environment.get("SSH_AUTH_SOCK") {
        keys.push(SshKey::Agent(PathBuf::from(socket)));
        origins.push("the SSH agent".to_owned());
    }
    if let Some(home) = environment.get("HOME") {
        for name in ["id_rsa", "id_ecdsa", "id_ed25519"] {
            let content = read_file(&Path::new(home).join(".ssh").join(name)).ok();
            let Some(identity) = content.and_then(|content| String::from_utf8(content).ok()) else {
                continue;
            };
            let origin = format!("~/.ssh/{name}");
            origins.push(origin.clone());
            let identity = Secret::new(identity);
            keys.push(SshKey::Private { origin, identity, passphrase: None });
        }
    }
    let origin = origins.join(", ");
    (!keys.is_empty()).then_some(Rule::Keys { origin, keys, host_keys })
}

/// The servers in the files of `SSH_KNOWN_HOSTS`, or those that ssh knows.
fn host_trust(environment: &Environment) -> HostTrust {
    let disabled = environment.get("KLUCTL_SSH_DISABLE_STRICT_HOST_KEY_CHECKING");
    if disabled.is_some_and(|text| matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")) {
        return HostTrust::Any;
    }
    let given = environment.get("SSH_KNOWN_HOSTS");
    let files: Vec<PathBuf> = match given {
        Some(list) => std::env::split_paths(list).collect(),
        None => environment
            .get("HOME")
            .map(|home| Path::new(home).join(".ssh/known_hosts"))
            .into_iter()
            .collect(),
    };
    // A file that is not there trusts nobody. The names are comments.
    let texts = files.iter().map(|path| {
        let text = read_file(path).unwrap_or_default();
        format!("# {}\n{}\n", path.display(), String::from_utf8_lossy(&text))
    });
    HostTrust::Known(texts.collect())
}
