//! The user's environment: the only place that reads variables, the home directory and the configuration of the command.

#![expect(clippy::disallowed_methods, reason = "this module owns the access to the environment")]

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, IsTerminal, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    diagnostic::{Class, Describe, Diagnostic},
    net::Proxies,
    yaml::{self, Schema},
};

/// What surrounds the command.
#[derive(Debug, Clone)]
pub(super) struct Environment {
    /// All variables whose names and values are text.
    pub(super) variables: BTreeMap<String, String>,
    /// The working directory.
    pub(super) working_dir: PathBuf,
    /// The directory of this program, if the system tells it.
    pub(super) program_dir: Option<PathBuf>,
    /// Whether standard error is a terminal.
    pub(super) is_terminal: bool,
    /// Whether standard output is a terminal.
    pub(super) shows_results: bool,
    /// Whether somebody sits at a terminal who sees questions and can answer.
    pub(super) can_ask: bool,
}

impl Environment {
    /// The environment of this process.
    ///
    /// # Errors
    /// When the working directory is gone.
    pub(super) fn read() -> io::Result<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Self {
            variables: env::vars_os().filter_map(text).collect(),
            working_dir: env::current_dir()?,
            program_dir: env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned())),
            is_terminal: io::stderr().is_terminal(),
            shows_results: io::stdout().is_terminal(),
            can_ask: io::stderr().is_terminal() && io::stdin().is_terminal(),
        })
    }

    /// A variable that is set to something.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The proxies of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    ///
    /// # Errors
    /// When one of them is no address of a proxy.
    pub(super) fn proxies(&self) -> Result<Proxies, Diagnostic> {
        Proxies::from_variables(|name| self.get(name))
            .map_err(|error| Diagnostic::new(Class::Access, error.to_string()))
    }

    /// Where this program keeps what it can get again.
    pub(super) fn cache_dir(&self) -> PathBuf {
        let own = self.get("KLUCTL_CACHE_DIR").map(PathBuf::from);
        let shared = || self.get("XDG_CACHE_HOME").map(|dir| Path::new(dir).join("kluctl"));
        let home = || self.get("HOME").map(|dir| Path::new(dir).join(".cache/kluctl"));
        own.or_else(shared).or_else(home).unwrap_or_else(|| env::temp_dir().join("kluctl"))
    }

    /// Columns that results may take: those that `COLUMNS` names, else those of the terminal.
    pub(super) fn terminal_width(&self) -> usize {
        let given = self.get("COLUMNS").and_then(|columns| columns.parse().ok());
        let shown = || {
            let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
            Some(usize::from(width.0))
        };
        given.or_else(shown).unwrap_or(120)
    }

    /// The path that the user means, relative to the working directory, with a leading `~/`.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.get("HOME")) {
            (Ok(rest), Some(home)) => Path::new(home).join(rest),
            _ => self.working_dir.join(path),
        }
    }

    /// The flags that a configuration file sets, by name: `/etc/kluctl/config.yaml`, else `~/.kluctl/config.yaml`.
    ///
    /// # Errors
    /// When the file is not a mapping of flags to texts, numbers, booleans or lists of texts.
    pub(super) fn configured_flags(&self) -> Result<BTreeMap<String, Vec<String>>, Diagnostic> {
        let home = self.get("HOME").map(|home| Path::new(home).join(".kluctl/config.yaml"));
        let candidates = [Some(PathBuf::from("/etc/kluctl/config.yaml")), home];
        let Some(path) = candidates.into_iter().flatten().find(|path| path.is_file()) else {
            return Ok(BTreeMap::new());
        };
        let shown = path.display().to_string();
        let text = read_file(&path)?;
        let document = yaml::parse_document(&shown, &text, Schema::Config)
            .map_err(|error| error.describe())?;
        let fail = |what: String| Diagnostic::new(Class::Project, format!("{shown}: {what}"));
        let flags = match &document.value {
            Value::Null => return Ok(BTreeMap::new()),
            Value::Object(flags) => flags,
            _ => return Err(fail("is not a mapping of flags".to_owned())),
        };
        let values = |(name, value): (&String, &Value)| {
            let unexpected = || fail(format!("flag {name} has an unexpected type"));
            let values = match value {
                Value::Array(items) => items.iter().map(scalar).collect::<Option<Vec<_>>>(),
                other => scalar(other).map(|text| vec![text]),
            };
            Ok((name.clone(), values.ok_or_else(unexpected)?))
        };
        flags.iter().map(values).collect()
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Reads a file that the user names.
///
/// # Errors
/// With the path, as data for the user.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    fs::read(path).map_err(|error| file_error(path, "cannot be read", &error))
}

/// Writes a file that the user names.
///
/// # Errors
/// With the path, as data for the user.
pub(super) fn write_file(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    fs::write(path, content).map_err(|error| file_error(path, "cannot be written", &error))
}

/// Makes a directory, unless it is there.
///
/// # Errors
/// With the path, as data for the user.
pub(super) fn create_dir(path: &Path) -> Result<(), Diagnostic> {
    fs::create_dir_all(path).map_err(|error| file_error(path, "cannot be created", &error))
}

/// Writes a file that only the user may read, and makes its directory: rendered files may hold secrets.
///
/// # Errors
/// With the path, as data for the user.
pub(super) fn write_private_file(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| file_error(dir, "cannot be created", &error))?;
    }
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content));
    written.map_err(|error| file_error(path, "cannot be written", &error))
}

fn file_error(path: &Path, what: &str, error: &io::Error) -> Diagnostic {
    let message = match error.kind() {
        io::ErrorKind::NotFound => format!("{} does not exist", path.display()),
        _ => format!("{} {what}: {error}", path.display()),
    };
    Diagnostic::new(Class::Project, message)
}

/// The present time.
pub(super) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// A random id in the form of a UUID, for a result.
pub(super) fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};

    let [a, b] = [0u8, 1].map(|seed| RandomState::new().hash_one(seed));
    // The bits of version 4, variant 1.
    let (a, b) = (a & !0xf000 | 0x4000, b & !(0b11 << 62) | (0b10 << 62));
    let (head, middle, version) = (a >> 32, a >> 16 & 0xffff, a & 0xffff);
    let (variant, node) = (b >> 48, b & 0xffff_ffff_ffff);
    format!("{head:08x}-{middle:04x}-{version:04x}-{variant:04x}-{node:012x}")
}
