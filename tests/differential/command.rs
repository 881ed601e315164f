//! `kluctl kustomize build` beside `kustomize build`: flags, output to files, exit codes.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use super::program;

fn corpus() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/kustomize")
}

fn run(program: &Path, args: &[&str], dir: &Path) -> Output {
    Command::new(program).args(args).current_dir(dir).output().unwrap()
}

fn ours(args: &[&str], dir: &Path) -> Output {
    let args = [&["kustomize", "build"], args].concat();
    run(Path::new(env!("CARGO_BIN_EXE_kluctl")), &args, dir)
}

fn theirs(args: &[&str], dir: &Path) -> Output {
    run(&program(), &[&["build"], args].concat(), dir)
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_command_prints_the_same_bytes() {
    let corpus = corpus();
    for (args, dir) in [
        (vec![], "lists-are-inlined"),
        (vec!["role-bindings-across-namespaces"], ""),
        (vec!["--reorder", "none", "role-bindings-across-namespaces"], ""),
        (vec!["--reorder=legacy", "local-config"], ""),
        (vec!["--load-restrictor", "LoadRestrictionsNone", "."], "namespace-over-everything"),
        (vec!["--load-restrictor=LoadRestrictionsRootOnly", "generator-options"], ""),
        (vec!["--enable-managedby-label", "generator-options"], ""),
        (vec!["--as-current-user", "--network", "--network-name", "n", "generator-options"], ""),
        (vec!["--mount", "type=bind", "-e", "A=1", "--env", "B", "-e=C", "generator-options"], ""),
        (vec!["--enable-exec", "--enable-alpha-plugins", "--stack-trace", "generator-options"], ""),
        (
            vec!["--enable-helm", "--helm-command", "h", "--helm-debug=false", "generator-options"],
            "",
        ),
        (vec!["generator-options", "--helm-api-versions=v1", "--helm-kube-version", "1.31"], ""),
    ] {
        let dir = corpus.join(dir);
        let (ours, theirs) = (ours(&args, &dir), theirs(&args, &dir));
        assert!(theirs.status.success(), "{args:?}: {}", error(&theirs));
        assert!(ours.status.success(), "{args:?}: {}", error(&ours));
        assert!(ours.stdout == theirs.stdout, "{args:?} in {}", dir.display());
        assert_eq!(error(&ours), "", "{args:?}");
    }
}

#[test]
fn the_command_refuses_files_outside_of_the_kustomization() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    fs::create_dir_all(root.join("app")).unwrap();
    fs::write(root.join("out.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
        .unwrap();
    std::os::unix::fs::symlink("../out.yaml", root.join("app/link.yaml")).unwrap();
    for named in ["../out.yaml", "link.yaml"] {
        fs::write(root.join("app/kustomization.yaml"), format!("resources: [{named}]\n")).unwrap();
        for args in [&["app"][..], &["app", "--load-restrictor", "LoadRestrictionsNone"]] {
            let (ours, theirs) = (ours(args, root), theirs(args, root));
            assert_eq!(ours.status.code(), theirs.status.code(), "{named} {args:?}");
            assert_eq!(ours.stdout, theirs.stdout, "{named} {args:?}");
        }
        let message = error(&ours(&["app"], root));
        assert!(message.contains("is outside of"), "{message}");
        assert!(message.contains("app/kustomization.yaml, line 1"), "{message}");
    }
}

fn written(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn the_command_writes_files_and_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let mut results = Vec::new();
    for (name, command) in [("ours", ours as fn(&[&str], &Path) -> Output), ("theirs", theirs)] {
        let one = scratch.path().join(name);
        let several = scratch.path().join(format!("{name}-namespaces"));
        fs::create_dir_all(&one).unwrap();
        fs::create_dir_all(&several).unwrap();
        let file = scratch.path().join(format!("{name}.yaml"));
        for (case, target) in [
            ("namespace-over-everything", &file),
            ("namespace-over-everything", &one),
            ("same-base-in-two-namespaces/overlay", &several),
        ] {
            let args = [case, "--load-restrictor", "LoadRestrictionsNone", "-o"];
            let args = [&args[..], &[target.to_str().unwrap()]].concat();
            let output = command(&args, &corpus());
            assert!(output.status.success(), "{}", error(&output));
            assert!(output.stdout.is_empty());
        }
        results.push((fs::read_to_string(file).unwrap(), written(&one), written(&several)));
    }
    assert!(results[0].1.len() > 5 && results[0].2.len() > 1);
    assert_eq!(results[0], results[1]);
}

#[test]
fn the_command_says_what_is_wrong() {
    for (args, expected) in [
        (vec!["no-such-directory"], "no-such-directory"),
        (vec![".", "--reorder", "random"], "random"),
        (vec![".", "--load-restrictor", "some"], "some"),
        (vec!["a", "b"], "unexpected argument"),
        (vec!["https://kustomize.invalid/org/repo"], "kustomize.invalid"),
        (vec!["missing-resource"], "missing-resource/kustomization.yaml"),
    ] {
        let (ours, theirs) = (ours(&args, &corpus()), theirs(&args, &corpus()));
        assert_eq!(ours.status.code(), Some(1), "{args:?}");
        assert_eq!(theirs.status.code(), Some(1), "{args:?}");
        assert!(error(&ours).contains(expected), "{args:?}: {}", error(&ours));
        assert!(ours.stdout.is_empty());
    }
}
