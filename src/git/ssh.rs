//! Git over SSH, in process: the key stays in memory, the host key must be known.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gix_transport::{
    Protocol,
    client::git::{ConnectMode, blocking_io::Connection},
};
use russh::{
    ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client,
    keys::{
        HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate,
        agent::{AgentIdentity, client::AgentClient},
        decode_secret_key,
    },
};
use tokio_util::bytes::Bytes;

use super::{
    GitUrl, Login,
    auth::{HostTrust, SshKey},
    known_hosts::{HostKeys, Verdict, fingerprint},
    operation::{Failure, Operation},
};
use crate::net::Failure as Retry;

/// How much of the server's error output is kept.
const MAX_STDERR: usize = 4096;

/// A connection to `git-upload-pack` for a repository.
pub(super) fn connect(
    url: &GitUrl,
    login: &Login,
    connect_timeout: Duration,
    operation: &Arc<Operation>,
) -> io::Result<Connection<Reader, Writer>> {
    let Login::Ssh { user, keys, host_keys } = login else {
        let message = "SSH needs a key; no credentials fit this URL".to_owned();
        return Err(operation.fail(Failure::Denied(message)));
    };
    let keys = read_keys(keys).map_err(|failure| operation.fail(failure))?;
    let host_keys = match host_keys {
        HostTrust::Known(text) => Some(HostKeys::new(text, url.host(), url.port())),
        HostTrust::Any => None,
    };
    let session = Session { user, keys, connect_timeout };
    let connected = operation.wait(session.open(url, host_keys))?;
    let (handle, channel) = connected.map_err(|failure| operation.fail(failure))?;
    let (read, write) = channel.split();
    let stderr = Arc::new(Mutex::new(Vec::new()));
    let reader = Reader {
        operation: operation.clone(),
        channel: read,
        chunk: Bytes::new(),
        stderr,
        has_output: false,
        _session: handle,
    };
    let writer = Writer { operation: operation.clone(), channel: write };
    let path = url.path();
    let none = None::<(String, Option<u16>)>;
    Ok(Connection::new(reader, writer, Protocol::V2, path, none, ConnectMode::Process, false))
}

/// What one can log in with.
#[derive(Default)]
struct Keys {
    private: Vec<Arc<PrivateKey>>,
    agents: Vec<PathBuf>,
    /// What is wrong with the others.
    unusable: Vec<String>,
}

/// Reads private keys. It is a failure when nothing is left to try.
fn read_keys(given: &[SshKey]) -> Result<Keys, Failure> {
    let mut keys = Keys::default();
    for key in given {
        match key {
            SshKey::Agent(socket) => keys.agents.push(socket.clone()),
            SshKey::Private { origin, identity, passphrase } => {
                let passphrase = passphrase.as_ref().map(|text| text.reveal().as_str());
                match read_key(identity.reveal(), passphrase) {
                    Ok(key) => keys.private.push(Arc::new(key)),
                    Err(message) if given.len() == 1 => return Err(Failure::Key(message)),
                    Err(message) => keys.unusable.push(format!("{origin}: {message}")),
                }
            }
        }
    }
    if !keys.private.is_empty() || !keys.agents.is_empty() {
        return Ok(keys);
    }
    let nothing = || "there is none".to_owned();
    Err(Failure::Key(
        keys.unusable.into_iter().reduce(|a, b| format!("{a}, {b}")).unwrap_or_else(nothing),
    ))
}

fn read_key(text: &str, passphrase: Option<&str>) -> Result<PrivateKey, String> {
    // The error texts of the key library quote nothing of the key.
    match decode_secret_key(text, passphrase) {
        Ok(key) if key.is_encrypted() => Err("it needs a passphrase".to_owned()),
        Ok(key) => Ok(key),
        Err(russh::keys::Error::KeyIsEncrypted) => Err("it needs a passphrase".to_owned()),
        Err(_) if passphrase.is_some() && decode_secret_key(text, None).is_err() => {
            Err("the passphrase is wrong, or the key is damaged".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

struct Session<'a> {
    user: &'a str,
    keys: Keys,
    connect_timeout: Duration,
}

impl Session<'_> {
    async fn open(
        &self,
        url: &GitUrl,
        host_keys: Option<HostKeys>,
    ) -> Result<(client::Handle<Checker>, russh::Channel<client::Msg>), Failure> {
        let again = |error: &dyn std::fmt::Display| Failure::Again {
            retry: Retry::Connection,
            message: format!("{}: {error}", url.host_and_port()),
        };
        let mut config = client::Config { nodelay: true, ..client::Config::default() };
        config.keepalive_interval = Some(Duration::from_secs(15));
        if let Some(host_keys) = &host_keys {
            config.preferred.key = host_keys.prefer(&config.preferred.key).into();
        }
        let refusal = Arc::new(Mutex::new(None));
        let checker = Checker { host_keys, refusal: refusal.clone() };
        let address = (url.host().trim_matches(['[', ']']), url.port());
        let connecting = client::connect(Arc::new(config), address, checker);
        let mut handle = match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => {
                let refusal = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
                return Err(refusal.unwrap_or_else(|| again(&error)));
            }
            Err(_) => return Err(again(&"no answer within the time allowed")),
        };
        let mut login = LogIn { handle: &mut handle, user: self.user, refused: Vec::new() };
        login.with(&self.keys).await.map_err(|error| match error {
            Some(denied) => denied,
            None => again(&"the connection broke while logging in"),
        })?;
        let channel = handle.channel_open_session().await.map_err(|error| again(&error))?;
        // Servers that do not allow it answer in the older protocol, which is understood, too.
        channel.set_env(false, "GIT_PROTOCOL", "version=2").await.ok();
        let command = format!("git-upload-pack {}", quote(url.path()));
        channel.exec(true, command).await.map_err(|error| again(&error))?;
        Ok((handle, channel))
    }
}

/// A login under way.
struct LogIn<'a> {
    handle: &'a mut client::Handle<Checker>,
    user: &'a str,
    /// Fingerprints of the keys that the server does not accept.
    refused: Vec<String>,
}

impl LogIn<'_> {
    /// Tries the agents' keys, then the others: those of an agent need no passphrase. `Err(None)` when the connection broke.
    async fn with(&mut self, keys: &Keys) -> Result<(), Option<Failure>> {
        let mut unusable = keys.unusable.clone();
        for socket in &keys.agents {
            match self.with_agent(socket).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(message) => unusable.push(format!("agent {}: {message}", socket.display())),
            }
        }
        for key in &keys.private {
            let hash = self.hash(key.public_key()).await.ok_or_else(|| self.broken())?;
            let with_hash = PrivateKeyWithHashAlg::new(key.clone(), hash);
            let answer = self.handle.authenticate_publickey(self.user, with_hash).await;
            match answer {
                Ok(result) if result.success() => return Ok(()),
                Ok(_) => self.refused.push(fingerprint(key.public_key())),
                Err(_) => return Err(self.broken()),
            }
        }
        let message = match &self.refused[..] {
            [] => "there is no key to log in with".to_owned(),
            [key] => format!("the server does not accept the key {key}"),
            keys => format!("the server accepts none of the keys {}", keys.join(", ")),
        };
        let message = if unusable.is_empty() {
            message
        } else {
            format!("{message}; keys that cannot be used: {}", unusable.join(", "))
        };
        Err(Some(Failure::Denied(message)))
    }

    /// Whether one of an agent's keys is accepted.
    async fn with_agent(&mut self, socket: &Path) -> Result<bool, String> {
        let agent = AgentClient::connect_uds(socket).await;
        let mut agent = agent.map_err(|error| error.to_string())?;
        let identities = agent.request_identities().await.map_err(|error| error.to_string())?;
        for identity in identities {
            let AgentIdentity::PublicKey { key, .. } = identity else { continue };
            let hash = self.hash(&key).await.flatten();
            let shown = fingerprint(&key);
            let answer =
                self.handle.authenticate_publickey_with(self.user, key, hash, &mut agent).await;
            match answer {
                Ok(result) if result.success() => return Ok(true),
                Ok(_) => self.refused.push(shown),
                Err(error) => return Err(format!("{shown}: {error}")),
            }
        }
        Ok(false)
    }

    /// The hash to sign with, which only RSA keys leave open; `None` when the connection broke.
    async fn hash(&self, key: &PublicKey) -> Option<Option<HashAlg>> {
        if !key.algorithm().is_rsa() {
            return Some(None);
        }
        self.handle.best_supported_rsa_hash().await.ok().map(Option::flatten)
    }

    /// A server that has seen keys and leaves does so because of them.
    fn broken(&self) -> Option<Failure> {
        let keys = self.refused.join(", ");
        let left = || format!("the server closed the connection after the keys {keys}");
        (!self.refused.is_empty()).then(|| Failure::Denied(left()))
    }
}

/// The path as one word for the shell at the other end.
fn quote(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Compares the server's key.
struct Checker {
    /// `None` trusts everybody.
    host_keys: Option<HostKeys>,
    refusal: Arc<Mutex<Option<Failure>>>,
}

impl client::Handler for Checker {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let Some(host_keys) = &self.host_keys else { return Ok(true) };
        let (verdict, offered) = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                (host_keys.check(key), fingerprint(key))
            }
            PublicKeyOrCertificate::Certificate(_) => {
                (Verdict::Unknown, "a certificate".to_owned())
            }
        };
        let mut reason = match verdict {
            Verdict::Trusted => return Ok(true),
            Verdict::Unknown => "the host is not in known_hosts".to_owned(),
            Verdict::Changed => "known_hosts has other keys for the host".to_owned(),
            Verdict::Revoked => "known_hosts marks the key as revoked".to_owned(),
        };
        if let Some(line) = host_keys.unreadable.first() {
            reason = format!("{reason} (line {line} of it is not readable)");
        }
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Failure::HostKey { reason, offered });
        Ok(false)
    }
}

/// What the server's program prints.
pub(super) struct Reader {
    operation: Arc<Operation>,
    channel: ChannelReadHalf,
    chunk: Bytes,
    stderr: Arc<Mutex<Vec<u8>>>,
    has_output: bool,
    /// The connection lives as long as this.
    _session: client::Handle<Checker>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.operation.wait(self.channel.wait())? {
                Some(ChannelMsg::Data { data }) => {
                    self.has_output = true;
                    self.operation.count(data.len())?;
                    self.chunk = data;
                }
                Some(ChannelMsg::ExtendedData { data, .. }) => {
                    self.operation.count(data.len())?;
                    let mut stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MAX_STDERR.saturating_sub(stderr.len()).min(data.len());
                    stderr.extend_from_slice(&data[..room]);
                }
                // The error output may follow the end of the output.
                Some(ChannelMsg::Close) | None => return self.end(),
                Some(ChannelMsg::Failure) => {
                    let message = "the server refuses to run git-upload-pack".to_owned();
                    return Err(self.operation.fail(Failure::Refused(message)));
                }
                Some(_) => {}
            }
        }
        let amount = self.chunk.len().min(buffer.len());
        buffer[..amount].copy_from_slice(&self.chunk.split_to(amount));
        Ok(amount)
    }
}

impl Reader {
    /// The end of the output: normal, unless there was none.
    fn end(&self) -> io::Result<usize> {
        if self.has_output {
            return Ok(0);
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&stderr);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = crate::secret::redact_text(&text);
        let lower = text.to_lowercase();
        let is_missing = [
            "not found",
            "does not appear to be a git repository",
            "no such",
            "could not be found",
        ];
        let failure = if is_missing.iter().any(|words| lower.contains(words)) {
            Failure::NotFound
        } else if lower.contains("denied") || lower.contains("not allowed") {
            Failure::Denied(text)
        } else if text.is_empty() {
            Failure::Refused("the server closed the connection without an answer".to_owned())
        } else {
            Failure::Refused(text)
        };
        Err(self.operation.fail(failure))
    }
}

/// What the server's program reads.
pub(super) struct Writer {
    operation: Arc<Operation>,
    channel: ChannelWriteHalf<client::Msg>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.operation.wait(self.channel.data_bytes(bytes.to_vec()))?;
        // A server that ends early has said why on the other stream.
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
