//! Jinja2 as kluctl uses it, with Python's values: the language of Jinja2 3.1, PyYAML and kluctl's functions.
//!
//! Templates are compiled once into a syntax tree that threads share ([`Environment`]) and evaluated on values that
//! behave as Python's do. A render is a function of the template, its [`Vars`] and the [`Loader`]; it has limits on
//! steps, output and nesting, so that a template cannot hang or exhaust its host.
//!
//! The data under `tests/differential/jinja` records what Python's Jinja2 does with several hundred probes; the unit
//! tests replay them.

mod args;
mod ast;
mod compiled;
mod environment;
mod error;
mod eval;
mod filters;
mod globals;
mod kluctl;
mod lexer;
mod methods;
mod parser;
mod predicates;
mod value;

pub use compiled::Compiled;
pub use environment::{DebugSink, Environment, Loader, NoFiles, Options, Vars};
pub use error::JinjaError;
pub(crate) use kluctl::images::{IMAGE_BEGIN, IMAGE_END};

#[cfg(test)]
mod tests;
