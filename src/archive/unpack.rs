use std::{
    cell::Cell,
    fs::{self, File, OpenOptions},
    io::{self, BufReader, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    rc::Rc,
};

use flate2::bufread::MultiGzDecoder;
use tar::{EntryType, PaxExtensions};
use tokio_util::sync::CancellationToken;

/// Ratio checks start here: small archives of very regular text compress well beyond any sensible limit.
const RATIO_FLOOR: u64 = 8 << 20;
/// The longest PAX or GNU header read into memory.
const MAX_EXTENSION: u64 = 1 << 20;
/// The longest path of an entry, in bytes.
const MAX_PATH: usize = 4096;
const CHUNK: usize = 64 << 10;

/// Bounds on what an archive may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes after decompression, headers and skipped entries included.
    pub max_bytes: u64,
    /// Entries of any kind.
    pub max_entries: u64,
    /// Parts of one entry's path.
    pub max_depth: usize,
    /// Decompressed bytes per compressed byte, checked from 8 MiB on.
    pub max_ratio: u64,
}

impl Default for UnpackLimits {
    /// 512 MiB, 100 000 entries, 64 levels, 200 to 1.
    fn default() -> Self {
        Self { max_bytes: 512 << 20, max_entries: 100_000, max_depth: 64, max_ratio: 200 }
    }
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Regular files written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Symbolic links left out.
    pub skipped_links: u64,
}

/// Why an archive was not unpacked. What was written until then is to be thrown away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are something else.
    #[error("is not a gzip-compressed tar archive, it looks like {found}")]
    NotGzip {
        /// What the first bytes suggest.
        found: &'static str,
    },
    /// More bytes than allowed.
    #[error("unpacks to more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// More entries than allowed.
    #[error("holds more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: u64,
    },
    /// A path with too many parts.
    #[error("{name}: is {depth} levels deep, at most {limit} are allowed")]
    TooDeep {
        /// The entry.
        name: String,
        /// Its parts.
        depth: usize,
        /// The limit.
        limit: usize,
    },
    /// Compressed suspiciously well.
    #[error("expands {unpacked} bytes from {packed}, more than {limit} to 1")]
    Ratio {
        /// Decompressed bytes so far.
        unpacked: u64,
        /// Compressed bytes read so far.
        packed: u64,
        /// The limit.
        limit: u64,
    },
    /// A name that could lead out of the directory, or nowhere.
    #[error("entry {name:?} {reason}")]
    UnsafeName {
        /// The name as it stands in the archive.
        name: String,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// A hard link, device, pipe or sparse file.
    #[error("{name}: is a {kind}; only files and directories are accepted")]
    Unsupported {
        /// The entry.
        name: String,
        /// What it is.
        kind: &'static str,
    },
    /// Broken compression or tar structure.
    #[error("is damaged: {message}")]
    Damaged {
        /// The reader's words.
        message: String,
    },
    /// An entry where another one is that cannot be in the same place.
    #[error("{name}: is a file and a directory")]
    Twofold {
        /// The entry.
        name: String,
    },
    /// The file system refused.
    #[error("{path}: {message}")]
    Io {
        /// The path being written, relative to the destination.
        path: String,
        /// The system's message.
        message: String,
    },
    /// The caller's token was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Unpacks a tar.gz into `destination`, an existing directory that should be empty.
///
/// Written are regular files (0644, or 0755 if any execute bit is set) and directories, nothing else: symbolic links are
/// left out, as Flux does, and hard links, devices, pipes and sparse files are errors. No link is ever created, so no entry
/// can be written through one. Names must be relative UTF-8 without `..` and without backslashes; PAX and GNU long names are
/// understood. Time stamps are not kept. Blocking; looks at `cancel` between chunks.
///
/// # Errors
/// The first problem found; see [`ArchiveError`].
pub fn unpack(
    archive: impl Read,
    destination: &Path,
    limits: &UnpackLimits,
    cancel: &CancellationToken,
) -> Result<Unpacked, ArchiveError> {
    let packed = Counter::default();
    let mut archive =
        BufReader::with_capacity(CHUNK, Counting { inner: archive, count: packed.clone() });
    sniff(&mut archive)?;
    let violation = Rc::new(Cell::new(None));
    let bounded = Bounded {
        inner: MultiGzDecoder::new(archive),
        unpacked: 0,
        packed,
        limits: *limits,
        cancel: cancel.clone(),
        violation: violation.clone(),
    };
    let mut writer = Writer {
        destination,
        limits,
        entries: 0,
        done: Unpacked::default(),
        last_parent: None,
        buffer: vec![0; CHUNK],
    };
    // Errors of the bounded reader pass through the tar reader as texts; the cell holds the typed one.
    writer.run(bounded).map_err(|error| violation.take().unwrap_or(error))?;
    Ok(writer.done)
}

fn sniff<R: Read>(archive: &mut BufReader<R>) -> Result<(), ArchiveError> {
    use io::BufRead;
    let head = archive.fill_buf().map_err(|error| damaged(&error))?;
    let found = match head {
        [0x1f, 0x8b, ..] => return Ok(()),
        [] => "an empty file",
        [b'P', b'K', 3, 4, ..] => "a zip file",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "a zstd file",
        [b'B', b'Z', b'h', ..] => "a bzip2 file",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "an xz file",
        head if head.get(257..262) == Some(b"ustar") => "a tar archive without compression",
        head if std::str::from_utf8(&head[..head.len().min(64)]).is_ok() => "plain text",
        _ => "unknown binary data",
    };
    Err(ArchiveError::NotGzip { found })
}

fn damaged(error: &io::Error) -> ArchiveError {
    ArchiveError::Damaged { message: error.to_string() }
}

/// A byte count shared between the two ends of the decompressor.
type Counter = Rc<Cell<u64>>;

struct Counting<R> {
    inner: R,
    count: Counter,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// The decompressed stream, which ends with an error when a bound is passed.
struct Bounded<R> {
    inner: R,
    unpacked: u64,
    packed: Counter,
    limits: UnpackLimits,
    cancel: CancellationToken,
    violation: Rc<Cell<Option<ArchiveError>>>,
}

impl<R> Bounded<R> {
    fn check(&self) -> Option<ArchiveError> {
        let (unpacked, packed) = (self.unpacked, self.packed.get());
        if self.cancel.is_cancelled() {
            Some(ArchiveError::Cancelled)
        } else if unpacked > self.limits.max_bytes {
            Some(ArchiveError::TooLarge { limit: self.limits.max_bytes })
        } else if unpacked > RATIO_FLOOR && unpacked / packed.max(1) >= self.limits.max_ratio {
            Some(ArchiveError::Ratio { unpacked, packed, limit: self.limits.max_ratio })
        } else {
            None
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.unpacked += read as u64;
        if let Some(violation) = self.check() {
            let text = violation.to_string();
            self.violation.set(Some(violation));
            return Err(io::Error::other(text));
        }
        Ok(read)
    }
}

struct Writer<'a> {
    destination: &'a Path,
    limits: &'a UnpackLimits,
    entries: u64,
    done: Unpacked,
    /// The directory of the last file, which is there.
    last_parent: Option<PathBuf>,
    buffer: Vec<u8>,
}

/// Names that PAX and GNU headers announce for the entry after them.
#[derive(Default)]
struct Announced {
    path: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
}

impl Writer<'_> {
    fn run(&mut self, stream: impl Read) -> Result<(), ArchiveError> {
        let mut archive = tar::Archive::new(stream);
        let mut announced = Announced::default();
        // Raw entries, because the tar reader would hold long headers of any length in memory.
        for entry in archive.entries().map_err(|error| damaged(&error))?.raw(true) {
            let mut entry = entry.map_err(|error| damaged(&error))?;
            self.entries += 1;
            if self.entries > self.limits.max_entries {
                return Err(ArchiveError::TooManyEntries { limit: self.limits.max_entries });
            }
            match entry.header().entry_type() {
                EntryType::XGlobalHeader => {}
                EntryType::XHeader => announced.read_pax(&read_extension(&mut entry)?)?,
                EntryType::GNULongName => {
                    let mut name = read_extension(&mut entry)?;
                    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                    announced.path = Some(name);
                }
                EntryType::GNULongLink => drop(read_extension(&mut entry)?),
                _ => self.write(&mut entry, std::mem::take(&mut announced))?,
            }
        }
        // What follows the archive's end counts too, and the checksum of the compression is behind it.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| damaged(&error))?;
        Ok(())
    }

    fn write<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        announced: Announced,
    ) -> Result<(), ArchiveError> {
        let raw = announced.path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let name = String::from_utf8_lossy(&raw).into_owned();
        let kind = match entry.header().entry_type() {
            // Only a PAX record tells this form of sparse files from regular ones.
            _ if announced.sparse => Some("sparse file"),
            EntryType::Regular
            | EntryType::Continuous
            | EntryType::Directory
            | EntryType::Symlink => None,
            EntryType::Link => Some("hard link"),
            EntryType::Char | EntryType::Block => Some("device"),
            EntryType::Fifo => Some("pipe"),
            EntryType::GNUSparse => Some("sparse file"),
            _ => Some("special entry"),
        };
        if let Some(kind) = kind {
            return Err(ArchiveError::Unsupported { name, kind });
        }
        let path = self.safe_path(&raw)?;
        if announced.size.is_some_and(|size| size != entry.size()) {
            return Err(ArchiveError::Damaged {
                message: format!("a PAX record gives {name} another size than its header"),
            });
        }
        // Old archives mark directories by nothing but a slash.
        let is_directory = entry.header().entry_type().is_dir() || name.ends_with('/');
        if entry.header().entry_type().is_symlink() {
            self.done.skipped_links += 1;
            return Ok(());
        }
        let target = self.destination.join(&path);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::AlreadyExists => ArchiveError::Twofold { name: name.clone() },
            _ => ArchiveError::Io { path: name.clone(), message: error.to_string() },
        };
        if is_directory {
            return fs::create_dir_all(&target).map_err(failed);
        }
        if path.as_os_str().is_empty() {
            return Err(ArchiveError::UnsafeName { name, reason: "names the root as a file" });
        }
        let mode = entry.header().mode().unwrap_or(0);
        let file = self.create_file(&target, mode).map_err(failed)?;
        let bytes = copy_file(entry, file, &mut self.buffer, failed)?;
        self.done.files += 1;
        self.done.bytes += bytes;
        Ok(())
    }

    fn create_file(&mut self, target: &Path, mode: u32) -> io::Result<File> {
        let parent = target.parent();
        if parent != self.last_parent.as_deref() {
            parent.map_or(Ok(()), fs::create_dir_all)?;
            self.last_parent = parent.map(Path::to_owned);
        }
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(target)
    }

    /// The path below the destination; empty for the root itself.
    fn safe_path(&self, raw: &[u8]) -> Result<PathBuf, ArchiveError> {
        let unsafe_name = |reason| {
            Err(ArchiveError::UnsafeName {
                name: String::from_utf8_lossy(raw).into_owned(),
                reason,
            })
        };
        let Ok(name) = std::str::from_utf8(raw) else {
            return unsafe_name("is not UTF-8");
        };
        if name.is_empty() {
            return unsafe_name("is empty");
        }
        if name.starts_with('/') {
            return unsafe_name("is absolute");
        }
        if name.contains('\\') || name.contains('\0') {
            return unsafe_name("contains a backslash or a zero byte");
        }
        if name.len() > MAX_PATH {
            return unsafe_name("is longer than 4096 bytes");
        }
        let parts: Vec<&str> =
            name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return unsafe_name("contains `..`");
        }
        if parts.len() > self.limits.max_depth {
            return Err(ArchiveError::TooDeep {
                name: name.to_owned(),
                depth: parts.len(),
                limit: self.limits.max_depth,
            });
        }
        Ok(parts.iter().collect())
    }
}

/// Copies an entry's content; tells a damaged archive from a file system that refuses.
fn copy_file<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    mut file: File,
    buffer: &mut [u8],
    failed: impl Fn(io::Error) -> ArchiveError,
) -> Result<u64, ArchiveError> {
    let mut written = 0;
    loop {
        let read = entry.read(buffer).map_err(|error| damaged(&error))?;
        if read == 0 {
            break;
        }
        file.write_all(&buffer[..read]).map_err(&failed)?;
        written += read as u64;
    }
    if written != entry.size() {
        let message = format!("it ends after {written} of an entry's {} bytes", entry.size());
        return Err(ArchiveError::Damaged { message });
    }
    Ok(written)
}

impl Announced {
    fn read_pax(&mut self, content: &[u8]) -> Result<(), ArchiveError> {
        for record in PaxExtensions::new(content) {
            let record = record.map_err(|error| damaged(&error))?;
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"size" => {
                    let size = record.value().ok().and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(|| ArchiveError::Damaged {
                        message: "a PAX record holds a size that is not a number".to_owned(),
                    })?);
                }
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}

fn read_extension<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Vec<u8>, ArchiveError> {
    if entry.size() > MAX_EXTENSION {
        return Err(ArchiveError::Damaged {
            message: format!("an extended header has {} bytes", entry.size()),
        });
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content).map_err(|error| damaged(&error))?;
    Ok(content)
}
