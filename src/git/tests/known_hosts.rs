use russh::keys::{Algorithm, HashAlg, PublicKey};

use crate::git::known_hosts::*;

const ONE: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
const TWO: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9JvGmLlGsZiJSMkGWmEvNv9bGLgIsB1ONbKDl0Gm9f";

fn key(text: &str) -> PublicKey {
    text.parse().unwrap()
}

fn verdict(known: &str, host: &str, port: u16) -> Verdict {
    HostKeys::new(known, host, port).check(&key(ONE))
}

#[test]
fn plain_names_ports_and_wildcards() {
    for (name, host, port, trusted) in [
        ("github.com", "github.com", 22, true),
        ("GitHub.com", "github.com", 22, true),
        ("a,github.com,b", "github.com", 22, true),
        ("github.com", "github.com", 2222, false),
        ("[github.com]:2222", "github.com", 2222, true),
        ("[github.com]:2222", "github.com", 22, false),
        ("*.example.com", "git.example.com", 22, true),
        ("*.example.com,!git.example.com", "git.example.com", 22, false),
        ("git?.example.com", "git1.example.com", 22, true),
        ("example.com", "git.example.com", 22, false),
        ("[::1]:2222", "::1", 2222, true),
    ] {
        let found = verdict(&format!("# comment\n\n{name} {ONE} somebody\n"), host, port);
        assert_eq!(found == Verdict::Trusted, trusted, "{name} {host} {port}: {found:?}");
    }
}

#[test]
fn hashed_names_match() {
    // Made by OpenSSH for 192.168.1.61.
    let salt = "F1E1KeoE/eEWhi10WpGv4OdiO6Y=";
    let hash = "3988QV0VE8wmZL7suNrYQLITLCg=";
    let line = format!("|1|{salt}|{hash} {ONE}");
    assert_eq!(verdict(&line, "192.168.1.61", 22), Verdict::Trusted);
    assert_eq!(verdict(&line, "github.com", 22), Verdict::Unknown);
}

#[test]
fn changed_revoked_and_unknown_keys_are_told_apart() {
    assert_eq!(verdict("", "h", 22), Verdict::Unknown);
    assert_eq!(verdict(&format!("h {TWO}"), "h", 22), Verdict::Changed);
    assert_eq!(verdict(&format!("h {TWO}\nh {ONE}"), "h", 22), Verdict::Trusted);
    assert_eq!(verdict(&format!("h {ONE}\n@revoked * {ONE}"), "h", 22), Verdict::Revoked);
    assert_eq!(verdict(&format!("@cert-authority * {ONE}"), "h", 22), Verdict::Unknown);
}

#[test]
fn unreadable_lines_are_passed_over_and_counted() {
    let keys = HostKeys::new(&format!("h nonsense\nh {ONE}\nh"), "h", 22);
    assert_eq!(keys.check(&key(ONE)), Verdict::Trusted);
    assert_eq!(keys.unreadable, [1, 3]);
}

#[test]
fn listed_key_types_are_preferred() {
    let rsa = Algorithm::Rsa { hash: Some(HashAlg::Sha256) };
    let all = [rsa.clone(), Algorithm::Ed25519];
    let keys = HostKeys::new(&format!("h {ONE}"), "h", 22);
    assert_eq!(keys.prefer(&all), [Algorithm::Ed25519, rsa.clone()]);
    assert_eq!(HostKeys::new("", "h", 22).prefer(&all), all);
}

#[test]
fn fingerprints_look_like_those_of_ssh_keygen() {
    // GitHub's published Ed25519 host key and fingerprint.
    assert_eq!(
        fingerprint(&key(ONE)),
        "ssh-ed25519 SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
    );
}
