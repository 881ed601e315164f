use tokio::runtime::{Builder, Runtime};

use crate::diagnostic::{Class, Diagnostic};

/// Threads' stacks. Nothing here recurses without a limit, but a deployment is a deep tree of futures, whose frames an
/// unoptimised build makes several times as large; only what is touched takes memory.
const STACK: usize = 8 * 1024 * 1024;

/// The runtime that a command runs on.
pub(super) fn runtime() -> Result<Runtime, Diagnostic> {
    let built = Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    built.map_err(|error| {
        Diagnostic::new(Class::Internal, format!("the runtime cannot be started: {error}"))
    })
}
