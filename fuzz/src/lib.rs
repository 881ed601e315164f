//! The pure modules of the product, compiled from their sources: what is fuzzed, without servers, clients and the hundreds of
//! crates that these need, so that a build takes a minute.
#![allow(dead_code, unused_imports, reason = "some of it is for the modules that are not here")]

#[path = "../../src/diagnostic/mod.rs"]
pub mod diagnostic;
#[path = "../../src/object/mod.rs"]
pub mod object;
#[path = "../../src/secret.rs"]
pub mod secret;
#[path = "../../src/yaml/mod.rs"]
pub mod yaml;

#[path = "../../src/schema/mod.rs"]
pub mod schema;

#[path = "../../src/tree/mod.rs"]
pub mod tree;

#[path = "../../src/jinja/mod.rs"]
pub mod jinja;
#[path = "../../src/kustomize/mod.rs"]
pub mod kustomize;
#[path = "../../src/vars/mod.rs"]
pub mod vars;

#[path = "../../src/diff/mod.rs"]
pub mod diff;
pub mod results;
