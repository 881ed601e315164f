//! Git over SSH, in process: the key stays in memory, the host key must be known.

use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gix_transport::{
    Protocol,
    client::git::{ConnectMode, blocking_io::Connection},
};
use russh::{
    ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client,
    keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key},
};
use tokio_util::bytes::Bytes;

use super::{
    GitUrl, Login,
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
    let Login::Ssh { user, identity, passphrase, known_hosts } = login else {
        let message = "SSH needs a key; no credentials fit this URL".to_owned();
        return Err(operation.fail(Failure::Denied(message)));
    };
    let passphrase = passphrase.as_ref().map(|passphrase| passphrase.reveal().as_str());
    let key = read_key(identity.reveal(), passphrase)
        .map_err(|message| operation.fail(Failure::Key(message)))?;
    let host_keys = HostKeys::new(known_hosts, url.host(), url.port());
    let session = Session { user, key: Arc::new(key), connect_timeout };
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
    key: Arc<PrivateKey>,
    connect_timeout: Duration,
}

impl Session<'_> {
    async fn open(
        &self,
        url: &GitUrl,
        host_keys: HostKeys,
    ) -> Result<(client::Handle<Checker>, russh::Channel<client::Msg>), Failure> {
        let again = |error: &dyn std::fmt::Display| Failure::Again {
            retry: Retry::Connection,
            message: format!("{}: {error}", url.host_and_port()),
        };
        let mut config = client::Config { nodelay: true, ..client::Config::default() };
        config.keepalive_interval = Some(Duration::from_secs(15));
        config.preferred.key = host_keys.prefer(&config.preferred.key).into();
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
        self.log_in(&mut handle).await.map_err(|error| match error {
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

    /// `Err(None)` when the connection broke.
    async fn log_in(&self, handle: &mut client::Handle<Checker>) -> Result<(), Option<Failure>> {
        let hash = if self.key.algorithm().is_rsa() {
            handle.best_supported_rsa_hash().await.map_err(|_| None)?.flatten()
        } else {
            None
        };
        let key = PrivateKeyWithHashAlg::new(self.key.clone(), hash);
        match handle.authenticate_publickey(self.user, key).await {
            Ok(result) if result.success() => Ok(()),
            Ok(_) => {
                let shown = fingerprint(self.key.public_key());
                Err(Some(Failure::Denied(format!("the server does not accept the key {shown}"))))
            }
            Err(_) => Err(None),
        }
    }
}

/// The path as one word for the shell at the other end.
fn quote(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Compares the server's key.
struct Checker {
    host_keys: HostKeys,
    refusal: Arc<Mutex<Option<Failure>>>,
}

impl client::Handler for Checker {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let (verdict, offered) = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                (self.host_keys.check(key), fingerprint(key))
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
        if let Some(line) = self.host_keys.unreadable.first() {
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
