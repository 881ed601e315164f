use std::net::IpAddr;

use super::super::{Proxies, Reach};

#[test]
fn this_host_links_and_metadata_are_out_of_reach() {
    let out = [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
    ];
    for address in out {
        let address: IpAddr = address.parse().unwrap();
        assert!(!Reach::BeyondThisHost.includes(address), "{address}");
        assert!(Reach::Anywhere.includes(address), "{address}");
    }
    for address in ["10.0.0.1", "192.168.1.1", "100.64.0.1", "8.8.8.8", "fd00::1", "2001:db8::1"] {
        assert!(Reach::BeyondThisHost.includes(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn only_the_hosts_of_proxies_are_known_as_such() {
    let proxies =
        Proxies::from_variables(|name| (name == "HTTPS_PROXY").then_some("http://proxy.lan:3128"));
    let proxies = proxies.unwrap();
    assert!(proxies.has_host("proxy.lan"));
    assert!(!proxies.has_host("example.com"));
}
