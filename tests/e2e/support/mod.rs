//! What the tests stand on.

mod case;
mod conditions;
mod controller;
mod events;
mod git;
mod proxy;
mod suite;

pub(crate) use case::{Case, TestFuture};
pub(crate) use conditions::check_conditions;
pub(crate) use controller::Controller;
pub(crate) use events::{EventSink, SinkMode};
pub(crate) use git::{GitRepo, GitServer};
pub(crate) use proxy::{Fault, FaultProxy};
pub(crate) use suite::Suite;
