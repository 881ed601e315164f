use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use super::{NetError, Proxies, host_of};

/// Instance metadata outside of the link-local networks: Amazon's over IPv6, Alibaba's, Oracle's former one.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// Which addresses a client may talk to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Every address.
    #[default]
    Anywhere,
    /// No loopback, unspecified or link-local address and no cloud's metadata service: what a pod reaches there answers to
    /// the pod, not to whoever wrote the URL.
    BeyondThisHost,
}

impl Reach {
    /// Refuses a URL whose host is an address out of reach. Names are judged when they are resolved.
    ///
    /// # Errors
    /// [`NetError::OutOfReach`].
    pub fn check(self, url: &Url) -> Result<(), NetError> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse() {
            Ok(address) if !self.includes(address) => {
                Err(NetError::OutOfReach { host: host_of(url) })
            }
            _ => Ok(()),
        }
    }

    /// Whether the address may be talked to.
    pub fn includes(self, address: IpAddr) -> bool {
        if self == Self::Anywhere {
            return true;
        }
        let is_local = match address.to_canonical() {
            IpAddr::V4(address) => {
                // 0.0.0.0/8 means this host as a whole.
                address.is_loopback() || address.is_link_local() || address.octets()[0] == 0
            }
            IpAddr::V6(address) => {
                address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local()
            }
        };
        !is_local && !METADATA.contains(&address.to_canonical())
    }

    /// Resolves names to addresses within reach; `None` when every address is.
    pub(super) fn resolver(self, proxies: &Proxies) -> Option<Resolver> {
        let resolver = Resolver { reach: self, proxies: proxies.clone() };
        (self != Self::Anywhere).then_some(resolver)
    }
}

/// The system's resolution of names, without the addresses out of reach.
pub(super) struct Resolver {
    reach: Reach,
    proxies: Proxies,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        // Proxies are the operator's choice, and resolve the names of others.
        let reach = if self.proxies.has_host(name.as_str()) { Reach::Anywhere } else { self.reach };
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (within, beyond): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| reach.includes(address.ip()));
            if within.is_empty() && !beyond.is_empty() {
                let refused = NetError::OutOfReach { host: name.as_str().to_owned() };
                return Err(io::Error::other(refused).into());
            }
            Ok(Box::new(within.into_iter()) as Addrs)
        })
    }
}
