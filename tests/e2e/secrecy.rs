//! Secret values stay where they are: many ways to fail with one at hand, and then a search in all that is told.

use anyhow::{Result, ensure};
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{
    support::{Case, EventSink, GitServer, SHARED, SinkMode, config_map, message_of, with},
    tests,
};

tests![
    secrets_of_variables_and_arguments_are_told_nowhere,
    secrets_in_refused_and_broken_manifests_are_told_nowhere,
    secrets_of_git_and_kubeconfigs_are_told_nowhere,
    secrets_that_objects_quote_while_they_are_waited_for_are_told_nowhere,
];

/// What all secret values here begin with.
const MARK: &str = "hush";

/// The controller at its most talkative, and where its events go.
async fn talkative(case: &mut Case) -> Result<EventSink> {
    let sink = EventSink::start(SinkMode::Accept).await?;
    let events = format!("--events-addr={}", sink.url);
    case.start_controller(&["--log-level=trace", &events]).await?;
    Ok(sink)
}

/// One way to fail.
struct Failing {
    name: &'static str,
    files: Vec<(String, String)>,
    spec: Value,
    /// What the message says, so that it is known to be the failure that was meant.
    says: &'static str,
}

fn failing(name: &'static str, files: &[(&str, &str)], spec: Value, says: &'static str) -> Failing {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Failing { name, files: files.collect(), spec, says }
}

/// Deploys all and waits until each has failed as meant.
async fn fail_all(case: &Case, sink: &EventSink, all: &[Failing]) -> Result<()> {
    for it in all {
        let files: Vec<(&str, &str)> =
            it.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let mut spec = json!({"retryInterval": "1h"});
        crate::support::merge(&mut spec, it.spec.clone());
        case.publish(it.name, &files, "v1@sha256:0001").await?;
        let mut object = case.artifact_deployment(it.name, it.name, spec);
        if object["spec"]["source"].is_object() {
            object["spec"].as_object_mut().expect("a mapping").remove("sourceRef");
        }
        case.apply(object).await?;
    }
    for it in all {
        let object = case
            .wait_deployment(it.name, "a failure", |object| {
                object["status"]["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "False")
            })
            .await?;
        let message = message_of(&object, "Ready");
        ensure!(message.contains(it.says), "{}: {:?} is not in: {message}", it.name, it.says);
        let errors = || {
            let events = sink.received();
            events.iter().any(|event| event["involvedObject"]["name"] == it.name)
        };
        case.wait_until("its event", || async { Ok(errors()) }).await?;
    }
    Ok(())
}

/// Searches status, events, payloads and log for anything secret, also in base64.
async fn search(case: &Case, sink: &EventSink) -> Result<()> {
    let mut leaks = Vec::new();
    let mut look = |place: &str, text: &str| {
        for line in text.lines() {
            // "hush" in base64, at each of the three offsets.
            let found = [MARK, "aHVza", "h1c2", "odXNo"].iter().any(|mark| line.contains(mark));
            if found {
                leaks.push(format!("{place}: {line}"));
            }
        }
    };
    let deployments =
        case.api("flux.kluctl.io/v1alpha1", "KluctlDeployment", Some(&case.namespace));
    for object in deployments.list(&ListParams::default()).await?.items {
        let name = object.metadata.name.unwrap_or_default();
        look(&format!("status of {name}"), &object.data["status"].to_string());
    }
    // Flux's own controllers report in the same namespace.
    let ours = ListParams::default().fields("reportingComponent=flux-kluctl-controller");
    for event in case.api("v1", "Event", Some(&case.namespace)).list(&ours).await?.items {
        look("Event", &serde_json::to_string(&event)?);
    }
    for payload in sink.received() {
        look("payload", &payload.to_string());
    }
    let log = case.controllers[0].log_text();
    ensure!(log.contains("TRACE") || log.contains("\"debug\""), "the log is not talkative");
    look("log", &log);
    leaks.dedup();
    ensure!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    Ok(())
}

/// Variables from a Secret, and items that use them.
const VARS: (&str, &str) = (
    "deployment.yaml",
    "vars:\n  - clusterSecret:\n      name: credentials\n      namespace: \"{{ args.namespace }}\"\n      key: vars.yaml\n      targetPath: credentials\ndeployments:\n  - path: config\noverrideNamespace: \"{{ args.namespace }}\"\n",
);

async fn secrets_of_variables_and_arguments_are_told_nowhere(case: &mut Case) -> Result<()> {
    let sink = talkative(case).await?;
    let vars = json!({
        "text": "hush-text", "broken": "a: b: hush-broken", "quote": "hush-quote\"'", "name": "Hush_hush name",
        "number": 7, "list": ["hush-list"],
    });
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
        "stringData": {"vars.yaml": vars.to_string(), "broken": "password: hush-1\n hush-2: [", "scalar": "hush-scalar",
            "template": "a: {{ hush_undefined }}"}}))
        .await?;
    let templates = [
        ("attribute", "{{ credentials.text.nope }}", "nope"),
        ("item", "{{ {}[credentials.text] }}", "config/it.yaml:1"),
        ("call", "{{ credentials.text() }}", "config/it.yaml:1"),
        ("sum", "{{ credentials.text + 1 }}", "config/it.yaml:1"),
        ("format", "{{ '%d' % credentials.text }}", "config/it.yaml:1"),
        ("from-yaml", "{{ credentials.broken | from_yaml }}", "config/it.yaml:1"),
        ("include", "{% include credentials.text %}", "config/it.yaml:1"),
        ("load", "{{ load_template(credentials.text) }}", "config/it.yaml:1"),
        (
            "filter",
            "{{ credentials.list | join(credentials.number) | int(base=99) }}",
            "config/it.yaml:1",
        ),
        ("decode", "{{ credentials.text | b64decode }}", "config/it.yaml:1"),
        ("raised", "{{ raise(credentials.text) }}", "config/it.yaml:1"),
        ("argument", "{{ args.secret.nope }}", "nope"),
        ("argument-yaml", "{{ ('a: b: ' ~ args.secret) | from_yaml }}", "config/it.yaml:1"),
    ];
    let args = |name: &str| json!({"args": {"namespace": case.namespace, "name": name, "secret": "hush-argument"}});
    let project =
        SHARED[0].1.replace("- name: name\n", "- name: name\n  - name: secret\n    default: {}\n");
    let mut all = Vec::new();
    for (name, template, says) in templates {
        let files =
            with(&SHARED, &[(".kluctl.yaml", &project), VARS, ("config/it.yaml", template)]);
        all.push(failing(name, &files, args(name), says));
    }
    let manifest = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: \"{{{{ args.name }}}}\"\nstringData:\n  password: {value}\n"
        )
    };
    for (name, value) in [
        ("rendered", "{{ credentials.broken }}"),
        ("quoted", "\"{{ credentials.quote }}\""),
        ("argument-rendered", "a: b: {{ args.secret }}"),
    ] {
        let text = manifest(value);
        let files = with(&SHARED, &[(".kluctl.yaml", &project), VARS, ("config/it.yaml", &text)]);
        all.push(failing(name, &files, args(name), "config/it.yaml:6"));
    }
    for (key, says) in
        [("broken", "not valid YAML"), ("scalar", "mapping"), ("template", "cannot be rendered")]
    {
        let text = VARS
            .1
            .replace("key: vars.yaml", &format!("key: {key}"))
            .replace("      targetPath: credentials\n", "");
        let files = with(
            &SHARED,
            &[(".kluctl.yaml", &project), ("deployment.yaml", &text), ("config/it.yaml", "a: b")],
        );
        let name = match key {
            "broken" => "key-broken",
            "scalar" => "key-scalar",
            _ => "key-template",
        };
        all.push(failing(name, &files, args(name), says));
    }
    // The API server quotes what it refuses. (An object's own name is told, whatever it was made of.)
    for (name, text, says) in [
        (
            "refused-port",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\nspec:\n  ports: [{port: 80, name: \"{{ credentials.name }}\"}]\n",
            "deploy failed",
        ),
        (
            "refused-label",
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n  labels: {a: \"{{ credentials.name }}\"}\n",
            "metadata.labels",
        ),
        (
            "refused-type",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: [\"{{ credentials.text }}\"]\n",
            "data",
        ),
    ] {
        let files = with(&SHARED, &[(".kluctl.yaml", &project), VARS, ("config/it.yaml", text)]);
        all.push(failing(name, &files, args(name), says));
    }
    let undeclared = json!({"args": {"namespace": case.namespace, "name": "undeclared", "another": "hush-undeclared"}});
    let files = with(&SHARED, &[("config/it.yaml", "{{ args.another.nope }}")]);
    all.push(failing("undeclared", &files, undeclared, "nope"));
    fail_all(case, &sink, &all).await?;
    search(case, &sink).await
}

async fn secrets_in_refused_and_broken_manifests_are_told_nowhere(case: &mut Case) -> Result<()> {
    let sink = talkative(case).await?;
    let secret =
        |rest: &str| format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\n{rest}");
    let manifests = [
        ("list", secret("stringData:\n  password: [hush-list]\n"), "Secret/it"),
        ("base64", secret("data:\n  password: hush-base64!\n"), "Secret/it"),
        ("mapping", secret("stringData: {password: {deep: hush-deep}}\n"), "Secret/it"),
        ("unknown", secret("stringDatas:\n  password: hush-unknown\n"), "Secret/it"),
        ("unclosed", secret("stringData:\n  password: \"hush-unclosed\n"), "config/it.yaml:"),
        ("tab", secret("stringData:\n  password: hush-tab\n\tb: hush-tab\n"), "config/it.yaml:"),
        ("colon", secret("stringData:\n  password: a: hush-colon\n"), "config/it.yaml:"),
        ("anchor", secret("stringData:\n  password: *hush-anchor\n"), "config/it.yaml:"),
        ("twice", secret("stringData:\n  a: hush-a\n  a: hush-b\n"), "config/it.yaml:"),
        ("no-object", "hush-no-object\n".to_owned(), "config/it.yaml"),
        ("tag", secret("stringData:\n  a: !!int hush-tag\n"), "config/it.yaml:"),
    ];
    let mut all = Vec::new();
    for (name, text, says) in &manifests {
        let files = with(&SHARED, &[("config/it.yaml", text.as_str())]);
        all.push(failing(name, &files, json!({}), says));
    }
    let generator = |rest: &str| format!("secretGenerator:\n  - name: it\n{rest}");
    for (name, text, says) in [
        ("literal", generator("    literals: [hush-without-equals]\n"), "config/kustomization"),
        ("env", generator("    envs: [it.env]\n"), "Secret/it"),
    ] {
        let files = with(
            &SHARED,
            &[
                ("config/kustomization.yaml", text.as_str()),
                ("config/it.env", "ok=hush-ok\nbad key=hush-value\n"),
            ],
        );
        all.push(failing(name, &files, json!({}), says));
    }
    fail_all(case, &sink, &all).await?;
    search(case, &sink).await
}

async fn secrets_that_objects_quote_while_they_are_waited_for_are_told_nowhere(
    case: &mut Case,
) -> Result<()> {
    let sink = talkative(case).await?;
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
        "stringData": {"vars.yaml": "password: hush-hush-secret"}}))
        .await?;
    let (version, kind) = ("source.toolkit.fluxcd.io/v1", "ExternalArtifact");
    let text = VARS.1.replace("  - path: config\n", "  - path: config\n    waitReadiness: true\n");
    let judged =
        format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: judged\nspec: {{}}\n");
    let files = with(&SHARED, &[("deployment.yaml", &text), ("config/it.yaml", &judged)]);
    case.deploy_files("app", &files, json!({"timeout": "300s"})).await?;
    case.wait_for(version, kind, "judged", "it", Value::is_object).await?;
    let says = "login with hush-hush-secret refused";
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Refused", "message": says,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = [condition("Ready", "False"), condition("Reconciling", "True")];
    case.patch_status(version, kind, "judged", json!({"status": {"conditions": conditions}}))
        .await?;
    case.wait_deployment("app", "what it waits for", |object| {
        message_of(object, "Reconciling").contains("login with")
    })
    .await?;
    search(case, &sink).await
}

async fn secrets_of_git_and_kubeconfigs_are_told_nowhere(case: &mut Case) -> Result<()> {
    let sink = talkative(case).await?;
    let server =
        GitServer::start(&case.dir.join("guarded"), &["--user", "robot", "--password", "right"])?;
    let host = server.url.trim_start_matches("http://").to_owned();
    for (name, data) in [
        ("password", json!({"username": "robot", "password": "hush-password"})),
        ("bearer", json!({"bearerToken": "hush-bearer"})),
        ("key", json!({"identity": "hush-identity", "known_hosts": "hush-known-hosts"})),
        ("ca", json!({"username": "robot", "password": "hush-2", "ca.crt": "hush-ca"})),
    ] {
        case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})).await?;
    }
    let one = config_map("one", "first");
    let files = with(&SHARED, &[("config/one.yaml", &one)]);
    let source = |url: &str, secret: Option<&str>| {
        let mut source = json!({"url": url});
        if let Some(secret) = secret {
            source["secretRef"] = json!({"name": secret});
        }
        json!({"source": source})
    };
    let (plain, with_user) =
        (format!("http://{host}/x.git"), format!("http://robot:hush-in-url@{host}/x.git"));
    let include = format!("deployments:\n  - git: {{url: \"{with_user}\"}}\n");
    let mut all = vec![
        failing("password", &files, source(&plain, Some("password")), ""),
        failing("bearer", &files, source(&plain, Some("bearer")), ""),
        failing("key", &files, source("ssh://git@127.0.0.1:1/x.git", Some("key")), ""),
        failing("ca", &files, source("https://127.0.0.1:1/x.git", Some("ca")), ""),
        failing("in-url", &files, source(&with_user, None), ""),
        failing(
            "nobody",
            &files,
            source("http://robot:hush-nobody@127.0.0.1:1/x.git?token=hush-query", None),
            "127.0.0.1:1",
        ),
        failing(
            "include",
            &with(&files, &[("deployment.yaml", &include)]),
            json!({}),
            "deployment.yaml:2",
        ),
    ];
    let text = std::fs::read_to_string(&case.suite.kubeconfig)?;
    let working: Value = serde_json::from_str(&text)?;
    let user = |user: Value| {
        let mut all = working.clone();
        all["users"][0]["user"] = user;
        all.to_string()
    };
    let server_with_user = {
        let mut all = working.clone();
        all["clusters"][0]["cluster"]["server"] = "https://robot:hush-server@127.0.0.1:1".into();
        all.to_string()
    };
    let kubeconfigs = [
        (
            "kube-syntax",
            "users: [{name: a, user: {token: hush-syntax}}]\n  x: hush-syntax".to_owned(),
            "kubeconfig",
        ),
        (
            "kube-type",
            "apiVersion: v1\nusers: {hush: hush-type}\ncontexts: hush-type\n".to_owned(),
            "kubeconfig",
        ),
        ("kube-token", user(json!({"token": "hush-token"})), ""),
        (
            "kube-key",
            user(json!({"client-certificate-data": "hush!", "client-key-data": "hush!"})),
            "",
        ),
        (
            "kube-program",
            user(
                json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token",
            "args": ["--secret", "hush-args"], "env": [{"name": "TOKEN", "value": "hush-env"}], "interactiveMode": "Never"}}),
            ),
            "get-token",
        ),
        (
            "kube-provider",
            user(
                json!({"auth-provider": {"name": "oidc", "config": {"id-token": "hush-id-token"}}}),
            ),
            "oidc",
        ),
        ("kube-basic", user(json!({"username": "robot", "password": "hush-basic"})), ""),
        ("kube-server", server_with_user, ""),
    ];
    for (name, text, says) in kubeconfigs {
        case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"value": text}})).await?;
        let spec = json!({"kubeConfig": {"secretRef": {"name": name}}, "timeout": "5s"});
        all.push(failing(name, &files, spec, says));
    }
    fail_all(case, &sink, &all).await?;

    // A source that cannot be fetched, whose own words are passed on.
    case.apply(json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "lost"},
        "spec": {"interval": "1h", "url": "http://robot:hush-source@127.0.0.1:1/x.git", "timeout": "1s"}}))
        .await?;
    let (api_version, kind) = ("source.toolkit.fluxcd.io/v1", "GitRepository");
    case.wait_for(api_version, kind, "lost", "its failure", |object| {
        message_of(object, "Ready").contains("127.0.0.1:1/x.git")
    })
    .await?;
    let lost = json!({"sourceRef": {"kind": "GitRepository", "name": "lost"}});
    case.apply(case.artifact_deployment("lost", "lost", lost)).await?;
    case.wait_for("flux.kluctl.io/v1alpha1", "KluctlDeployment", "lost", "the reason", |object| {
        let said = ["Ready", "Reconciling"].map(|kind| message_of(object, kind));
        said.iter().any(|text| text.contains("no artifact") && text.contains("127.0.0.1:1/x.git"))
    })
    .await?;
    search(case, &sink).await
}
