use crate::{
    cluster::kubeconfig::*,
    diagnostic::{Class, Describe},
};

/// Two clusters, two users, two contexts, of which `prod` is the current one.
const TWO: &str = "
apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod-eu, cluster: {server: 'https://prod.example.com', tls-server-name: api.prod, proxy-url: 'http://u:hunter2@proxy'}}
- {name: dev-eu, cluster: {server: 'https://dev.example.com'}}
users:
- {name: admin, user: {token: hunter2}}
- {name: dev, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks], interactiveMode: Never}}}
contexts:
- {name: prod, context: {cluster: prod-eu, user: admin, namespace: shop}}
- {name: dev, context: {cluster: dev-eu, user: dev}}
";

fn contexts(text: &str) -> Contexts {
    Contexts::from_kubeconfig(text.as_bytes(), Guards::default()).unwrap()
}

fn renames(pairs: &[(&str, &str)]) -> Vec<Rename> {
    pairs.iter().map(|(old, new)| Rename { old: (*old).into(), new: (*new).into() }).collect()
}

/// The server that a context leads to.
fn server(contexts: &Contexts, name: Option<&str>) -> Result<String, KubeconfigError> {
    match contexts.select(name)? {
        Access::Own => Ok("own".to_owned()),
        Access::Kubeconfig { config, .. } => {
            let cluster = config.clusters[0].cluster.as_ref().unwrap();
            Ok(cluster.server.clone().unwrap())
        }
    }
}

#[test]
fn the_current_context_is_called_default_and_names_stay() {
    let contexts = contexts(TWO);
    assert_eq!(contexts.names(), ["default", "dev", "prod"]);
    assert_eq!(contexts.current(), "default");
    for name in [None, Some("default"), Some("prod")] {
        assert_eq!(server(&contexts, name).unwrap(), "https://prod.example.com");
    }
    let Access::Kubeconfig { config, context } = contexts.select(None).unwrap() else {
        panic!("a kubeconfig");
    };
    assert_eq!(context, "prod");
    assert_eq!((config.clusters.len(), config.auth_infos.len(), config.contexts.len()), (1, 1, 1));
    let cluster = config.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.tls_server_name.as_deref(), Some("api.prod"));
    assert_eq!(cluster.proxy_url.as_deref(), Some("http://u:hunter2@proxy"));
    let context = config.contexts[0].context.as_ref().unwrap();
    assert_eq!(context.namespace.as_deref(), Some("shop"));
}

#[test]
fn nothing_secret_is_shown() {
    let contexts = contexts(TWO);
    let shown = format!("{contexts:?} {:?}", contexts.select(None).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    for text in [
        "clusters: [{name: a, cluster: {server: {hunter2: x}}}]",
        "users: [{name: a, user: {token: [hunter2]}}]",
        "users: {hunter2",
        "users: hunter2",
        "hunter2",
        "token: hunter2: x",
    ] {
        let error = Contexts::from_kubeconfig(text.as_bytes(), Guards::default()).unwrap_err();
        let shown = format!("{error:?} {error} {}", error.describe());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn renames_are_applied_in_order() {
    let mut own = Contexts::own();
    own.rename(&renames(&[("default", "a"), ("a", "prod-cluster")])).unwrap();
    assert_eq!((own.names(), own.current()), (vec!["prod-cluster".to_owned()], "prod-cluster"));
    assert_eq!(server(&own, Some("prod-cluster")).unwrap(), "own");
    assert_eq!(server(&own, None).unwrap(), "own");

    let mut two = contexts(TWO);
    two.rename(&renames(&[("default", "prod"), ("dev", "staging"), ("prod", "dev")])).unwrap();
    assert_eq!((two.names(), two.current()), (vec!["dev".to_owned(), "staging".to_owned()], "dev"));
    assert_eq!(server(&two, Some("dev")).unwrap(), "https://prod.example.com");
}

#[test]
fn renames_that_cannot_be_list_what_exists() {
    let mut own = Contexts::own();
    let error = own.rename(&renames(&[("default", "x"), ("defualt", "y")])).unwrap_err();
    assert_eq!(
        error.describe().to_string(),
        r#"spec.renameContexts[1]: oldContext "defualt" does not exist (existing contexts: x)"#
    );
    let error = contexts(TWO).rename(&renames(&[("default", "dev")])).unwrap_err();
    assert_eq!(
        error.describe().to_string(),
        r#"spec.renameContexts[0]: newContext "dev" exists already (existing contexts: default, dev, prod)"#
    );
}

#[test]
fn missing_contexts_list_what_exists() {
    let error = contexts(TWO).select(Some("prdo")).unwrap_err();
    assert_eq!(error.describe().class, Class::Access);
    assert_eq!(
        error.describe().to_string(),
        r#"context "prdo" does not exist (did you mean `prod`?; existing contexts: default, dev, prod)"#
    );
    let wrong = TWO.replace("current-context: prod", "current-context: gone");
    let error = Contexts::from_kubeconfig(wrong.as_bytes(), Guards::default()).unwrap_err();
    assert!(error.describe().to_string().contains("existing contexts: prod, dev"), "{error}");
    let none = TWO.replace("current-context: prod", "");
    let error = Contexts::from_kubeconfig(none.as_bytes(), Guards::default()).unwrap_err();
    assert!(matches!(error, KubeconfigError::NoCurrent { .. }));
    let error = Contexts::from_kubeconfig(b"", Guards::default()).unwrap_err();
    assert_eq!(error, KubeconfigError::Empty);
}

#[test]
fn the_only_context_needs_no_mark() {
    let only = "
clusters: [{name: c, cluster: {server: 'https://h'}}]
contexts: [{name: x, context: {cluster: c}}]
";
    assert_eq!(server(&contexts(only), None).unwrap(), "https://h");
}

#[test]
fn a_second_default_is_ambiguous() {
    let text = TWO.replace("name: dev, context", "name: default, context");
    let mut two = contexts(&text);
    assert_eq!(two.current(), "prod");
    assert_eq!(server(&two, None).unwrap(), "https://prod.example.com");
    let error = two.select(Some("default")).unwrap_err();
    assert_eq!(error, KubeconfigError::AmbiguousDefault { current: "prod".into() });
    assert!(two.rename(&renames(&[("default", "x")])).is_err());
    // No ambiguity if that one is the current context.
    let text = text.replace("current-context: prod", "current-context: default");
    let guards = Guards { allow_exec: true, ..Guards::default() };
    let two = Contexts::from_kubeconfig(text.as_bytes(), guards).unwrap();
    assert_eq!(server(&two, Some("default")).unwrap(), "https://dev.example.com");
}

#[test]
fn duplicates_and_dangling_names_are_errors() {
    let twice = TWO.replace("name: dev-eu,", "name: prod-eu,");
    let error = Contexts::from_kubeconfig(twice.as_bytes(), Guards::default()).unwrap_err();
    assert_eq!(error.to_string(), r#"the kubeconfig has more than one cluster called "prod-eu""#);
    for (from, to, what) in
        [("cluster: prod-eu", "cluster: gone", "cluster"), ("user: admin", "user: gone", "user")]
    {
        let error = contexts(&TWO.replace(from, to)).select(None).unwrap_err();
        assert!(matches!(error, KubeconfigError::Dangling { what: w, .. } if w == what), "{error}");
    }
}

#[test]
fn guards_refuse_what_reaches_into_the_controller() {
    let one = |cluster: &str, user: &str| {
        format!(
            "{{clusters: [{{name: c, cluster: {{{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}],
              contexts: [{{name: x, context: {{cluster: c, user: u}}}}]}}"
        )
    };
    let tls = "server: 'https://h'";
    for (cluster, user, word) in [
        (tls, "exec: {command: aws}", "runs the program \"aws\""),
        (tls, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "tokenFile"),
        (tls, "client-certificate: /c, client-key: /k", "client-certificate"),
        (tls, "client-certificate-data: x, client-key: /k", "client-key"),
        ("server: 'https://h', certificate-authority: /ca", "", "certificate-authority"),
        ("server: 'https://h', insecure-skip-tls-verify: true", "", "insecure-skip-tls-verify"),
        ("server: 'http://h'", "", "not an https:// address"),
        ("server: 'h:8080'", "", "not an https:// address"),
    ] {
        let text = one(cluster, user);
        let error = contexts(&text).select(None).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        let allowed = Contexts::from_kubeconfig(text.as_bytes(), Guards::NONE).unwrap();
        assert!(allowed.select(None).is_ok(), "{word}");
    }
    let inline = one(
        "server: 'https://h', certificate-authority: /ca, certificate-authority-data: eA==",
        "client-certificate: /c, client-certificate-data: eA==, client-key: /k, client-key-data: eA==",
    );
    assert!(contexts(&inline).select(None).is_ok());
    // These do not work however much is allowed.
    for (cluster, user) in [(tls, "auth-provider: {name: gcp}"), ("tls-server-name: x", "")] {
        let text = one(cluster, user);
        let allowed = Contexts::from_kubeconfig(text.as_bytes(), Guards::NONE).unwrap();
        assert!(allowed.select(None).is_err());
    }
    // A context that nobody selects may be what it wants.
    assert!(contexts(TWO).select(Some("prod")).is_ok());
    assert!(contexts(TWO).select(Some("dev")).is_err());
}

#[test]
fn the_secret_key_follows_flux() {
    assert_eq!(secret_key(["value.yaml", "value"], None), Ok("value"));
    assert_eq!(secret_key(["value.yaml", "x"], None), Ok("value.yaml"));
    assert_eq!(secret_key(["value", "x"], Some("x")), Ok("x"));
    let error = secret_key(["config"], None).unwrap_err();
    assert_eq!(
        error.describe().to_string(),
        r#"the kubeconfig Secret has no key "value" or "value.yaml" (existing keys: config)"#
    );
    assert!(secret_key(["value"], Some("x")).is_err());
}
