use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};

/// Passes connections on to a server, and counts how many there are at a time.
pub(crate) struct Tunnel {
    /// `host:port` to connect to.
    pub(crate) address: String,
    most: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Tunnel {
    /// Listens on a free loopback port in front of `server` (`host:port`).
    pub(crate) async fn start(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (open, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (server, highest) = (server.to_owned(), Arc::clone(&most));
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (open, server) = (Arc::clone(&open), server.clone());
                highest.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Ok(Self { address, most, task })
    }

    /// The most connections at a time so far.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}
