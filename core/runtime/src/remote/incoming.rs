//! What came in over one connection and has not ended: how much it is, and when to stop reading.
//!
//! Large messages have a window of their own: one of them alone would shut that of the lane, and everybody else would wait
//! until it is decoded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use archipelago_protocol::link::{Window, WindowSettings};
use archipelago_protocol::peer::ConnectionId;
use futures_util::task::AtomicWaker;

use super::window::SharedWindow;

/// The receiving side of one connection of a lane. Jobs hold on to it until they end.
pub(crate) struct Incoming {
    lane: u16,
    connection: ConnectionId,
    window: SharedWindow,
    large: Mutex<Window>,
    reader: AtomicWaker,
}

impl Incoming {
    pub(super) fn new(lane: u16, connection: ConnectionId, window: WindowSettings) -> Self {
        let large = Mutex::new(Window::new(window));
        Self { lane, connection, window: SharedWindow::new(window), large, reader: AtomicWaker::new() }
    }

    /// The lane it belongs to.
    pub(crate) const fn lane(&self) -> u16 {
        self.lane
    }

    /// Which connection of the lane it is.
    pub(super) const fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Whether more may be read now. If not, the reader is woken when it is worth trying again.
    pub(super) fn may_read(&self, waker: &Waker) -> bool {
        if self.window.may_read() {
            return true;
        }
        self.reader.register(waker);
        // A job may have ended just before.
        self.window.may_read()
    }

    /// Whether one more large message may be read now.
    pub(super) fn may_read_large(&self) -> bool {
        lock(&self.large).may_read()
    }

    #[inline]
    fn release(&self, bytes: u32) {
        if self.window.release(bytes) {
            self.reader.wake();
        }
    }
}

fn lock(window: &Mutex<Window>) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job's share of its connection's window; given back when it is dropped.
pub(crate) struct Held {
    incoming: Arc<Incoming>,
    bytes: u32,
    is_large: bool,
}

impl Held {
    /// Takes `bytes` of the window.
    pub(super) fn take(incoming: &Arc<Incoming>, bytes: usize) -> Self {
        let bytes = length(bytes);
        incoming.window.admit(bytes);
        Self { incoming: Arc::clone(incoming), bytes, is_large: false }
    }

    /// Takes `bytes` of the window for large messages.
    pub(super) fn take_large(incoming: &Arc<Incoming>, bytes: usize) -> Self {
        let bytes = length(bytes);
        lock(&incoming.large).admit(bytes as usize);
        Self { incoming: Arc::clone(incoming), bytes, is_large: true }
    }

    /// Whether the message is large.
    pub(super) const fn is_large(&self) -> bool {
        self.is_large
    }

    /// The connection it came by.
    pub(crate) fn incoming(&self) -> &Arc<Incoming> {
        &self.incoming
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_large {
            lock(&self.incoming.large).release(self.bytes as usize);
        } else {
            self.incoming.release(self.bytes);
        }
    }
}

/// No message is longer than 32 bits can say.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_message_keeps_other_large_ones_waiting_and_nobody_else() {
        let window = WindowSettings { bytes: 100, jobs: 9 };
        let incoming = Arc::new(Incoming::new(0, ConnectionId(1), window));
        let large = Held::take_large(&incoming, 1_000);
        assert!(incoming.may_read(Waker::noop()) && !incoming.may_read_large());
        let small = Held::take(&incoming, 101);
        assert!(!incoming.may_read(Waker::noop()));
        drop((large, small));
        assert!(incoming.may_read(Waker::noop()) && incoming.may_read_large());
    }
}
