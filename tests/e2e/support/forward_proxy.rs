//! A forward proxy, as companies have them: `CONNECT` for TLS, absolute addresses for plain HTTP.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// A proxy on loopback that alone can resolve names below `.proxied.test`: all of them are this machine.
pub(crate) struct ForwardProxy {
    /// `http://host:port`.
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl ForwardProxy {
    /// Listens on a free loopback port.
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let seen = Arc::clone(&seen);
                    tokio::spawn(async move { serve(client, &seen).await.ok() });
                }
            }
        });
        Ok(Self { url, seen, task })
    }

    /// The requests so far, as `METHOD host:port`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, seen: &Mutex<Vec<String>>) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let (line, headers) = head.split_once("\r\n").context("no request line")?;
    let mut words = line.split(' ');
    let (method, target) = (words.next().context("no method")?, words.next().context("no target")?);
    if method == "CONNECT" {
        seen.lock().unwrap().push(format!("{method} {target}"));
        let mut server = connect(target).await?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    }
    let rest = target.strip_prefix("http://").context("no absolute address")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    seen.lock().unwrap().push(format!("{method} {host}"));
    let mut server = connect(host).await?;
    // One request per connection, so that the next one comes by here, too.
    let kept = headers.lines().filter(|line| !line.to_lowercase().starts_with("connection:"));
    let kept: String = kept.filter(|line| !line.is_empty()).map(|l| format!("{l}\r\n")).collect();
    let head = format!("{method} /{path} HTTP/1.1\r\n{kept}Connection: close\r\n\r\n");
    server.write_all(head.as_bytes()).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn connect(target: &str) -> Result<TcpStream> {
    let (host, port) = target.rsplit_once(':').context("no port")?;
    ensure!(host.ends_with(".proxied.test"), "{host} is not known here");
    Ok(TcpStream::connect(("127.0.0.1", port.parse()?)).await?)
}
