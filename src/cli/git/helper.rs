use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    git::{GitUrl, auth::Rule},
    secret::Secret,
};

/// How long helpers may take; some ask a keyring that the user has to unlock.
const PATIENCE: Duration = Duration::from_mins(1);

/// The credential helpers that the user has configured for git, if there is a git.
pub(super) struct CredentialHelper {
    /// Whose Git configuration counts.
    pub(super) working_dir: PathBuf,
}

impl CredentialHelper {
    /// What the helpers know about a server. They are not let ask at the terminal.
    pub(super) async fn ask(&self, url: &GitUrl) -> Option<Rule> {
        let user = url.user().map(|user| format!("username={user}\n")).unwrap_or_default();
        let question = format!(
            "protocol={}\nhost={}\npath={}\n{user}",
            url.scheme().name(),
            url.host_and_port(),
            url.path().trim_start_matches('/'),
        );
        let mut child = Command::new("git")
            .args(["credential", "fill"])
            .current_dir(&self.working_dir)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(question.as_bytes()).await.ok()?;
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.ok()?.ok()?;
        if !output.status.success() {
            return None;
        }
        answer(url, &String::from_utf8(output.stdout).ok()?)
    }
}

/// Reads git's answer, lines of `key=value`.
pub(super) fn answer(url: &GitUrl, text: &str) -> Option<Rule> {
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    let (user, password) = (value("username")?, value("password")?);
    if password.is_empty() {
        return None;
    }
    let url = url.with_login(user, Secret::new(password));
    Some(Rule::Stored { origin: "git's credential helper".to_owned(), url })
}
