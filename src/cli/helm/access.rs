//! Where a user's credentials for charts are, in the order in which they are looked through (kluctl 2.28): flags, variables,
//! then what Helm and docker know.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use indexmap::IndexMap;
use reqwest::Url;

use crate::{
    cli::{
        environment::{Environment, read_file},
        flags::{HelmFlags, RegistryFlags},
    },
    diagnostic::{Class, Diagnostic},
    helm::{Access, AccessRule, AccessRules},
    net::Identity,
    secret::Secret,
    yaml::{self, Schema},
};

/// Credentials for Helm repositories: `--helm-*`, `KLUCTL_HELM_*`, then Helm's own list of repositories.
///
/// # Errors
/// When a flag or variable names a file that cannot be read, or a pattern that is none.
pub(super) fn repositories(
    flags: &HelmFlags,
    environment: &Environment,
) -> Result<AccessRules, Diagnostic> {
    let mut rules = Vec::new();
    for ((host, path), given) in with_paths_first(flags.scopes()?) {
        let get = |flag: &str| given.get(flag).copied();
        let origin = format!("--helm-* for {host}");
        rules.push(rule(environment, &origin, (host, path), &get)?);
    }
    rules.extend(from_variables(environment, "KLUCTL_HELM")?);
    rules.extend(helm_list(environment));
    Ok(AccessRules(rules))
}

/// Credentials for OCI registries: `--registry-*`, `KLUCTL_REGISTRY_*`, then docker's configuration.
///
/// # Errors
/// As [`repositories`].
pub(super) fn registries(
    flags: &RegistryFlags,
    environment: &Environment,
) -> Result<AccessRules, Diagnostic> {
    let mut rules = Vec::new();
    for ((host, path), given) in with_paths_first(flags.scopes()?) {
        let get = |flag: &str| given.get(flag).copied();
        let origin = format!("--registry-* for {host}");
        rules.push(rule(environment, &origin, (host, path), &get)?);
    }
    rules.extend(from_variables(environment, "KLUCTL_REGISTRY")?);
    rules.extend(docker_config(environment));
    Ok(AccessRules(rules))
}

/// Flags of different names have no order among each other, so what is for some paths comes before what is for all.
fn with_paths_first<'a, T>(
    scopes: IndexMap<(&'a str, Option<&'a str>), T>,
) -> Vec<((&'a str, Option<&'a str>), T)> {
    let mut scopes: Vec<_> = scopes.into_iter().collect();
    scopes.sort_by_key(|((_, path), _)| path.is_none());
    scopes
}

/// A rule out of values by the names of flags.
fn rule<'a>(
    environment: &Environment,
    origin: &str,
    (host, path): (&str, Option<&str>),
    get: &dyn Fn(&str) -> Option<&'a str>,
) -> Result<AccessRule, Diagnostic> {
    let file = |flag: &str| {
        let path = get(flag).filter(|path| !path.is_empty());
        path.map(|path| read_file(&environment.path(Path::new(path)))).transpose()
    };
    let secret = |flag: &str| get(flag).map(|text| Secret::new(text.to_owned()));
    let is_set = |flag: &str| get(flag).is_some_and(is_true);
    let mut access = Access {
        origin: origin.to_owned(),
        user: get("username").map(str::to_owned),
        password: secret("password"),
        identity_token: secret("identity-token"),
        token: secret("token"),
        ca_bundle: file("ca-file")?,
        identity: match (file("cert-file")?, file("key-file")?) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key: Secret::new(key) }),
            _ => None,
        },
        skips_tls_checks: is_set("insecure-skip-tls-verify"),
        plain_http: is_set("plain-http"),
        passes_everywhere: is_set("pass-credentials-all"),
    };
    match get("creds").map(|creds| creds.split_once(':').ok_or(creds)) {
        Some(Ok((user, password))) => {
            access.user = Some(user.to_owned());
            access.password = Some(Secret::new(password.to_owned()));
        }
        Some(Err(token)) => access.token = Some(Secret::new(token.to_owned())),
        None => {}
    }
    AccessRule::new(host, path, access)
        .map_err(|error| Diagnostic::new(Class::Access, format!("{origin}: {error}")))
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// The sets `<prefix>_<NAME>` and `<prefix>_<n>_<NAME>`, the one without a number first.
fn from_variables(environment: &Environment, prefix: &str) -> Result<Vec<AccessRule>, Diagnostic> {
    let mut sets: BTreeMap<Option<u32>, BTreeMap<&str, &str>> = BTreeMap::new();
    for (variable, value) in &environment.variables {
        let Some(rest) = variable.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'))
        else {
            continue;
        };
        let (number, name) = match rest.split_once('_') {
            Some((number, name)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                (number.parse().ok(), name)
            }
            _ => (None, rest),
        };
        if !value.is_empty() {
            sets.entry(number).or_default().insert(name, value);
        }
    }
    let insecure = environment.get(&format!("{prefix}_DEFAULT_INSECURE_SKIP_TLS_VERIFY"));
    let mut rules = Vec::new();
    for (number, set) in sets {
        let Some(host) = set.get("HOST").copied() else { continue };
        let path = set.get("PATH").or(set.get("REPOSITORY")).copied();
        let get = |flag: &str| {
            let name = flag.to_uppercase().replace('-', "_");
            let default = insecure.filter(|_| flag == "insecure-skip-tls-verify");
            set.get(name.as_str()).copied().or(default)
        };
        let number = number.map_or_else(String::new, |number| format!("{number}_"));
        let origin = format!("{prefix}_{number}*");
        rules.push(rule(environment, &origin, (host, path), &get)?);
    }
    Ok(rules)
}

/// The repositories that the user told Helm of. What cannot be used there is passed over, as Kluctl does.
fn helm_list(environment: &Environment) -> Vec<AccessRule> {
    let config = environment.get("HELM_CONFIG_HOME").map(PathBuf::from).or_else(|| {
        let shared = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = || environment.get("HOME").map(|home| Path::new(home).join(".config"));
        Some(shared.or_else(home)?.join("helm"))
    });
    let own = environment.get("HELM_REPOSITORY_CONFIG").map(PathBuf::from);
    let Some(path) = own.or_else(|| Some(config?.join("repositories.yaml"))) else {
        return Vec::new();
    };
    let Ok(text) = read_file(&path) else { return Vec::new() };
    let shown = path.display().to_string();
    let Ok(document) = yaml::parse_document(&shown, &text, Schema::Config) else {
        return Vec::new();
    };
    let entries = document.value["repositories"].as_array().into_iter().flatten();
    let rule = |entry: &serde_json::Value| {
        let get = |flag: &str| {
            let field = match flag {
                "cert-file" => "certFile",
                "key-file" => "keyFile",
                "ca-file" => "caFile",
                other => other,
            };
            entry[field].as_str().filter(|text| !text.is_empty())
        };
        let url = Url::parse(get("url")?).ok()?;
        let host = host_of(&url)?;
        let path = url.path().trim_matches('/').to_owned();
        // The list has whole URLs: everything at and nothing above that path.
        let path = (!path.is_empty()).then(|| globset::escape(&path));
        rule(environment, &shown, (&host, path.as_deref()), &get).ok()
    };
    entries.filter_map(rule).collect()
}

fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The logins in docker's configuration. Credential helpers are not asked.
fn docker_config(environment: &Environment) -> Vec<AccessRule> {
    let dir = environment.get("DOCKER_CONFIG").map(PathBuf::from);
    let home = || environment.get("HOME").map(|home| Path::new(home).join(".docker"));
    let Some(path) = dir.or_else(home).map(|dir| dir.join("config.json")) else {
        return Vec::new();
    };
    let Ok(text) = read_file(&path) else { return Vec::new() };
    let config: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let logins = config["auths"].as_object().into_iter().flatten();
    let rule = |(registry, login): (&String, &serde_json::Value)| {
        let text = |field: &str| login[field].as_str().filter(|text| !text.is_empty());
        let decoded = text("auth").and_then(|auth| BASE64_STANDARD.decode(auth).ok());
        let decoded = decoded.and_then(|auth| String::from_utf8(auth).ok()).unwrap_or_default();
        let (user, password) = decoded.split_once(':').unwrap_or_default();
        let or_decoded = |field: &str, decoded: &str| {
            text(field).map(str::to_owned).or((!decoded.is_empty()).then(|| decoded.to_owned()))
        };
        let access = Access {
            origin: path.display().to_string(),
            user: or_decoded("username", user),
            password: or_decoded("password", password).map(Secret::new),
            identity_token: text("identitytoken").map(|token| Secret::new(token.to_owned())),
            token: text("registrytoken").map(|token| Secret::new(token.to_owned())),
            ..Access::default()
        };
        let host = registry.trim_start_matches("https://").trim_start_matches("http://");
        let host = host.split('/').next().filter(|host| !host.is_empty())?;
        access.has_login().then(|| AccessRule::new(host, None, access).ok()).flatten()
    };
    logins.filter_map(rule).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "makes the files of a home directory")]

    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        helm: HelmFlags,
        #[command(flatten)]
        registry: RegistryFlags,
    }

    fn environment(dir: &Path, variables: &[(&str, &str)]) -> Environment {
        let all = [("HOME", dir.to_str().unwrap())];
        let all = all.iter().chain(variables);
        Environment {
            variables: all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            working_dir: dir.to_owned(),
            program_dir: None,
            is_terminal: false,
            shows_results: false,
            can_ask: false,
        }
    }

    #[test]
    fn flags_come_before_variables_and_those_before_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".config/helm")).unwrap();
        fs::create_dir_all(dir.path().join(".docker")).unwrap();
        fs::write(
            dir.path().join(".config/helm/repositories.yaml"),
            "repositories:\n- {name: a, url: 'https://list.example/stable/', username: list, password: pw}\n\
             - {name: b, url: 'https://flag.example', username: late, password: pw}\n",
        )
        .unwrap();
        // docker:pw
        let docker = r#"{"auths": {"https://reg.example/v1/": {"auth": "ZG9ja2VyOnB3"}, "empty.example": {}}}"#;
        fs::write(dir.path().join(".docker/config.json"), docker).unwrap();
        let flags = Flags::parse_from([
            "x",
            "--helm-creds=flag.example/team/*=flag:pw:1",
            "--helm-username=flag.example=all",
            "--registry-creds=tok.example=abc",
            "--registry-plain-http=plain.example:5000",
        ]);
        let variables = [
            ("KLUCTL_HELM_HOST", "env.example"),
            ("KLUCTL_HELM_USERNAME", "env"),
            ("KLUCTL_HELM_3_HOST", "flag.example"),
            ("KLUCTL_HELM_3_USERNAME", "late"),
            ("KLUCTL_REGISTRY_1_HOST", "reg.example"),
            ("KLUCTL_REGISTRY_1_REPOSITORY", "org/*"),
            ("KLUCTL_REGISTRY_1_USERNAME", "org"),
        ];
        let environment = environment(dir.path(), &variables);
        let repositories = repositories(&flags.helm, &environment).unwrap();
        let chosen = |url: &str| repositories.choose(&Url::parse(url).unwrap());
        for (url, user) in [
            ("https://flag.example/team/x", Some("flag")),
            ("https://flag.example/other", Some("all")),
            ("https://env.example", Some("env")),
            ("https://list.example/stable", Some("list")),
            ("https://list.example/stable/", Some("list")),
            ("https://list.example/stable/below", None),
        ] {
            assert_eq!(chosen(url).user.as_deref(), user, "{url}");
        }
        assert_eq!(chosen("https://flag.example/team/x").password.unwrap().reveal(), "pw:1");
        let registries = registries(&flags.registry, &environment).unwrap();
        let chosen = |url: &str| registries.choose(&Url::parse(url).unwrap());
        assert_eq!(chosen("oci://tok.example/x").token.unwrap().reveal(), "abc");
        assert!(chosen("oci://plain.example:5000/x").plain_http);
        assert_eq!(chosen("oci://reg.example/org/x").user.as_deref(), Some("org"));
        assert_eq!(chosen("oci://reg.example/x").user.as_deref(), Some("docker"));
        assert_eq!(chosen("oci://empty.example/x"), Access::default());
    }

    #[test]
    fn files_that_are_named_have_to_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let flags = Flags::parse_from(["x", "--helm-ca-file=h=none.pem"]);
        let error = repositories(&flags.helm, &environment(dir.path(), &[])).unwrap_err();
        assert!(error.to_string().contains("none.pem does not exist"), "{error}");
    }
}
