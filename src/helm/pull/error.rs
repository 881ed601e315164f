use crate::{
    archive::ArchiveError,
    diagnostic::{Class, Describe, Diagnostic},
    helm::HelmError,
    net::NetError,
};

/// Why a chart or the list of its versions cannot be fetched. Messages hold no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// No connection, or it broke.
    #[error("{url}: {source}")]
    Net {
        /// The URL without credentials.
        url: String,
        /// What went wrong.
        source: NetError,
    },
    /// The server does not let this user in.
    #[error("{url}: the server answered {status}, {tried}")]
    Denied {
        /// The URL without credentials.
        url: String,
        /// The HTTP status.
        status: u16,
        /// As whom it was asked.
        tried: String,
    },
    /// There is nothing at the URL.
    #[error("{url}: there is no {what}")]
    Missing {
        /// The URL without credentials.
        url: String,
        /// What was looked for.
        what: &'static str,
    },
    /// Another status than expected.
    #[error("{url}: the server answered {status}")]
    Status {
        /// The URL without credentials.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server sends something else than the protocol has it.
    #[error("{url}: {problem}")]
    Protocol {
        /// The URL without credentials.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The repository has no such chart.
    #[error("repository {repository} has no chart {chart}")]
    NoChart {
        /// The repository.
        repository: String,
        /// The chart.
        chart: String,
        /// A name that is nearly the same.
        closest: Option<String>,
    },
    /// The chart has no such version.
    #[error("chart {chart} has no version {version}")]
    NoVersion {
        /// The chart.
        chart: String,
        /// The version asked for.
        version: String,
        /// One that is nearly the same, or the newest one.
        closest: Option<String>,
    },
    /// The download is not what was announced.
    #[error("{url}: has digest {actual}, but {expected} was announced")]
    Digest {
        /// The URL without credentials.
        url: String,
        /// The announced digest.
        expected: String,
        /// That of the download.
        actual: String,
    },
    /// The archive is damaged, dangerous or too large.
    #[error("{url}: {source}")]
    Archive {
        /// The URL without credentials.
        url: String,
        /// What is wrong.
        source: ArchiveError,
    },
    /// What was unpacked is no chart, or another one.
    #[error("{url}: {problem}")]
    Content {
        /// The URL without credentials.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The disk refuses.
    #[error("{path} cannot be written: {message}")]
    Disk {
        /// The path.
        path: String,
        /// The system's message.
        message: String,
    },
    /// The origin or the chart cannot be used.
    #[error(transparent)]
    Helm(#[from] HelmError),
    /// The run was cancelled.
    #[error("the run was interrupted")]
    Cancelled,
}

impl Describe for PullError {
    fn describe(&self) -> Diagnostic {
        let of = |class| Diagnostic::new(class, self.to_string());
        match self {
            Self::Net { source, .. } => match source {
                NetError::Setup { .. } => of(Class::Access),
                _ => of(Class::Transient),
            },
            Self::Denied { .. } => of(Class::Access).with_hint(
                "give credentials for this host and path, see --helm-creds and --registry-creds",
            ),
            Self::Status { status, .. } if *status >= 500 || *status == 429 => of(Class::Transient),
            Self::NoChart { closest: Some(closest), .. } => {
                of(Class::Project).with_hint(format!("did you mean {closest}?"))
            }
            Self::NoVersion { closest: Some(closest), .. } => {
                of(Class::Project).with_hint(format!("there is {closest}"))
            }
            Self::Disk { .. } => of(Class::Access),
            Self::Cancelled => of(Class::Cancelled),
            Self::Helm(error) => error.describe(),
            Self::Missing { .. }
            | Self::Status { .. }
            | Self::Protocol { .. }
            | Self::NoChart { .. }
            | Self::NoVersion { .. }
            | Self::Digest { .. }
            | Self::Archive { .. }
            | Self::Content { .. } => of(Class::Project),
        }
    }
}
