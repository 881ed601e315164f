//! The `kluctl` command in the hands of a user with a home directory, a project and nothing else.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Result, ensure};

use super::Case;

/// Runs a command at a terminal of its own, answers the first question, and passes on what was shown and the exit code.
const AT_A_TERMINAL: &str = r"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown, answered = b'', False
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
    if not answered and b'(y/N)' in shown:
        os.write(terminal, sys.argv[1].encode() + b'\n')
        answered = True
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// A user who works on one project.
pub(crate) struct User {
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\r', "");
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// This, when the command succeeded.
    pub(crate) fn ok(self) -> Result<Self> {
        ensure!(self.code == 0, "exit code {}:\n{}{}", self.code, self.stdout, self.stderr);
        Ok(self)
    }

    /// This, when the command failed as failures do.
    pub(crate) fn failed(self) -> Result<Self> {
        ensure!(self.code == 1, "exit code {}:\n{}{}", self.code, self.stdout, self.stderr);
        Ok(self)
    }
}

impl User {
    /// A user with these files as project, whose arguments are the test's namespace.
    pub(crate) fn new(case: &Case, files: &[(&str, &str)]) -> Result<Self> {
        let user = Self {
            home: case.dir.join("home"),
            project: case.dir.join("project"),
            kubeconfig: case.kubeconfig.clone(),
            namespace: case.namespace.clone(),
        };
        fs::create_dir_all(&user.home)?;
        user.write(files)?;
        Ok(user)
    }

    /// Uses another kubeconfig.
    pub(crate) fn with_kubeconfig(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.kubeconfig);
        self
    }

    /// Writes files of the project; those without text are removed.
    pub(crate) fn write(&self, files: &[(&str, &str)]) -> Result<()> {
        for (path, text) in files {
            let path = self.project.join(path);
            if text.is_empty() {
                fs::remove_file(path)?;
                continue;
            }
            fs::create_dir_all(path.parent().unwrap_or(&self.project))?;
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// The command with nothing of this machine's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kluctl"));
        self.prepare(command.args(arguments));
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KLUCTL_ARG", format!("namespace={}", self.namespace))
            .env("COLUMNS", "100")
            .stdin(Stdio::null());
    }

    /// Runs a command to its end, without a terminal.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Ran> {
        Ok(Ran::of(&self.command(arguments).output()?))
    }

    /// Runs a command to its end, with `text` on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], text: &str) -> Result<Ran> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // The command need not read it.
            drop(input.write_all(text.as_bytes()));
        }
        Ok(Ran::of(&child.wait_with_output()?))
    }

    /// Runs a command at a terminal and gives this answer to its question. All that is shown is in `stdout`.
    pub(crate) fn answer(&self, answer: &str, arguments: &[&str]) -> Result<Ran> {
        let mut command = Command::new("python3");
        command.args(["-c", AT_A_TERMINAL, answer, env!("CARGO_BIN_EXE_kluctl")]).args(arguments);
        self.prepare(&mut command);
        Ok(Ran::of(&command.env("TERM", "xterm").output()?))
    }
}
