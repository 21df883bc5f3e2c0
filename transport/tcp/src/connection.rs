//! One connection: its socket, and what whoever polls does with it.
//!
//! Everything here happens under the lock of [`super::shared::Shared`] and never waits. A task that polls reads and
//! writes the socket itself; the socket knows only the bells, and these know the tasks.
//!
//! Invariant: after a poll that read, either the socket will ring the read bell when more comes, or the driver was
//! woken, or the connection has ended.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use bytes::BytesMut;
use tokio::io::AsyncWrite;

use crate::bell::{ReadBell, WriteBell};
use crate::chunk::{self, Kind};
use crate::end::End;
use crate::incoming::Incoming;
use crate::mux::Mux;
use crate::preamble::Offer;
use crate::socket::Socket;

/// The state of one connection.
pub(crate) struct Conn {
    /// None when the driver has wound it down.
    socket: Option<Socket>,
    incoming: Incoming,
    pub(crate) mux: Mux,
    pub(crate) bells: Bells,
    end: Option<End>,
    /// Something has come since the driver looked last.
    heard: bool,
}

/// Whom the socket wakes.
pub(crate) struct Bells {
    pub(crate) read: Arc<ReadBell>,
    pub(crate) write: Arc<WriteBell>,
    read_waker: Waker,
    write_waker: Waker,
}

impl Conn {
    pub(crate) fn new(socket: Socket, ours: Offer, theirs: Offer) -> Self {
        let (read, write) = (Arc::new(ReadBell::default()), Arc::new(WriteBell::default()));
        let (read_waker, write_waker) = (Waker::from(read.clone()), Waker::from(write.clone()));
        Self {
            socket: Some(socket),
            incoming: Incoming::new(),
            mux: Mux::new(ours, theirs),
            bells: Bells { read, write, read_waker, write_waker },
            end: None,
            heard: false,
        }
    }

    /// Reads until nothing more comes for now, and answers what must be answered. Bytes of the lane go to `sink`.
    pub(crate) fn pump(&mut self, sink: Option<&mut BytesMut>) {
        self.read_all(sink);
        // Answers, credit and releases may wait.
        let _ = self.flush();
    }

    /// Writes what waits. Pending if the socket takes no more for now; then the write bell will ring.
    pub(crate) fn flush(&mut self) -> Poll<()> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(()) };
        let mut cx = Context::from_waker(&self.bells.write_waker);
        match self.mux.outgoing.poll_flush(socket, &mut cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                self.on_write_error(&error);
                Poll::Ready(())
            }
        }
    }

    /// Closes the connection, unless it has ended before.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        if self.end.is_none() {
            self.mux.outgoing.put_control(Kind::Close, 0, &chunk::encode_close(&reason));
            self.finish(End::ByUs(reason));
            let _ = self.flush();
        }
    }

    /// Ends the connection as lost, unless it has ended before.
    pub(crate) fn lose(&mut self, reason: String) {
        self.finish(End::Lost(reason));
    }

    /// Asks the peer for a sign of life.
    pub(crate) fn ask(&mut self) {
        self.mux.outgoing.put_control(Kind::Ping, 0, &[]);
        let _ = self.flush();
    }

    /// Winds the socket down after a close of this side: writes the rest, says that no more comes, and reads until
    /// the other side has done the same. Closing earlier could destroy what the other side has not read yet.
    pub(crate) fn poll_wind_down(&mut self) -> Poll<()> {
        if self.flush().is_ready() {
            let _ = self.poll_shutdown();
        }
        let Some(socket) = &mut self.socket else { return Poll::Ready(()) };
        let mut cx = Context::from_waker(&self.bells.read_waker);
        loop {
            match self.incoming.poll_discard(socket, &mut cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Says that no more comes.
    pub(crate) fn poll_shutdown(&mut self) -> Poll<io::Result<()>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Ok(())) };
        std::pin::Pin::new(socket).poll_shutdown(&mut Context::from_waker(&self.bells.write_waker))
    }

    /// Lets go of the socket and of everything that nobody can read any more.
    pub(crate) fn drop_socket(&mut self) {
        self.socket = None;
        self.mux.outgoing = Default::default();
    }

    /// Whether anything has come since the last call.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    /// How the connection has ended, if it has.
    pub(crate) const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The error of a connection that has ended.
    pub(crate) fn check(&self) -> Result<(), TransportError> {
        self.end.as_ref().map_or(Ok(()), |end| Err(end.error()))
    }

    /// The error of a connection that this side has closed: what came before is not handed out any more.
    pub(crate) fn check_discards(&self) -> Result<(), TransportError> {
        self.end.as_ref().filter(|end| end.discards()).map_or(Ok(()), |end| Err(end.error()))
    }

    fn read_all(&mut self, mut sink: Option<&mut BytesMut>) {
        let start = sink.as_ref().map_or(0, |sink| sink.len());
        loop {
            self.dispatch(sink.as_deref_mut());
            if self.end.is_some() {
                return;
            }
            if sink.as_ref().is_some_and(|sink| sink.len() - start >= ENOUGH) {
                self.bells.read.wake_driver();
                return;
            }
            if self.fill().is_pending() {
                return;
            }
        }
    }

    fn fill(&mut self) -> Poll<()> {
        let Some(socket) = &mut self.socket else { return Poll::Pending };
        let mut cx = Context::from_waker(&self.bells.read_waker);
        match self.incoming.poll_fill(socket, &mut cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0)) => self.lose("the peer went away without a word".into()),
            Poll::Ready(Ok(_)) => self.heard = true,
            Poll::Ready(Err(error)) => self.lose(format!("reading failed: {error}")),
        }
        Poll::Ready(())
    }

    fn dispatch(&mut self, mut sink: Option<&mut BytesMut>) {
        let outcome = loop {
            match self.incoming.next() {
                Ok(None) => break Ok(()),
                Err(malformed) => break Err(malformed),
                Ok(Some(piece)) => {
                    if let Err(malformed) = self.mux.handle(piece, sink.as_deref_mut(), &self.bells.read) {
                        break Err(malformed);
                    }
                }
            }
            if self.mux.closed.is_some() {
                break Ok(());
            }
        };
        if let Err(malformed) = outcome {
            self.close(CloseReason::new(CloseCode::Protocol, malformed.0));
        } else if let Some(end) = self.mux.closed.take() {
            self.finish(end);
        }
    }

    /// The peer may have said why before it went: what it said is still to be read.
    fn on_write_error(&mut self, error: &io::Error) {
        if self.end.is_none() {
            self.read_all(None);
            self.lose(format!("writing failed: {error}"));
        }
    }

    fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.mux.wake_all();
            self.bells.read.wake_leader();
            self.bells.read.wake_driver();
            self.bells.write.wake_waiting();
        }
    }
}

/// After so many bytes of the lane in one poll its reader may look at them first.
const ENOUGH: usize = 256 << 10;
