use alloc::vec;

use proptest::prelude::*;

use super::super::hello::{KindEntry, PeerKind};
use super::super::samples::{hello, kind};
use super::*;
use crate::message::{TypeHint, WireId};

fn all() -> [Handshake; 3] {
    [
        Handshake::Hello(hello(1)),
        Handshake::Welcome(Welcome { version: 2, hello: hello(2) }),
        Handshake::Refusal(Refusal::new(RefusalReason::Cluster, "our cluster is \"a\"")),
    ]
}

/// A message with this format, tag and body.
fn message(format: u16, tag: u8, body: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::from(&MAGIC[..]);
    bytes.put_u16_le(format);
    bytes.put_u32_le(body.len() as u32 + 1);
    bytes.put_u8(tag);
    bytes.put_slice(body);
    bytes
}

#[test]
fn every_message_survives_the_wire_and_leaves_what_follows() {
    for message in all() {
        let mut bytes = BytesMut::from(message.encode().unwrap());
        bytes.put_slice(b"frames");
        assert_eq!(Handshake::take(&mut bytes), Ok(Some(message)));
        assert_eq!(bytes, b"frames"[..]);
    }
}

#[test]
fn a_message_that_has_not_come_whole_is_waited_for() {
    for message in all() {
        let whole = message.encode().unwrap();
        for len in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..len]);
            assert_eq!(Handshake::take(&mut part), Ok(None));
            assert_eq!(part.len(), len, "nothing was taken");
        }
    }
}

#[test]
fn a_stranger_is_noticed_at_the_first_wrong_byte() {
    for bytes in [&b"GET / HTTP/1.1"[..], b"A ", b"ARCX"] {
        assert_eq!(Handshake::take(&mut BytesMut::from(bytes)), Err(HandshakeError::NotOurs));
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_anything_has_come() {
    let mut bytes = BytesMut::from(&b"ARCH\x01\x00\x01\x00\x04\x00"[..]);
    let error = HandshakeError::TooLarge { len: 262_145, max: 262_144 };
    assert_eq!(Handshake::take(&mut bytes), Err(error));
}

#[test]
fn a_hello_that_does_not_fit_is_not_sent() {
    let many =
        KindEntry { messages: vec![(WireId::new(1), TypeHint::new("m").unwrap()); 65_536], ..kind("a", &[]) };
    let hello = Hello { kinds: vec![many], ..hello(1) };
    let error = HandshakeError::TooLarge { len: 65_536, max: 65_535 };
    assert_eq!(Handshake::Hello(hello.clone()).encode(), Err(error.clone()));
    let body = postcard::to_allocvec(&hello).unwrap();
    assert_eq!(Handshake::take(&mut message(FORMAT, HELLO, &body)), Err(error));
    let long = Hello { cluster: "x".repeat(Handshake::MAX_BYTES), ..hello };
    assert!(matches!(Handshake::Hello(long).encode(), Err(HandshakeError::TooLarge { .. })));
}

#[test]
fn a_claimed_length_inside_a_hello_allocates_nothing() {
    let mut body = postcard::to_allocvec(&hello(1).versions).unwrap();
    // A cluster name of 2^63 bytes.
    body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(Handshake::take(&mut message(FORMAT, HELLO, &body)), Err(HandshakeError::Malformed));
}

/// What a version after this one may send: an extension, a kind of peer, and fields at the end of the body.
#[test]
fn an_older_node_reads_the_hello_of_a_newer_one() {
    let newer = Hello {
        kind: PeerKind::Other(9),
        extensions: vec![(700, Bytes::from_static(b"unheard of")), (1, Bytes::new())],
        ..hello(1)
    };
    let mut body = postcard::to_allocvec(&newer).unwrap();
    body.extend_from_slice(b"a field of next year");
    assert_eq!(Handshake::take(&mut message(FORMAT, HELLO, &body)), Ok(Some(Handshake::Hello(newer))));
}

#[test]
fn another_format_is_named_and_its_refusal_is_read() {
    let mut bytes = message(7, HELLO, b"whatever");
    let error = Handshake::take(&mut bytes).unwrap_err();
    assert_eq!(error, HandshakeError::UnknownFormat { format: 7 });
    let answer = Refusal::from(&error);
    assert_eq!(answer.reason, RefusalReason::Version);
    assert!(answer.text.contains("format 7") && answer.text.contains("format 1"), "{answer}");

    let mut bytes = message(7, REFUSAL, b"\x63\x00no\nway");
    let refusal = Refusal::new(RefusalReason::Other(99), "no way");
    assert_eq!(Handshake::take(&mut bytes), Ok(Some(Handshake::Refusal(refusal))));
}

/// The bytes themselves, since peers of every version must read them.
#[test]
fn the_layout_of_a_refusal_stands() {
    let refusal = Handshake::Refusal(Refusal::new(RefusalReason::Store, "no"));
    assert_eq!(refusal.encode().unwrap(), b"ARCH\x01\x00\x05\x00\x00\x00\x03\x08\x00no"[..]);
}

#[test]
fn the_layout_of_a_hello_stands() {
    let bytes = Handshake::Hello(hello(1)).encode().unwrap();
    let mut expected = b"ARCH\x01\x00\x90\x00\x00\x00\x01".to_vec();
    expected.extend_from_slice(b"\x01\x03\x04bank\x04prod\x05north");
    expected.extend_from_slice(b"\x01\x04blue\x0d10.0.0.7:4710\x01\x08frontend\x050.1.0\x00");
    // Kind, seats of the lane, attempt, nobody expected, two ports, one kind with two messages.
    expected.extend_from_slice(b"\x00\x00\x00\x01\x00\x02\xe6\x24\xe7\x24\x01\x07Account\x02");
    for name in ["bank.Deposit", "bank.Withdraw"] {
        expected.extend(postcard::to_allocvec(&crate::message::wire_id(name)).unwrap());
        expected.push(name.len() as u8);
        expected.extend_from_slice(name.as_bytes());
    }
    expected.extend_from_slice(b"\x01\x06etcd:1\x00");
    expected[6] = (expected.len() - PREFIX) as u8;
    assert_eq!(bytes, expected);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(tag in 0_u8..5, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Handshake::take(&mut message(FORMAT, tag, &body));
        let _ = Handshake::take(&mut BytesMut::from(&body[..]));
    }

    #[test]
    fn a_changed_byte_never_panics(at in 0_usize..150, to: u8) {
        for message in all() {
            let mut bytes = BytesMut::from(message.encode().unwrap());
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = Handshake::take(&mut bytes);
        }
    }

    #[test]
    fn a_reason_survives_the_wire(code: u16) {
        prop_assert_eq!(RefusalReason::from_u16(code).as_u16(), code);
    }
}
