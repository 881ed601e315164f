//! Variables from objects of the cluster, from files of Git repositories and from HTTP servers; what secret ones hold is told
//! nowhere.

use std::{fs, process::Command};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    support::{Case, SHARED, message_of, with},
    tests,
};

tests![
    objects_of_the_cluster_are_variables,
    files_of_git_repositories_are_variables,
    answers_of_http_servers_are_variables,
    missing_sources_are_named,
    the_command_line_does_not_tell_secret_variables,
];

/// One ConfigMap whose only value is the variable `found`, as JSON.
const SHOW: (&str, &str) = (
    "config/one.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  found: '{{ found | to_json }}'\n",
);

/// A project whose variables come from this list.
fn project(vars: &Value) -> [(String, String); 3] {
    let vars = json!({"vars": vars, "deployments": [{"path": "config"}],
        "overrideNamespace": "{{ args.namespace }}"});
    let owned = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
    [owned(SHARED[0]), ("deployment.yaml".to_owned(), vars.to_string()), owned(SHOW)]
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

/// Deploys a project with these variables and returns what its ConfigMap shows.
async fn found(case: &mut Case, vars: &Value) -> Result<Value> {
    case.start_controller(&["--allow-local-http-vars"]).await?;
    case.deploy_files("app", &borrowed(&project(vars)), json!({})).await?;
    case.wait_ready("app").await?;
    shown(case).await
}

async fn shown(case: &Case) -> Result<Value> {
    let object = case.config_map("one").await?;
    Ok(serde_json::from_str(object["data"]["found"].as_str().unwrap_or("null"))?)
}

/// A message with which the deployment of a project with these variables fails.
async fn refusal(case: &Case, vars: &Value) -> Result<String> {
    case.deploy_files("app", &borrowed(&project(vars)), json!({})).await?;
    let object = case.wait_failed("app", "PrepareFailed").await?;
    case.delete_deployment("app").await?;
    Ok(message_of(&object, "Ready").to_owned())
}

async fn config(case: &Case, name: &str, labels: &Value, data: &Value) -> Result<()> {
    let metadata = json!({"name": name, "labels": labels});
    case.apply(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
    )
    .await?;
    Ok(())
}

async fn objects_of_the_cluster_are_variables(case: &mut Case) -> Result<()> {
    let teams = json!({"role": "team"});
    config(case, "team-b", &teams, &json!({"name": "b"})).await?;
    config(case, "team-a", &teams, &json!({"name": "a"})).await?;
    config(case, "others", &json!({}), &json!({"name": "c"})).await?;
    config(case, "settings", &json!({}), &json!({"it.yaml": "size: {{ 1 + 1 }}\nkind: small\n"}))
        .await?;
    case.apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "name": "http"}]}}))
        .await?;
    let in_namespace = |more: Value| {
        let mut source = json!({"namespace": "{{ args.namespace }}"});
        crate::support::merge(&mut source, more);
        source
    };
    let vars = json!([
        {"clusterObject": in_namespace(json!({"kind": "ConfigMap", "labels": teams, "list": true, "path": "data.name"})),
            "targetPath": "found.teams"},
        {"clusterObject": in_namespace(json!({"kind": "ConfigMap", "name": "settings", "path": "data[\"it.yaml\"]",
            "render": true, "parseYaml": true})), "targetPath": "found.settings"},
        {"clusterObject": in_namespace(json!({"apiVersion": "v1", "kind": "Service", "name": "web",
            "path": "spec.ports[0].port"})), "targetPath": "found.port"},
        {"clusterObject": in_namespace(json!({"kind": "ConfigMap", "name": "absent", "path": "data.name"})),
            "targetPath": "found.absent", "ignoreMissing": true},
    ]);
    let found = found(case, &vars).await?;
    let expected = json!({"teams": ["a", "b"], "settings": {"size": 2, "kind": "small"}, "port": 80, "absent": {}});
    ensure!(found == expected, "{found}");

    // They are read anew by each run.
    config(case, "team-b", &teams, &json!({"name": "b2"})).await?;
    case.request_reconcile("app", "1").await?;
    case.wait_handled("app", "1").await?;
    ensure!(shown(case).await?["teams"] == json!(["a", "b2"]), "the change is not seen");
    Ok(())
}

async fn files_of_git_repositories_are_variables(case: &mut Case) -> Result<()> {
    let files = [
        ("teams/a.yaml", "name: a\nenv: {{ args.name }}\n"),
        ("teams/readme.md", "{{ not rendered }}"),
        ("teams/deep/b.yaml", "name: b\n---\nname: c\n"),
        ("vars.yaml", "greeting: hello {{ args.name }}\n"),
    ];
    let repo = case.repo("teams", &files)?;
    repo.push_as("refs/heads/release-1")?;
    repo.commit(&[("teams/a.yaml", "name: a-next\nenv: {{ args.name }}\n")])?;
    repo.push_as("refs/heads/release-2")?;
    let vars = json!([
        {"git": {"url": repo.url, "ref": {"branch": "main"}, "path": "vars.yaml"}},
        {"gitFiles": {"url": repo.url, "ref": {"branch": "release-.*"}, "files": [
            {"glob": "teams/*.yaml", "render": true, "parseYaml": true},
            {"glob": "teams/**/*.yaml", "parseYaml": true, "yamlMultiDoc": true},
        ]}, "targetPath": "branches"},
        {"values": {"found": {
            "greeting": "{{ greeting }}",
            "refs": "{{ branches | map(attribute='refStr') | list | to_json }}",
            "names": "{{ [branches[0].filesByPath['teams/a.yaml'].parsed.name, branches[1].filesByPath['teams/a.yaml'].parsed.name] | to_json }}",
            "env": "{{ branches[0].filesByPath['teams/a.yaml'].parsed.env }}",
            "deep": "{{ branches[0].filesByPath['teams/deep/b.yaml'].parsed | map(attribute='name') | list | to_json }}",
            "paths": "{{ branches[0].files | map(attribute='path') | list | to_json }}",
        }}},
    ]);
    // The expressions are for the second pass, in which the values are rendered.
    let vars: Value = serde_json::from_str(&vars.to_string().replace("{{ ", "{{ '{{ ' }}"))?;
    let found = found(case, &vars).await?;
    ensure!(found["greeting"] == "hello app", "{found}");
    ensure!(found["refs"] == r#"["refs/heads/release-1", "refs/heads/release-2"]"#, "{found}");
    ensure!(found["names"] == r#"["a", "a-next"]"#, "{found}");
    ensure!(found["env"] == "app" && found["deep"] == r#"["b", "c"]"#, "{found}");
    ensure!(found["paths"] == r#"["teams/a.yaml", "teams/deep/b.yaml"]"#, "{found}");
    Ok(())
}

async fn answers_of_http_servers_are_variables(case: &mut Case) -> Result<()> {
    let plain = case.serve_bytes(b"colour: green\ntext: '{{ not rendered }}'\n".to_vec()).await?;
    let wrapped = case.serve_bytes(br#"{"data": {"it": "size: 5\n"}}"#.to_vec()).await?;
    let echo = echo().await?;
    let vars = json!([
        {"http": {"url": plain}, "targetPath": "found.plain"},
        {"http": {"url": wrapped, "jsonPath": "data.it"}, "targetPath": "found.wrapped"},
        {"http": {"url": format!("{echo}/{{{{ args.name }}}}"), "method": "POST", "body": "hello",
            "headers": {"X-Token": "abc"}}, "targetPath": "found.sent"},
        {"http": {"url": format!("{echo}/missing")}, "targetPath": "found.missing", "ignoreMissing": true},
    ]);
    let found = found(case, &vars).await?;
    ensure!(found["plain"] == json!({"colour": "green", "text": "{{ not rendered }}"}), "{found}");
    ensure!(found["wrapped"] == json!({"size": 5}) && found["missing"] == json!({}), "{found}");
    let sent = json!({"method": "POST", "path": "/app", "body": "hello", "token": "abc"});
    ensure!(found["sent"] == sent, "{found}");
    Ok(())
}

/// A server that answers with what it is asked, and with 404 to `/missing`; its address.
async fn echo() -> Result<String> {
    use axum::http::{HeaderMap, Method, StatusCode, Uri};

    let answer = async |method: Method, uri: Uri, headers: HeaderMap, body: String| {
        if uri.path() == "/missing" {
            return (StatusCode::NOT_FOUND, String::new());
        }
        let token = headers.get("x-token").and_then(|value| value.to_str().ok());
        let answer =
            json!({"method": method.as_str(), "path": uri.path(), "body": body, "token": token});
        (StatusCode::OK, answer.to_string())
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.ok() });
    Ok(address)
}

async fn missing_sources_are_named(case: &mut Case) -> Result<()> {
    case.start_controller(&["--allow-local-http-vars"]).await?;
    let namespace = case.namespace.clone();
    config(case, "one-of", &json!({"role": "team"}), &json!({"name": "a"})).await?;
    config(case, "two-of", &json!({"role": "team"}), &json!({"name": "b"})).await?;
    let repo = case.repo("files", &[("a.yaml", "a: [\n")])?;
    let echo = echo().await?;
    let object = |source: Value| json!([{"clusterObject": source, "targetPath": "found"}]);
    for (vars, told) in [
        (
            object(
                json!({"kind": "ConfigMap", "namespace": namespace, "name": "absent", "path": "data"}),
            ),
            vec![format!("{namespace}/ConfigMap/absent")],
        ),
        (
            object(
                json!({"kind": "ConfigMap", "namespace": namespace, "labels": {"role": "team"}, "path": "data"}),
            ),
            vec!["role=team".to_owned(), "2".to_owned()],
        ),
        (
            object(
                json!({"kind": "ConfigMap", "namespace": namespace, "name": "one-of", "path": "data.nope"}),
            ),
            vec!["data.nope".to_owned(), "one-of".to_owned()],
        ),
        (
            object(json!({"kind": "Gizmo", "namespace": namespace, "name": "x", "path": "data"})),
            vec!["Gizmo".to_owned()],
        ),
        (
            json!([{"http": {"url": format!("{echo}/missing?token=hidden-token")}, "targetPath": "found"}]),
            vec!["404".to_owned(), echo.clone()],
        ),
        (
            json!([{"gitFiles": {"url": repo.url, "files": [{"glob": "*.yaml", "parseYaml": true}]}, "targetPath": "found"}]),
            vec!["a.yaml".to_owned()],
        ),
        (json!([{"git": {"url": repo.url, "path": "b.yaml"}}]), vec!["b.yaml".to_owned()]),
    ] {
        let message = refusal(case, &vars).await?;
        for text in told {
            ensure!(message.contains(&text), "{text:?} is not in {message:?}");
        }
        ensure!(message.contains("deployment.yaml"), "no place: {message}");
        ensure!(!message.contains("hidden-token"), "the query is told: {message}");
    }
    ensure!(case.config_map("one").await?.is_null(), "something was deployed");
    Ok(())
}

async fn the_command_line_does_not_tell_secret_variables(case: &mut Case) -> Result<()> {
    const SECRET: &str = "correct horse";
    case.apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
        "stringData": {"vars.yaml": format!("password: {SECRET}\n")}}))
        .await?;
    let secret = json!({"name": "credentials", "namespace": case.namespace, "key": "vars.yaml"});
    let vars = json!([{"clusterSecret": secret}]);
    // The API server refuses the first, the second cannot be rendered, the third has no valid name.
    let refused = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP: \"{{ password }}\"\n  ports: [{port: 80}]\n";
    let raised = "{{ raise('not ' ~ password) }}\n";
    let named = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ password }}\"\n";
    for (manifest, told) in [(refused, "web"), (raised, "not ***"), (named, "is no name")] {
        let files = project(&vars);
        let dir = case.dir.join("project");
        for (path, text) in with(&borrowed(&files), &[("config/one.yaml", manifest)]) {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&dir))?;
            fs::write(path, text)?;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_kluctl"))
            .args(["deploy", "--yes", "--output-format=text", "--output-format=yaml"])
            .args(["-a", &format!("namespace={}", case.namespace), "-a", "name=app"])
            .current_dir(&dir)
            .env("KUBECONFIG", &case.kubeconfig)
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let shown = text(&output.stdout) + &text(&output.stderr);
        ensure!(!output.status.success() && shown.contains(told), "{shown}");
        ensure!(shown.contains("***") && !shown.contains(SECRET), "a secret is told: {shown}");
    }
    Ok(())
}
