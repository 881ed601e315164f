mod auth;
mod cache;
mod known_hosts;
mod reference;
mod server;
mod ssh;
mod tree;
mod url;
