//! The side that answers.

use bytes::BytesMut;

use crate::RawError;
use crate::frame::{FRAME, put, single, take};
use crate::wire::Wire;

/// The number of the first frame when every frame is to be answered; any other number is how many frames are to be
/// counted before one is sent back.
pub(crate) const ANSWER_ALL: u64 = 0;

/// Serves the one connection until it ends.
pub(crate) async fn serve(wire: &mut dyn Wire) -> Result<(), RawError> {
    let mut buffer = BytesMut::new();
    let purpose = loop {
        if let Some(number) = take(&mut buffer) {
            break number;
        }
        if wire.read(&mut buffer).await? == 0 {
            return Err(RawError::EndedEarly);
        }
    };
    if purpose == ANSWER_ALL {
        wire.write(single(purpose)).await?;
        return answer(wire, buffer).await;
    }
    count(wire, buffer, purpose).await?;
    wire.write(single(purpose)).await?;
    // The other side ends the connection when it has this frame.
    let _ = wire.read(&mut BytesMut::new()).await;
    Ok(())
}

async fn answer(wire: &mut dyn Wire, mut buffer: BytesMut) -> Result<(), RawError> {
    loop {
        let mut answers = BytesMut::with_capacity(buffer.len());
        while let Some(number) = take(&mut buffer) {
            put(number, &mut answers);
        }
        if !answers.is_empty() {
            wire.write(answers.freeze()).await?;
        }
        match wire.read(&mut buffer).await {
            Ok(1..) => {}
            // However the other side ends, it has all it wanted.
            Ok(0) | Err(_) => return Ok(()),
        }
    }
}

async fn count(wire: &mut dyn Wire, mut buffer: BytesMut, frames: u64) -> Result<(), RawError> {
    let mut counted = 0;
    loop {
        while take(&mut buffer).is_some() {
            counted += 1;
        }
        if counted >= frames {
            return Ok(());
        }
        // What is left of a frame goes to the front, so that the buffer does not grow.
        buffer.reserve(FRAME);
        if wire.read(&mut buffer).await? == 0 {
            return Err(RawError::EndedEarly);
        }
    }
}
