//! The polled halves of a connection as futures.

use std::future::poll_fn;

use archipelago_protocol::contract::{RecvStream, SendStream, TransportError};
use bytes::{Bytes, BytesMut};

/// Sends all of `data`.
///
/// # Errors
///
/// As [`SendStream::poll_send`].
pub async fn send_all(stream: &mut dyn SendStream, mut data: Bytes) -> Result<(), TransportError> {
    poll_fn(|cx| stream.poll_send(cx, &mut data)).await?;
    assert!(data.is_empty(), "poll_send was ready and left {} bytes", data.len());
    Ok(())
}

/// Ends a stream in good order.
///
/// # Errors
///
/// As [`SendStream::poll_finish`].
pub async fn finish(stream: &mut dyn SendStream) -> Result<(), TransportError> {
    poll_fn(|cx| stream.poll_finish(cx)).await
}

/// Waits for more bytes and says how many came; zero at the end of a stream.
///
/// # Errors
///
/// As [`RecvStream::poll_recv`].
pub async fn recv_some(stream: &mut dyn RecvStream, into: &mut BytesMut) -> Result<usize, TransportError> {
    let before = into.len();
    let count = poll_fn(|cx| stream.poll_recv(cx, into)).await?;
    assert_eq!(into.len(), before + count, "poll_recv says how much it appended");
    Ok(count)
}

/// Receives until `into` is as the caller wants it. False if the stream ends before.
///
/// # Errors
///
/// As [`RecvStream::poll_recv`].
pub async fn recv_until(
    stream: &mut dyn RecvStream,
    into: &mut BytesMut,
    enough: impl Fn(&[u8]) -> bool,
) -> Result<bool, TransportError> {
    while !enough(into) {
        if recv_some(stream, into).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The next `len` bytes; what came beyond them stays in `rest` for the next call. Fewer if the stream ends before.
///
/// # Errors
///
/// As [`RecvStream::poll_recv`].
pub async fn recv_exact(
    stream: &mut dyn RecvStream,
    rest: &mut BytesMut,
    len: usize,
) -> Result<Bytes, TransportError> {
    recv_until(stream, rest, |bytes| bytes.len() >= len).await?;
    Ok(rest.split_to(len.min(rest.len())).freeze())
}

/// Everything until the stream ends, and how it ended: `Ok` if it was finished in good order.
pub async fn recv_until_end(stream: &mut dyn RecvStream) -> (Bytes, Result<(), TransportError>) {
    let mut all = BytesMut::new();
    let end = recv_until(stream, &mut all, |_| false).await;
    (all.freeze(), end.map(|_| ()))
}
