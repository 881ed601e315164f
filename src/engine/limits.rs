use std::sync::Arc;

use tokio::sync::Semaphore;

/// How much an engine does at the same time, over all runs. Cheap to clone; clones share the same permits.
///
/// Requests are limited by each `Cluster`, downloads by the caches of artifacts and repositories.
#[derive(Debug, Clone)]
pub struct Limits {
    /// CPU-bound work: rendering and building. One permit per core is right.
    pub blocking: Arc<Semaphore>,
}

impl Limits {
    /// Limits for a machine with `cores` cores.
    pub fn for_cores(cores: usize) -> Self {
        Self { blocking: Arc::new(Semaphore::new(cores.max(1))) }
    }
}
