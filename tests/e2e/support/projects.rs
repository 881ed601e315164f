//! Small Kluctl projects for the tests.

/// A project with the ConfigMaps `one` and `two` in the namespace given as an arg.
pub(crate) const TWO_CONFIG_MAPS: &[(&str, &str)] = &[
    (".kluctl.yaml", "discriminator: test-{{ args.namespace }}\nargs:\n  - name: namespace\n"),
    (
        "deployment.yaml",
        "deployments:\n  - path: config\noverrideNamespace: {{ args.namespace }}\n",
    ),
    (
        "config/one.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  value: first\n",
    ),
    (
        "config/two.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\ndata:\n  value: first\n",
    ),
];

/// The frame of a project that several deployments of one namespace can share, each with a discriminator of its own.
pub(crate) const SHARED: [(&str, &str); 2] = [
    (
        ".kluctl.yaml",
        "discriminator: \"{{ args.name }}-{{ args.namespace }}\"\nargs:\n  - name: namespace\n  - name: name\n",
    ),
    (
        "deployment.yaml",
        "deployments:\n  - path: config\noverrideNamespace: \"{{ args.namespace }}\"\n",
    ),
];

/// `files`, of which those that `changes` names too are as there.
pub(crate) fn with<'a>(
    files: &[(&'a str, &'a str)],
    changes: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let is_kept = |(path, _): &&(&str, &str)| changes.iter().all(|(changed, _)| changed != path);
    files.iter().filter(is_kept).chain(changes).copied().collect()
}

/// A ConfigMap manifest with one value.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: {value}\n")
}

/// A Deployment that no node can run, so that it never becomes ready.
pub(crate) const STUCK: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: \"{{ args.name }}\"\nspec:\n  replicas: 1\n  selector:\n    matchLabels: {app: stuck}\n  template:\n    metadata:\n      labels: {app: stuck}\n    spec:\n      nodeSelector: {nowhere: \"true\"}\n      containers:\n        - {name: c, image: example.com/x:1}\n";

/// Merges a mapping over another one; its entries win.
pub(crate) fn merge(all: &mut serde_json::Value, more: serde_json::Value) {
    if let (Some(all), serde_json::Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
}
