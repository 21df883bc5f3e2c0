//! What is on its way to the socket.
//!
//! At most one chunk of data is under way at a time; it stays here until the socket has taken it, whoever sent it.
//! Small chunks (credit, answers, ends) gather in front of or behind it.
//!
//! Invariant: bytes leave in the order in which they were put in.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

use crate::chunk::{Header, Kind};

/// The way out of one connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Goes out first: small chunks, then the header of `body`. The part before `head_at` has gone.
    head: Vec<u8>,
    head_at: usize,
    body: Bytes,
    /// Small chunks that came while `body` was under way.
    behind: Vec<u8>,
    /// How many bytes were ever put in, and how many have gone to the socket.
    put: u64,
    gone: u64,
    /// The socket may still hold some of what has gone to it, as TLS does.
    unflushed: bool,
    /// Until when the last answer to a ping has not gone.
    pong_mark: u64,
}

impl Outgoing {
    /// True if a chunk of data can be put in.
    pub(crate) fn is_free(&self) -> bool {
        self.body.is_empty()
    }

    /// How many bytes of small chunks wait.
    pub(crate) fn small_len(&self) -> usize {
        self.head.len() + self.behind.len()
    }

    /// A mark behind everything that was put in so far.
    pub(crate) const fn mark(&self) -> u64 {
        self.put
    }

    /// True if everything before the mark is on the wire.
    pub(crate) const fn has_gone(&self, mark: u64) -> bool {
        self.gone > mark || (self.gone == mark && !self.unflushed)
    }

    /// Puts in a chunk of data; only if [`is_free`](Self::is_free).
    pub(crate) fn put_data(&mut self, kind: Kind, stream: u32, data: Bytes) {
        debug_assert!(self.is_free());
        self.put += data.len() as u64;
        self.put_small(kind, stream, data.len() as u32, &[]);
        self.body = data;
    }

    /// Puts in a chunk that is not data.
    pub(crate) fn put_control(&mut self, kind: Kind, stream: u32, payload: &[u8]) {
        self.put_small(kind, stream, payload.len() as u32, payload);
    }

    /// Puts in an answer to a ping, unless one is under way already: a peer that asks and does not read must not fill
    /// the memory.
    pub(crate) fn put_pong(&mut self) {
        if self.gone >= self.pong_mark {
            self.put_control(Kind::Pong, 0, &[]);
            self.pong_mark = self.put;
        }
    }

    /// Writes until everything is on the wire; pending if the socket takes no more for now.
    pub(crate) fn poll_flush<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.has_more() {
            let parts = [IoSlice::new(&self.head[self.head_at..]), IoSlice::new(&self.body)];
            let count = ready!(Pin::new(&mut *socket).poll_write_vectored(cx, &parts))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count);
        }
        if self.unflushed {
            ready!(Pin::new(socket).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn put_small(&mut self, kind: Kind, stream: u32, len: u32, payload: &[u8]) {
        let header = Header { kind, stream, len }.encode();
        self.put += (header.len() + payload.len()) as u64;
        let place = if self.body.is_empty() { &mut self.head } else { &mut self.behind };
        place.extend_from_slice(&header);
        place.extend_from_slice(payload);
    }

    fn has_more(&mut self) -> bool {
        if self.body.is_empty() && !self.behind.is_empty() {
            self.head.append(&mut self.behind);
        }
        self.head_at < self.head.len() || !self.body.is_empty()
    }

    fn advance(&mut self, count: usize) {
        self.unflushed = true;
        self.gone += count as u64;
        let of_head = count.min(self.head.len() - self.head_at);
        self.head_at += of_head;
        if self.head_at == self.head.len() {
            self.head.clear();
            self.head_at = 0;
        }
        self.body.advance(count - of_head);
        if self.body.is_empty() {
            // Lets go of the sender's buffer at once, so that it can be used again.
            self.body = Bytes::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes per write, and blocks after each.
    struct Narrow {
        taken: Vec<u8>,
        width: usize,
        open: bool,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
            self.open = !self.open;
            if !self.open {
                return Poll::Pending;
            }
            let count = data.len().min(self.width);
            self.taken.extend_from_slice(&data[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_were_put_in() {
        for width in [1, 2, 7, 9, 100] {
            let (mut outgoing, mut expected) = (Outgoing::default(), Vec::new());
            let mut socket = Narrow { taken: Vec::new(), width, open: false };
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for n in 0..20_u8 {
                while !outgoing.is_free() {
                    let _ = outgoing.poll_flush(&mut socket, &mut cx);
                }
                outgoing.put_control(Kind::Credit, 0, &[n; 4]);
                outgoing.put_data(Kind::Lane, 0, Bytes::from(vec![n; 30]));
                outgoing.put_control(Kind::End, 1, &[]);
                expected.extend_from_slice(&Header { kind: Kind::Credit, stream: 0, len: 4 }.encode());
                expected.extend_from_slice(&[n; 4]);
                expected.extend_from_slice(&Header { kind: Kind::Lane, stream: 0, len: 30 }.encode());
                expected.extend_from_slice(&[n; 30]);
                expected.extend_from_slice(&Header { kind: Kind::End, stream: 1, len: 0 }.encode());
                let _ = outgoing.poll_flush(&mut socket, &mut cx);
            }
            let mark = outgoing.mark();
            while outgoing.poll_flush(&mut socket, &mut cx).is_pending() {
                assert!(!outgoing.has_gone(mark));
            }
            assert!(outgoing.has_gone(mark));
            assert_eq!(socket.taken, expected, "{width}");
        }
    }

    #[test]
    fn a_peer_that_asks_and_does_not_read_gets_one_answer() {
        let mut outgoing = Outgoing::default();
        for _ in 0..1_000 {
            outgoing.put_pong();
        }
        assert_eq!(outgoing.small_len(), crate::chunk::HEADER);
    }
}
