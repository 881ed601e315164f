//! Whether a deployment is there and ready (kluctl 2.28).

mod rules;
mod run;

pub use rules::{Finding, judge};
pub use run::{ValidateRun, run};

#[cfg(test)]
mod tests;
