use std::{fmt, net::IpAddr};

use reqwest::Url;

use super::NetError;
use crate::secret::Secret;

/// Which requests take which proxy, by the rules of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` as Go programs read them. The
/// default is no proxy at all. Fronts read the variables and hand this down.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Proxies {
    http: Option<Secret<Url>>,
    https: Option<Secret<Url>>,
    exceptions: Vec<Exception>,
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Exception {
    /// `*`
    All,
    /// An address, or with fewer bits a network: `10.0.0.0/8`.
    Network { address: IpAddr, bits: u32, port: Option<u16> },
    /// `example.com` with everything below it; with a leading dot only what is below.
    Domain { name: String, itself: bool, port: Option<u16> },
}

impl Proxies {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, each in upper case or, if that is empty, in lower case.
    ///
    /// # Errors
    /// [`NetError::Setup`] when a proxy is not an `http://` or `https://` address. The message does not quote passwords.
    pub fn from_variables<'a>(
        variable: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, NetError> {
        let read = |name: &str| {
            let given = |name: &str| variable(name).map(str::trim).filter(|text| !text.is_empty());
            given(name).or_else(|| given(&name.to_lowercase()))
        };
        let address = |name: &'static str| read(name).map(|text| address(name, text)).transpose();
        let exceptions = read("NO_PROXY").unwrap_or_default();
        Ok(Self {
            http: address("HTTP_PROXY")?,
            https: address("HTTPS_PROXY")?,
            exceptions: exceptions.split([',', ' ']).filter_map(Exception::parse).collect(),
        })
    }

    /// Whether there is no proxy for anything.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// Whether this is the address of the proxy for HTTPS.
    pub fn is_https(&self, address: &str) -> bool {
        let is_this = |proxy: &Secret<Url>| Url::parse(address).as_ref() == Ok(proxy.reveal());
        self.https.as_ref().is_some_and(is_this)
    }

    /// Whether a proxy has this host name.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let mut proxies = self.http.iter().chain(&self.https);
        proxies.any(|proxy| proxy.reveal().host_str() == Some(name))
    }

    /// The proxy for a request to `url`; `None` for a direct connection, which requests to this machine always take.
    pub fn select(&self, url: &Url) -> Option<&Secret<Url>> {
        let proxy = match url.scheme() {
            "http" => self.http.as_ref(),
            "https" => self.https.as_ref(),
            _ => None,
        }?;
        let host = url.host_str()?.trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = url.port_or_known_default();
        let is_exception =
            self.exceptions.iter().any(|exception| exception.covers(&host, address, port));
        (!is_exception).then_some(proxy)
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host =
            |proxy: &Option<Secret<Url>>| proxy.as_ref().map(|url| super::host_of(url.reveal()));
        f.debug_struct("Proxies")
            .field("http", &host(&self.http))
            .field("https", &host(&self.https))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

fn address(variable: &'static str, text: &str) -> Result<Secret<Url>, NetError> {
    let refused = |message: String| NetError::Setup { what: variable, message };
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&text).map_err(|error| refused(format!("is no address: {error}")))?;
    match url.scheme() {
        "http" | "https" if url.host_str().is_some() => Ok(Secret::new(url)),
        scheme => Err(refused(format!("{scheme}:// proxies are not supported, use http or https"))),
    }
}

impl Exception {
    /// One entry; `None` for an empty one.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        match text.as_str() {
            "" => return None,
            "*" => return Some(Self::All),
            _ => {}
        }
        if let Some((address, bits)) = text.split_once('/')
            && let (Ok(address), Ok(bits)) = (address.parse(), bits.parse())
        {
            return Some(Self::Network { address, bits, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().ok())
            }
            _ => (text.as_str(), None),
        };
        let host = host.trim_matches(['[', ']']);
        if let Ok(address) = host.parse::<IpAddr>() {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            return Some(Self::Network { address, bits, port });
        }
        let below = host.strip_prefix("*.").or_else(|| host.strip_prefix('.'));
        let name = below.unwrap_or(host).trim_end_matches('.').to_owned();
        (!name.is_empty()).then_some(Self::Domain { name, itself: below.is_none(), port })
    }

    fn covers(&self, host: &str, address: Option<IpAddr>, asked: Option<u16>) -> bool {
        let is_port = |port: &Option<u16>| port.is_none() || *port == asked;
        match self {
            Self::All => true,
            Self::Network { address: network, bits, port } => {
                is_port(port) && address.is_some_and(|address| is_in(address, *network, *bits))
            }
            Self::Domain { name, itself, port } => {
                let is_below =
                    || host.strip_suffix(name.as_str()).is_some_and(|front| front.ends_with('.'));
                is_port(port) && ((*itself && host == name) || is_below())
            }
        }
    }
}

/// Whether the first `bits` bits are equal.
fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let other = address.to_bits() ^ network.to_bits();
            other.checked_shr(32_u32.saturating_sub(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let other = address.to_bits() ^ network.to_bits();
            other.checked_shr(128_u32.saturating_sub(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}
