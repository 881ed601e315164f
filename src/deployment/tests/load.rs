use super::*;
use crate::schema::ConflictAction;

#[test]
fn includes_are_flattened_in_order_with_tags_and_barriers() {
    let deployment = Fixture::new(&[
        (
            "deployment.yaml",
            "tags: [root, shared]\ndeployments:\n- path: app\n- include: sub\n  tags: [inc]\n  barrier: true\n- barrier: true\n",
        ),
        ("app/cm.yaml", CONFIG_MAP),
        ("sub/deployment.yml", "tags: [sub]\ndeployments:\n- path: leaf\n  tags: [own, shared]\n- path: .\n"),
        ("sub/leaf/cm.yaml", CONFIG_MAP),
    ])
    .load()
    .unwrap();
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        items(&deployment),
        [
            ("app".to_owned(), tags(&["root", "shared", "app"])),
            ("sub/leaf".to_owned(), tags(&["sub", "inc", "root", "shared", "own"])),
            ("sub".to_owned(), tags(&["sub", "inc", "root", "shared"])),
            ("barrier".to_owned(), tags(&["root", "shared"])),
            ("barrier".to_owned(), tags(&["root", "shared"])),
        ]
    );
}

#[test]
fn parents_hand_down_what_children_do_not_set() {
    let deployment = Fixture::new(&[
        (
            "deployment.yaml",
            "commonLabels: {a: root, b: root}\noverrideNamespace: ns\nconflictResolution:\n- {manager: m, action: ignore}\ndeployments:\n- include: sub\n",
        ),
        (
            "sub/deployment.yaml",
            "commonLabels: {b: sub}\nconflictResolution:\n- {manager: m, action: force-apply}\ndeployments:\n- path: app\n",
        ),
        ("sub/app/cm.yaml", CONFIG_MAP),
    ])
    .load()
    .unwrap();
    let inherited = &deployment.items[0].project.inherited;
    assert_eq!(inherited.common_labels["a"], "root");
    assert_eq!(inherited.common_labels["b"], "sub");
    assert_eq!(inherited.override_namespace.as_deref(), Some("ns"));
    // Later rules win, so the root comes last.
    let actions: Vec<_> = inherited.conflict_resolution.iter().map(|rule| rule.action).collect();
    assert_eq!(actions, [ConflictAction::ForceApply, ConflictAction::Ignore]);
}

#[test]
fn a_root_without_deployment_is_one_item() {
    let deployment = Fixture::new(&[("a.yaml", CONFIG_MAP)]).load().unwrap();
    assert_eq!(items(&deployment), [(".".to_owned(), Vec::new())]);
}

#[test]
fn libraries_see_only_their_arguments() {
    let files = |include: &str| {
        Fixture::new(&[
            (
                "deployment.yaml",
                &format!("vars:\n- values: {{outer: 1}}\ndeployments:\n- {include}\n"),
            ),
            ("lib/.kluctl-library.yaml", "args:\n- name: name\n- name: size\n  default: 2\n"),
            ("lib/deployment.yaml", "deployments:\n- path: app\n"),
            ("lib/app/cm.yaml", CONFIG_MAP),
        ])
    };
    let deployment = files("{include: lib, args: {name: x}}").load().unwrap();
    assert_eq!(json!(item_variables(&deployment, 0)), json!({"args": {"name": "x", "size": 2}}));

    let deployment = files("{include: lib, args: {name: x}, passVars: true}").load().unwrap();
    let variables = item_variables(&deployment, 0);
    assert_eq!(variables["outer"], 1);
    assert_eq!(variables["target"], json!({"name": "t"}));
    assert_eq!(variables["args"], json!({"name": "x", "size": 2}));

    let error = files("{include: lib, args: {size: 1}}").load_error();
    assert!(error.message.contains("name"), "{error}");
    assert_eq!(error.at.unwrap().to_string(), "deployment.yaml:4:18");
}

#[test]
fn a_project_that_includes_itself_is_refused_with_the_chain() {
    let error = Fixture::new(&[
        ("deployment.yaml", "deployments:\n- include: a\n"),
        ("a/deployment.yaml", "vars:\n- values: {x: 1}\ndeployments:\n- include: b\n"),
        ("a/b/deployment.yaml", "deployments:\n- path: .\n- include: ..\n"),
    ])
    .load_error();
    assert!(error.message.contains(". → a → a/b → a → a/b"), "{error}");
    assert_eq!(error.at.unwrap().file, "a/deployment.yaml");

    let itself = Fixture::new(&[("deployment.yaml", "deployments:\n- include: .\n")]).load_error();
    assert!(itself.message.contains(". → ."), "{itself}");
}

#[test]
fn item_paths_stay_in_the_source_and_lead_to_directories() {
    let error = |path: &str| {
        Fixture::new(&[
            ("deployment.yaml", "deployments:\n- include: a\n"),
            ("a/deployment.yaml", &format!("deployments:\n- path: {path}\n")),
            ("outside/cm.yaml", CONFIG_MAP),
        ])
        .load_error()
        .to_string()
    };
    let place = "a/deployment.yaml:2:3: deployments[0].path: ";
    assert_eq!(error("missing"), format!("{place}directory a/missing does not exist"));
    assert_eq!(error("deployment.yaml"), format!("{place}a/deployment.yaml is not a directory"));
    let message = "path \"../../outside\" leads outside of the project's source root";
    assert_eq!(error("../../outside"), format!("{place}{message}"));
}

#[test]
fn included_directories_are_deployment_projects() {
    let error = |file: &str| {
        Fixture::new(&[
            ("deployment.yaml", "deployments:\n- include: sub\n"),
            (file, "resources: []\n"),
        ])
        .load_error()
        .to_string()
    };
    assert!(error("sub/kustomization.yaml").contains("use `path` instead"));
    assert!(error("sub/x.yaml").contains("expected deployment.yaml"));
}

#[test]
fn the_root_has_no_condition() {
    let error = Fixture::new(&[("deployment.yaml", "when: \"True\"\n")]).load_error();
    assert_eq!(error.at.unwrap().to_string(), "deployment.yaml:1:1");
    assert!(error.message.contains("root"), "{}", error.message);
}

#[test]
fn git_includes_are_sources_of_their_own() {
    let files: &[(&str, &str)] = &[
        ("redis/deployment.yaml", "deployments:\n- path: master\n- include: ../common\n"),
        ("redis/master/cm.yaml", CONFIG_MAP),
        ("common/deployment.yaml", "deployments:\n- path: missing\n  when: \"False\"\n"),
    ];
    let url = "https://user:secret@git.example.com/lib.git";
    let include = format!("{{git: {{url: \"{url}\", ref: {{tag: v3}}, subDir: redis}}}}");
    let text = format!("deployments:\n- {include}\n- {include}\n");
    let fixture = Fixture::new(&[("deployment.yaml", &text)]).with_git(&[(url, files)]);
    let deployment = fixture.load().unwrap();
    assert_eq!(deployment.sources.len(), 2, "the same revision is checked out once");
    let shown: Vec<_> = deployment.items.iter().map(|item| item.render_dir().unwrap()).collect();
    assert_eq!(shown, ["redis/master", "redis/master-1"]);
    assert_eq!(deployment.items[0].tags, ["master"], "Git includes have no default tag");
    let repository = &deployment.git_repositories[0];
    assert_eq!(repository.url, "https://***@git.example.com/lib.git");
    assert_eq!(repository.commit, "c0ffee");
    assert_eq!(repository.sub_dirs, ["redis"]);
}

#[test]
fn problems_in_git_includes_name_the_repository_without_credentials() {
    let files: &[(&str, &str)] = &[("deployment.yaml", "deployments:\n- pathh: x\n")];
    let url = "https://user:secret@git.example.com/lib.git";
    let text = format!("deployments:\n- git: \"{url}\"\n");
    let fixture = Fixture::new(&[("deployment.yaml", &text)]);
    let missing = fixture.load_error();
    assert!(missing.message.contains("not supported"), "{missing}");
    let error = fixture.with_git(&[(url, files)]).load_error();
    let at = error.at.clone().unwrap();
    assert_eq!(at.to_string(), "https://***@git.example.com/lib.git//deployment.yaml:2:3");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn fields_without_effect_are_told() {
    let deployment = Fixture::new(&[
        ("deployment.yaml", "deployments:\n- include: sub\n  args: {a: 1}\n  alwaysDeploy: true\n"),
        ("sub/deployment.yaml", ""),
    ])
    .load()
    .unwrap();
    let [args, always] = deployment.warnings.as_slice() else {
        panic!("{:?}", deployment.warnings)
    };
    assert!(args.starts_with("deployment.yaml:3:3: deployments[0].args: has no effect"), "{args}");
    assert!(always.contains("alwaysDeploy"), "{always}");
}

#[test]
fn all_problems_are_told_at_once() {
    let fixture = Fixture::new(&[
        (
            "deployment.yaml",
            "deployments:\n- path: none\n- path: app\n  when: nope\n- include: sub\n- include: broken\n- path: app\n  vars: [{file: no.yaml}]\n",
        ),
        ("app/cm.yaml", CONFIG_MAP),
        (
            "sub/deployment.yaml",
            "deployments:\n- {path: a, include: b}\n- {path: a, args: {x: 1}}\n",
        ),
        ("broken/deployment.yaml", "deployments: [\n"),
    ]);
    let errors = fixture.load_all().err().unwrap();
    let places: Vec<String> = errors
        .iter()
        .map(|error| {
            let diagnostic = error.describe();
            let at = diagnostic.at.clone().unwrap();
            format!("{} {}", at.file, diagnostic.field.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        places,
        [
            "deployment.yaml deployments[0].path",
            "deployment.yaml deployments[1].when",
            "sub/deployment.yaml deployments[0]",
            "sub/deployment.yaml deployments[1].args",
            "broken/deployment.yaml ",
            "deployment.yaml deployments[4].vars[0].file",
        ]
    );
}

#[test]
fn variables_from_git_count_as_use_of_the_repository() {
    let url = "https://git.example.com/vars.git";
    let deployment = Fixture::new(&[
        (
            "deployment.yaml",
            &format!(
                "vars:\n- git: {{url: {url}, path: v.yaml}}\ndeployments:\n- git: {{url: {url}, subDir: lib}}\n"
            ),
        ),
    ])
    .with_git(&[(url, &[("v.yaml", "a: 1\n"), ("lib/deployment.yaml", "")])])
    .load()
    .unwrap();
    let used: Vec<_> = deployment
        .git_repositories
        .iter()
        .map(|one| (one.url.as_str(), one.commit.as_str(), one.sub_dirs.as_slice()))
        .collect();
    assert_eq!(used, [(url, "c0ffee", &["lib".to_owned()][..])]);
}
