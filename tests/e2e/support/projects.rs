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

/// A ConfigMap manifest with one value.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: {value}\n")
}
