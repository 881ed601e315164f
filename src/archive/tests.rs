#![expect(clippy::disallowed_methods, reason = "looks at the unpacked directory")]

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;

const KINDS: &[EntryType] = &[
    EntryType::Regular,
    EntryType::Directory,
    EntryType::Symlink,
    EntryType::Link,
    EntryType::GNULongName,
    EntryType::XGlobalHeader,
];

/// A tar.gz made entry by entry, with names that no well-behaved writer accepts.
struct Maker(Builder<GzEncoder<Vec<u8>>>);

impl Maker {
    fn new() -> Self {
        Self(Builder::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    fn entry(mut self, kind: EntryType, name: &str, content: &[u8]) -> Self {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(if name == "run.sh" { 0o700 } else { 0o600 });
        header.set_size(content.len() as u64);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    fn file(self, name: &str, content: &str) -> Self {
        self.entry(EntryType::Regular, name, content.as_bytes())
    }

    fn pax(mut self, records: &[(&str, &[u8])]) -> Self {
        self.0.append_pax_extensions(records.iter().copied()).unwrap();
        self
    }

    fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap().finish().unwrap()
    }
}

fn run(archive: &[u8], limits: UnpackLimits) -> (TempDir, Result<Unpacked, ArchiveError>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let result = unpack(archive, &root, &limits, &CancellationToken::new());
    (dir, result)
}

fn error_of(archive: &[u8]) -> ArchiveError {
    let (dir, result) = run(archive, UnpackLimits::default());
    let outside: Vec<PathBuf> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(outside, [dir.path().join("root")]);
    result.unwrap_err()
}

fn text(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join("root").join(path)).unwrap()
}

#[test]
fn a_flux_archive_unpacks() {
    let long = format!("deep/{}/x.yaml", "n".repeat(180));
    let archive = Maker::new()
        .entry(EntryType::Directory, ".", b"")
        .entry(EntryType::Directory, "empty", b"")
        .file("a/b.yaml", "b")
        .file("./c.yaml", "c")
        .file("run.sh", "#!")
        .entry(EntryType::Symlink, "link", b"")
        .pax(&[("path", long.as_bytes()), ("mtime", b"0")])
        .file("truncated-name", "long")
        .pax(&[("path", "ünï.yaml".as_bytes())])
        .file("x", "unicode")
        .entry(EntryType::GNULongName, "././@LongLink", b"gnu/name.yaml\0")
        .file("y", "gnu")
        .entry(EntryType::XGlobalHeader, "pax_global_header", b"19 comment=whatever")
        .file("c.yaml", "c again")
        .done();
    let (dir, result) = run(&archive, UnpackLimits::default());
    let unpacked = result.unwrap();
    assert_eq!((unpacked.files, unpacked.skipped_links), (7, 1));
    assert_eq!(text(dir.path(), "a/b.yaml"), "b");
    assert_eq!(text(dir.path(), "c.yaml"), "c again");
    assert_eq!(text(dir.path(), &long), "long");
    assert_eq!(text(dir.path(), "ünï.yaml"), "unicode");
    assert_eq!(text(dir.path(), "gnu/name.yaml"), "gnu");
    assert!(dir.path().join("root/empty").is_dir());
    assert!(!dir.path().join("root/link").exists() && !dir.path().join("root/x").exists());
    let mode = |path: &str| {
        std::fs::metadata(dir.path().join("root").join(path)).unwrap().permissions().mode() & 0o111
    };
    assert_eq!((mode("run.sh") & 0o100, mode("c.yaml")), (0o100, 0));
}

#[test]
fn names_that_leave_are_refused() {
    for name in ["../up", "a/../../up", "a/..", "..", "/etc/x", "a\\..\\b", ""] {
        let error = error_of(&Maker::new().file(name, "x").done());
        assert!(matches!(error, ArchiveError::UnsafeName { .. }), "{name}: {error}");
    }
    let hidden = Maker::new().pax(&[("path", b"../up")]).file("innocent", "x").done();
    assert!(matches!(error_of(&hidden), ArchiveError::UnsafeName { .. }));
    let gnu = Maker::new().entry(EntryType::GNULongName, "l", b"/up").file("innocent", "x").done();
    assert!(matches!(error_of(&gnu), ArchiveError::UnsafeName { .. }));
    let binary = Maker::new().pax(&[("path", b"a\xff")]).file("innocent", "x").done();
    assert!(error_of(&binary).to_string().contains("is not UTF-8"));
}

#[test]
fn writing_through_a_link_is_impossible() {
    let archive = Maker::new().entry(EntryType::Symlink, "d", b"").file("d/x", "inside").done();
    let (dir, result) = run(&archive, UnpackLimits::default());
    assert_eq!(result.unwrap().files, 1);
    assert_eq!(text(dir.path(), "d/x"), "inside");
}

#[test]
fn special_entries_are_refused() {
    for (kind, word) in [
        (EntryType::Link, "hard link"),
        (EntryType::Char, "device"),
        (EntryType::Block, "device"),
        (EntryType::Fifo, "pipe"),
        (EntryType::GNUSparse, "sparse file"),
    ] {
        let error = error_of(&Maker::new().entry(kind, "thing", b"").done());
        assert!(error.to_string().starts_with(&format!("thing: is a {word}")), "{error}");
    }
    let sparse = Maker::new().pax(&[("GNU.sparse.major", b"1")]).file("thing", "x").done();
    assert!(matches!(error_of(&sparse), ArchiveError::Unsupported { kind: "sparse file", .. }));
}

#[test]
fn bounds_hold_and_are_named() {
    let limits = UnpackLimits::default();
    let three = Maker::new().file("a", "x").file("b", "x").file("c", "x").done();
    let (_dir, result) = run(&three, UnpackLimits { max_entries: 2, ..limits });
    assert_eq!(result, Err(ArchiveError::TooManyEntries { limit: 2 }));

    let (_dir, result) = run(&three, UnpackLimits { max_bytes: 1024, ..limits });
    assert_eq!(result, Err(ArchiveError::TooLarge { limit: 1024 }));

    let deep = Maker::new().file("1/2/3/4", "x").done();
    let (_dir, result) = run(&deep, UnpackLimits { max_depth: 3, ..limits });
    assert_eq!(result.unwrap_err().to_string(), "1/2/3/4: is 4 levels deep, at most 3 are allowed");

    let zeros = vec![0u8; 12 << 20];
    let bomb = Maker::new().entry(EntryType::Regular, "bomb", &zeros).done();
    let (_dir, result) = run(&bomb, limits);
    assert!(matches!(result, Err(ArchiveError::Ratio { limit: 200, .. })), "{result:?}");

    // The same bomb in an entry that is not written, and behind the archive's end.
    let skipped = Maker::new().entry(EntryType::Symlink, "bomb", &zeros).done();
    assert!(matches!(run(&skipped, limits).1, Err(ArchiveError::Ratio { .. })));
    let mut tail = three.clone();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&zeros).unwrap();
    tail.extend(encoder.finish().unwrap());
    assert!(matches!(run(&tail, limits).1, Err(ArchiveError::Ratio { .. })));
}

#[test]
fn a_size_in_a_pax_record_cannot_shift_the_entries() {
    let archive = Maker::new().pax(&[("size", b"1024")]).file("a", "x").done();
    assert!(matches!(error_of(&archive), ArchiveError::Damaged { .. }));
    let same = Maker::new().pax(&[("size", b"1")]).file("a", "x").done();
    assert_eq!(run(&same, UnpackLimits::default()).1.unwrap().files, 1);
}

#[test]
fn other_content_is_recognised() {
    for (content, found) in [
        (&b""[..], "an empty file"),
        (b"PK\x03\x04zip", "a zip file"),
        (b"\x28\xb5\x2f\xfdzstd", "a zstd file"),
        (b"hello, this is no archive\n", "plain text"),
        (b"\x00\xff\xfe", "unknown binary data"),
    ] {
        assert_eq!(error_of(content), ArchiveError::NotGzip { found });
    }
    let mut plain = Builder::new(Vec::new());
    let mut header = Header::new_ustar();
    header.set_size(0);
    header.set_cksum();
    plain.append_data(&mut header, "a", &b""[..]).unwrap();
    let error = error_of(&plain.into_inner().unwrap());
    assert_eq!(error, ArchiveError::NotGzip { found: "a tar archive without compression" });
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let whole = Maker::new().file("a", &"some text ".repeat(500)).done();
    for length in [whole.len() / 2, whole.len() - 4, 12] {
        let error = error_of(&whole[..length]);
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{length}: {error}");
    }
    let mut flipped = whole.clone();
    let checksum = flipped.len() - 6;
    flipped[checksum] ^= 1;
    assert!(matches!(error_of(&flipped), ArchiveError::Damaged { .. }));
}

#[test]
fn a_file_where_a_directory_should_be_is_the_archives_fault() {
    let cases = [
        (Maker::new().file("a", "x").file("a/b", "x"), "a/b"),
        (Maker::new().file("a/b", "x").file("a", "x"), "a"),
        (Maker::new().file("a", "x").file("a/b/c", "x"), "a/b/c"),
    ];
    for (maker, expected) in cases {
        let error = error_of(&maker.done());
        assert!(matches!(&error, ArchiveError::Twofold { name } if name == expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the entries are called and wherever the bytes break, nothing appears outside, and nothing panics.
    #[test]
    fn no_archive_writes_outside(
        entries in vec((select(KINDS), "[./a\\\\é]{0,12}", "[a-z]{0,20}"), 0..6),
        long in proptest::option::of("[./a]{1,300}"),
        broken in proptest::option::of((any::<Index>(), any::<u8>())),
    ) {
        let mut maker = Maker::new();
        if let Some(long) = &long {
            maker = maker.pax(&[("path", long.as_bytes())]);
        }
        for (kind, name, content) in &entries {
            maker = maker.entry(*kind, name, content.as_bytes());
        }
        let mut archive = maker.done();
        if let Some((at, byte)) = broken {
            let at = at.index(archive.len());
            archive[at] = byte;
        }
        let (dir, result) = run(&archive, UnpackLimits::default());
        prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        if let Ok(unpacked) = result {
            let bytes: usize = entries.iter().map(|(_, _, content)| content.len()).sum();
            prop_assert!(unpacked.bytes <= bytes as u64);
        }
    }
}

#[test]
fn cancelling_stops() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let archive = Maker::new().file("a", "x").done();
    let result = unpack(&archive[..], dir.path(), &UnpackLimits::default(), &cancel);
    assert_eq!(result, Err(ArchiveError::Cancelled));
}
