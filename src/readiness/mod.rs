//! Whether live objects are ready (kluctl 2.28), and waiting until they are.

mod assess;
mod wait;

pub use assess::{Assessment, Facts, Readiness, assess};
pub use wait::{WaitError, Waiter};

#[cfg(test)]
mod tests;
