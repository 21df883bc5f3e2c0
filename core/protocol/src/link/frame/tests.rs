use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, BytesMut};
use proptest::prelude::*;

use super::arbitrary::frame;
use super::*;
use crate::message::{TraceContextError, UnknownFlags};

fn encoded(frame: &Frame<'_>) -> BytesMut {
    let mut out = BytesMut::new();
    frame.encode(&mut out);
    out
}

fn head() -> Head<'static> {
    Head {
        ttl: Some(Millis(0x0102_0304)),
        flags: MessageFlags::ALWAYS_INTERLEAVE,
        codec: CodecId::JSON,
        shard: ShardRef { kind: 0x0506, number: 0x2122_2324_2526_2728 },
        message: 0x090a,
        generation: Generation::new(0x1112_1314_1516_1718),
        key: KeyText::new("ann").unwrap(),
        trace: None,
        chain: CallChain::empty(),
    }
}

fn call() -> CorrelationId {
    CorrelationId::new(0xa1a2, 0xb1b2_b3b4, 0xc1c2)
}

#[rustfmt::skip]
const CALL: [u8; 8] = [0xc2, 0xc1, 0xb4, 0xb3, 0xb2, 0xb1, 0xa2, 0xa1];

#[rustfmt::skip]
const HEAD: [u8; 32] = [
    4, 3, 2, 1,  3, 0,  2,  0,  6, 5,  0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,  0x0a, 9,
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  3, b'a', b'n', b'n',
];

/// The layout is part of the protocol: another one needs another version.
#[test]
fn an_ask_has_these_bytes() {
    let bytes = encoded(&Frame::Ask(Asked { call: call(), head: head(), payload: b"pay" }));
    assert_eq!(bytes, [&[1][..], &CALL, &HEAD, b"pay"].concat());
}

#[test]
fn a_tell_with_trace_and_chain_has_these_bytes() {
    let mut head = head();
    head.ttl = None;
    head.trace = Some(TraceContext::new(1, 2, 3).unwrap());
    head.chain = CallChain::empty().push(4).push(5);
    let mut expected = BytesMut::from(&[&[2, 255, 255, 255, 255][..], &HEAD[4..]].concat()[..]);
    expected[8] = 3;
    expected.put_u128_le(1);
    expected.put_u64_le(2);
    expected.put_slice(&[3, 2, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, b'x']);
    assert_eq!(encoded(&Frame::Tell(Told { head, payload: b"x" })), expected);
}

#[test]
fn a_reply_has_these_bytes() {
    let bytes = encoded(&Frame::Reply { call: call(), codec: CodecId::POSTCARD, payload: &[7, 8] });
    assert_eq!(bytes, [&[3][..], &CALL, &[1, 7, 8]].concat());
}

#[test]
fn the_small_frames_have_these_bytes() {
    let shard = ShardRef { kind: 1, number: 2 };
    let generation = Generation::new(3);
    let hint = Hint { owner: NodeId::new(4), generation: Generation::new(5) };
    let at = [1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    let there = [4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0];
    let service = Frame::Service { call: call(), ttl: Millis(6), service: 7, payload: &[8] };
    let timeout = CallError::Timeout { started: true };
    let frames = [
        (Frame::Fail { call: call(), error: timeout }, [&[4][..], &CALL, &[0, 1]].concat()),
        (Frame::Cancel { call: call() }, [&[5][..], &CALL].concat()),
        (Frame::Settle { shard, generation }, [&[7][..], &at].concat()),
        (Frame::Settled { shard, generation, hint: None }, [&[8][..], &at, &[0]].concat()),
        (Frame::Settled { shard, generation, hint: Some(hint) }, [&[8][..], &at, &[1], &there].concat()),
        (Frame::Notice { shard, hint }, [&[9][..], &at[..10], &there].concat()),
        (Frame::Bye, [10].to_vec()),
        (Frame::ByeAck, [11].to_vec()),
        (Frame::Envelope(b"env"), b"\x0cenv".to_vec()),
        (Frame::LargeDone { transfer: 9 }, [13, 9, 0, 0, 0, 0, 0, 0, 0].to_vec()),
        (Frame::LargeHere { transfer: 9, call: None }, [16, 9, 0, 0, 0, 0, 0, 0, 0, 0].to_vec()),
        (
            Frame::LargeHere { transfer: 9, call: Some(call()) },
            [&[16, 9, 0, 0, 0, 0, 0, 0, 0, 1][..], &CALL].concat(),
        ),
        (
            Frame::LargeBack { transfer: 9, reason: ReturnReason::Sticky },
            [17, 9, 0, 0, 0, 0, 0, 0, 0, 2].to_vec(),
        ),
        (Frame::LargeGone { transfer: 9 }, [18, 9, 0, 0, 0, 0, 0, 0, 0].to_vec()),
        (Frame::Void, [14].to_vec()),
        (service, [&[15][..], &CALL, &[6, 0, 0, 0, 7, 0, 8]].concat()),
    ];
    for (frame, bytes) in frames {
        assert_eq!(encoded(&frame), bytes, "{frame:?}");
    }
}

#[test]
fn each_return_reason_has_its_number() {
    let reasons =
        [ReturnReason::NotOwner, ReturnReason::Overflow, ReturnReason::Sticky, ReturnReason::Fenced];
    for (number, reason) in (0_u8..).zip(reasons) {
        let told = Returned { reason, call: None, head: head(), payload: b"p" };
        let mut expected = [&[6, number, 2][..], &HEAD, b"p"].concat();
        assert_eq!(encoded(&Frame::Return(told.clone())), expected);
        expected.splice(2..3, [&[1][..], &CALL].concat());
        assert_eq!(encoded(&Frame::Return(Returned { call: Some(call()), ..told })), expected);
    }
}

#[test]
fn unknown_tags_are_refused() {
    assert_eq!(Frame::decode(&[]), Err(FrameError::Truncated { part: FramePart::Head }));
    for tag in [0].into_iter().chain(19..=255) {
        assert_eq!(Frame::decode(&[tag, 1, 2, 3]), Err(FrameError::UnknownTag { tag }));
    }
}

#[test]
fn only_asks_and_tells_are_returned() {
    for tag in [0].into_iter().chain(3..=255) {
        let bytes = [&[6, 0, tag][..], &CALL, &HEAD].concat();
        assert_eq!(Frame::decode(&bytes), Err(FrameError::UnknownTag { tag }));
    }
}

fn tell_with(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = [&[2][..], &HEAD].concat();
    bytes[1 + at] = byte;
    bytes
}

#[test]
fn unknown_bits_and_reasons_are_refused() {
    let malformed = |part| Err(FrameError::Malformed { part });
    assert_eq!(Frame::decode(&tell_with(4, 16)), Err(UnknownFlags { bits: 16 }.into()));
    assert_eq!(Frame::decode(&tell_with(4, 2)), malformed(FramePart::Head), "interleave without read only");
    assert_eq!(Frame::decode(&tell_with(7, 4)), malformed(FramePart::Head), "an extra that nobody knows");
    assert_eq!(Frame::decode(&tell_with(29, 0xff)), malformed(FramePart::Key), "not UTF-8");
    assert_eq!(Frame::decode(&[&[6, 4, 2][..], &HEAD].concat()), malformed(FramePart::Head));
    assert_eq!(Frame::decode(&[&[8][..], &[0; 18], &[2]].concat()), malformed(FramePart::Shard));
    let endless = [&[15][..], &CALL, &[255, 255, 255, 255, 0, 0]].concat();
    assert_eq!(Frame::decode(&endless), malformed(FramePart::Head));
}

#[test]
fn a_failure_has_one_form() {
    let malformed = Err(FrameError::Malformed { part: FramePart::Error });
    for error in [&[0, 2][..], &[0x80, 0, 1], &[0, 1, 0], &[200], &[]] {
        assert_eq!(Frame::decode(&[&[4][..], &CALL, error].concat()), malformed, "{error:?}");
    }
}

#[test]
fn a_chain_is_neither_empty_nor_too_long() {
    for count in [0, 9, 255] {
        let bytes = [&tell_with(7, 2)[..], &[count], &[1; 2048]].concat();
        let refused = FrameError::TooLarge { part: FramePart::Chain, len: count.into(), max: 8 };
        assert_eq!(Frame::decode(&bytes), Err(refused));
    }
}

#[test]
fn a_trace_without_ids_is_refused() {
    let bytes = [&tell_with(7, 1)[..], &[0; 25]].concat();
    assert_eq!(Frame::decode(&bytes), Err(TraceContextError::ZeroId.into()));
}

#[test]
fn a_key_that_does_not_fit_cannot_be_written() {
    let long = "k".repeat(256);
    assert_eq!(KeyText::new(&long[1..]).unwrap().as_str().len(), 255);
    let refused = FrameError::TooLarge { part: FramePart::Key, len: 256, max: 255 };
    assert_eq!(KeyText::new(&long), Err(refused));
}

#[test]
fn a_time_to_live_beyond_the_field_is_the_longest_there_is() {
    for (ttl, field) in
        [(Some(u64::MAX), u32::MAX - 1), (Some(u32::MAX.into()), u32::MAX - 1), (None, u32::MAX)]
    {
        let head = Head { ttl: ttl.map(Millis), ..head() };
        let bytes = encoded(&Frame::Tell(Told { head, payload: &[] }));
        assert_eq!(bytes[1..5], field.to_le_bytes());
    }
}

/// How long the rest of the frame is; `None` if it has none.
fn rest(frame: &Frame<'_>) -> Option<usize> {
    match frame {
        Frame::Ask(Asked { payload, .. })
        | Frame::Tell(Told { payload, .. })
        | Frame::Return(Returned { payload, .. })
        | Frame::Reply { payload, .. }
        | Frame::Service { payload, .. }
        | Frame::Envelope(payload) => Some(payload.len()),
        Frame::Void => Some(0),
        _ => None,
    }
}

proptest! {
    #[test]
    fn every_frame_survives_the_wire(frame in frame()) {
        let frame = frame.borrow();
        let bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn a_frame_cut_anywhere_before_its_rest_is_refused(frame in frame()) {
        let frame = frame.borrow();
        let bytes = encoded(&frame);
        let needed = bytes.len() - rest(&frame).unwrap_or(0);
        for len in 0..bytes.len() {
            prop_assert_eq!(Frame::decode(&bytes[..len]).is_ok(), len >= needed, "cut at {}", len);
        }
    }

    #[test]
    fn nothing_may_follow_a_frame_that_has_no_rest(frame in frame(), more: u8) {
        let frame = frame.borrow();
        let mut bytes = encoded(&frame);
        bytes.put_u8(more);
        prop_assert_eq!(Frame::decode(&bytes).is_ok(), rest(&frame).is_some());
    }

    #[test]
    fn any_bytes_are_refused_or_written_again_alike(tag in 0_u8..20, rest in any::<Vec<u8>>()) {
        written_again_alike(&[&[tag][..], &rest].concat())?;
        written_again_alike(&rest)?;
    }

    #[test]
    fn a_frame_with_a_changed_byte_is_refused_or_written_again_alike(
        frame in frame(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let mut bytes = encoded(&frame.borrow());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        written_again_alike(&bytes)?;
    }

    #[test]
    fn every_key_of_an_actor_fits(key in crate::identity::arbitrary::key()) {
        let key = ActorKey::new(&key).unwrap();
        prop_assert_eq!(KeyText::new(key.as_str()), Ok(KeyText::from(&key)));
    }

    #[test]
    fn key_texts_are_written_as_they_are(text in "\\PC{0,50}") {
        let key = KeyText::new(&text).unwrap();
        prop_assert_eq!(alloc::format!("{key}"), text.clone());
        prop_assert_eq!(alloc::format!("{key:?}"), alloc::format!("{text:?}"));
    }
}

fn written_again_alike(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Frame::decode(bytes) {
        Ok(Frame::Void) => prop_assert_eq!(bytes[0], VOID),
        Ok(frame) => prop_assert_eq!(encoded(&frame), bytes),
        Err(error) => prop_assert_ne!(String::new(), alloc::format!("{error}")),
    }
    Ok(())
}
