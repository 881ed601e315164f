//! The `helm` program: finding it, checking its version, running it.

#![expect(clippy::disallowed_methods, reason = "this module owns the search for the program")]

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};
use tokio_util::sync::CancellationToken;

use super::HelmError;

/// Releases before this one are refused: they lack flags that rendering needs, or render otherwise.
pub const MINIMUM_VERSION: &str = "3.14";
/// The release that the tests compare with, which images ship.
pub const TESTED_VERSION: &str = "4.2.2";

/// Time that one run of the program may take.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Manifests beyond this size are no deployment.
const MAX_OUTPUT: u64 = 256 << 20;
const MAX_MESSAGES: u64 = 64 << 10;

/// Which program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramChoice {
    /// This file.
    Path(PathBuf),
    /// The first `helm` in these directories.
    Search(Vec<PathBuf>),
}

/// A program that is there, and what tells it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Changes with the file.
    pub(super) identity: String,
}

impl ProgramChoice {
    /// Looks for the program. Blocking, and short.
    pub(super) fn find(&self) -> Result<Program, HelmError> {
        let missing = |message: String| Err(HelmError::NoProgram { message });
        match self {
            Self::Path(path) => match Program::at(path) {
                Some(program) => Ok(program),
                None if path.exists() => {
                    missing(format!("the Helm program {} is not executable", path.display()))
                }
                None => missing(format!("the Helm program {} does not exist", path.display())),
            },
            Self::Search(dirs) => {
                let found = dirs.iter().filter(|dir| dir.is_absolute());
                match found.into_iter().find_map(|dir| Program::at(&dir.join("helm"))) {
                    Some(program) => Ok(program),
                    None => missing(
                        "charts are rendered by the program `helm`, which is neither in PATH nor beside this program"
                            .to_owned(),
                    ),
                }
            }
        }
    }
}

impl Program {
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        let identity = format!(
            "{}:{}:{}:{}:{}",
            path.display(),
            metadata.ino(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        is_program.then(|| Self { path: path.to_owned(), identity })
    }

    fn failed(&self, message: &dyn std::fmt::Display) -> HelmError {
        HelmError::Program {
            program: self.path.display().to_string(),
            message: message.to_string(),
        }
    }

    /// Asks for the version and compares it with [`MINIMUM_VERSION`].
    pub(super) async fn check(
        &self,
        home: &Path,
        cancel: &CancellationToken,
    ) -> Result<(), HelmError> {
        let arguments = ["version", "--template", "{{.Version}}"].map(OsString::from);
        let done = self.run(&arguments, home, &[], cancel).await?;
        let text = String::from_utf8_lossy(&done.output).trim().to_owned();
        if !done.success {
            return Err(self.failed(&format!("it does not tell its version: {}", done.messages)));
        }
        match version(&text) {
            Some(found) if Some(found) >= version(MINIMUM_VERSION) => Ok(()),
            Some(_) => {
                let (program, found) = (self.path.display().to_string(), text);
                Err(HelmError::OldProgram { program, found })
            }
            None => Err(self.failed(&format!("it does not tell its version, but {text:?}"))),
        }
    }

    /// Runs the program without any environment, with `home` as its home directory, and with this standard input.
    ///
    /// Dropping the future, or a cancellation, ends the program.
    pub(super) async fn run(
        &self,
        arguments: &[OsString],
        home: &Path,
        input: &[u8],
        cancel: &CancellationToken,
    ) -> Result<Done, HelmError> {
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            // Helm would take the account of a pod for a cluster, and look for plug-ins and repositories.
            .env("KUBECONFIG", "/dev/null")
            .env("HELM_PLUGINS", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().map_err(|error| self.failed(&error))?;
        tokio::select! {
            done = self.finish(child, input) => done,
            () = cancel.cancelled() => Err(HelmError::Cancelled),
            () = tokio::time::sleep(TIMEOUT) => {
                Err(self.failed(&format!("it did not end within {} s", TIMEOUT.as_secs())))
            }
        }
    }

    async fn finish(&self, mut child: Child, input: &[u8]) -> Result<Done, HelmError> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(self.failed(&"it has no standard streams"));
        };
        let write = async {
            // A program that ends early does not read on, and says why.
            let _written = stdin.write_all(input).await;
            drop(stdin);
        };
        let (mut output, mut messages) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (stdout.take(MAX_OUTPUT + 1), stderr.take(MAX_MESSAGES));
        let ((), output_read, messages_read) =
            tokio::join!(write, stdout.read_to_end(&mut output), async {
                let read = stderr.read_to_end(&mut messages).await;
                // What is too long to show must not block the program.
                let mut rest = stderr.into_inner();
                let _drained = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
                read
            });
        output_read.map_err(|error| self.failed(&error))?;
        messages_read.map_err(|error| self.failed(&error))?;
        if output.len() as u64 > MAX_OUTPUT {
            return Err(self.failed(&format!("it wrote more than {MAX_OUTPUT} bytes")));
        }
        let status = child.wait().await.map_err(|error| self.failed(&error))?;
        let messages = String::from_utf8_lossy(&messages).into_owned();
        if !status.success() && messages.trim().is_empty() {
            return Err(self.failed(&format!("it ended with {status}")));
        }
        Ok(Done { success: status.success(), output, messages })
    }
}

/// What a run of the program came to.
pub(super) struct Done {
    pub(super) success: bool,
    pub(super) output: Vec<u8>,
    pub(super) messages: String,
}

/// Major and minor number of `v3.14.2+g…`.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().trim_start_matches('v').split(['.', '+', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
