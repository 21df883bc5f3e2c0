//! What comes on streams beside the lane: messages and replies too large for a frame.
//!
//! A stream carries a [`LargeHead`] and the frame. Here it is read; what it means is the sink's to say. A peer that breaks
//! the rules loses its connection, so that nobody waits for what it promised.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use actix::Addr;
use archipelago_protocol::contract::{RecvStream, Streams, TransportError};
use archipelago_protocol::link::{FrameError, LargeHead};
use bytes::{Buf, Bytes, BytesMut};
use tokio::sync::Semaphore;

use super::drive::Violation;
use super::incoming::Incoming;
use super::lane::Lane;
use super::large::{LOOK_EVERY, PART, others_first};
use super::large_room::AT_ONCE;
use super::peer_actor::{Broken, PeerActor};
use super::seat::SeatLocal;

/// What a stream has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// A frame.
    Whole(Bytes),
    /// A frame that is larger than this node takes: it was not read.
    TooLarge {
        /// How it begins.
        start: Bytes,
    },
}

/// Why a stream has brought nothing.
enum Unread {
    /// It broke off: its sender has given it up, or the connection is lost.
    Broken(TransportError),
    /// It is not what it says.
    Violation(Violation),
}

impl From<TransportError> for Unread {
    fn from(error: TransportError) -> Self {
        Self::Broken(error)
    }
}

impl From<FrameError> for Unread {
    fn from(error: FrameError) -> Self {
        Self::Violation(error.into())
    }
}

/// Takes the large frames of one connection for as long as it lasts, a few at a time.
///
/// Replies do not wait for messages: a message may be waiting for a reply.
pub(super) async fn receive(
    lane: Rc<Lane>,
    incoming: Arc<Incoming>,
    seat: Rc<SeatLocal>,
    (streams, link): (Arc<dyn Streams>, Addr<PeerActor>),
) {
    let turns = Rc::new(Turns { messages: Semaphore::new(AT_ONCE), replies: Semaphore::new(AT_ONCE) });
    // How many streams are open at once is the transport's to bound.
    while let Ok(stream) = streams.next().await {
        let env = Arc::clone(seat.node().env());
        let (link, turns) = (link.clone(), Rc::clone(&turns));
        let one =
            Receiving { lane: Rc::clone(&lane), incoming: Arc::clone(&incoming), seat: Rc::clone(&seat) };
        env.spawn(Box::pin(async move {
            if let Err(violation) = one.run(stream, &turns).await {
                link.do_send(Broken { connection: one.incoming.connection(), violation });
            }
        }));
    }
}

/// Who may be read at once.
struct Turns {
    messages: Semaphore,
    replies: Semaphore,
}

/// One stream of a connection.
struct Receiving {
    lane: Rc<Lane>,
    incoming: Arc<Incoming>,
    seat: Rc<SeatLocal>,
}

impl Receiving {
    async fn run(&self, stream: Box<dyn RecvStream>, turns: &Turns) -> Result<(), Violation> {
        match self.read(stream, turns).await {
            Ok((transfer, brought)) => {
                self.seat.sink().take_large(&self.lane, &self.incoming, transfer, brought)
            }
            Err(Unread::Violation(violation)) => Err(violation),
            // If the connection is still there, its sender says on the lane that it does not come.
            Err(Unread::Broken(error)) => {
                tracing::debug!(peer = %self.lane.peer().id(), %error, "a large transfer broke off");
                Ok(())
            }
        }
    }

    /// Reads one frame; its length is checked before anything is allocated for it, and memory grows only with what comes.
    async fn read(&self, mut stream: Box<dyn RecvStream>, turns: &Turns) -> Result<(u64, Brought), Unread> {
        let mut bytes = BytesMut::new();
        let head = loop {
            if let Some(head) = LargeHead::decode(&bytes)? {
                break head;
            }
            read_to(&mut *stream, &mut bytes, LargeHead::BYTES).await?;
        };
        bytes.advance(LargeHead::BYTES);
        let (transfer, is_reply) = (head.transfer, head.is_reply());
        let turns = if is_reply { &turns.replies } else { &turns.messages };
        // Nobody closes them, so this is a turn.
        let _turn = turns.acquire().await;
        if !is_reply {
            self.room().await;
        }
        let largest = self.seat.node().settings().remote.largest + SLACK;
        let Ok(len) = head.len_within(largest) else {
            read_to(&mut *stream, &mut bytes, START).await?;
            return Ok((transfer, Brought::TooLarge { start: bytes.split_to(START).freeze() }));
        };
        // Only address space: memory comes with what is written into it.
        bytes.reserve(len.saturating_sub(bytes.len()));
        read_to(&mut *stream, &mut bytes, len).await?;
        if bytes.len() > len {
            return Err(violation("a transfer is longer than it says"));
        }
        Ok((transfer, Brought::Whole(bytes.freeze())))
    }

    /// Waits until enough of the large messages that came before have ended, or their connection has.
    async fn room(&self) {
        while !self.incoming.may_read_large() && self.lane.is_connected_by(&self.incoming) {
            self.seat.node().env().sleep(LOOK_EVERY).await;
        }
    }
}

/// Reads until at least `len` bytes are there.
async fn read_to(stream: &mut dyn RecvStream, into: &mut BytesMut, len: usize) -> Result<(), Unread> {
    let mut turn = into.len();
    while into.len() < len {
        if poll_fn(|cx| stream.poll_recv(cx, into)).await? == 0 {
            return Err(violation("a transfer is shorter than it says"));
        }
        if into.len() - turn >= PART {
            turn = into.len();
            others_first().await;
        }
    }
    Ok(())
}

fn violation(what: &str) -> Unread {
    Unread::Violation(Violation::Meaning(what.to_owned()))
}

/// What a frame may have beyond its payload.
const SLACK: usize = 4 << 10;
/// As much of a frame as says what it is: tag, call and codec of a reply.
const START: usize = 10;
