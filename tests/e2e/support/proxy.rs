use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the proxy makes of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: passes it on.
    None,
    /// Answers with this status and no artifact.
    Status(u16),
    /// Announces the whole length and closes after half of it.
    Truncate,
    /// Passes on the right length with one bit flipped in the middle.
    WrongBytes,
    /// Sends a byte each second.
    Slow,
    /// Never stops sending.
    Endless,
    /// Redirects to this URL.
    Redirect(String),
    /// Resets the connection instead of answering.
    Reset,
}

/// A thin proxy between our controller and source-controller's artifact server.
pub(crate) struct FaultProxy {
    /// `host:port`, for `SOURCE_CONTROLLER_LOCALHOST`.
    pub(crate) address: String,
    fault: Arc<Mutex<Fault>>,
    requests: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl FaultProxy {
    /// Listens on a free loopback port in front of `upstream` (`host:port`).
    pub(crate) async fn start(upstream: &str, fault: Fault) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let fault = Arc::new(Mutex::new(fault));
        let requests = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn({
            let (upstream, fault, requests) =
                (upstream.to_owned(), Arc::clone(&fault), Arc::clone(&requests));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    requests.fetch_add(1, Ordering::SeqCst);
                    let fault = fault.lock().unwrap().clone();
                    let upstream = upstream.clone();
                    tokio::spawn(async move { serve(client, &upstream, fault).await.ok() });
                }
            }
        });
        Ok(Self { address, fault, requests, task })
    }

    /// Changes what happens to downloads from now on.
    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// How many downloads were tried so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, upstream: &str, fault: Fault) -> Result<()> {
    let path = request_path(&mut client).await?;
    match fault {
        Fault::Reset => {
            // A zero linger time makes the kernel send a reset when the socket closes.
            client.set_zero_linger()?;
            return Ok(());
        }
        Fault::Status(code) => {
            let head = format!(
                "HTTP/1.1 {code} Fault\r\nContent-Length: 5\r\nConnection: close\r\n\r\nfault"
            );
            client.write_all(head.as_bytes()).await?;
        }
        Fault::Redirect(url) => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await?;
        }
        Fault::Endless => {
            client.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\n\r\n").await?;
            let zeros = vec![0_u8; 1 << 16];
            loop {
                client.write_all(&zeros).await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Fault::None | Fault::Truncate | Fault::WrongBytes | Fault::Slow => {
            let response = reqwest::get(format!("http://{upstream}{path}")).await?;
            let status = response.status();
            let mut body = response.bytes().await?.to_vec();
            let head = format!(
                "HTTP/1.1 {} X\r\nContent-Type: application/gzip\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                status.as_u16(),
                body.len()
            );
            client.write_all(head.as_bytes()).await?;
            let middle = body.len() / 2;
            match fault {
                Fault::Truncate => body.truncate(middle),
                Fault::WrongBytes => body[middle] ^= 1,
                Fault::Slow => {
                    for byte in body {
                        client.write_all(&[byte]).await?;
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                    return Ok(());
                }
                _ => {}
            }
            client.write_all(&body).await?;
        }
    }
    client.shutdown().await?;
    Ok(())
}

/// Reads the request's head and returns its path.
async fn request_path(client: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut chunk = [0_u8; 4096];
        let read = client.read(&mut chunk).await?;
        anyhow::ensure!(read > 0, "the client left");
        head.extend_from_slice(&chunk[..read]);
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.split_whitespace().nth(1).unwrap_or("/").to_owned())
}
