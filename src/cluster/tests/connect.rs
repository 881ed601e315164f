use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use crate::{
    cluster::{
        connect::*,
        kubeconfig::{Access, Contexts, Guards, KubeconfigError},
    },
    diagnostic::Describe,
};

fn kubeconfig(server: &str) -> String {
    format!(
        "{{clusters: [{{name: c, cluster: {{server: '{server}'}}}}],
          users: [{{name: u, user: {{token: hunter2, as: somebody, as-groups: [system:masters]}}}}],
          contexts: [{{name: x, context: {{cluster: c, user: u}}}}]}}"
    )
}

fn access(text: &str) -> Access {
    Contexts::from_kubeconfig(text.as_bytes(), Guards::NONE).unwrap().select(None).unwrap()
}

fn own() -> kube::Config {
    kube::Config::new("http://127.0.0.1:1".parse().unwrap())
}

fn shop() -> ServiceAccount {
    ServiceAccount { namespace: "flux-system".into(), name: "shop-deployer".into() }
}

async fn api_server(delay: Duration) -> MockServer {
    let server = MockServer::start().await;
    let body = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
    });
    Mock::given(path("/api/v1/namespaces/b/configmaps/a"))
        .respond_with(ResponseTemplate::new(200).set_body_json(body).set_delay(delay))
        .mount(&server)
        .await;
    server
}

async fn get(client: Client) -> kube::Result<ConfigMap> {
    Api::namespaced(client, "b").get("a").await
}

#[tokio::test]
async fn requests_carry_identity_and_user_agent() {
    let server = api_server(Duration::ZERO).await;
    let clients = Clients::new(own(), ConnectOptions::default());
    let client = clients.get(&access(&kubeconfig(&server.uri())), Some(&shop())).await.unwrap();
    get(client).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    let header = |name: &str| {
        let values = requests[0].headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(header("authorization"), ["Bearer hunter2"]);
    assert_eq!(header("impersonate-user"), ["system:serviceaccount:flux-system:shop-deployer"]);
    // The kubeconfig's own impersonation must not add rights.
    assert!(header("impersonate-group").is_empty());
    assert!(header("user-agent")[0].starts_with("flux-kluctl-controller/"));
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_given_up() {
    let server = api_server(Duration::from_secs(20)).await;
    let options =
        ConnectOptions { request_timeout: Duration::from_millis(200), ..Default::default() };
    let clients = Clients::new(own(), options);
    let client = clients.get(&access(&kubeconfig(&server.uri())), None).await.unwrap();
    let started = Instant::now();
    let error = get(client).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn throttling_is_left_to_the_caller() {
    let server = MockServer::start().await;
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429,
    });
    Mock::given(wiremock::matchers::any())
        .respond_with(ResponseTemplate::new(429).set_body_json(status))
        .mount(&server)
        .await;
    let clients = Clients::new(own(), ConnectOptions::default());
    let client = clients.get(&access(&kubeconfig(&server.uri())), None).await.unwrap();
    get(client).await.unwrap_err();
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn clients_are_made_once_per_access_and_account() {
    let server = api_server(Duration::ZERO).await;
    let options = ConnectOptions { max_clients: 2, ..Default::default() };
    let clients = Clients::new(own(), options);
    let text = kubeconfig(&server.uri());
    clients.get(&access(&text), None).await.unwrap();
    clients.get(&access(&text), None).await.unwrap();
    assert_eq!(clients.len(), 1);
    clients.get(&access(&text), Some(&shop())).await.unwrap();
    assert_eq!(clients.len(), 2);
    clients.get(&access(&text.replace("hunter2", "hunter3")), None).await.unwrap();
    clients.get(&Access::Own, None).await.unwrap();
    assert_eq!(clients.len(), 2);
    let plugin = text.replace("token: hunter2", "exec: {command: 'true', interactiveMode: Never}");
    // The plugin prints no credentials; what matters is that its client is not kept.
    let error = clients.get(&access(&plugin), None).await.map(drop).unwrap_err();
    assert!(matches!(error, ConnectError::Setup { .. }), "{error}");
}

#[tokio::test]
async fn a_file_gives_its_contexts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    #[expect(clippy::disallowed_methods, reason = "writes the kubeconfig under test")]
    std::fs::write(&path, kubeconfig("https://api.example.com:6443")).unwrap();
    let options = ConnectOptions::default();
    let file = |context: Option<&str>| Own::File {
        path: Some(path.clone()),
        context: context.map(str::to_owned),
    };
    let config = own_config(&file(Some("x")), &options).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://api.example.com:6443/");
    assert_eq!(config.connect_timeout, Some(Duration::from_secs(10)));
    let error = own_config(&file(Some("y")), &options).await.unwrap_err();
    assert!(matches!(error, ConnectError::Kubeconfig(KubeconfigError::UnknownContext { .. })));
    let gone = Own::File { path: Some(dir.path().join("gone")), context: None };
    let error = own_config(&gone, &options).await.unwrap_err();
    assert!(error.describe().to_string().contains("gone"), "{error}");
}

#[tokio::test]
async fn certificates_that_are_none_are_errors() {
    let text = kubeconfig("https://h")
        .replace("server: 'https://h'", "server: 'https://h', certificate-authority-data: '!'");
    let clients = Clients::new(own(), ConnectOptions::default());
    let error = clients.get(&access(&text), None).await.map(drop).unwrap_err();
    assert!(matches!(error, ConnectError::Setup { .. }), "{error}");
}
