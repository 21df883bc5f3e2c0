//! The two directions of the lane.

use std::task::{Context, Poll, ready};

use archipelago_protocol::contract::{RecvStream, SendStream, TransportError};
use bytes::{Bytes, BytesMut};

use crate::chunk::Kind;
use crate::connection::Conn;
use crate::shared::Part;

/// The lane to the other side.
pub(crate) struct LaneSender {
    part: Part,
    /// Behind the last byte that was taken.
    mark: u64,
}

/// The lane from the other side.
pub(crate) struct LaneReceiver {
    part: Part,
}

impl LaneSender {
    pub(crate) const fn new(part: Part) -> Self {
        Self { part, mark: 0 }
    }
}

impl LaneReceiver {
    pub(crate) const fn new(part: Part) -> Self {
        Self { part }
    }
}

impl SendStream for LaneSender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let mut conn = self.part.lock();
        conn.check()?;
        while !data.is_empty() {
            ready!(poll_room(&mut conn, cx));
            let credit = usize::try_from(conn.mux.lane_out.credit).unwrap_or(usize::MAX);
            let count = data.len().min(credit).min(MAX_CHUNK);
            conn.check()?;
            if count == 0 {
                conn.mux.lane_out.wait(cx.waker());
                return Poll::Pending;
            }
            conn.mux.lane_out.credit -= count as u64;
            conn.mux.outgoing.put_data(Kind::Lane, 0, data.split_to(count));
            self.mark = conn.mux.outgoing.mark();
            // What the socket does not take now stays in the connection, and the driver writes it.
            let _ = conn.flush();
        }
        conn.check()?;
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        poll_gone(&mut self.part.lock(), self.mark, cx)
    }
}

impl RecvStream for LaneReceiver {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        let mut conn = self.part.lock();
        conn.check_discards()?;
        let mut count = conn.mux.lane_in.read(into);
        if count == 0 {
            conn.check()?;
            let before = into.len();
            // Before reading, so that whatever comes meanwhile wakes this task.
            conn.bells.read.lead(cx.waker());
            conn.pump(Some(into));
            count = into.len() - before;
        }
        if count > 0 {
            conn.bells.read.step_down();
            conn.mux.give_lane_credit();
            let _ = conn.flush();
            return Poll::Ready(Ok(count));
        }
        conn.check()?;
        Poll::Pending
    }
}

impl Drop for LaneReceiver {
    fn drop(&mut self) {
        let conn = self.part.lock();
        conn.bells.read.step_down();
        // Somebody else has to read from now on.
        conn.bells.read.wake_driver();
    }
}

/// Waits until a chunk of the lane can be put in.
fn poll_room(conn: &mut Conn, cx: &mut Context<'_>) -> Poll<()> {
    let blocked = conn.flush().is_pending();
    conn.mux.lane_out.waits_for_room = blocked;
    if blocked {
        conn.bells.write.wait(cx.waker());
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// Waits until everything before `mark` is on the wire.
pub(crate) fn poll_gone(
    conn: &mut Conn,
    mark: u64,
    cx: &mut Context<'_>,
) -> Poll<Result<(), TransportError>> {
    conn.check()?;
    let _ = conn.flush();
    conn.check()?;
    if conn.mux.outgoing.has_gone(mark) {
        return Poll::Ready(Ok(()));
    }
    conn.bells.write.wait(cx.waker());
    Poll::Pending
}

/// The largest chunk of the lane. A larger batch goes in several, so that an answer to a ping is not stuck behind it.
const MAX_CHUNK: usize = 1 << 20;
