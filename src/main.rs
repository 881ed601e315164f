//! The `kluctl` command.

fn main() {}
