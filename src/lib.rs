//! One engine for Kluctl deployments, with two fronts: a controller for Flux and the `kluctl` command.
//!
//! Modules are listed in layer order; a layer uses only those above it in this list. `docs/architecture.md` has the whole
//! picture and `tests/architecture.rs` enforces it.

// Layer 0: words
pub mod diagnostic;
pub mod object;
pub mod secret;
pub mod yaml;

// Layer 1: contracts
pub mod api;
pub mod observer;
pub mod schema;

// Layer 2: outside world
pub mod archive;
pub mod artifact;
pub mod cluster;
pub mod git;
pub mod helm;
pub mod net;
pub mod tree;

// Layer 3: render
pub mod deployment;
pub mod jinja;
pub mod kustomize;
pub mod project;
pub mod vars;

// Layer 4: converge
pub mod apply;
pub mod diff;
pub mod hooks;
pub mod prune;
pub mod readiness;
pub mod results;
pub mod validate;

// Layer 5: engine
pub mod engine;

// Layer 6: fronts
pub mod controller;

// Layer 7: command line
pub mod cli;
pub mod telemetry;
