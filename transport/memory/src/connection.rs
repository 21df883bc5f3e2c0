//! The parts of a connection that a node holds.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use archipelago_protocol::contract::{
    CloseReason, Connection, PeerIdentity, RecvStream, SendStream, Streams, TransportError,
};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::mutants::Mutant;
use crate::state::Key;
use crate::wait::{Look, Shared, Wait};

/// One end of a connection. When the last part that holds it is dropped, the connection ends.
pub(crate) struct Half {
    shared: Arc<Shared>,
    conn: u64,
    side: usize,
}

impl Half {
    pub(crate) fn new(shared: &Arc<Shared>, conn: u64, side: usize) -> Arc<Self> {
        Arc::new(Self { shared: Arc::clone(shared), conn, side })
    }

    const fn end(&self) -> (u64, usize) {
        (self.conn, self.side)
    }

    /// The parts of this end.
    pub(crate) fn connection(self: Arc<Self>) -> Connection {
        Connection {
            peer: self.peer(),
            outgoing: Box::new(MemorySend::new(&self, Key::Lane)),
            incoming: Box::new(MemoryRecv::new(&self, Key::Lane)),
            streams: Box::new(MemoryStreams { half: self }),
        }
    }

    fn peer(&self) -> PeerIdentity {
        let identity = |conn: &crate::state::Conn| conn.sides[1 - self.side].identity.clone();
        self.shared.with(|state, _| state.conns.get(&self.conn).map(identity)).unwrap_or_default()
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.shared.with(|state, now| state.release(self.conn, self.side, now));
    }
}

/// A lane or a stream to the other side.
struct MemorySend {
    half: Arc<Half>,
    key: Key,
    wait: Wait,
    finished: bool,
}

impl MemorySend {
    fn new(half: &Arc<Half>, key: Key) -> Self {
        Self { half: Arc::clone(half), key, wait: Wait::default(), finished: false }
    }
}

impl SendStream for MemorySend {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let (end, key) = (self.half.end(), self.key);
        if self.finished {
            return Poll::Ready(Err(TransportError::Lost { reason: "the stream was finished".to_owned() }));
        }
        let shared = &self.half.shared;
        self.wait.poll(cx, shared, |state, now, waker| state.look_send(end, key, data, now, waker))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let (end, key) = (self.half.end(), self.key);
        if self.finished {
            return Poll::Ready(Ok(()));
        }
        let done = self.wait.poll(cx, &self.half.shared, |state, now, _| state.finish(end, key, now));
        self.finished = key != Key::Lane && matches!(done, Poll::Ready(Ok(())));
        done
    }
}

impl Drop for MemorySend {
    fn drop(&mut self) {
        if let Key::Stream(n) = self.key {
            let half = &self.half;
            half.shared.with(|state, now| state.writer_drops(half.end(), n, now));
        }
    }
}

/// A lane or a stream from the other side.
struct MemoryRecv {
    half: Arc<Half>,
    key: Key,
    wait: Wait,
}

impl MemoryRecv {
    fn new(half: &Arc<Half>, key: Key) -> Self {
        Self { half: Arc::clone(half), key, wait: Wait::default() }
    }
}

impl RecvStream for MemoryRecv {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        let (end, key) = (self.half.end(), self.key);
        let shared = &self.half.shared;
        self.wait.poll(cx, shared, |state, now, waker| state.look_recv(end, key, into, now, waker))
    }
}

impl Drop for MemoryRecv {
    fn drop(&mut self) {
        if let Key::Stream(n) = self.key {
            self.half.shared.with(|state, _| state.reader_drops(self.half.end(), n));
        }
    }
}

/// The streams of a connection, and its end.
struct MemoryStreams {
    half: Arc<Half>,
}

#[async_trait]
impl Streams for MemoryStreams {
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError> {
        let (mut wait, end) = (Wait::default(), self.half.end());
        let look = |cx: &mut Context<'_>| {
            wait.poll(cx, &self.half.shared, |state, now, waker| state.look_open(end, now, waker))
        };
        let n = poll_fn(look).await?;
        Ok(Box::new(MemorySend::new(&self.half, Key::Stream(n))))
    }

    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError> {
        let (mut wait, end) = (Wait::default(), self.half.end());
        let look = |cx: &mut Context<'_>| {
            wait.poll(cx, &self.half.shared, |state, now, waker| state.look_next(end, now, waker))
        };
        let n = poll_fn(look).await?;
        let stream = Box::new(MemoryRecv::new(&self.half, Key::Stream(n)));
        stand_back_if(&self.half.shared, Mutant::NextLosesStreams).await;
        Ok(stream)
    }

    fn close(&self, reason: CloseReason) {
        let (conn, side) = self.half.end();
        let reason = CloseReason::new(reason.code, reason.text);
        self.half.shared.with(|state, now| state.close(conn, side, reason, now));
    }
}

/// Gives up the turn once if this rule is broken.
pub(crate) async fn stand_back_if(shared: &Shared, rule: Mutant) {
    let mut stood_back = !shared.with(|state, _| state.broken(rule));
    poll_fn(|cx| {
        if std::mem::replace(&mut stood_back, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for an answer of the network that needs only time.
pub(crate) async fn look<T>(
    shared: &Shared,
    mut look: impl FnMut(
        &mut crate::state::State,
        archipelago_protocol::time::Millis,
        &std::task::Waker,
    ) -> Look<T>,
) -> T {
    let mut wait = Wait::default();
    poll_fn(|cx| wait.poll(cx, shared, &mut look)).await
}
