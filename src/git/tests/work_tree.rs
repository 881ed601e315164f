use super::server::Origin;
use crate::{git::WorkTree, tree::SourceTree};

fn latest(tree: &WorkTree, path: &str) -> Result<Option<String>, String> {
    tree.latest_commit(path).map_err(|error| error.to_string())
}

#[test]
fn the_latest_commit_is_the_one_that_git_log_names() {
    let origin = Origin::new();
    // A branch that changes one file, beside a main line that changes another, and a merge that changes a third.
    origin.git(&["checkout", "-q", "-b", "side"]);
    origin.write("deploy/app.yaml", "app: side\n");
    origin.git(&["commit", "-q", "-am", "side"]);
    origin.git(&["checkout", "-q", "main"]);
    origin.write("top.yaml", "top: main\n");
    origin.git(&["commit", "-q", "-am", "main"]);
    origin.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    origin.write("deploy/base/x.yaml", "x: merged\n");
    origin.git(&["commit", "-q", "-am", "merge"]);
    for n in 0..3 {
        origin.write("large.bin", &n.to_string());
        origin.git(&["commit", "-q", "-am", "more"]);
    }
    // Changed again, and back: the last change counts.
    origin.write("large.bin", "1");
    origin.git(&["commit", "-q", "-am", "back"]);
    origin.write("top.yaml", "top: not committed\n");
    origin.write("new.yaml", "new: true\n");

    let tree = WorkTree::new(&origin.work()).unwrap();
    let files = ["top.yaml", "deploy/app.yaml", "deploy/base/x.yaml", "large.bin", "dir-link"];
    let mut seen = std::collections::BTreeSet::new();
    for path in files {
        let expected = origin.git(&["log", "-1", "--format=%H", "--", path]);
        assert_eq!(latest(&tree, path), Ok(Some(expected.clone())), "{path}");
        seen.insert(expected);
    }
    assert_eq!(seen.len(), files.len(), "each file has a commit of its own");
    let error = latest(&tree, "new.yaml").unwrap_err();
    assert_eq!(error, "new.yaml: it is not in the commit that is checked out");
}

#[test]
fn a_shallow_clone_does_not_guess() {
    let origin = Origin::new();
    let clone = |depth: &str, name: &str| {
        let from = format!("file://{}", origin.repos().join("shop.git").display());
        let to = format!("../{name}");
        origin.git(&["clone", "-q", depth, "--branch=main", &from, &to]);
        WorkTree::new(&origin.work().join(to)).unwrap()
    };
    origin.write("top.yaml", "top: 2\n");
    let second = origin.push("main");
    assert_eq!(latest(&clone("--depth=2", "two"), "top.yaml"), Ok(Some(second)));
    for (depth, name, path) in [("--depth=1", "one", "top.yaml"), ("--depth=2", "old", "large.bin")]
    {
        let error = latest(&clone(depth, name), path);
        if name == "one" {
            assert!(error.unwrap_err().contains("git fetch --unshallow"));
        } else {
            assert_eq!(error, Ok(Some(origin.id("light"))), "the first commit has no parents");
        }
    }
}

#[test]
fn a_linked_work_tree_has_history_and_a_plain_directory_has_none() {
    let origin = Origin::new();
    origin.git(&["worktree", "add", "-q", "../linked", "feat/x"]);
    let linked = WorkTree::new(&origin.work().join("../linked")).unwrap();
    assert_eq!(latest(&linked, "top.yaml"), Ok(Some(origin.id("feat/x"))));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(latest(&WorkTree::new(dir.path()).unwrap(), "x"), Ok(None));
}
