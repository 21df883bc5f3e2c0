//! The contestants behind one face: whole buffers out, whatever has come in.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use archipelago_protocol::contract::Connection;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::RawError;

/// A future that is polled where it was made.
pub(crate) type Local<'a, T> = Pin<Box<dyn Future<Output = Result<T, RawError>> + 'a>>;

/// One end of the connection.
pub(crate) trait Wire {
    /// Sends all of `data`.
    fn write(&mut self, data: Bytes) -> Local<'_, ()>;

    /// Appends what has come, at least one byte; zero bytes mean the end.
    fn read<'a>(&'a mut self, into: &'a mut BytesMut) -> Local<'a, usize>;
}

/// A byte stream of tokio.
pub(crate) struct Plain<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Wire for Plain<S> {
    fn write(&mut self, data: Bytes) -> Local<'_, ()> {
        Box::pin(async move {
            self.0.write_all(&data).await?;
            Ok(self.0.flush().await?)
        })
    }

    fn read<'a>(&'a mut self, into: &'a mut BytesMut) -> Local<'a, usize> {
        Box::pin(async move {
            into.reserve(256 << 10);
            Ok(self.0.read_buf(into).await?)
        })
    }
}

/// A stream of quinn.
pub(crate) struct Quinn {
    pub(crate) send: quinn::SendStream,
    pub(crate) recv: quinn::RecvStream,
    /// Both end with it.
    pub(crate) _endpoint: quinn::Endpoint,
}

impl Wire for Quinn {
    fn write(&mut self, data: Bytes) -> Local<'_, ()> {
        Box::pin(async move { self.send.write_chunk(data).await.map_err(quic) })
    }

    fn read<'a>(&'a mut self, into: &'a mut BytesMut) -> Local<'a, usize> {
        Box::pin(async move {
            let mut chunks = [const { Bytes::new() }; 48];
            let count = self.recv.read_chunks(&mut chunks).await.map_err(quic)?.unwrap_or(0);
            let chunks = &chunks[..count];
            into.reserve(chunks.iter().map(Bytes::len).sum());
            chunks.iter().for_each(|chunk| into.extend_from_slice(chunk));
            Ok(chunks.iter().map(Bytes::len).sum())
        })
    }
}

/// The lane of a connection of ours.
pub(crate) struct Lane {
    pub(crate) connection: Connection,
    /// Both end with it.
    pub(crate) _endpoint: Box<dyn archipelago_protocol::contract::Endpoint>,
}

impl Wire for Lane {
    fn write(&mut self, mut data: Bytes) -> Local<'_, ()> {
        Box::pin(async move { Ok(poll_fn(|cx| self.connection.outgoing.poll_send(cx, &mut data)).await?) })
    }

    fn read<'a>(&'a mut self, into: &'a mut BytesMut) -> Local<'a, usize> {
        Box::pin(async move { Ok(poll_fn(|cx| self.connection.incoming.poll_recv(cx, into)).await?) })
    }
}

/// An error of quinn.
pub(crate) fn quic(error: impl std::fmt::Display) -> RawError {
    RawError::Quic(error.to_string())
}
