//! The user's own Git credentials on the command line, and the history of the work tree.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

use crate::{
    git_includes::{library, project},
    support::{Case, GitRepo, GitServer, SshServer, Tls},
    tests,
};

tests![
    passwords_come_from_flags_variables_stores_and_helpers,
    ssh_takes_the_users_keys_and_known_hosts,
    templates_see_the_latest_commit,
];

const PASSWORD: &str = "pass-word-1";

/// A user with a home directory and a project.
struct User {
    home: PathBuf,
    project: PathBuf,
}

/// What a command left behind.
struct Outcome {
    is_ok: bool,
    stdout: String,
    stderr: String,
}

impl User {
    fn new(case: &Case, files: &[(String, String)]) -> Result<Self> {
        let user = Self { home: case.dir.join("home"), project: case.dir.join("project") };
        fs::create_dir_all(&user.home)?;
        for (path, text) in files {
            write(&user.project.join(path), text)?;
        }
        Ok(user)
    }

    /// Runs `kluctl render` with nothing of this machine's environment.
    fn render(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Outcome> {
        let output = Command::new(env!("CARGO_BIN_EXE_kluctl"))
            .args(["render", "--offline-kubernetes", "--print-all", "-a", "namespace=n"])
            .args(arguments)
            .current_dir(&self.project)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .envs(variables.iter().copied())
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Outcome {
            is_ok: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    /// Fails unless the included library is rendered.
    fn renders(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
        let outcome = self.render(arguments, variables)?;
        ensure!(outcome.is_ok, "{arguments:?} {variables:?}: {}", outcome.stderr);
        ensure!(outcome.stdout.contains("name: from-library"), "{}", outcome.stdout);
        Ok(())
    }

    /// The message with which it fails.
    fn refusal(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Result<String> {
        let outcome = self.render(arguments, variables)?;
        ensure!(!outcome.is_ok, "{arguments:?} {variables:?}: {}", outcome.stdout);
        ensure!(!outcome.stderr.contains(PASSWORD), "the password is shown: {}", outcome.stderr);
        Ok(outcome.stderr)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

async fn passwords_come_from_flags_variables_stores_and_helpers(case: &mut Case) -> Result<()> {
    let tls = Tls::create(&case.dir, &[])?;
    let tls_arguments = tls.arguments();
    let mut arguments = vec!["--user", "robot", "--password", PASSWORD];
    arguments.extend(tls_arguments.iter().map(String::as_str));
    let server = GitServer::start(&case.dir.join("https"), &arguments)?;
    let library = library(case, &server, "included")?;
    let user = User::new(case, &project(&library.url, "main"))?;
    let host = server.url.trim_start_matches("https://");
    let ca_path = user.home.join("ca.pem");
    write(&ca_path, &tls.ca)?;
    let path = format!("{host}/{}/*", case.namespace);
    let ca = format!("--git-ca-file={host}={}", ca_path.display());

    let message = user.refusal(&[], &[])?;
    ensure!(message.contains("certificate"), "{message}");
    ensure!(server.requests().is_empty(), "something was sent: {}", server.requests());
    let message = user.refusal(&[&ca], &[])?;
    ensure!(message.contains("access denied") && message.contains("401"), "{message}");
    let wrong = format!("--git-password={path}=wrong-{PASSWORD}");
    let username = format!("--git-username={path}=robot");
    let message = user.refusal(&[&ca, &username, &wrong], &[])?;
    ensure!(message.contains("--git-* for"), "it does not say what was tried: {message}");

    let password = format!("--git-password={path}={PASSWORD}");
    user.renders(&[&ca, &username, &password], &[])?;
    let variables = [
        ("KLUCTL_GIT_7_HOST", host),
        ("KLUCTL_GIT_7_USERNAME", "robot"),
        ("KLUCTL_GIT_7_PASSWORD", PASSWORD),
        ("KLUCTL_GIT_7_CA_BUNDLE", "~/ca.pem"),
    ];
    user.renders(&[], &variables)?;
    let store = user.home.join(".git-credentials");
    write(&store, &format!("https://robot:{PASSWORD}@{host}\n"))?;
    user.renders(&[&ca], &[])?;
    fs::remove_file(store)?;
    // Whatever helper the user has told git about.
    let helper = format!("!f() {{ echo username=robot; echo password={PASSWORD}; }}; f");
    let config = format!("[credential \"https://{host}\"]\n\thelper = \"{helper}\"\n");
    write(&user.home.join(".gitconfig"), &config)?;
    user.renders(&[&ca], &[])
}

async fn ssh_takes_the_users_keys_and_known_hosts(case: &mut Case) -> Result<()> {
    let ssh = SshServer::start(&case.suite.git.root).await?;
    library(case, &case.suite.git, "over-ssh")?;
    let url = format!("{}/{}/library.git", ssh.url(), case.namespace);
    let user = User::new(case, &project(&url, "main"))?;
    let message = user.refusal(&[], &[])?;
    ensure!(message.contains("SSH needs a key"), "{message}");
    write(&user.home.join(".ssh/id_ed25519"), &ssh.identity())?;
    let message = user.refusal(&[], &[])?;
    ensure!(message.contains("the host is not in known_hosts"), "{message}");
    ensure!(message.contains("SHA256:"), "no fingerprint: {message}");
    write(&user.home.join(".ssh/known_hosts"), &ssh.wrong_known_hosts())?;
    let message = user.refusal(&[], &[])?;
    ensure!(message.contains("known_hosts has other keys for the host"), "{message}");
    let seen = ssh.seen();
    ensure!(seen.iter().all(|what| what == "connection"), "it got further: {seen:?}");
    user.renders(&[], &[("KLUCTL_SSH_DISABLE_STRICT_HOST_KEY_CHECKING", "true")])?;
    write(&user.home.join(".ssh/known_hosts"), &ssh.known_hosts())?;
    user.renders(&[], &[])?;

    // Files that are named instead.
    fs::remove_dir_all(user.home.join(".ssh"))?;
    write(&user.home.join("key"), &ssh.identity())?;
    write(&user.home.join("known"), &ssh.known_hosts())?;
    let file = |flag: &str, name: &str| {
        format!("--git-ssh-{flag}={}={}", ssh.host(), user.home.join(name).display())
    };
    user.renders(&[&file("key-file", "key"), &file("known-hosts-file", "known")], &[])?;
    let known = user.home.join("known").display().to_string();
    let host = ssh.host();
    let variables = [
        ("KLUCTL_GIT_HOST", host.as_str()),
        ("KLUCTL_GIT_SSH_KEY", "~/key"),
        ("SSH_KNOWN_HOSTS", &known),
    ];
    user.renders(&[], &variables)
}

async fn templates_see_the_latest_commit(case: &mut Case) -> Result<()> {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-library\ndata:\n  commit: '{{ load_latest_git_commit(\"./data.txt\") }}'\n  short: '{{ load_latest_git_commit(\"./data.txt\", 8) }}'\n";
    let files = [
        (".kluctl.yaml", "discriminator: x\nargs:\n  - name: namespace\n"),
        ("deployment.yaml", "deployments:\n  - path: config\n"),
        ("config/it.yaml", manifest),
        ("config/data.txt", "one"),
        ("config/kustomization.yaml", "resources: [it.yaml]\n"),
    ];
    let repo: GitRepo = case.repo("app", &files)?;
    let changed = repo.commit(&[("config/data.txt", "two")])?;
    repo.commit(&[("README", "another file")])?;
    let user = User { home: case.dir.join("home"), project: repo.work.clone() };
    fs::create_dir_all(&user.home)?;
    let outcome = user.render(&[], &[])?;
    ensure!(outcome.is_ok, "{}", outcome.stderr);
    let short = format!("short: {}", &changed[..8]);
    ensure!(outcome.stdout.contains(&format!("commit: {changed}")), "{}", outcome.stdout);
    ensure!(outcome.stdout.replace(['\'', '"'], "").contains(&short), "{}", outcome.stdout);
    Ok(())
}
