//! OpenSSH's `known_hosts`: which keys a server may show.

use base64::{Engine, engine::general_purpose::STANDARD};
use russh::keys::{
    Algorithm, PublicKey,
    ssh_key::known_hosts::{Entry, HostPatterns, Marker},
};

/// The lines that concern one host.
#[derive(Debug, Default)]
pub(super) struct HostKeys {
    trusted: Vec<PublicKey>,
    revoked: Vec<PublicKey>,
    /// Lines that could not be read, from 1.
    pub(super) unreadable: Vec<usize>,
}

/// What a server's key is to us.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Trusted,
    /// The host has other keys.
    Changed,
    /// The host is not listed.
    Unknown,
    Revoked,
}

impl HostKeys {
    /// Collects the lines for a host and port. Lines with `@cert-authority` are passed over, since certificates are not asked
    /// for.
    pub(super) fn new(text: &str, host: &str, port: u16) -> Self {
        let name = if port == 22 {
            host.to_lowercase()
        } else {
            format!("[{}]:{port}", host.to_lowercase())
        };
        let mut keys = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Ok(entry) = line.parse::<Entry>() else {
                keys.unreadable.push(index + 1);
                continue;
            };
            if !matches(entry.host_patterns(), &name) {
                continue;
            }
            match entry.marker() {
                None => keys.trusted.push(entry.public_key().clone()),
                Some(Marker::Revoked) => keys.revoked.push(entry.public_key().clone()),
                Some(Marker::CertAuthority) => {}
            }
        }
        keys
    }

    pub(super) fn check(&self, key: &PublicKey) -> Verdict {
        let is_among = |keys: &[PublicKey]| keys.iter().any(|k| k.key_data() == key.key_data());
        if is_among(&self.revoked) {
            Verdict::Revoked
        } else if is_among(&self.trusted) {
            Verdict::Trusted
        } else if self.trusted.is_empty() {
            Verdict::Unknown
        } else {
            Verdict::Changed
        }
    }

    /// Orders host key algorithms so that the server shows a key that is listed, if it has one.
    pub(super) fn prefer(&self, all: &[Algorithm]) -> Vec<Algorithm> {
        let is_listed = |algorithm: &Algorithm| {
            self.trusted.iter().any(|key| match (key.algorithm(), algorithm) {
                (Algorithm::Rsa { .. }, Algorithm::Rsa { .. }) => true,
                (listed, algorithm) => listed == *algorithm,
            })
        };
        let (mut listed, others): (Vec<_>, Vec<_>) = all.iter().cloned().partition(is_listed);
        listed.extend(others);
        listed
    }
}

fn matches(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::Patterns(patterns) => {
            let hit = |pattern: &str| wildcard(&pattern.to_lowercase(), name);
            let denied = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(hit);
            !denied && patterns.iter().any(|pattern| !pattern.starts_with('!') && hit(pattern))
        }
        HostPatterns::HashedName { salt, hash } => hmac_sha1(salt, name.as_bytes()) == Some(*hash),
    }
}

/// `*` stands for any characters, `?` for one.
fn wildcard(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let pattern = rest.as_str();
            name.char_indices().any(|(at, _)| wildcard(pattern, &name[at..]))
                || wildcard(pattern, "")
        }
        Some(c) => {
            let mut chars = name.chars();
            chars.next().is_some_and(|n| c == '?' || c == n)
                && wildcard(rest.as_str(), chars.as_str())
        }
    }
}

/// RFC 2104 with SHA-1, which is how OpenSSH hides host names; it protects nothing here.
fn hmac_sha1(key: &[u8], message: &[u8]) -> Option<[u8; 20]> {
    let mut block = [0u8; 64];
    if key.len() > block.len() {
        block[..20].copy_from_slice(&sha1(&[key])?);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = sha1(&[&block.map(|byte| byte ^ 0x36), message])?;
    sha1(&[&block.map(|byte| byte ^ 0x5c), &inner])
}

fn sha1(parts: &[&[u8]]) -> Option<[u8; 20]> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    for part in parts {
        hasher.update(part);
    }
    hasher.try_finalize().ok()?.as_slice().try_into().ok()
}

/// A key's type and fingerprint, as `ssh-keygen -l` shows them.
pub(super) fn fingerprint(key: &PublicKey) -> String {
    use sha2::{Digest, Sha256};
    let Ok(bytes) = key.to_bytes() else {
        return key.algorithm().to_string();
    };
    let hash = STANDARD.encode(Sha256::digest(bytes));
    format!("{} SHA256:{}", key.algorithm(), hash.trim_end_matches('='))
}
