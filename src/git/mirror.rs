#![expect(clippy::disallowed_methods, reason = "this module owns the files of its cache")]

//! One repository on disk: packs, the commits that are complete in them, and who uses them.
//!
//! A repository's directory holds `lock` (held while something is written) and numbered generations; the highest is in use.
//! A generation is replaced when it has collected too many packs or turns out to be damaged, and goes when nobody holds it,
//! in this process or in another one.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use gix::{
    ObjectId,
    hash::Kind,
    objs::Find,
    odb::{self, Store, pack, store::init::Slots},
    progress::DynNestedProgress,
};

use super::operation::Operation;

/// Indices that one store can hold.
const SLOTS: u16 = 256;
/// The largest allocation for one object.
const MAX_ALLOCATION: usize = 256 << 20;
/// Commits that are offered to the server as known.
const MAX_HAVES: usize = 8;
const LOCK_POLL: Duration = Duration::from_millis(20);

/// A generation of a repository's object store, held against deletion.
pub(super) struct Mirror {
    dir: PathBuf,
    store: Arc<Store>,
    retired: AtomicBool,
    in_use: File,
}

/// The right to write to a repository's directory.
pub(super) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Waits for the right, as long as the operation may last. Notes the use for [`last_use`].
    pub(super) fn acquire(repository: &Path, operation: &Operation) -> io::Result<Self> {
        use io::Write;
        fs::create_dir_all(repository)?;
        let mut file = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .open(repository.join("lock"))?;
        file.write_all(b".")?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(fs::TryLockError::WouldBlock) => {
                    operation.wait(tokio::time::sleep(LOCK_POLL))?;
                    operation.check()?;
                }
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Mirror {
    /// Opens the newest generation, or makes the first one. Older ones that nobody uses are removed.
    pub(super) fn open(repository: &Path, _lock: &WriteLock) -> io::Result<Self> {
        let generations = generations(repository)?;
        for (_, old) in generations.iter().rev().skip(1) {
            remove_unused(old);
        }
        let number = generations.last().map_or(0, |(number, _)| *number);
        Self::at(repository.join(format!("g{number}")))
    }

    /// Makes a new, empty generation; this one goes when its last user does.
    pub(super) fn renew(&self, repository: &Path, _lock: &WriteLock) -> io::Result<Self> {
        self.retired.store(true, Ordering::Relaxed);
        let number = generations(repository)?.last().map_or(0, |(number, _)| number + 1);
        Self::at(repository.join(format!("g{number}")))
    }

    fn at(dir: PathBuf) -> io::Result<Self> {
        let packs = dir.join("objects/pack");
        fs::create_dir_all(&packs)?;
        fs::create_dir_all(dir.join("fetched"))?;
        let in_use =
            File::options().create(true).write(true).truncate(false).open(dir.join("in-use"))?;
        in_use.lock_shared()?;
        // What a killed process left half-written.
        for entry in fs::read_dir(&packs)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with("pack-") {
                fs::remove_file(entry.path())?;
            }
        }
        let options = odb::store::init::Options {
            slots: Slots::Given(SLOTS),
            use_multi_pack_index: false,
            alloc_limit_bytes: Some(MAX_ALLOCATION),
            current_dir: Some(dir.clone()),
            ..odb::store::init::Options::default()
        };
        let store =
            Store::at_opts(dir.join("objects"), Kind::Sha1, &mut std::iter::empty(), options)?;
        Ok(Self { dir, store: Arc::new(store), retired: AtomicBool::new(false), in_use })
    }

    /// An object's kind and content; `None` when it is not there.
    pub(super) fn object(
        &self,
        id: ObjectId,
    ) -> gix::error::Result<Option<(gix::objs::Kind, Vec<u8>)>> {
        let mut content = Vec::new();
        let kind = self.store.to_handle_arc().try_find(&id, &mut content)?.map(|data| data.kind);
        Ok(kind.map(|kind| (kind, content)))
    }

    /// All objects.
    pub(super) fn objects(&self) -> impl Find {
        self.store.to_handle_arc()
    }

    /// An object's size in bytes.
    pub(super) fn size(&self, id: ObjectId) -> gix::error::Result<Option<u64>> {
        use gix::objs::FindHeader;
        Ok(self.store.to_handle_arc().try_header(&id)?.map(|header| header.size))
    }

    /// Whether the commit and all its files are there.
    pub(super) fn is_complete(&self, commit: ObjectId) -> bool {
        self.marker(commit).exists()
    }

    /// Notes that the commit and all its files are there.
    pub(super) fn set_complete(&self, commit: ObjectId) -> io::Result<()> {
        File::create(self.marker(commit)).map(drop)
    }

    fn marker(&self, commit: ObjectId) -> PathBuf {
        self.dir.join("fetched").join(commit.to_string())
    }

    /// The commits fetched last.
    pub(super) fn recent_commits(&self) -> Vec<ObjectId> {
        let commit = |entry: fs::DirEntry| {
            let id = ObjectId::from_hex(entry.file_name().as_encoded_bytes()).ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, id))
        };
        let entries = fs::read_dir(self.dir.join("fetched")).into_iter().flatten().flatten();
        let mut commits: Vec<(SystemTime, ObjectId)> = entries.filter_map(commit).collect();
        commits.sort_by(|a, b| b.cmp(a));
        commits.into_iter().take(MAX_HAVES).map(|(_, id)| id).collect()
    }

    pub(super) fn shallow_file(&self) -> PathBuf {
        self.dir.join("shallow")
    }

    pub(super) fn is_shallow(&self) -> bool {
        self.shallow_file().exists()
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        disk_usage(&self.dir)
    }

    pub(super) fn packs(&self) -> usize {
        let entries = fs::read_dir(self.dir.join("objects/pack")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "pack")).count()
    }

    /// Writes a pack as it arrives, with its index; every object is hashed. Returns a file to hand to
    /// [`Mirror::release_pack`].
    pub(super) fn write_pack(
        &self,
        pack: &mut dyn io::BufRead,
        progress: &mut dyn DynNestedProgress,
        interrupt: &AtomicBool,
    ) -> gix::error::Result<Option<PathBuf>> {
        let options = pack::bundle::write::Options {
            thread_limit: Some(1),
            alloc_limit_bytes: Some(MAX_ALLOCATION),
            ..pack::bundle::write::Options::default()
        };
        let written = pack::Bundle::write_to_directory(
            pack,
            Some(&self.dir.join("objects/pack")),
            progress,
            interrupt,
            Some(self.store.to_handle_arc()),
            Kind::Sha1,
            options,
        )?;
        Ok(written.keep_path)
    }

    /// Removes the mark that keeps Git's own clean-up away from a new pack.
    #[expect(clippy::unused_self, reason = "the pack is this mirror's")]
    pub(super) fn release_pack(&self, keep: Option<PathBuf>) {
        if let Some(keep) = keep {
            // It does no harm if it stays.
            fs::remove_file(keep).ok();
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if *self.retired.get_mut() {
            // Without our own share first, nobody could see that it is unused.
            self.in_use.unlock().ok();
            remove_unused(&self.dir);
        }
    }
}

/// A repository's generations, oldest first.
fn generations(repository: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(repository)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(number) = name.strip_prefix('g').and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a generation unless somebody holds it.
fn remove_unused(generation: &Path) -> bool {
    let is_free = match File::open(generation.join("in-use")) {
        Ok(file) => file.try_lock().is_ok(),
        Err(_) => true,
    };
    is_free && fs::remove_dir_all(generation).is_ok()
}

/// Removes a repository's directory unless somebody uses it.
pub(super) fn remove_repository(repository: &Path) -> bool {
    let Ok(lock) = File::options().write(true).open(repository.join("lock")) else {
        return fs::remove_dir_all(repository).is_ok();
    };
    if lock.try_lock().is_err() {
        return false;
    }
    let generations = generations(repository).unwrap_or_default();
    generations.iter().all(|(_, generation)| remove_unused(generation))
        && fs::remove_dir_all(repository).is_ok()
}

/// When a repository was used last, as far as its files tell.
pub(super) fn last_use(repository: &Path) -> SystemTime {
    let modified = fs::metadata(repository.join("lock")).and_then(|metadata| metadata.modified());
    modified.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Bytes of all files below a directory.
pub(super) fn disk_usage(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_usage(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
