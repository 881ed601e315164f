//! Whether a deployment is there and ready (engine reference 8.4).

mod rules;
mod run;

pub use rules::{Finding, judge};
pub use run::{ValidateRun, run};

#[cfg(test)]
mod tests;
