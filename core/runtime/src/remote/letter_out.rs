//! A letter on its way into a lane, or onto a stream of its own.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::{CorrelationId, NodeAddress};
use archipelago_protocol::link::{Frame, Refused};
use archipelago_protocol::message::CodecError;
use bytes::{Bytes, BytesMut};

use super::lane::Lane;
use super::large::Outgoing;
use super::letter::Letter;
use super::mark::Mark;
use super::outbound::WriteElsewhere;
use crate::arbiter::ArbiterLocal;

/// Why a letter was not written into its lane.
pub(super) enum Unwritten {
    /// It will not be sent.
    Refused(Box<Letter>, CallError),
    /// It needs a stream of its own.
    Large(Box<Letter>),
}

enum WriteError {
    Refused(Refused),
    /// The payload is longer than an envelope's may be.
    TooLong,
}

impl From<Refused> for WriteError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Writes a letter into its lane.
pub(super) fn write(on: &ArbiterLocal, lane: &Lane, mut letter: Letter) -> Result<(), Unwritten> {
    let mut payload = BytesMut::new();
    match letter.body.write(&mut payload, lane.frame_limit()) {
        Ok(()) => {}
        Err(CodecError::TooLarge { .. }) => return Err(Unwritten::Large(Box::new(letter))),
        Err(error) => return Err(Unwritten::Refused(Box::new(letter), unreadable(&error))),
    }
    let waiter = letter.waiter.take();
    let fill = |out: &mut BytesMut, call| frame(out, on, lane, &letter, call, payload.freeze());
    let written = match waiter {
        None => lane.tell(on.coarse(), on.told(letter.expires), |out| fill(out, None)),
        Some(waiter) => {
            let asked = lane.ask(letter.head.deadline, waiter, |out, call| fill(out, Some(call)));
            asked.map(|_| ()).map_err(|(waiter, error)| {
                letter.waiter = Some(waiter);
                error
            })
        }
    };
    written.map_err(|error| unwritten(letter, error))?;
    if let Some(seat) = on.seat() {
        seat.written(lane);
    }
    Ok(())
}

fn frame(
    out: &mut BytesMut,
    on: &ArbiterLocal,
    lane: &Lane,
    letter: &Letter,
    call: Option<CorrelationId>,
    payload: Bytes,
) -> Result<(), WriteError> {
    let mut envelope = letter.envelope(call, lane.peer(), on.node());
    envelope.payload = payload;
    Frame::encode_envelope(out, &envelope).map_err(|_| WriteError::TooLong)
}

fn unwritten(letter: Letter, error: WriteError) -> Unwritten {
    let letter = Box::new(letter);
    match error {
        WriteError::Refused(Refused::Frame(_)) | WriteError::TooLong => Unwritten::Large(letter),
        WriteError::Refused(Refused::Overloaded { bound, .. }) => {
            let bound = u32::try_from(bound).unwrap_or(u32::MAX);
            Unwritten::Refused(letter, CallError::Overloaded { queue: Queue::Lane, bound })
        }
        WriteError::Refused(error) => {
            Unwritten::Refused(letter, CallError::NoRoute { reason: error.to_string().into() })
        }
    }
}

fn unreadable(error: &CodecError) -> CallError {
    CallError::Codec { reason: error.to_string().into(), started: false }
}

/// Sends a letter that is too large for a frame; answers the number of the transfer. Later letters to the same actor must wait
/// until [`large_letter_over`](ArbiterLocal::large_letter_over).
///
/// # Errors
///
/// The letter back, and why its lane does not take it; whoever waits has been told.
pub(super) fn send_large(
    on: &Rc<ArbiterLocal>,
    lane: &Rc<Lane>,
    address: &NodeAddress,
    mut letter: Letter,
) -> Result<u64, (Box<Letter>, CallError)> {
    let mark = match Mark::set(on.transfers(), lane, letter.head.deadline, letter.waiter.take()) {
        Ok(mark) => mark,
        Err(error) => return Err((Box::new(letter), error)),
    };
    if let Some(seat) = on.seat() {
        seat.call_pending();
    }
    let (call, transfer, deadline) = (mark.call(), mark.number(), letter.head.deadline);
    let write = whole_frame(on, lane, &mut letter, call);
    let job = Outgoing { mark, frame: BytesMut::new(), write, deadline };
    let (local, address, peer) = (Rc::clone(on), address.clone(), lane.peer().id());
    let env = Arc::clone(on.node().env());
    env.spawn(Box::pin(async move {
        if let Err(error) = job.run(&local).await {
            tracing::debug!(%error, "a large message to a named actor was not sent");
            if call.is_none() {
                local.node().lost_on_the_way(Some(peer), letter.dead(error));
            }
        }
        local.large_letter_over(&address, letter.hash(), transfer);
    }));
    Ok(transfer)
}

/// Writes the whole frame off the arbiter.
fn whole_frame(
    on: &ArbiterLocal,
    lane: &Lane,
    letter: &mut Letter,
    call: Option<CorrelationId>,
) -> WriteElsewhere {
    let mut envelope = letter.envelope(call, lane.peer(), on.node());
    let write = letter.body.write_elsewhere();
    Box::new(move |out, limit| {
        let mut payload = BytesMut::new();
        write(&mut payload, limit)?;
        envelope.payload = payload.freeze();
        Frame::encode_envelope(out, &envelope).map_err(|_| CodecError::TooLarge { limit })
    })
}
