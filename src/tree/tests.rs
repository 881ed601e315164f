use std::sync::Arc;

use super::*;

fn names(tree: &dyn SourceTree, dir: &str) -> Vec<String> {
    tree.list(dir).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn joins_stay_inside_the_tree() {
    assert_eq!(join("a/b", "../c/./d").unwrap(), "a/c/d");
    assert_eq!(join("", "/x").unwrap(), "x");
    assert_eq!(join("a", ".").unwrap(), "a");
    assert_eq!(join("a", "../../b"), Err(TreeError::Escapes { path: "../../b".into() }));
}

#[test]
fn memory_trees_know_their_directories() {
    let tree = MemoryTree::from_texts([("a/b/c.yaml", "x"), ("a.yaml", "y"), ("a/d.yaml", "z")]);
    assert_eq!(names(&tree, ""), ["a", "a.yaml"]);
    assert_eq!(names(&tree, "a"), ["b", "d.yaml"]);
    assert!(tree.is_dir("a/b"));
    assert_eq!(&*tree.read("a/d.yaml").unwrap(), b"z");
    assert!(matches!(tree.read("a/b"), Err(TreeError::WrongKind { .. })));
    assert!(matches!(tree.list("nope"), Err(TreeError::NotFound { .. })));
    assert_eq!(walk_files(&tree, "").unwrap(), ["a.yaml", "a/b/c.yaml", "a/d.yaml"]);
}

#[test]
fn overlays_prefer_the_upper_tree() {
    let lower = MemoryTree::from_texts([("a/x", "low"), ("a/y", "low")]);
    let upper = MemoryTree::from_texts([("a/x", "up"), ("b", "up")]);
    let tree = OverlayTree { upper, lower: Arc::new(lower) };
    assert_eq!(&*tree.read("a/x").unwrap(), b"up");
    assert_eq!(&*tree.read("a/y").unwrap(), b"low");
    assert_eq!(names(&tree, "a"), ["x", "y"]);
    assert_eq!(names(&tree, ""), ["a", "b"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "builds the directory under test")]
fn disk_trees_refuse_links_that_leave() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(dir.path().join("outside"), "secret").unwrap();
    std::fs::write(root.join("sub/f"), "inside").unwrap();
    std::os::unix::fs::symlink("../outside", root.join("leak")).unwrap();
    std::os::unix::fs::symlink("sub/f", root.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
    let tree = DiskTree::new(&root).unwrap();
    assert_eq!(&*tree.read("link").unwrap(), b"inside");
    assert_eq!(tree.read("leak"), Err(TreeError::Escapes { path: "leak".into() }));
    assert_eq!(tree.read("../outside"), Err(TreeError::Escapes { path: "../outside".into() }));
    assert_eq!(tree.kind("sub/f/deeper"), Ok(None));
    assert_eq!(names(&tree, ""), ["leak", "link", "sub"]);
    // Neither devices nor what fills the memory is read.
    std::os::unix::net::UnixListener::bind(root.join("socket")).map(drop).unwrap();
    std::fs::File::create(root.join("huge")).unwrap().set_len(200 << 20).unwrap();
    for (path, expected) in
        [("socket", "is a device, a pipe or a socket"), ("huge", "larger than 128 MiB")]
    {
        let error = tree.read(path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        std::fs::remove_file(root.join(path)).unwrap();
    }
    // Also behind linked directories, which are looked up once.
    std::fs::write(dir.path().join("target"), "secret").unwrap();
    std::os::unix::fs::symlink("sub", root.join("inner")).unwrap();
    std::os::unix::fs::symlink("..", root.join("outer")).unwrap();
    std::os::unix::fs::symlink("../../target", root.join("sub/up")).unwrap();
    let escapes = |path: &str| Err(TreeError::Escapes { path: path.into() });
    for _ in 0..2 {
        assert_eq!(&*tree.read("inner/f").unwrap(), b"inside");
        assert_eq!(tree.real_path("inner/f").unwrap(), "sub/f");
        assert_eq!(tree.read("outer/target"), escapes("outer/target"));
        assert_eq!(tree.read("inner/up"), escapes("inner/up"));
        assert_eq!(tree.kind("sub/f/deeper"), Ok(None));
        assert_eq!(tree.kind("nowhere/at/all"), Ok(None));
    }
}
