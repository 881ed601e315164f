//! Links the released program at a fixed address, as Go's tools are.
//!
//! A position-independent executable of this size has 100 000 addresses to write before `main`, which takes longer than
//! building a small kustomization. Only for glibc, whose start files the C compiler chooses to fit.

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells build scripts what to do through the environment"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
