use tokio_util::sync::CancellationToken;

use super::server::{Origin, Server};
use crate::{
    git::*,
    tree::{EntryKind, SourceTree, TreeError, walk_files},
};

async fn with_tree(test: impl FnOnce(&dyn SourceTree)) {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), None).await;
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path(), CacheOptions::default()).unwrap();
    let url = GitUrl::parse(&server.url("shop.git")).unwrap();
    let cancel = CancellationToken::new();
    let checkout =
        cache.checkout(&url, &Reference::Default, &Auth::default(), &cancel).await.unwrap();
    test(&*checkout.tree);
}

#[tokio::test]
async fn files_and_directories_are_listed() {
    with_tree(|tree| {
        let names = |dir: &str| {
            tree.list(dir).unwrap().into_iter().map(|e| (e.name, e.kind)).collect::<Vec<_>>()
        };
        let (file, dir) = (EntryKind::File, EntryKind::Directory);
        let root = names("");
        let expected = [
            ("absolute", file),
            ("deploy", dir),
            ("dir-link", dir),
            ("large.bin", file),
            ("outside", file),
            ("sub", dir),
            ("top.yaml", file),
            ("up.yaml", file),
        ];
        assert_eq!(root, expected.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(names("dir-link"), [("x.yaml".to_owned(), file)]);
        assert!(names("sub").is_empty());
        assert!(matches!(tree.list("top.yaml"), Err(TreeError::WrongKind { .. })));
        assert!(matches!(tree.list("gone"), Err(TreeError::NotFound { .. })));
        assert_eq!(
            walk_files(tree, "deploy").unwrap(),
            ["deploy/app.yaml", "deploy/base/x.yaml", "deploy/link.yaml"]
        );
    })
    .await;
}

#[tokio::test]
async fn links_are_followed_within_the_tree_only() {
    with_tree(|tree| {
        let read =
            |path: &str| tree.read(path).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        assert_eq!(read("deploy/link.yaml").unwrap(), "x: 1\n");
        assert_eq!(read("dir-link/x.yaml").unwrap(), "x: 1\n");
        assert_eq!(read("up.yaml").unwrap(), "top: 1\n");
        assert_eq!(read("deploy/./base/../app.yaml").unwrap(), "app: 1\n");
        for path in ["outside", "absolute", "../x", "deploy/../../x"] {
            assert!(matches!(read(path), Err(TreeError::Escapes { .. })), "{path}");
        }
        for path in ["dangling", "loop", "top.yaml/x", "sub/x", "gone/x"] {
            assert!(matches!(read(path), Err(TreeError::NotFound { .. })), "{path}");
            assert_eq!(tree.kind(path), Ok(None), "{path}");
        }
        assert!(matches!(read("deploy"), Err(TreeError::WrongKind { .. })));
        assert_eq!(tree.kind(""), Ok(Some(EntryKind::Directory)));
        assert_eq!(tree.kind("sub"), Ok(Some(EntryKind::Directory)));
        assert_eq!(tree.kind("deploy/link.yaml"), Ok(Some(EntryKind::File)));
    })
    .await;
}

#[tokio::test]
async fn threads_read_at_the_same_time() {
    with_tree(|tree| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(&*tree.read("deploy/base/x.yaml").unwrap(), b"x: 1\n");
                        assert_eq!(tree.list("deploy").unwrap().len(), 3);
                    }
                });
            }
        });
    })
    .await;
}
