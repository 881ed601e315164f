//! A Git server behind SSH, which notes who knocks. Flux's own client (Go) and the git program talk to it as well.

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use russh::{
    Channel, ChannelId,
    keys::{
        PrivateKey, PublicKey,
        ssh_key::{
            LineEnding,
            private::{Ed25519Keypair, KeypairData},
        },
    },
    server::{self, Auth, ChannelOpenHandle, Msg, PublicKeyOffer, Session, VerifiedPublicKey},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Seeds of keys: the host's, the user's, and one that nobody knows.
const HOST: u8 = 1;
const USER: u8 = 2;
const STRANGER: u8 = 3;

fn key(seed: u8) -> PrivateKey {
    let pair = Ed25519Keypair::from_seed(&[seed; 32]);
    PrivateKey::new(KeypairData::from(pair), "test").unwrap()
}

/// An SSH server on loopback that runs `git-upload-pack` for the user `git` with one key.
pub(crate) struct SshServer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl SshServer {
    /// Serves the repositories below `root`.
    pub(crate) async fn start(root: &Path) -> Result<Self> {
        let config = Arc::new(server::Config {
            keys: vec![key(HOST)],
            auth_rejection_time: Duration::from_millis(10),
            auth_rejection_time_initial: Some(Duration::ZERO),
            ..server::Config::default()
        });
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let front = Front {
            root: root.to_owned(),
            allowed: key(USER).public_key().clone(),
            channels: Arc::default(),
            seen: Arc::clone(&seen),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, front) = (Arc::clone(&config), front.clone());
                front.note("connection");
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, stream, front).await {
                        session.await.ok();
                    }
                });
            }
        });
        Ok(Self { address, seen, task })
    }

    /// Base URL, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("ssh://git@{}", self.address)
    }

    /// `host:port`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The user's private key.
    pub(crate) fn identity(&self) -> String {
        key(USER).to_openssh(LineEnding::LF).unwrap().to_string()
    }

    /// The line of `known_hosts` for the server.
    pub(crate) fn known_hosts(&self) -> String {
        self.known_hosts_with(HOST)
    }

    /// A line of `known_hosts` with a key that the server does not have.
    pub(crate) fn wrong_known_hosts(&self) -> String {
        self.known_hosts_with(STRANGER)
    }

    fn known_hosts_with(&self, seed: u8) -> String {
        let key = key(seed).public_key().to_openssh().unwrap();
        format!("[127.0.0.1]:{} {key}\n", self.address.port())
    }

    /// What happened so far: `connection`, `login USER`, and commands.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Open channels, with the Git protocol that was asked for.
type Channels = HashMap<ChannelId, (Channel<Msg>, String)>;

#[derive(Clone)]
struct Front {
    root: PathBuf,
    allowed: PublicKey,
    channels: Arc<Mutex<Channels>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Front {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

impl server::Handler for Front {
    type Error = russh::Error;

    async fn auth_none(&mut self, user: &str) -> Result<Auth, Self::Error> {
        self.note(format!("login {user}"));
        Ok(Auth::reject())
    }

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        _offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        self.note(format!("login {user}"));
        Ok(Auth::Accept)
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        self.note(format!("login {user}"));
        let is_allowed = user == "git" && key.public_key.key_data() == self.allowed.key_data();
        Ok(if is_allowed { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.lock().unwrap().insert(channel.id(), (channel, String::new()));
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        if name == "GIT_PROTOCOL" {
            value.clone_into(&mut self.channels.lock().unwrap().get_mut(&id).unwrap().1);
        }
        session.channel_success(id)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(id)?;
        let (channel, protocol) = self.channels.lock().unwrap().remove(&id).unwrap();
        let command = String::from_utf8_lossy(command).into_owned();
        self.note(command.clone());
        tokio::spawn(run(channel, protocol, command, self.root.clone()));
        Ok(())
    }
}

/// Runs the command of a channel below `root` as its file system, as far as `git-upload-pack '/path'` is concerned.
async fn run(channel: Channel<Msg>, protocol: String, command: String, root: PathBuf) {
    let path = command.split('\'').nth(1).unwrap_or_default().trim_start_matches('/');
    let mut child = tokio::process::Command::new("git")
        .arg("upload-pack")
        .arg(root.join(path))
        .env("GIT_PROTOCOL", protocol)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut errors = child.stderr.take().unwrap();
    let (mut read, write) = channel.split();
    let (mut to, mut to_errors) = (write.make_writer(), write.make_writer_ext(Some(1)));
    let forward = async {
        let mut reader = read.make_reader();
        tokio::io::copy(&mut reader, &mut input).await.ok();
        input.shutdown().await.ok();
        drop(input);
        std::future::pending::<()>().await;
    };
    let back = async {
        let mut text = Vec::new();
        tokio::io::copy(&mut output, &mut to).await.ok();
        errors.read_to_end(&mut text).await.ok();
        to_errors.write_all(&text).await.ok();
    };
    tokio::select! { () = forward => {}, () = back => {} }
    let status = child.wait().await.ok().and_then(|status| status.code()).unwrap_or(1);
    write.exit_status(status.try_into().unwrap_or(1)).await.ok();
    write.eof().await.ok();
    write.close().await.ok();
}
