//! A connection as its parts share it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use archipelago_protocol::contract::{CloseCode, CloseReason};

use crate::bell::Waiters;
use crate::connection::Conn;

/// A connection and who has a part in it.
pub(crate) struct Shared {
    conn: Mutex<Conn>,
    parts: AtomicUsize,
    over: Over,
}

/// Whether the driver has wound the connection down.
#[derive(Default)]
struct Over {
    done: std::sync::atomic::AtomicBool,
    waiting: Waiters,
}

impl Shared {
    pub(crate) fn new(conn: Conn) -> Arc<Self> {
        Arc::new(Self { conn: Mutex::new(conn), parts: AtomicUsize::new(0), over: Over::default() })
    }

    /// The connection. Nobody holds it across a wait, and nearly always nobody else wants it: all parts of a
    /// connection live on one thread.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Conn> {
        self.conn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the driver is done with it.
    pub(crate) fn set_over(&self) {
        self.over.done.store(true, Ordering::Release);
        self.over.waiting.wake_all();
    }

    /// Waits until the driver is done with it.
    pub(crate) async fn over(&self) {
        poll_fn(|cx| {
            self.over.waiting.add(cx.waker());
            if self.over.done.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A part of a connection. When the last one is dropped the connection is closed.
pub(crate) struct Part(Arc<Shared>);

impl Part {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.parts.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Conn> {
        self.0.lock()
    }
}

impl Clone for Part {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.0.parts.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.lock()
                .close(CloseReason::new(CloseCode::Done, "the other side has let go of the connection"));
        }
    }
}
