//! The lane: one bidirectional stream that lives as long as its connection.
//!
//! Its end in the QUIC sense (FIN) is the first half of a close: the reason comes right behind it, and is what the
//! reader gets.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use archipelago_protocol::contract::{RecvStream, SendStream, TransportError};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use quinn::{ConnectionError, ReadError, WriteError};

use crate::errors::lost;
use crate::link::Link;

/// The lane to the other side.
pub(crate) struct Outgoing {
    link: Arc<Link>,
    sleeper: Arc<AtomicWaker>,
}

impl Outgoing {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { sleeper: link.sleeper(), link }
    }
}

impl SendStream for Outgoing {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let link = &self.link;
        link.poll_open(cx, &self.sleeper, |cx| write(&mut link.lane(), link, cx, data))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let link = &self.link;
        // What quinn has taken it sends by itself; it does not say when.
        link.poll_open(cx, &self.sleeper, |_| match link.connection().close_reason() {
            Some(error) => Poll::Ready(Err(link.ended(&error))),
            None => Poll::Ready(Ok(())),
        })
    }
}

/// The lane from the other side.
pub(crate) struct Incoming {
    link: Arc<Link>,
    sleeper: Arc<AtomicWaker>,
    /// Taken only by `drop`.
    reader: Option<Reader>,
    /// The wait for the reason, once the stream has ended.
    end: Option<Pin<Box<dyn Future<Output = ConnectionError> + Send>>>,
}

impl Incoming {
    pub(crate) fn new(link: Arc<Link>, stream: quinn::RecvStream) -> Self {
        Self { sleeper: link.sleeper(), link, reader: Some(Reader::new(stream, &[])), end: None }
    }

    fn poll_lane(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        if let (None, Some(reader)) = (&self.end, &mut self.reader) {
            match ready!(reader.poll_read(cx, into)) {
                Ok(0) => {}
                Ok(read) => return Poll::Ready(Ok(read)),
                Err(error) => return Poll::Ready(Err(read_error(&error, &self.link))),
            }
        }
        let connection = self.link.connection();
        let end = self.end.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.closed().await })
        });
        let error = connection.close_reason().map_or_else(|| end.as_mut().poll(cx), Poll::Ready);
        error.map(|error| Err(self.link.ended(&error)))
    }
}

impl RecvStream for Incoming {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        let (link, sleeper) = (self.link.clone(), self.sleeper.clone());
        link.poll_open(cx, &sleeper, |cx| self.poll_lane(cx, into))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.link.keep_unread(reader.stream);
        }
    }
}

/// Gives all of `data` to quinn, without copying it.
pub(crate) fn write(
    stream: &mut quinn::SendStream,
    link: &Link,
    cx: &mut Context<'_>,
    data: &mut Bytes,
) -> Poll<Result<(), TransportError>> {
    while !data.is_empty() {
        let mut rest = [std::mem::take(data)];
        // The future keeps nothing between two polls: quinn documents that it has written nothing while it is pending.
        let polled = pin!(stream.write_chunks(&mut rest)).poll(cx);
        let [rest] = rest;
        *data = rest;
        match ready!(polled) {
            Ok(_) => {}
            Err(WriteError::ConnectionLost(error)) => return Poll::Ready(Err(link.ended(&error))),
            Err(WriteError::Stopped(_)) => {
                return Poll::Ready(Err(lost("the other side does not want the rest of the stream")));
            }
            Err(error) => return Poll::Ready(Err(lost(error.to_string()))),
        }
    }
    Poll::Ready(Ok(()))
}

/// What `error`, met while reading, means.
pub(crate) fn read_error(error: &ReadError, link: &Link) -> TransportError {
    match error {
        ReadError::ConnectionLost(error) => link.ended(error),
        ReadError::Reset(_) => lost("the other side gave the stream up"),
        other => lost(other.to_string()),
    }
}

/// Reads a stream in batches.
pub(crate) struct Reader {
    stream: quinn::RecvStream,
    chunks: [Bytes; CHUNKS],
    /// Bytes at the front that have not come: they are not the caller's.
    front: &'static [u8],
    /// What came instead of the front.
    strange: Option<u8>,
    /// quinn says only once that a stream was given up, and then that it is finished.
    failed: Option<ReadError>,
}

impl Reader {
    /// Reads `stream` behind its `front`.
    pub(crate) fn new(stream: quinn::RecvStream, front: &'static [u8]) -> Self {
        Self { stream, chunks: [const { Bytes::new() }; CHUNKS], front, strange: None, failed: None }
    }

    /// What came instead of the front, if it was something else.
    pub(crate) const fn strange(&self) -> Option<u8> {
        self.strange
    }

    /// Appends what has come, up to about [`BATCH`] bytes. Zero: the stream is finished.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, ReadError>> {
        let before = into.len();
        loop {
            let full = match self.poll_chunks(cx, into) {
                Poll::Ready(Ok(Some(chunks))) => chunks == CHUNKS,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(into.len() - before)),
                Poll::Ready(Err(error)) if into.len() == before => return Poll::Ready(Err(error)),
                Poll::Pending if into.len() == before => return Poll::Pending,
                Poll::Ready(Err(_)) | Poll::Pending => false,
            };
            let read = into.len() - before;
            if read >= BATCH || (read > 0 && !full) {
                return Poll::Ready(Ok(read));
            }
        }
    }

    fn poll_chunks(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if let Some(error) = &self.failed {
            return Poll::Ready(Err(error.clone()));
        }
        let polled = pin!(self.stream.read_chunks(&mut self.chunks)).poll(cx);
        match ready!(polled) {
            Ok(Some(count)) => {
                self.append(count, into);
                Poll::Ready(Ok(Some(count)))
            }
            Ok(None) => Poll::Ready(Ok(None)),
            Err(error) => Poll::Ready(Err(self.failed.insert(error).clone())),
        }
    }

    fn append(&mut self, count: usize, into: &mut BytesMut) {
        let chunks = &mut self.chunks[..count];
        into.reserve(chunks.iter().map(Bytes::len).sum());
        for chunk in chunks {
            let mut chunk = std::mem::take(chunk);
            while let (Some((expected, rest)), false) = (self.front.split_first(), chunk.is_empty()) {
                let came = chunk.get_u8();
                if came != *expected {
                    self.strange.get_or_insert(came);
                }
                self.front = rest;
            }
            into.extend_from_slice(&chunk);
        }
    }
}

/// How many packets' worth of bytes are taken from quinn at one time.
const CHUNKS: usize = 48;
/// How much one call reads at most, before the reader looks at it: enough for its costs not to matter, and small enough
/// to stay in the cache.
const BATCH: usize = 256 << 10;
