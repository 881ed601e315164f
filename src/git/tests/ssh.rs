#![expect(clippy::disallowed_methods, reason = "runs an SSH server and the git program")]

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use russh::{
    Channel, ChannelId,
    keys::{
        PrivateKey, PublicKey, agent,
        ssh_key::{
            Cipher, Kdf, LineEnding,
            private::{Ed25519Keypair, KeypairData},
        },
    },
    server::{self, Auth as Verdict, ChannelOpenHandle, Msg, Session, VerifiedPublicKey},
};
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tokio_util::sync::CancellationToken;

use super::server::Origin;
use crate::{
    diagnostic::{Class, Describe},
    git::{
        auth::{HostTrust, SshKey},
        *,
    },
    net::RetryPolicy,
    secret::Secret,
};

fn key(seed: u8) -> PrivateKey {
    let pair = Ed25519Keypair::from_seed(&[seed; 32]);
    PrivateKey::new(KeypairData::from(pair), "test").unwrap()
}

fn pem(key: &PrivateKey) -> String {
    key.to_openssh(LineEnding::LF).unwrap().to_string()
}

fn private(origin: &str, identity: String, passphrase: Option<Secret<String>>) -> SshKey {
    SshKey::Private { origin: origin.to_owned(), identity: Secret::new(identity), passphrase }
}

/// The host's key.
const HOST: u8 = 1;
/// The user's key.
const USER: u8 = 2;

/// Open channels, with the Git protocol that was asked for.
type Channels = HashMap<ChannelId, (Channel<Msg>, String)>;

/// An SSH server that runs `git-upload-pack` for one user's key.
#[derive(Clone)]
struct Front {
    repos: PathBuf,
    allowed: PublicKey,
    takes_environment: bool,
    channels: Arc<Mutex<Channels>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl server::Handler for Front {
    type Error = russh::Error;

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Verdict, Self::Error> {
        let is_allowed = user == "git" && key.public_key.key_data() == self.allowed.key_data();
        Ok(if is_allowed { Verdict::Accept } else { Verdict::reject() })
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
        if self.takes_environment && name == "GIT_PROTOCOL" {
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
        let command = String::from_utf8(command.to_vec()).unwrap();
        self.seen.lock().unwrap().push(command.clone());
        let mut child = tokio::process::Command::new("sh")
            .arg("-c")
            .arg(command)
            .current_dir(&self.repos)
            .env("GIT_PROTOCOL", protocol)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tokio::spawn(async move {
            let (mut input, mut output) =
                (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut errors = child.stderr.take().unwrap();
            let (mut read, write) = channel.split();
            let (mut to, mut to_errors) = (write.make_writer(), write.make_writer_ext(Some(1)));
            let forward = async {
                let mut reader = read.make_reader();
                tokio::io::copy(&mut reader, &mut input).await.ok();
                input.shutdown().await.ok();
            };
            let back = async {
                let (a, b) = tokio::join!(
                    tokio::io::copy(&mut output, &mut to),
                    tokio::io::copy(&mut errors, &mut to_errors),
                );
                a.and(b).ok();
            };
            tokio::select! { () = forward => {}, () = back => {} }
            let status = child.wait().await.unwrap().code().unwrap_or(1);
            write.exit_status(status.try_into().unwrap_or(1)).await.ok();
            write.eof().await.ok();
            write.close().await.ok();
        });
        Ok(())
    }
}

struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(repos: PathBuf, takes_environment: bool) -> Self {
        let config = server::Config {
            keys: vec![key(HOST)],
            auth_rejection_time: Duration::from_millis(10),
            auth_rejection_time_initial: Some(Duration::ZERO),
            ..server::Config::default()
        };
        let config = Arc::new(config);
        let seen = Arc::default();
        let front = Front {
            repos,
            allowed: key(USER).public_key().clone(),
            takes_environment,
            channels: Arc::default(),
            seen: Arc::clone(&seen),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, front) = (config.clone(), front.clone());
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, stream, front).await {
                        session.await.ok();
                    }
                });
            }
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("ssh://git@{}/{path}", self.address)
    }

    /// A line of `known_hosts` for the server, with the key of `seed`.
    fn known(&self, seed: u8) -> String {
        let key = key(seed).public_key().to_openssh().unwrap();
        format!("[127.0.0.1]:{} {key}", self.address.port())
    }

    fn auth(&self, identity: String, passphrase: Option<&str>, host: u8) -> Auth {
        let passphrase = passphrase.map(|passphrase| Secret::new(passphrase.to_owned()));
        self.auth_with(vec![private("Secret", identity, passphrase)], host)
    }

    fn auth_with(&self, keys: Vec<SshKey>, host: u8) -> Auth {
        let host_keys = HostTrust::Known(self.known(host));
        let login = Login::Ssh { user: "git".into(), keys, host_keys };
        let trail = auth::Trail {
            used: Some("Secret flux-system/shop (user \"git\", SSH key)".into()),
            skipped: Vec::new(),
        };
        Auth { login, trail, ..Auth::default() }
    }
}

async fn checkout(url: &str, reference: &Reference, auth: &Auth) -> Result<GitCheckout, GitError> {
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions {
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(2),
        retry: RetryPolicy {
            retries: 1,
            min_wait: Duration::from_millis(5),
            max_wait: Duration::from_millis(20),
        },
        ..CacheOptions::default()
    };
    let cache = Cache::open(dir.path(), options).unwrap();
    let url = GitUrl::parse(url)?;
    let result = cache.checkout(&url, reference, auth, &CancellationToken::new()).await;
    result.inspect(|checkout| {
        assert_eq!(&*checkout.tree.read("deploy/app.yaml").unwrap(), b"app: 1\n");
    })
}

#[tokio::test]
async fn a_key_opens_the_repository() {
    let origin = Origin::new();
    let main = Reference::Branch("main".into());
    for takes_environment in [true, false] {
        let server = Server::start(origin.repos(), takes_environment).await;
        let auth = server.auth(pem(&key(USER)), None, HOST);
        let path = origin.repos().join("shop.git").display().to_string();
        let ok = checkout(&server.url(path.trim_start_matches('/')), &main, &auth).await.unwrap();
        assert_eq!(ok.resolved.commit, origin.id("HEAD"));
        assert_eq!(*server.seen.lock().unwrap(), [format!("git-upload-pack '{path}'")]);
        let tag = Reference::Tag("v1".into());
        checkout(&server.url(path.trim_start_matches('/')), &tag, &auth).await.unwrap();
    }
}

#[tokio::test]
async fn a_passphrase_opens_the_key() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let path = origin.repos().join("shop.git").display().to_string();
    let url = server.url(path.trim_start_matches('/'));
    let kdf = Kdf::Bcrypt { salt: vec![7; 16], rounds: 4 };
    let locked = key(USER).encrypt_with(Cipher::Aes256Ctr, kdf, 5, "hunter2").unwrap();
    let try_with = async |passphrase| {
        let auth = server.auth(pem(&locked), passphrase, HOST);
        checkout(&url, &Reference::Default, &auth).await
    };
    try_with(Some("hunter2")).await.unwrap();
    let error = try_with(None).await.unwrap_err();
    assert!(error.to_string().contains("it needs a passphrase"), "{error}");
    let error = try_with(Some("hunter3")).await.unwrap_err();
    assert!(error.to_string().contains("the passphrase is wrong"), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
    assert_eq!(error.describe().class, Class::Access);
    let auth = server.auth("no key".into(), None, HOST);
    let error = checkout(&url, &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(error, GitError::Key { .. }), "{error:?}");
}

#[tokio::test]
async fn another_key_is_refused_and_named() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let auth = server.auth(pem(&key(3)), None, HOST);
    let error = checkout(&server.url("x"), &Reference::Default, &auth).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, GitError::Denied { .. }), "{error:?}");
    assert!(text.contains("does not accept the key ssh-ed25519 SHA256:"), "{text}");
    assert!(text.contains("tried Secret flux-system/shop (user \"git\", SSH key)"), "{text}");
    let error =
        checkout(&server.url("x"), &Reference::Default, &Auth::default()).await.unwrap_err();
    assert!(error.to_string().contains("SSH needs a key"), "{error}");
}

#[tokio::test]
async fn keys_are_tried_in_turn() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let path = origin.repos().join("shop.git").display().to_string();
    let url = server.url(path.trim_start_matches('/'));
    let plain = |origin: &str, seed: u8| private(origin, pem(&key(seed)), None);
    let damaged = || private("a", "no key".into(), None);
    let auth = server.auth_with(vec![damaged(), plain("b", 3), plain("c", USER)], HOST);
    checkout(&url, &Reference::Default, &auth).await.unwrap();

    let auth = server.auth_with(vec![damaged(), plain("b", 3), plain("d", 4)], HOST);
    let text = checkout(&url, &Reference::Default, &auth).await.unwrap_err().to_string();
    assert!(text.contains("the server accepts none of the keys ssh-ed25519 SHA256:"), "{text}");
    assert!(text.contains("keys that cannot be used: a: "), "{text}");

    let auth = server.auth_with(vec![damaged(), damaged()], HOST);
    let error = checkout(&url, &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(error, GitError::Key { .. }), "{error:?}");
}

/// An agent that holds the keys of these seeds, on a socket below the directory.
async fn agent(dir: &std::path::Path, seeds: &[u8]) -> PathBuf {
    let socket = dir.join("agent");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let connections = futures::stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    tokio::spawn(agent::server::serve(Box::pin(connections), ()));
    let mut client = agent::client::AgentClient::connect_uds(&socket).await.unwrap();
    for seed in seeds {
        client.add_identity(&key(*seed), &[]).await.unwrap();
    }
    socket
}

#[tokio::test]
async fn keys_of_an_agent_come_first() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let path = origin.repos().join("shop.git").display().to_string();
    let url = server.url(path.trim_start_matches('/'));
    let dir = tempfile::tempdir().unwrap();
    let socket = agent(dir.path(), &[3, USER]).await;
    let kdf = Kdf::Bcrypt { salt: vec![7; 16], rounds: 4 };
    let locked = pem(&key(USER).encrypt_with(Cipher::Aes256Ctr, kdf, 5, "hunter2").unwrap());
    // The file needs a passphrase; the agent has the key without.
    let keys = vec![private("~/.ssh/id_ed25519", locked.clone(), None), SshKey::Agent(socket)];
    checkout(&url, &Reference::Default, &server.auth_with(keys, HOST)).await.unwrap();

    let gone = SshKey::Agent(dir.path().join("gone"));
    let keys = vec![gone, private("~/.ssh/id_ed25519", locked, None)];
    let error = checkout(&url, &Reference::Default, &server.auth_with(keys, HOST)).await;
    let text = error.unwrap_err().to_string();
    let expected = "there is no key to log in with; keys that cannot be used: \
                    ~/.ssh/id_ed25519: it needs a passphrase, agent ";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn host_keys_count_for_nothing_when_all_are_trusted() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let path = origin.repos().join("shop.git").display().to_string();
    let mut auth = server.auth(pem(&key(USER)), None, HOST);
    if let Login::Ssh { host_keys, .. } = &mut auth.login {
        *host_keys = HostTrust::Any;
    }
    let url = server.url(path.trim_start_matches('/'));
    checkout(&url, &Reference::Default, &auth).await.unwrap();
}

#[tokio::test]
async fn host_keys_are_strict() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let with = async |known: String| {
        let mut auth = server.auth(pem(&key(USER)), None, HOST);
        if let Login::Ssh { host_keys, .. } = &mut auth.login {
            *host_keys = HostTrust::Known(known);
        }
        checkout(&server.url("x"), &Reference::Default, &auth).await.unwrap_err()
    };
    for (known, reason) in [
        (server.known(9), "has other keys for the host"),
        (format!("github.com {}", server.known(HOST)), "not in known_hosts"),
        (String::new(), "not in known_hosts"),
        (format!("{}\n@revoked {}", server.known(HOST), server.known(HOST)), "as revoked"),
    ] {
        let error = with(known).await;
        assert!(matches!(error, GitError::HostKey { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.to_string().contains("the server shows ssh-ed25519 SHA256:"), "{error}");
    }
    // The key was not offered to a server that is not trusted, and nothing was run.
    assert!(server.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn missing_repositories_are_told_from_trouble() {
    let origin = Origin::new();
    let server = Server::start(origin.repos(), true).await;
    let auth = server.auth(pem(&key(USER)), None, HOST);
    let error = checkout(&server.url("gone.git"), &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(error, GitError::NotFound { .. }), "{error:?}");
    // A path is one word for the shell, whatever is in it.
    let odd = server.url("x'$(touch${IFS}evil)'");
    let error = checkout(&odd, &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(error, GitError::NotFound { .. }), "{error:?}");
    assert!(!origin.repos().join("evil").exists());

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("ssh://git@{}/x", listener.local_addr().unwrap());
    let error = checkout(&closed, &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(&error, GitError::Unavailable { attempts: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("no answer within the time allowed"), "{error}");
    drop(listener);
    let error = checkout(&closed, &Reference::Default, &auth).await.unwrap_err();
    assert!(matches!(&error, GitError::Unavailable { attempts: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}
