//! Renders that may be used again, by what they were made from.

#![expect(clippy::disallowed_methods, reason = "this module owns the files of its cache")]

use std::{
    collections::HashMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bounds on the cache of renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLimits {
    /// Bytes in memory.
    pub memory_bytes: usize,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

impl Default for CacheLimits {
    /// 64 MiB in memory, 256 MiB on disk.
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, disk_bytes: 256 << 20 }
    }
}

/// Hash over everything that a render depends on.
pub(super) type Key = [u8; 32];

/// Renders in memory and, if there is a directory, on disk. Each has its bounds: what was not used for the longest time leaves
/// memory first, what was written first leaves the disk. A hash over the content protects against damage.
pub(super) struct RenderCache {
    dir: Option<PathBuf>,
    limits: CacheLimits,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    renders: HashMap<Key, (Arc<str>, u64)>,
    bytes: usize,
    uses: u64,
    /// Bytes written to disk since it was last tidied.
    written: u64,
    is_tidied: bool,
}

impl RenderCache {
    pub(super) fn new(dir: Option<PathBuf>, limits: CacheLimits) -> Self {
        Self { dir, limits, memory: Mutex::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A former render. Blocking.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<str>> {
        {
            let mut memory = self.memory();
            memory.uses += 1;
            let uses = memory.uses;
            if let Some((text, used)) = memory.renders.get_mut(key) {
                *used = uses;
                return Some(text.clone());
            }
        }
        let text: Arc<str> = self.read(key)?.into();
        self.remember(key, &text);
        Some(text)
    }

    /// Keeps a render: in memory, and on disk if `on_disk`. Blocking. A disk that is full or read-only only costs time later.
    pub(super) fn put(&self, key: &Key, text: &Arc<str>, on_disk: bool) {
        self.remember(key, text);
        if on_disk {
            self.write(key, text);
        }
    }

    fn remember(&self, key: &Key, text: &Arc<str>) {
        let mut memory = self.memory();
        if text.len() > self.limits.memory_bytes {
            return;
        }
        memory.uses += 1;
        let uses = memory.uses;
        if let Some((former, _)) = memory.renders.insert(*key, (text.clone(), uses)) {
            memory.bytes -= former.len();
        }
        memory.bytes += text.len();
        while memory.bytes > self.limits.memory_bytes {
            let oldest = memory.renders.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            if let Some((text, _)) = memory.renders.remove(&oldest) {
                memory.bytes -= text.len();
            }
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(blake3::Hash::from_bytes(*key).to_hex().as_str()))
    }

    fn read(&self, key: &Key) -> Option<String> {
        let path = self.path(key)?;
        let content = fs::read(&path).ok()?;
        let (sum, text) = content.split_at_checked(32)?;
        if *blake3::hash(text).as_bytes() != *sum {
            // Written by a machine that stopped in the middle; it is rendered again.
            let _removed = fs::remove_file(&path);
            return None;
        }
        String::from_utf8(text.to_vec()).ok()
    }

    fn write(&self, key: &Key, text: &str) {
        let (Some(dir), Some(path)) = (&self.dir, self.path(key)) else { return };
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(dir)?;
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(dir)?;
            file.write_all(blake3::hash(text.as_bytes()).as_bytes())?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok(())
        };
        if write().is_err() {
            return;
        }
        let tidy = {
            let mut memory = self.memory();
            memory.written += text.len() as u64;
            let tidy = !memory.is_tidied || memory.written > self.limits.disk_bytes / 8;
            if tidy {
                (memory.is_tidied, memory.written) = (true, 0);
            }
            tidy
        };
        if tidy {
            self.tidy(dir);
        }
    }

    /// Removes the oldest files beyond the limit, with room for what is written until the next time.
    fn tidy(&self, dir: &Path) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        let limit = self.limits.disk_bytes - self.limits.disk_bytes / 8;
        for (_, len, path) in files {
            if bytes <= limit {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                bytes -= len;
            }
        }
    }
}
