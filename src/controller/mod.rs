//! The controller: keeps every KluctlDeployment as its spec asks for.
//!
//! ```text
//!  watches ──► triggers ──► queue ──► reconcile = fetch → prepare → decide → act → summarize → persist, notify
//!  (run.rs)      (p)         (p)                                   (p)           (p)
//! ```
//! Fetching comes first, decisions are functions on values (`decide`, `schedule`, `requests`, `summarize`, `dependencies`,
//! `ownership`, `triggers`, `queue`), writing comes last. The queue is level-triggered: a run reads the object and its
//! source afresh, whatever woke it.

mod act;
mod charts;
mod claims;
mod conditions;
mod context;
mod decide;
mod delete;
mod dependencies;
mod fetch;
mod foreign;
mod former;
mod identity;
mod includes;
mod leader;
mod lookup;
mod metrics;
mod notify;
mod observe;
mod options;
mod outcome;
mod ownership;
mod pass;
mod persist;
mod prepare;
mod probes;
mod queue;
mod readings;
mod reconcile;
mod record;
mod requests;
mod run;
mod schedule;
mod secrets;
mod state;
mod summarize;
mod triggers;
mod turns;
mod watches;

pub use options::Options;
pub use probes::parse_address;
pub use run::{ControllerError, LONGEST_END, run};

/// The present time. Decisions get it as an argument; only the parts that do IO ask.
#[expect(
    clippy::disallowed_methods,
    reason = "this front is where the controller's time comes from"
)]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// A random identity in the form of a UUID (version 4).
fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds each of these hashers differently.
    let random = || RandomState::new().hash_one(0u8);
    let (high, low) = (random(), random());
    let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests;
