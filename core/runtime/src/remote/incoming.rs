//! What came in over one connection and has not ended: how much it is, and when to stop reading.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use archipelago_protocol::link::{Window, WindowSettings};
use archipelago_protocol::peer::ConnectionId;
use futures_util::task::AtomicWaker;

/// The receiving side of one connection of a lane. Jobs hold on to it until they end.
pub(crate) struct Incoming {
    lane: u16,
    connection: ConnectionId,
    window: Mutex<Window>,
    reader: AtomicWaker,
}

impl Incoming {
    pub(super) fn new(lane: u16, connection: ConnectionId, window: WindowSettings) -> Self {
        Self { lane, connection, window: Mutex::new(Window::new(window)), reader: AtomicWaker::new() }
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
        if self.with(|window| window.may_read()) {
            return true;
        }
        self.reader.register(waker);
        // A job may have ended just before.
        self.with(|window| window.may_read())
    }

    /// How many of its messages have not ended.
    pub(super) fn jobs(&self) -> usize {
        self.with(|window| window.jobs())
    }

    fn release(&self, bytes: usize) {
        let opened = self.with(|window| {
            let was_shut = !window.may_read();
            window.release(bytes);
            was_shut && window.may_read()
        });
        if opened {
            self.reader.wake();
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Window) -> T) -> T {
        work(&mut self.window.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A job's share of its connection's window; given back when it is dropped.
pub(crate) struct Held {
    incoming: Arc<Incoming>,
    bytes: usize,
}

impl Held {
    /// Takes `bytes` of the window.
    pub(super) fn take(incoming: &Arc<Incoming>, bytes: usize) -> Self {
        incoming.with(|window| window.admit(bytes));
        Self { incoming: Arc::clone(incoming), bytes }
    }

    /// The connection it came by.
    pub(crate) fn incoming(&self) -> &Arc<Incoming> {
        &self.incoming
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.incoming.release(self.bytes);
    }
}
