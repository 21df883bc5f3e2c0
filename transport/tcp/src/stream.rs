//! The streams beside the lane.

use std::future::poll_fn;
use std::task::{Context, Poll};

use archipelago_protocol::contract::{
    CloseCode, CloseReason, RecvStream, SendStream, Streams, TransportError,
};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use crate::chunk::Kind;
use crate::connection::Conn;
use crate::lane::poll_gone;
use crate::receivers::Outcome;
use crate::shared::Part;

/// Opens and accepts streams.
pub(crate) struct TcpStreams {
    part: Part,
    chunk: usize,
}

/// A stream that this side has opened.
struct StreamSender {
    part: Part,
    stream: u32,
    chunk: usize,
    /// Behind its end; none while it goes on.
    finished: Option<u64>,
    /// It has let the lane go first once already.
    yielded: bool,
}

/// A stream that the other side has opened.
struct StreamReceiver {
    part: Part,
    stream: u32,
    outcome: Option<Outcome>,
}

impl TcpStreams {
    pub(crate) const fn new(part: Part, chunk: usize) -> Self {
        Self { part, chunk }
    }

    fn poll_open(&self, cx: &mut Context<'_>) -> Poll<Result<u32, TransportError>> {
        let mut conn = self.part.lock();
        conn.check()?;
        let Some(stream) = conn.mux.senders.open() else {
            conn.mux.senders.waiting.add(cx.waker());
            return Poll::Pending;
        };
        conn.mux.outgoing.put_control(Kind::Open, stream, &[]);
        let _ = conn.flush();
        Poll::Ready(Ok(stream))
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<u32, TransportError>> {
        let mut conn = self.part.lock();
        conn.check_discards()?;
        if let Some(stream) = conn.mux.receivers.next() {
            return Poll::Ready(Ok(stream));
        }
        conn.check()?;
        conn.mux.receivers.waiting.add(cx.waker());
        Poll::Pending
    }
}

#[async_trait]
impl Streams for TcpStreams {
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError> {
        let stream = poll_fn(|cx| self.poll_open(cx)).await?;
        let (part, chunk) = (self.part.clone(), self.chunk);
        Ok(Box::new(StreamSender { part, stream, chunk, finished: None, yielded: false }))
    }

    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError> {
        let stream = poll_fn(|cx| self.poll_next(cx)).await?;
        Ok(Box::new(StreamReceiver { part: self.part.clone(), stream, outcome: None }))
    }

    fn close(&self, reason: CloseReason) {
        self.part.lock().close(reason);
    }
}

impl SendStream for StreamSender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>> {
        let Self { part, stream, chunk, finished, yielded } = self;
        let mut conn = part.lock();
        conn.check()?;
        if finished.is_some() {
            return Poll::Ready(Err(invalid("the stream was finished before")));
        }
        while !data.is_empty() {
            let blocked = conn.flush().is_pending();
            conn.check()?;
            let credit = conn.mux.senders.credit(*stream).ok_or_else(unwanted)?;
            if blocked {
                conn.bells.write.wait(cx.waker());
                return Poll::Pending;
            }
            let count = data.len().min(*chunk).min(usize::try_from(credit).unwrap_or(usize::MAX));
            if count == 0 {
                conn.mux.senders.wait(*stream, cx.waker());
                return Poll::Pending;
            }
            if conn.mux.lane_out.waits_for_room && !*yielded {
                *yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            *yielded = false;
            send_chunk(&mut conn, *stream, data.split_to(count));
        }
        conn.check()?;
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut conn = self.part.lock();
        conn.check()?;
        let mark = match self.finished {
            Some(mark) => mark,
            None => {
                conn.mux.senders.credit(self.stream).ok_or_else(unwanted)?;
                conn.mux.outgoing.put_control(Kind::End, self.stream, &[]);
                *self.finished.insert(conn.mux.outgoing.mark())
            }
        };
        poll_gone(&mut conn, mark, cx)
    }
}

impl Drop for StreamSender {
    fn drop(&mut self) {
        let mut conn = self.part.lock();
        let unreleased = conn.mux.senders.on_dropped(self.stream);
        if unreleased && self.finished.is_none() && conn.end().is_none() {
            conn.mux.outgoing.put_control(Kind::Reset, self.stream, &[]);
            let _ = conn.flush();
        }
    }
}

impl RecvStream for StreamReceiver {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut BytesMut,
    ) -> Poll<Result<usize, TransportError>> {
        let mut conn = self.part.lock();
        conn.check_discards()?;
        if let Some(outcome) = self.outcome {
            return Poll::Ready(answer(outcome));
        }
        let mut count = conn.mux.receivers.read(self.stream, into);
        if count == 0 && conn.end().is_none() {
            conn.pump(None);
            count = conn.mux.receivers.read(self.stream, into);
        }
        if count > 0 {
            conn.mux.give_stream_credit(self.stream);
            let _ = conn.flush();
            return Poll::Ready(Ok(count));
        }
        if let Some(outcome) = conn.mux.receivers.outcome(self.stream) {
            self.outcome = Some(outcome);
            release(&mut conn, self.stream);
            return Poll::Ready(answer(outcome));
        }
        conn.check()?;
        conn.mux.receivers.wait(self.stream, cx.waker());
        Poll::Pending
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        release(&mut self.part.lock(), self.stream);
    }
}

fn send_chunk(conn: &mut Conn, stream: u32, data: Bytes) {
    conn.mux.senders.spend(stream, data.len());
    conn.mux.outgoing.put_data(Kind::Data, stream, data);
    // What the socket does not take now stays in the connection, and the driver writes it.
    let _ = conn.flush();
}

fn release(conn: &mut Conn, stream: u32) {
    conn.mux.release(stream);
    if conn.end().is_none() {
        let _ = conn.flush();
    }
}

fn answer(outcome: Outcome) -> Result<usize, TransportError> {
    match outcome {
        Outcome::Finished => Ok(0),
        Outcome::GivenUp => Err(TransportError::Lost { reason: "the sender has given the stream up".into() }),
    }
}

fn unwanted() -> TransportError {
    TransportError::Closed(CloseReason::new(CloseCode::Done, "the other side does not read this stream"))
}

fn invalid(what: &str) -> TransportError {
    TransportError::Invalid { what: what.into(), source: None }
}
