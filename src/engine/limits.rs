use std::sync::Arc;

use tokio::sync::Semaphore;

/// How much an engine does at the same time. Cheap to clone; clones share the same permits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// CPU-bound work: rendering and building. One permit per core is right.
    pub blocking: Arc<Semaphore>,
    /// Items of one deployment that are applied at the same time.
    pub items: usize,
    /// Requests in flight to API servers, over all runs.
    pub requests: Arc<Semaphore>,
    /// Clones and downloads, over all runs.
    pub downloads: Arc<Semaphore>,
}

impl Limits {
    /// Limits for a machine with `cores` cores.
    pub fn for_cores(cores: usize) -> Self {
        Self {
            blocking: Arc::new(Semaphore::new(cores.max(1))),
            items: 8,
            requests: Arc::new(Semaphore::new(64)),
            downloads: Arc::new(Semaphore::new(8)),
        }
    }
}
