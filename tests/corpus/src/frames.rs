//! What comes over a lane: frames, one behind the other.

use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{
    Frame, FrameError, InboundCalls, LEN_BYTES, LargeHead, next_frame, write_frame,
};
use bytes::BytesMut;

use crate::{memory, samples};

/// The bytes of a lane: finds the frames as the reader of a lane does, and reads each of them.
pub(crate) fn lane(bytes: &[u8]) -> bool {
    let mut calls = InboundCalls::new(OPEN_CALLS);
    let mut at = 0;
    while let Some((body, used)) = next(&bytes[at..]) {
        if !frame(body) || follow(&mut calls, body).is_err() {
            return false;
        }
        at += used;
    }
    at > 0 && at == bytes.len()
}

/// The first frame; `None` if it has not come whole, or can never come.
fn next(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let found = memory::within(0, (0, 0), || next_frame(bytes, LONGEST));
    match found {
        Ok(Some((body, used))) => {
            assert!(!body.is_empty() && body.len() <= LONGEST && used == body.len() + LEN_BYTES);
            // However little of it has come, it is still to come.
            for cut in [0, 1, LEN_BYTES - 1, LEN_BYTES, LEN_BYTES + 1, used / 2, used - 1] {
                assert_eq!(next_frame(&bytes[..cut.min(used - 1)], LONGEST), Ok(None));
            }
            Some((body, used))
        }
        Ok(None) => {
            let len = bytes.first_chunk().map_or(1, |len| u32::from_le_bytes(*len) as usize);
            assert!((1..=LONGEST).contains(&len) && bytes.len() < len + LEN_BYTES, "it has come whole");
            None
        }
        Err(error) => {
            assert_eq!(next_frame(&bytes[..LEN_BYTES], LONGEST), Err(error.clone()), "known by its length");
            says_something(&error);
            None
        }
    }
}

/// The tag and body of one frame.
pub(crate) fn frame(bytes: &[u8]) -> bool {
    let read = memory::within(bytes.len(), MEMORY, || Frame::decode(bytes));
    match &read {
        Ok(frame) => {
            survives(frame);
            has_one_form(frame, bytes);
        }
        Err(error) => says_something(error),
    }
    // Nothing that was cut off is read beyond its end.
    for cut in [1, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let _ = Frame::decode(&bytes[..cut.min(bytes.len())]);
    }
    read.is_ok()
}

/// The bytes of a stream beside the lane: the head of a large transfer, and the frame that it brings.
pub(crate) fn large(bytes: &[u8]) -> bool {
    let read = memory::within(0, (0, 0), || LargeHead::decode(bytes));
    match read {
        Ok(Some(head)) => {
            assert_eq!(head.encode()[..], bytes[..LargeHead::BYTES], "it has one form");
            for cut in 0..LargeHead::BYTES {
                assert_eq!(LargeHead::decode(&bytes[..cut]), Ok(None), "it is still to come");
            }
            brings(head, &bytes[LargeHead::BYTES..])
        }
        Ok(None) => {
            assert!(bytes.len() < LargeHead::BYTES, "it has come whole");
            false
        }
        Err(error) => {
            says_something(&error);
            false
        }
    }
}

/// Whether a head is followed by the whole of its frame; one that is too large is known before it has come.
fn brings(head: LargeHead, behind: &[u8]) -> bool {
    match head.len_within(LONGEST) {
        Ok(len) => {
            assert!((1..=LONGEST).contains(&len) && len as u64 == head.len);
            len == behind.len() && frame(behind)
        }
        Err(error) => {
            assert!(head.len > LONGEST as u64);
            says_something(&error);
            false
        }
    }
}

fn survives(frame: &Frame<'_>) {
    let mut written = BytesMut::new();
    let put = |out: &mut BytesMut| {
        frame.encode(out);
        Ok::<_, FrameError>(())
    };
    write_frame(&mut written, usize::MAX, put).expect("what was read can be written");
    let found = next_frame(&written, usize::MAX).expect("what was written is a frame");
    let (body, used) = found.expect("and whole");
    assert_eq!(used, written.len());
    assert_eq!(Frame::decode(body).as_ref(), Ok(frame));
}

/// What is accepted is written again byte for byte, but for the rest of a void frame.
fn has_one_form(frame: &Frame<'_>, bytes: &[u8]) {
    let mut written = BytesMut::new();
    frame.encode(&mut written);
    assert!(*frame == Frame::Void || written == bytes, "{frame:?} has two forms");
}

/// Opens and ends the calls of a lane; an error closes it.
fn follow(calls: &mut InboundCalls, body: &[u8]) -> Result<(), ()> {
    let opened = |calls: &mut InboundCalls, call: CorrelationId| {
        // The table grows to its bound and never beyond.
        let opened = memory::within(OPEN_CALLS, (64, 0), || calls.open(call));
        opened.map_err(|fault| assert!(!fault.to_string().is_empty()))
    };
    match Frame::decode(body) {
        Ok(Frame::Ask(ask)) => opened(calls, ask.call)?,
        Ok(Frame::Service { call, .. }) => opened(calls, call)?,
        Ok(Frame::Cancel { call }) => calls.cancel(call),
        Ok(Frame::Reply { call, .. } | Frame::Fail { call, .. }) => {
            let starts = calls.start(call);
            let ended = calls.close(call);
            assert!(ended || !starts, "what has started can end");
        }
        Ok(_) => {}
        Err(_) => return Err(()),
    }
    assert!(calls.open_calls() <= OPEN_CALLS);
    Ok(())
}

fn says_something(error: &FrameError) {
    assert!(!error.to_string().is_empty(), "the connection is closed with a reason");
}

/// Every frame by itself.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    let body = |frame: &Frame<'_>| {
        let mut out = BytesMut::new();
        frame.encode(&mut out);
        out.to_vec()
    };
    samples::frames().iter().map(body).collect()
}

/// All frames on one lane, some of them, and half of one.
pub(crate) fn lanes() -> Vec<Vec<u8>> {
    let framed: Vec<Vec<u8>> =
        bodies().into_iter().map(|body| [&(body.len() as u32).to_le_bytes()[..], &body].concat()).collect();
    // Two asks of the same call are one too many.
    let all = framed[1..].concat();
    let half = framed[0][..framed[0].len() / 2].to_vec();
    vec![all, framed[2..5].concat(), framed[0].clone(), half, (u32::MAX).to_le_bytes().to_vec(), vec![0; 4]]
}

/// Streams with a message, with a reply, with half a head, and with one that says too much, too little, or nothing.
pub(crate) fn transfers() -> Vec<Vec<u8>> {
    let bring = |transfer, len, body: &[u8]| [&LargeHead { transfer, len }.encode()[..], body].concat();
    let bodies = bodies();
    let mut streams: Vec<Vec<u8>> =
        bodies.iter().zip(0..).map(|(body, n)| bring(n, body.len() as u64, body)).collect();
    let (half, body) = (streams[1][..LargeHead::BYTES / 2].to_vec(), &bodies[1]);
    streams.extend([
        half,
        bring(1, u64::MAX, body),
        bring(1, body.len() as u64 - 1, body),
        bring(1, 0, body),
    ]);
    streams
}

/// The longest frame that is let through here; that of a node is set in its configuration.
const LONGEST: usize = 4 << 10;
const OPEN_CALLS: usize = 64;
/// A failure is read into texts of its own and written once more to compare.
const MEMORY: (usize, usize) = (4, 256);
