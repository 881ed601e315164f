use std::{fmt, str::FromStr};

use sha2::Digest as _;

/// A hash function that Flux uses for artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Only in the `checksum` of sources older than the `digest` field.
    Sha1,
    /// The default.
    Sha256,
    /// `--artifact-digest-algo=sha384`.
    Sha384,
    /// `--artifact-digest-algo=sha512`.
    Sha512,
    /// `--artifact-digest-algo=blake3`.
    Blake3,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512, Self::Blake3];

    /// The name before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Blake3 => "blake3",
        }
    }

    const fn hex_digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 | Self::Blake3 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }
}

/// A checksum with its algorithm: `sha256:2c26b4…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// A name that is not supported.
    #[error("unknown digest algorithm {name:?}, expected sha256, sha384, sha512 or blake3")]
    Algorithm {
        /// The part before the colon.
        name: String,
    },
    /// Something else than the right number of hexadecimal digits.
    #[error("{text:?} is no {algorithm} digest, expected {digits} hexadecimal digits")]
    Value {
        /// The text.
        text: String,
        /// The algorithm's name.
        algorithm: &'static str,
        /// How many digits it has.
        digits: usize,
    },
}

impl Digest {
    fn new(algorithm: Algorithm, hex: &str) -> Result<Self, DigestError> {
        if hex.len() == algorithm.hex_digits() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self { algorithm, hex: hex.to_ascii_lowercase() });
        }
        Err(DigestError::Value {
            text: hex.chars().take(160).collect(),
            algorithm: algorithm.name(),
            digits: algorithm.hex_digits(),
        })
    }

    /// The hash function.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The value in lower-case hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Starts the computation of a digest of this kind.
    pub(super) fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha1 => Hasher::Sha1(Box::new(gix::hash::hasher(gix::hash::Kind::Sha1))),
            Algorithm::Sha256 => Hasher::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => Hasher::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => Hasher::Sha512(sha2::Sha512::new()),
            Algorithm::Blake3 => Hasher::Blake3(Box::new(blake3::Hasher::new())),
        }
    }

    /// A name for files: unique per digest, without a colon.
    pub(super) fn file_stem(&self) -> String {
        format!("{}-{}", self.algorithm.name(), self.hex)
    }

    /// The reverse of [`Digest::file_stem`].
    pub(super) fn from_file_stem(stem: &str) -> Option<Self> {
        stem.split_once('-').and_then(|(name, hex)| format!("{name}:{hex}").parse().ok())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    /// `algorithm:value`; a value alone is SHA-256, as Flux reads it.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (name, hex) = text.split_once(':').unwrap_or((Algorithm::Sha256.name(), text));
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        Self::new(algorithm.ok_or_else(|| DigestError::Algorithm { name: name.to_owned() })?, hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

/// A running computation.
pub(super) enum Hasher {
    Sha1(Box<gix::hash::Hasher>),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha384(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
        }
    }

    /// The digest of everything fed in so far.
    pub(super) fn finish(self) -> Digest {
        let (algorithm, hex) = match self {
            // A detected collision attack has no digest, so that it cannot equal any.
            Self::Sha1(hasher) => (
                Algorithm::Sha1,
                hasher.try_finalize().map_or_else(|_| "collision".to_owned(), |id| id.to_string()),
            ),
            Self::Sha256(hasher) => (Algorithm::Sha256, to_hex(&hasher.finalize())),
            Self::Sha384(hasher) => (Algorithm::Sha384, to_hex(&hasher.finalize())),
            Self::Sha512(hasher) => (Algorithm::Sha512, to_hex(&hasher.finalize())),
            Self::Blake3(hasher) => (Algorithm::Blake3, hasher.finalize().to_hex().to_string()),
        };
        Digest { algorithm, hex }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
