//! Streams beside the lane, one QUIC stream each.
//!
//! A stream begins with one byte that says what it is. QUIC shows a stream to the other side only when something has
//! been sent on it; and a later version may have other kinds of streams.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use archipelago_protocol::contract::{CloseReason, RecvStream, SendStream, Streams, TransportError};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use quinn::{ConnectionError, VarInt};

use crate::errors::lost;
use crate::lane::{Reader, read_error, write};
use crate::link::Link;

/// The streams of one connection.
pub(crate) struct QuicStreams {
    link: Arc<Link>,
}

impl QuicStreams {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// Waits for `operation`, or for the end of the connection.
    async fn until_ended<T>(
        &self,
        operation: impl Future<Output = Result<T, ConnectionError>>,
    ) -> Result<T, TransportError> {
        let sleeper = self.link.sleeper();
        let mut operation = pin!(operation);
        let mut poll = |cx: &mut Context<'_>| {
            operation.as_mut().poll(cx).map(|done| done.map_err(|error| self.link.ended(&error)))
        };
        poll_fn(|cx| self.link.poll_open(cx, &sleeper, &mut poll)).await
    }
}

#[async_trait]
impl Streams for QuicStreams {
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError> {
        let stream = self.until_ended(self.link.connection().open_uni()).await?;
        let mut stream = Sender::new(self.link.clone(), stream);
        // If there is no room yet, the first send does it.
        if let Poll::Ready(begun) = poll_fn(|cx| Poll::Ready(stream.poll_begin(cx))).await {
            begun?;
        }
        Ok(Box::new(stream))
    }

    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError> {
        let stream = self.until_ended(self.link.connection().accept_uni()).await?;
        Ok(Box::new(Receiver::new(self.link.clone(), stream)))
    }

    fn close(&self, reason: CloseReason) {
        self.link.close(reason);
    }
}

/// The sending end of a stream. Dropped before it is finished, it tells the reader that the stream is not whole.
struct Sender {
    link: Arc<Link>,
    stream: quinn::SendStream,
    sleeper: Arc<AtomicWaker>,
    /// What is left to send of the first byte.
    kind: Bytes,
    finished: bool,
}

impl Sender {
    fn new(link: Arc<Link>, stream: quinn::SendStream) -> Self {
        let sleeper = link.sleeper();
        Self { link, stream, sleeper, kind: Bytes::from_static(&BYTES), finished: false }
    }

    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        write(&mut self.stream, &self.link, cx, &mut self.kind)
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        ready!(self.poll_begin(cx))?;
        write(&mut self.stream, &self.link, cx, data)
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        ready!(self.poll_begin(cx))?;
        if let Some(error) = self.link.connection().close_reason() {
            return Poll::Ready(Err(self.link.ended(&error)));
        }
        if !self.finished {
            self.stream.finish().map_err(|error| lost(error.to_string()))?;
            self.finished = true;
            self.link.keep_until_arrived(&self.stream);
        }
        Poll::Ready(Ok(()))
    }
}

impl SendStream for Sender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let (link, sleeper) = (self.link.clone(), self.sleeper.clone());
        link.poll_open(cx, &sleeper, |cx| self.poll_data(cx, data))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let (link, sleeper) = (self.link.clone(), self.sleeper.clone());
        link.poll_open(cx, &sleeper, |cx| self.poll_end(cx))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.finished {
            // quinn would finish it, and half a stream would look whole. It fails only if the stream has ended.
            let _ = self.stream.reset(VarInt::from_u32(0));
        }
    }
}

/// The receiving end of a stream.
struct Receiver {
    link: Arc<Link>,
    sleeper: Arc<AtomicWaker>,
    reader: Reader,
}

impl Receiver {
    fn new(link: Arc<Link>, stream: quinn::RecvStream) -> Self {
        Self { sleeper: link.sleeper(), reader: Reader::new(stream, &BYTES), link }
    }
}

impl RecvStream for Receiver {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        let (link, reader) = (&self.link, &mut self.reader);
        let before = into.len();
        let read = link.poll_open(cx, &self.sleeper, |cx| {
            reader.poll_read(cx, into).map(|read| read.map_err(|error| read_error(&error, link)))
        });
        if let Some(kind) = reader.strange() {
            into.truncate(before);
            return Poll::Ready(Err(lost(format!("a stream of the unknown kind {kind}"))));
        }
        read
    }
}

/// The kind of stream that carries bytes of the caller.
const BYTES: [u8; 1] = [1];
