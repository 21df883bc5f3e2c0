//! What the parts of one connection share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use futures_util::task::AtomicWaker;
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::closing::{Closing, Farewells, farewell};
use crate::errors::ended;

/// One connection, shared by its lane and its streams. When the last of them goes, the connection ends in good order.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Connection,
    closing: Closing,
    /// The outgoing half of the lane: whoever closes must be able to finish it.
    lane: Mutex<SendStream>,
    /// The incoming half, when its part has been dropped. Dropping it alone would tell the other side to stop sending,
    /// which would overtake the reason of the close.
    unread: Mutex<Option<RecvStream>>,
    /// One task per finished stream of which the other side may not yet have everything.
    arriving: Mutex<JoinSet<()>>,
    farewells: Arc<Farewells>,
    close_limit: Duration,
    runtime: Handle,
}

impl Link {
    /// A link over `connection`, whose outgoing lane is `lane`. To be called in the runtime that drives it.
    pub(crate) fn new(
        connection: Connection,
        lane: SendStream,
        farewells: Arc<Farewells>,
        close_limit: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection,
            closing: Closing::default(),
            lane: Mutex::new(lane),
            unread: Mutex::new(None),
            arriving: Mutex::new(JoinSet::new()),
            farewells,
            close_limit,
            runtime: Handle::current(),
        })
    }

    /// Closes the connection; the first reason counts.
    pub(crate) fn close(&self, reason: CloseReason) {
        if self.connection.close_reason().is_none() && self.closing.begin(reason.clone()) {
            self.say_farewell(reason);
        }
    }

    /// Lets a close wait until the other side has all of `stream`, which is finished.
    pub(crate) fn keep_until_arrived(&self, stream: &SendStream) {
        let stopped = stream.stopped();
        let mut arriving = lock(&self.arriving);
        while arriving.try_join_next().is_some() {}
        arriving.spawn_on(
            async move {
                // An error means that the connection has ended, and then nothing is left to wait for.
                let _ = stopped.await;
            },
            &self.runtime,
        );
    }

    /// Keeps the incoming half of the lane, which nobody reads any more.
    pub(crate) fn keep_unread(&self, stream: RecvStream) {
        *lock(&self.unread) = Some(stream);
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn lane(&self) -> MutexGuard<'_, SendStream> {
        lock(&self.lane)
    }

    pub(crate) fn sleeper(&self) -> Arc<AtomicWaker> {
        self.closing.sleeper()
    }

    /// Polls `operation`, unless this side has closed.
    pub(crate) fn poll_open<T>(
        &self,
        cx: &mut Context<'_>,
        sleeper: &AtomicWaker,
        operation: impl FnOnce(&mut Context<'_>) -> Poll<Result<T, TransportError>>,
    ) -> Poll<Result<T, TransportError>> {
        self.closing.poll_unless(cx, sleeper, operation)
    }

    /// What `error`, met on this connection, means.
    pub(crate) fn ended(&self, error: &ConnectionError) -> TransportError {
        ended(error, self.closing.reason())
    }

    fn say_farewell(&self, reason: CloseReason) {
        let mut lane = self.lane();
        // It can only have been finished before if the connection has ended.
        let _ = lane.finish();
        let arriving = std::mem::take(&mut *lock(&self.arriving));
        let unread = lock(&self.unread).take();
        let (stopped, connection, limit) = (lane.stopped(), self.connection.clone(), self.close_limit);
        let counted = self.farewells.begin();
        self.runtime.spawn(async move {
            farewell(connection, stopped, arriving, limit, reason).await;
            drop((unread, counted));
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close(CloseReason::new(CloseCode::Done, "dropped"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
