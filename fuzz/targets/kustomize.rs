//! Any directory of files is built or refused, and what was built is the same when it is built again.
//!
//! The input is one text: `=== path` lines begin files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pure::{
    kustomize,
    tree::{MemoryTree, join},
};

fn tree(text: &str) -> MemoryTree {
    let mut tree = MemoryTree::new();
    for file in text.split("=== ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap_or((file, ""));
        let Ok(path) = join("", path.trim()) else { continue };
        let inside = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        if !path.is_empty()
            && !tree.files().any(|(other, _)| inside(&path, other) || inside(other, &path))
        {
            tree.insert(&path, content.as_bytes());
        }
    }
    tree
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let tree = tree(text);
    let dir = if text.contains("=== overlay/") { "overlay" } else { "" };
    let first = kustomize::build(&tree, dir);
    let second = kustomize::build(&tree, dir);
    match (first, second) {
        (Ok(first), Ok(second)) => assert_eq!(first, second),
        (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
        _ => panic!("one build of two fails"),
    }
});
