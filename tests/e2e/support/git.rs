use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{controller::tied, suite::root};

/// `git http-backend` behind a small server.
pub(crate) struct GitServer {
    child: Child,
    log: PathBuf,
    /// Repositories are directories below it.
    pub(crate) root: PathBuf,
    /// Base URL, without a slash at the end.
    pub(crate) url: String,
}

impl GitServer {
    /// Serves the repositories below `directory`. With arguments such as `--user`, only to those who know them.
    pub(crate) fn start(directory: &Path, arguments: &[&str]) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let log = directory.with_extension("requests");
        let mut child = tied(&root().join("hack/git-http-server"))
            .arg("--root")
            .arg(directory)
            .arg("--log")
            .arg(&log)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("hack/git-http-server")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
        Ok(Self { child, log, root: directory.to_owned(), url: line.trim().to_owned() })
    }

    /// The requests so far, a line each: method, path, Authorization header.
    pub(crate) fn requests(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A bare repository on a server, with a working copy to commit from.
pub(crate) struct GitRepo {
    /// The working copy.
    pub(crate) work: PathBuf,
    /// Where it is served.
    pub(crate) url: String,
}

impl GitRepo {
    /// Creates `name.git` with branch `main` and a first commit of `files`.
    pub(crate) fn create(
        server: &GitServer,
        work: &Path,
        name: &str,
        files: &[(&str, &str)],
    ) -> Result<Self> {
        let bare = server.root.join(format!("{name}.git"));
        fs::create_dir_all(bare.parent().context("no parent")?)?;
        git(
            &server.root,
            &["init", "--quiet", "--bare", "--initial-branch=main", &bare.display().to_string()],
        )?;
        let work = work.join(name.replace('/', "-"));
        fs::create_dir_all(&work)?;
        git(&work, &["init", "--quiet", "--initial-branch=main"])?;
        git(&work, &["remote", "add", "origin", &bare.display().to_string()])?;
        let repo = Self { work, url: format!("{}/{name}.git", server.url) };
        repo.commit(files)?;
        Ok(repo)
    }

    /// Writes files, commits and pushes; returns the commit. An empty content deletes the file.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> Result<String> {
        for (path, content) in files {
            let path = self.work.join(path);
            if content.is_empty() {
                fs::remove_file(&path)?;
            } else {
                fs::create_dir_all(path.parent().context("no parent")?)?;
                fs::write(path, content)?;
            }
        }
        git(&self.work, &["add", "--all"])?;
        git(
            &self.work,
            &["commit", "--quiet", "--allow-empty", "--message", "Change the deployment"],
        )?;
        git(&self.work, &["push", "--quiet", "origin", "HEAD"])?;
        Ok(git(&self.work, &["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// Pushes the last commit under a further name, such as `refs/tags/v1`.
    pub(crate) fn push_as(&self, reference: &str) -> Result<()> {
        git(&self.work, &["push", "--quiet", "origin", &format!("HEAD:{reference}")]).map(drop)
    }

    /// Copies a directory into the working copy, then commits and pushes.
    pub(crate) fn commit_directory(&self, source: &Path) -> Result<String> {
        let status = Command::new("cp").arg("-R").arg(source.join(".")).arg(&self.work).status()?;
        if !status.success() {
            bail!("cp {}: {status}", source.display());
        }
        self.commit(&[])
    }

    /// Copies a directory into a subdirectory of the working copy, then commits and pushes.
    pub(crate) fn commit_directory_as(&self, source: &Path, name: &str) -> Result<String> {
        fs::create_dir_all(self.work.join(name))?;
        let status = Command::new("cp")
            .arg("-R")
            .arg(source.join("."))
            .arg(self.work.join(name))
            .status()?;
        if !status.success() {
            bail!("cp {}: {status}", source.display());
        }
        self.commit(&[])
    }
}

fn git(dir: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.com",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
