//! The task that moves the bytes of one connection: everything that waits goes out in one write, everything that came is
//! handled at once.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use archipelago_protocol::contract::{CloseCode, CloseReason, RecvStream, SendStream, TransportError};
use archipelago_protocol::link::{FrameError, next_frame};
use archipelago_protocol::time::Millis;
use bytes::{Buf, Bytes, BytesMut};

use super::incoming::Incoming;
use super::lane::Lane;
use super::large_in::Brought;
use crate::node::NodeShared;
use crate::refs::decoding;

/// Takes the frames that come over a lane.
pub(crate) trait FrameSink {
    /// Takes one frame, its tag and body, which was read at `now` by the coarse clock. It is decoded where it is looked at: one
    /// that is passed on is copied.
    ///
    /// # Errors
    ///
    /// The peer must not say this: the connection is closed with the reason.
    fn take(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        frame: &[u8],
        now: Millis,
    ) -> Result<(), Violation>;

    /// Takes what a stream beside the lane has brought.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    fn take_large(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        transfer: u64,
        brought: Brought,
    ) -> Result<(), Violation>;

    /// The connection of a lane is gone.
    fn lost(&self, lane: &Rc<Lane>, incoming: &Incoming);

    /// Looks after what else has a deadline.
    fn sweep(&self) {}

    /// How many messages wait until it is known where they go, or behind a large one.
    fn waiting(&self) -> usize {
        0
    }

    /// How many bytes of messages wait until it is known where they go.
    fn waiting_bytes(&self) -> usize {
        0
    }
}

/// The peer broke the rules.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Meaning(String),
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// By the network, or by the other side.
    Transport(TransportError),
    /// By us, because of what the peer said.
    Violation(Violation),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}

impl Ending {
    pub(super) fn reason(&self) -> Option<CloseReason> {
        match self {
            Self::Transport(_) => None,
            Self::Violation(violation) => Some(CloseReason::new(CloseCode::Protocol, violation.to_string())),
        }
    }
}

/// The bytes of one connection on their way in both directions. Ends when the connection does.
pub(super) struct Drive {
    node: Arc<NodeShared>,
    lane: Rc<Lane>,
    incoming: Arc<Incoming>,
    sink: Rc<dyn FrameSink>,
    out: Box<dyn SendStream>,
    batch: Bytes,
    input: Box<dyn RecvStream>,
    read: BytesMut,
    /// What came together with the handshake has not been looked at.
    leftover: bool,
    frame: usize,
    /// How many bytes of answers may wait for a peer that asks and does not read.
    answers: usize,
}

impl Drive {
    pub(super) fn new(
        node: Arc<NodeShared>,
        (lane, incoming): (Rc<Lane>, Arc<Incoming>),
        sink: Rc<dyn FrameSink>,
        (out, input): (Box<dyn SendStream>, Box<dyn RecvStream>),
        read: BytesMut,
    ) -> Self {
        let settings = &node.settings().remote;
        let (frame, answers, leftover) =
            (super::longest_frame(settings), settings.answer_bytes, !read.is_empty());
        Self { node, lane, incoming, sink, out, batch: Bytes::new(), input, read, leftover, frame, answers }
    }

    /// Writes until nothing waits or the network takes no more.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), Ending> {
        loop {
            if self.batch.is_empty() {
                match self.lane.take_batch(self.node.env().coarse()) {
                    Some(batch) => self.batch = batch,
                    None => return Ok(()),
                }
            }
            match self.out.poll_send(cx, &mut self.batch) {
                Poll::Ready(Ok(())) => self.batch = Bytes::new(),
                Poll::Ready(Err(error)) => return Err(Ending::Transport(error)),
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Reads what has come, up to a budget, unless too much of it still waits for its actors.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), Ending> {
        let mut budget = READ_BUDGET;
        while self.incoming.may_read(cx.waker()) {
            match self.input.poll_recv(cx, &mut self.read) {
                Poll::Ready(Ok(0)) => return Err(Ending::Transport(finished())),
                Poll::Ready(Ok(count)) => {
                    self.handle_frames().map_err(Ending::Violation)?;
                    budget = budget.saturating_sub(count);
                    if budget == 0 {
                        // The actors get their turn before the rest.
                        cx.waker().wake_by_ref();
                        return Ok(());
                    }
                }
                Poll::Ready(Err(error)) => return Err(Ending::Transport(error)),
                Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    /// Handles the frames that are whole. To be called for bytes that have come: they show that the peer lives.
    fn handle_frames(&mut self) -> Result<(), Violation> {
        let (mut at, now) = (0, self.node.env().coarse());
        self.lane.hears(now);
        decoding(&self.node, || {
            while let Some((frame, used)) = next_frame(&self.read[at..], self.frame)? {
                self.sink.take(&self.lane, &self.incoming, frame, now)?;
                at += used;
            }
            Ok::<_, Violation>(())
        })?;
        if self.lane.unread_answers() > self.answers {
            return Err(Violation::Meaning(format!(
                "more than {} bytes of answers are not read",
                self.answers
            )));
        }
        self.read.advance(at);
        Ok(())
    }
}

impl Future for Drive {
    type Output = Ending;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ending> {
        let this = self.get_mut();
        this.lane.writer().begin_turn(cx.waker());
        let moved = this.handle_leftover().and_then(|()| this.write(cx)).and_then(|()| this.read(cx));
        // Once more after reading: what came may have been answered on the spot.
        this.lane.writer().looks();
        match moved.and_then(|()| this.write(cx)) {
            Ok(()) => Poll::Pending,
            Err(ending) => Poll::Ready(ending),
        }
    }
}

impl Drive {
    /// Frames that came together with the handshake: once, or half a frame would pass for a word of the peer at every turn.
    fn handle_leftover(&mut self) -> Result<(), Ending> {
        if std::mem::take(&mut self.leftover) {
            self.handle_frames().map_err(Ending::Violation)
        } else {
            Ok(())
        }
    }
}

fn finished() -> TransportError {
    TransportError::Closed(CloseReason::new(CloseCode::Done, "the peer finished its lane"))
}

/// Bytes read in one turn.
const READ_BUDGET: usize = 256 << 10;
