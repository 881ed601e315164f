use std::collections::BTreeMap;

use clap::{FromArgMatches, error::ErrorKind};

use super::*;
use crate::{
    diagnostic::SourceLocation,
    object::ObjectRef,
    results::{
        BaseObject, Change, ChangeKind, CommandResult, DeploymentError, ResultObject, RunInfo,
    },
};

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The words with flags from a configuration file and from variables.
fn expanded(typed: &str, configured: &[(&str, &[&str])], variables: &[(&str, &str)]) -> String {
    let list = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let configured =
        configured.iter().map(|(name, values)| ((*name).to_owned(), list(values))).collect();
    defaults::with_defaults(&words(typed), &command(), &configured, &map(variables)).join(" ")
}

#[test]
fn flags_come_from_file_then_variables_then_the_command_line() {
    let shown = expanded(
        "kluctl render -t typed -I three",
        &[("include-tag", &["one"]), ("target", &["configured"])],
        &[
            ("KLUCTL_INCLUDE_TAG_10", "ten"),
            ("KLUCTL_INCLUDE_TAG_2", "two"),
            ("KLUCTL_TARGET", "variable"),
            ("KLUCTL_PRINT_ALL", "true"),
            ("KLUCTL_NO_SUCH_FLAG", "x"),
        ],
    );
    let flags =
        "--target=variable --include-tag=one --include-tag=two --include-tag=ten --print-all=true";
    let mut found: Vec<&str> = shown.split(' ').collect();
    let mut wanted: Vec<&str> =
        flags.split(' ').chain("kluctl render -t typed -I three".split(' ')).collect();
    assert!(shown.starts_with("kluctl render --"), "{shown}");
    assert!(shown.ends_with("-t typed -I three"), "{shown}");
    let order = |text: &str| shown.find(text).unwrap();
    assert!(order("tag=one") < order("tag=two") && order("tag=two") < order("tag=ten"), "{shown}");
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn the_command_line_wins_for_single_values_and_extends_lists() {
    let typed = expanded(
        "kluctl render -t typed -I b --print-all=false",
        &[],
        &[("KLUCTL_TARGET", "variable"), ("KLUCTL_INCLUDE_TAG", "a"), ("KLUCTL_PRINT_ALL", "true")],
    );
    let matches = command().try_get_matches_from(typed.split(' ')).unwrap();
    let (_, render) = matches.subcommand().unwrap();
    assert_eq!(render.get_one::<String>("target").unwrap(), "typed");
    let tags: Vec<&String> = render.get_many("include_tag").unwrap().collect();
    assert_eq!(tags, ["a", "b"]);
    assert!(!render.get_one::<bool>("print_all").unwrap());
}

#[test]
fn switches_take_a_value_or_none() {
    let is_on = |text: &str| {
        let matches = command().try_get_matches_from(text.split(' '))?;
        Cli::from_arg_matches(&matches)?;
        let (_, render) = matches.subcommand().unwrap();
        Ok::<bool, clap::Error>(*render.get_one::<bool>("offline_kubernetes").unwrap())
    };
    assert!(is_on("kluctl render --offline-kubernetes").unwrap());
    assert!(is_on("kluctl render --offline-kubernetes=true").unwrap());
    assert!(!is_on("kluctl render --offline-kubernetes=false").unwrap());
    assert!(!is_on("kluctl render").unwrap());
    let error = is_on("kluctl render --offline-kubernetess").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownArgument);
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn images_are_pinned_by_name_namespace_object_and_container() {
    let pinned = |text: &str| {
        let matches = command().try_get_matches_from(["kluctl", "render", "-F", text]).unwrap();
        match Cli::from_arg_matches(&matches).unwrap().command {
            commands::Command::Render(render) => render.pinned_images(),
            _ => unreachable!(),
        }
    };
    let image = pinned("nginx:ns:Deployment/web:main=nginx:1.27").unwrap().remove(0);
    assert_eq!(image.image.as_deref(), Some("nginx"));
    assert_eq!(image.namespace.as_deref(), Some("ns"));
    assert_eq!(image.deployment.as_deref(), Some("Deployment/web"));
    assert_eq!(image.container.as_deref(), Some("main"));
    assert_eq!(image.result_image, "nginx:1.27");
    for wrong in ["nginx:1.27", "a=b=c", "a:b:c:d:e=f"] {
        assert!(pinned(wrong).unwrap_err().message.contains("--fixed-image"), "{wrong}");
    }
}

#[test]
fn a_report_shows_the_line_with_a_caret_and_what_to_do() {
    let text = "deployments:\n- path: app\n  taggs: [x]\n- path: b\n";
    let diagnostic = Diagnostic::new(Class::Project, "unknown field \"taggs\"")
        .with_location(SourceLocation::new("deployment.yaml", 3, 3))
        .with_excerpt_of(text)
        .with_field("deployments[0].taggs")
        .with_hint("did you mean `tags`?");
    let expected = "\
error: deployments[0].taggs: unknown field \"taggs\"
  --> deployment.yaml, line 3, column 3
  1 | deployments:
  2 | - path: app
  3 |   taggs: [x]
    |   ^
  4 | - path: b
  = hint: did you mean `tags`?
";
    assert_eq!(Report::PLAIN.errors(&[diagnostic]), expected);
}

#[test]
fn colours_are_left_out_when_not_wanted() {
    let diagnostic = Diagnostic::new(Class::Project, "wrong");
    assert!(!Report::PLAIN.errors(std::slice::from_ref(&diagnostic)).contains('\x1b'));
    assert!(Report { colour: true, ..Report::PLAIN }.errors(&[diagnostic]).contains('\x1b'));
}

fn style(short: bool, width: usize) -> result_text::Style {
    result_text::Style { short, width, colour: false }
}

#[test]
fn a_result_lists_objects_and_draws_changes() {
    let object = |name: &str, new: bool, changes: Vec<Change>| ResultObject {
        base: BaseObject {
            reference: ObjectRef::new("v1", "ConfigMap", Some("ns"), name),
            changes,
            new,
            orphan: false,
            deleted: false,
            hook: false,
        },
        rendered: None,
        remote: None,
        applied: None,
    };
    let change = Change {
        kind: ChangeKind::Update,
        json_path: "data.env".to_owned(),
        old_value: None,
        new_value: None,
        unified_diff: "-test\n+a value that is longer than the terminal".to_owned(),
    };
    let now = jiff::Timestamp::UNIX_EPOCH;
    let inclusion = crate::deployment::Inclusion::default();
    let mut result = CommandResult::started("deploy", &RunInfo::default(), &inclusion, now);
    assert_eq!(result_text::text(&result, style(false, 60)), "");
    result.objects = vec![object("new", true, Vec::new()), object("changed", false, vec![change])];
    result.warnings = vec![DeploymentError::new(None, "about the run")];
    let reference = ObjectRef::new("v1", "ConfigMap", Some("ns"), "new");
    result.errors = vec![DeploymentError::new(Some(reference), "refused")];
    let expected = "
New objects:
  ns/ConfigMap/new

Changed objects:
  ns/ConfigMap/changed

Diff for object ns/ConfigMap/changed
+----------+---------------------------+
| Path     | Diff                      |
+----------+---------------------------+
| data.env | -test                     |
|          | +a value that is longer t |
|          | han the terminal          |
+----------+---------------------------+

Warnings:
  about the run

Errors:
  ns/ConfigMap/new: refused
";
    assert_eq!(result_text::text(&result, style(false, 40)), expected);
    assert!(!result_text::text(&result, style(true, 40)).contains("data.env"));
}

#[test]
fn ids_have_the_form_of_random_uuids() {
    let (a, b) = (environment::random_id(), environment::random_id());
    assert_ne!(a, b);
    let lengths: Vec<usize> = a.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(&a[14..15], "4");
    assert!("89ab".contains(&a[19..20]), "{a}");
}

fn findings() -> Vec<crate::engine::Finding> {
    use crate::engine::{Finding, Severity};

    let error = Diagnostic::new(Class::Project, "unknown field \"tgas\"")
        .with_location(SourceLocation::new("deployment.yaml", 2, 3))
        .with_field("deployments[0].tgas")
        .with_hint("did you mean `tags`?");
    let warning = Diagnostic::new(Class::Project, "has no effect");
    vec![
        Finding {
            severity: Severity::Error,
            diagnostic: error,
            targets: vec!["prod".to_owned(), "test".to_owned()],
        },
        Finding { severity: Severity::Warning, diagnostic: warning, targets: Vec::new() },
    ]
}

#[test]
fn findings_are_told_with_their_targets() {
    let text = commands::lint::text(&findings(), Report::PLAIN);
    insta::assert_snapshot!(text, @r#"
    error: deployments[0].tgas: unknown field "tgas"
      --> deployment.yaml, line 2, column 3
      = hint: in target prod, test
      = hint: did you mean `tags`?

    warning: has no effect
    "#);
    assert_eq!(
        commands::lint::json(&findings()),
        serde_json::json!([
            {
                "severity": "error", "message": "unknown field \"tgas\"", "file": "deployment.yaml",
                "line": 2, "column": 3, "field": "deployments[0].tgas",
                "hints": ["did you mean `tags`?"], "targets": ["prod", "test"],
            },
            {"severity": "warning", "message": "has no effect"},
        ])
    );
}

#[test]
fn credentials_with_the_same_scope_belong_together() {
    let scopes = |words: &[&str]| {
        let words = ["kluctl", "render"].iter().chain(words);
        let matches = command().try_get_matches_from(words).unwrap();
        match Cli::from_arg_matches(&matches).unwrap().command {
            commands::Command::Render(render) => {
                let git = render.deployment.git.scopes()?;
                let registry = render.deployment.registry.scopes()?;
                Ok::<_, Diagnostic>(format!("{git:?}\n{registry:?}"))
            }
            _ => unreachable!(),
        }
    };
    let words = [
        "--git-username=h/team/*=me",
        "--git-password=h/team/*=a=b",
        "--git-username=h=other",
        "--registry-plain-http=r/x",
        "--registry-token=r/x=t",
    ];
    insta::assert_snapshot!(scopes(&words).unwrap(), @r#"
    {("h", Some("team/*")): {"password": "a=b", "username": "me"}, ("h", None): {"username": "other"}}
    {("r", Some("x")): {"plain-http": "true", "token": "t"}}
    "#);
    let error = scopes(&["--git-password=hunter2"]).unwrap_err();
    assert!(error.message.contains("--git-password"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn quick_commands_are_parsed_alike_by_their_part_of_the_command_line() {
    for typed in [
        "kluctl version",
        "kluctl kustomize build",
        "kluctl kustomize build DIR --debug --reorder=none -o x",
        "kluctl version --no-color=false",
    ] {
        let part = command_for(&words(typed));
        assert!(part.find_subcommand("render").is_none(), "{typed}");
        let parse = |command: clap::Command| {
            let matches = command.try_get_matches_from(typed.split(' ')).unwrap();
            format!("{:?}", Cli::from_arg_matches(&matches).unwrap())
        };
        assert_eq!(parse(part), parse(command()), "{typed}");
    }
    let wrong = |command: clap::Command| {
        command.try_get_matches_from(["kluctl", "kustomize", "biuld"]).unwrap_err().to_string()
    };
    assert_eq!(wrong(command_for(&words("kluctl kustomize biuld"))), wrong(command()));
    for typed in ["kluctl", "kluctl --help", "kluctl render", "kluctl --debug kustomize build"] {
        assert!(command_for(&words(typed)).find_subcommand("render").is_some(), "{typed}");
    }
}
