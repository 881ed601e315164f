//! What the tests stand on.

mod api_proxy;
mod case;
mod command_line;
mod conditions;
mod controller;
mod events;
mod forward_proxy;
mod git;
mod projects;
mod proxy;
mod servers;
mod shortcuts;
mod ssh;
mod suite;
mod tls;
mod tunnel;
mod waits;

pub(crate) use api_proxy::{ApiFault, ApiProxy};
pub(crate) use case::{Case, TestFuture};
pub(crate) use command_line::{Ran, User};
pub(crate) use conditions::{check_conditions, condition, is_ready, message_of, ready_reason};
pub(crate) use controller::{Controller, PROGRAM, tied};
pub(crate) use events::{EventSink, SinkMode};
pub(crate) use forward_proxy::ForwardProxy;
pub(crate) use git::{GitRepo, GitServer};
pub(crate) use projects::{SHARED, STUCK, TWO_CONFIG_MAPS, config_map, merge, with};
pub(crate) use proxy::{Fault, FaultProxy};
pub(crate) use servers::Server;
pub(crate) use ssh::SshServer;
pub(crate) use suite::{Suite, root};
pub(crate) use tls::Tls;
pub(crate) use tunnel::Tunnel;
