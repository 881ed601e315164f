use super::*;
use crate::{
    deployment::Inclusion,
    engine::{Limits, Source},
    jinja,
    project::TargetRequest,
    tree::MemoryTree,
};

async fn lint(files: &[(&str, &str)], target: Option<&str>) -> Vec<Finding> {
    lint_with(files, target, &Externals::default()).await
}

async fn lint_with(
    files: &[(&str, &str)],
    target: Option<&str>,
    externals: &Externals,
) -> Vec<Finding> {
    let request = PrepareRequest {
        source: Source {
            tree: Arc::new(MemoryTree::from_texts(files.iter().copied())),
            project_dir: String::new(),
            config_file: None,
        },
        target: TargetRequest { name: target.map(str::to_owned), ..TargetRequest::default() },
        inclusion: Inclusion::default(),
        jinja: jinja::Options::new(jiff::Timestamp::UNIX_EPOCH),
    };
    let engine = Engine::new(Limits::for_cores(2));
    engine.lint(&request, externals, &CancellationToken::new()).await.unwrap()
}

/// Severity, targets and text of each finding.
fn told(findings: &[Finding]) -> String {
    let line = |found: &Finding| {
        let targets = found.targets.join(",");
        format!("{:?} [{targets}] {}", found.severity, found.diagnostic)
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";

#[tokio::test]
async fn a_sound_project_has_no_findings() {
    let files = [
        (".kluctl.yaml", "targets: [{name: a}, {name: b}]\n"),
        ("deployment.yaml", "deployments: [{path: app}]\n"),
        ("app/cm.yaml", CONFIG_MAP),
    ];
    assert_eq!(lint(&files, None).await, []);
    assert_eq!(lint(&[("cm.yaml", CONFIG_MAP)], None).await, []);
}

#[tokio::test]
async fn all_problems_of_all_targets_are_found_each_once() {
    let findings = lint(
        &[
            (
                ".kluctl.yaml",
                "targets:\n- name: a\n  args: {num: 1}\n- name: b\n- name: c\n  args: {num: '{{ nope }}'}\nargs: [{name: num, default: 2}]\n",
            ),
            (
                "deployment.yaml",
                "deployments:\n- path: none\n- path: app\n- path: template\n- path: labels\n- path: one\n  when: args.num == 1\n- include: sub\n- path: cluster\n  vars: [{clusterConfigMap: {name: x, namespace: y, key: z}}]\n- path: app\n",
            ),
            ("app/cm.yaml", CONFIG_MAP),
            ("cluster/cm.yaml", CONFIG_MAP),
            ("template/a.yaml", "{{ first }}\n"),
            ("template/b.yaml", "a: {% if %}\n"),
            ("labels/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid, labels: {a: 1}}\n"),
            ("one/cm.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
            ("sub/deployment.yaml", "deploymentz: []\ntags: {}\n"),
        ],
        None,
    )
    .await;
    insta::assert_snapshot!(told(&findings), @r#"
    Error [] .kluctl.yaml:6:10: targets[2].args.num: target c is left out: 'nope' is undefined: in `{{ nope }}`
    Error [a,b] deployment.yaml:2:3: deployments[0].path: directory none does not exist
    Error [a,b] sub/deployment.yaml:1:1: deploymentz: unknown field "deploymentz" (did you mean `deployments`?)
    Error [a,b] sub/deployment.yaml:2:1: tags: found a mapping, expected a list
    Warning [a,b] deployment.yaml:10:11: deployments[6].vars[0].clusterConfigMap: clusterConfigMap needs access to the target cluster (what depends on it was not checked)
    Error [a,b] template/a.yaml:1:4: 'first' is undefined
    Error [a,b] template/b.yaml:1:10: Expected an expression, got 'end of statement block'
    Error [a,b] labels: ConfigMap/Not_Valid: metadata.name: "Not_Valid" is no name that ConfigMap can have, expected lower case letters, digits, `-` and `.`, with a letter or digit at both ends of each part, at most 253 characters
    Error [a,b] labels: ConfigMap/Not_Valid: metadata.labels["a"]: is a number, expected a text (quote it: "1")
    Error [a] one/cm.yaml:1:1: metadata.name: missing in ConfigMap, expected a non-empty string
    Warning [a,b] ConfigMap/cm: the object is in app and in app; the last one wins
    "#);
}

#[tokio::test]
async fn a_chosen_target_is_checked_alone() {
    let files = [
        (".kluctl.yaml", "targets: [{name: a}, {name: b, context: '{{ nope }}'}]\n"),
        ("deployment.yaml", "deployments: []\n"),
    ];
    assert_eq!(lint(&files, Some("a")).await, []);
    assert_eq!(lint(&files, Some("b")).await.len(), 1);
    assert_eq!(lint(&files, Some("x")).await.len(), 1);
}

#[tokio::test]
async fn nothing_is_built_upon_a_base_that_failed() {
    let files = [
        ("deployment.yaml", "deployments: [{path: base, onlyRender: true}, {path: app}]\n"),
        ("base/kustomization.yaml", "resources: [cm.yaml]\n"),
        ("base/cm.yaml", "{{ nope }}\n"),
        ("app/kustomization.yaml", "resources: [../base]\n"),
    ];
    let findings = lint(&files, None).await;
    assert_eq!(findings.len(), 1, "{}", told(&findings));
    assert!(findings[0].diagnostic.message.contains("'nope' is undefined"));
}

#[tokio::test]
async fn findings_do_not_tell_what_sensitive_variables_hold() {
    let environment = [("PASSWORD".to_owned(), "Hunter 2".to_owned())].into();
    let externals = Externals { environment: Arc::new(environment), ..Externals::default() };
    let project = |sensitive: bool| {
        let vars =
            format!("vars: [{{systemEnvVars: {{secret: PASSWORD}}, sensitive: {sensitive}}}]\n");
        let items =
            "deployments: [{path: name, tags: ['{{ \"{{ secret }}\" }}']}, {path: raised}]\n";
        [
            ("deployment.yaml", vars + items),
            ("name/cm.yaml", CONFIG_MAP.replace("cm", "'{{ secret }}'")),
            ("raised/cm.yaml", "a: {{ raise('no ' ~ secret) }}\n".to_owned()),
        ]
    };
    let told_of = async |files: &[(&str, String)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        told(&lint_with(&files, None, &externals).await)
    };
    let open = told_of(&project(false)).await;
    let masked = told_of(&project(true)).await;
    assert_eq!(open.matches("Hunter 2").count(), masked.matches("***").count(), "{open}");
    assert!(open.contains("\"Hunter 2\" is no name"), "{open}");
    assert!(masked.contains("\"***\" is no name") && !masked.contains("Hunter"), "{masked}");
    assert!(masked.contains("no ***"), "{masked}");
}
