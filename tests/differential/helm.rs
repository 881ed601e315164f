//! Published charts with several sets of values: `kluctl render` beside `helm template` with its own environment.
//!
//! `HELM` names the program, `HELM_CHARTS` a directory with one chart in each subdirectory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use flux_kluctl_controller::yaml::{self, Schema};
use serde_json::Value;

/// A chart, a name for the set, arguments of Helm beside those of every case, and values.
struct Case {
    chart: &'static str,
    set: &'static str,
    namespace: Option<&'static str>,
    kube_version: Option<&'static str>,
    skip_crds: bool,
    values: Option<&'static str>,
}

const PLAIN: Case = Case {
    chart: "",
    set: "",
    namespace: None,
    kube_version: None,
    skip_crds: false,
    values: None,
};

const CERT_MANAGER: &str = r#"
crds: {enabled: true, keep: false}
replicaCount: 2
global: {leaderElection: {namespace: kube-system}, priorityClassName: high, commonLabels: {team: "on", port: "0644"}}
podDisruptionBudget: {enabled: true, minAvailable: 1}
prometheus: {servicemonitor: {enabled: true, honorLabels: true}}
config: {apiVersion: controller.config.cert-manager.io/v1alpha1, kind: ControllerConfiguration, kubernetesAPIQPS: 9000}
extraArgs: [--v=4, "--default-issuer-name=ü"]
webhook: {replicaCount: 3, networkPolicy: {enabled: true}, url: {host: webhook.example.com}}
cainjector: {extraArgs: ["--a=1e3", "--b=012"]}
startupapicheck: {jobAnnotations: {example.com/multi: "line one\nline two\n", helm.sh/hook-weight: "7"}}
extraObjects:
- |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: extra, labels: {date: "2024-01-02", bool: "yes"}}
  data: {text: "{{ .Release.Name }} {{ .Release.Namespace }}"}
"#;

const EXTERNAL_DNS: &str = r#"
provider: {name: webhook, webhook: {image: {repository: example.com/webhook, tag: "1.10"}, env: [{name: A, value: "1e3"}]}}
sources: [service, ingress, crd]
policy: sync
interval: 90s
domainFilters: [example.com, "*.example.org"]
secretConfiguration: {enabled: true, mountPath: /etc/secret, data: {key: "multi\nline", empty: ""}}
serviceMonitor: {enabled: true, interval: 30s}
rbac: {additionalPermissions: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
extraArgs: {"txt-owner-id": "0o17", "aws-zone-type": public}
"#;

const CASES: &[Case] = &[
    Case { chart: "cert-manager", set: "defaults", ..PLAIN },
    Case { chart: "cert-manager", set: "crds", values: Some("crds: {enabled: true}\n"), ..PLAIN },
    Case {
        chart: "cert-manager",
        set: "everything",
        namespace: Some("cert-manager"),
        kube_version: Some("v1.33.1"),
        values: Some(CERT_MANAGER),
        ..PLAIN
    },
    Case {
        chart: "cert-manager",
        set: "old cluster",
        namespace: Some("old"),
        kube_version: Some("1.22"),
        values: Some("startupapicheck: {enabled: false}\n"),
        ..PLAIN
    },
    Case { chart: "metrics-server", set: "defaults", ..PLAIN },
    Case {
        chart: "metrics-server",
        set: "certificates",
        namespace: Some("kube-system"),
        values: Some(
            "args: [--kubelet-insecure-tls]\napiService: {insecureSkipTLSVerify: false}\ntls: {type: cert-manager}\n\
             metrics: {enabled: true}\nserviceMonitor: {enabled: true}\naddonResizer: {enabled: true}\n",
        ),
        ..PLAIN
    },
    Case {
        chart: "metrics-server",
        set: "existing secret",
        kube_version: Some("1.28.3"),
        values: Some(
            "tls: {type: existingSecret, existingSecret: {name: own}}\npodDisruptionBudget: {enabled: true, minAvailable: 1}\n",
        ),
        ..PLAIN
    },
    Case {
        chart: "external-dns",
        set: "what its schema asks for",
        values: Some("policy: sync\n"),
        ..PLAIN
    },
    Case {
        chart: "external-dns",
        set: "no CRDs",
        skip_crds: true,
        values: Some("policy: upsert-only\n"),
        ..PLAIN
    },
    Case {
        chart: "external-dns",
        set: "its own tests",
        values: Some("ci/ci-values.yaml"),
        ..PLAIN
    },
    Case {
        chart: "external-dns",
        set: "webhook",
        namespace: Some("dns"),
        values: Some(EXTERNAL_DNS),
        ..PLAIN
    },
];

fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    assert!(
        value.is_some(),
        "{name} must be set; `make test` builds the program and copies the charts"
    );
    value.unwrap().into()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::write(target, fs::read(path).unwrap()).unwrap();
        }
    }
}

impl Case {
    fn values(&self) -> Option<String> {
        let values = self.values?;
        Some(if values.starts_with("ci/") {
            fs::read_to_string(variable("HELM_CHARTS").join(self.chart).join(values)).unwrap()
        } else {
            values.to_owned()
        })
    }

    /// A project with the chart. Values are not templates here, so that charts may have templates in them.
    fn write(&self, dir: &Path) {
        copy(&variable("HELM_CHARTS").join(self.chart), &dir.join("charts").join(self.chart));
        fs::create_dir_all(dir.join("app")).unwrap();
        fs::write(dir.join("deployment.yaml"), "deployments: [{path: app}]\n").unwrap();
        fs::write(dir.join("app/.templateignore"), "helm-values.yaml\n").unwrap();
        let namespace =
            self.namespace.map_or(String::new(), |name| format!("  namespace: {name}\n"));
        let chart = format!(
            "helmChart:\n  path: ../charts/{}\n  releaseName: rel\n  skipCRDs: {}\n{namespace}",
            self.chart, self.skip_crds
        );
        fs::write(dir.join("app/helm-chart.yaml"), chart).unwrap();
        if let Some(values) = self.values() {
            fs::write(dir.join("app/helm-values.yaml"), values).unwrap();
        }
    }

    fn ours(&self, dir: &Path) -> Vec<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kluctl"));
        command.args(["render", "--offline-kubernetes", "--print-all", "--helm-binary"]);
        command.arg(variable("HELM")).current_dir(dir).env_clear().env("HOME", dir.join("home"));
        if let Some(version) = self.kube_version {
            command.args(["--kubernetes-version", version]);
        }
        documents(&mut command, Schema::Manifest)
    }

    fn theirs(&self, dir: &Path) -> Vec<Value> {
        let mut command = Command::new(variable("HELM"));
        command
            .args(["template", "rel"])
            .arg(dir.join("charts").join(self.chart))
            .arg("--skip-tests");
        command.arg(if self.skip_crds { "--skip-crds" } else { "--include-crds" });
        command.args(["--namespace", self.namespace.unwrap_or("default")]);
        if self.values.is_some() {
            command.arg("--values").arg(dir.join("app/helm-values.yaml"));
        }
        if let Some(version) = self.kube_version {
            command.args(["--kube-version", version]);
        }
        documents(&mut command, Schema::Config)
    }
}

/// The objects that a program prints, in order, without what Kluctl adds and without empty mappings of metadata.
fn documents(command: &mut Command, schema: Schema) -> Vec<Value> {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let documents = yaml::parse_documents_last_wins("output", &output.stdout, schema).unwrap();
    let mut values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    for value in &mut values {
        let Some(metadata) = value["metadata"].as_object_mut() else { continue };
        for field in ["labels", "annotations"] {
            let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
                metadata.remove(field);
                continue;
            };
            entries.retain(|key, _| !key.starts_with("kluctl.io/"));
            if entries.is_empty() {
                metadata.remove(field);
            }
        }
    }
    values
}

#[test]
fn published_charts_render_as_helm_renders_them() {
    let mut problems = Vec::new();
    for case in CASES {
        let dir = tempfile::tempdir().unwrap();
        case.write(dir.path());
        let (ours, theirs) = (case.ours(dir.path()), case.theirs(dir.path()));
        assert!(theirs.len() > 4, "{} has only {} objects", case.chart, theirs.len());
        if ours != theirs {
            let text = |values: &[Value]| yaml::emit_documents(values);
            let (ours, theirs) = (text(&ours), text(&theirs));
            let diff = similar::TextDiff::from_lines(&theirs, &ours);
            let diff = diff.unified_diff().header("helm", "ours").to_string();
            problems.push(format!("{}, {}:\n{diff}", case.chart, case.set));
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {} differ:\n{}",
        problems.len(),
        CASES.len(),
        problems.join("\n")
    );
}
