use futures::{Stream, StreamExt, TryStreamExt};
use reqwest::Response;
use tokio_util::bytes::Bytes;

use super::{NetError, host_of};

/// The body's chunks, up to `limit` bytes in all; one byte more is an error in the stream.
pub fn stream_bounded(
    response: Response,
    limit: u64,
) -> impl Stream<Item = Result<Bytes, NetError>> + Send {
    let url = response.url().clone();
    let mut seen = 0u64;
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| NetError::from_reqwest(&url, error))?;
        seen = seen.saturating_add(chunk.len() as u64);
        if seen > limit {
            return Err(NetError::TooLarge { host: host_of(&url), limit });
        }
        Ok(chunk)
    })
}

/// The whole body, if it has at most `limit` bytes.
///
/// # Errors
/// [`NetError::TooLarge`], or the connection's failure. Safe to drop at any time.
pub async fn read_bounded(response: Response, limit: u64) -> Result<Vec<u8>, NetError> {
    let stream = std::pin::pin!(stream_bounded(response, limit));
    stream
        .try_fold(Vec::new(), |mut body, chunk| async move {
            body.extend_from_slice(&chunk);
            Ok(body)
        })
        .await
}
