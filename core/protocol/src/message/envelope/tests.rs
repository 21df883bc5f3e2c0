use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::identity::arbitrary::{actor_id, actor_path};
use crate::identity::{ActorId, ActorIdError, ActorPath, IdField, Namespace, NodeAddress};
use crate::message::{Codec, TraceContextError, UnknownFlags, wire_id};

fn actor(text: &str) -> Target {
    Target::Actor(text.parse::<ActorId>().unwrap())
}

fn request() -> Envelope {
    let leg = Leg::Request {
        correlation: CorrelationId::new(1, 2, 3),
        ttl: Millis(300),
        target: actor("n::K/a"),
        sender: Some(actor("n::L/b")),
    };
    Envelope {
        leg,
        target_node: NodeId::new(7),
        sender_node: NodeId::new(8),
        message: WireId::new(9),
        type_hint: None,
        flags: MessageFlags::READ_ONLY,
        codec: CodecId::POSTCARD,
        trace: None,
        chain: CallChain::empty(),
        extensions: Extensions::new(),
        payload: Bytes::from_static(b"hello"),
    }
}

fn decode(bytes: impl Into<Bytes>) -> Result<Envelope, EnvelopeError> {
    Envelope::decode(&bytes.into())
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![actor_id().prop_map(Target::Actor), actor_path().prop_map(Target::Path)]
}

fn leg() -> impl Strategy<Value = Leg> {
    let other = || proptest::option::of(target());
    prop_oneof![
        (any::<u64>(), any::<u64>(), target(), other()).prop_map(|(id, ttl, target, sender)| {
            Leg::Request { correlation: CorrelationId::from_u64(id), ttl: Millis(ttl), target, sender }
        }),
        (any::<u64>(), other(), target()).prop_map(|(id, target, sender)| {
            Leg::Response { correlation: CorrelationId::from_u64(id), target, sender }
        }),
        (any::<Option<u64>>(), target(), other())
            .prop_map(|(ttl, target, sender)| { Leg::OneWay { ttl: ttl.map(Millis), target, sender } }),
    ]
}

fn extensions() -> impl Strategy<Value = Extensions> {
    proptest::collection::btree_map(any::<u16>(), any::<[u8; 3]>(), 0..4).prop_map(|values| {
        let mut extensions = Extensions::new();
        for (tag, value) in values {
            extensions.insert(tag, Bytes::copy_from_slice(&value)).unwrap();
        }
        extensions
    })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let chain = proptest::collection::vec(any::<u64>(), 0..9)
        .prop_map(|tokens| tokens.into_iter().fold(CallChain::empty(), CallChain::push));
    let trace = proptest::option::of((1_u128.., 1_u64.., any::<u8>()))
        .prop_map(|trace| trace.map(|(trace, span, flags)| TraceContext::new(trace, span, flags).unwrap()));
    let hint = proptest::option::of("[ -~]{1,200}").prop_map(|hint| hint.map(|h| TypeHint::new(&h).unwrap()));
    let header = (any::<[u64; 3]>(), hint, 0_u16..16, any::<u8>());
    (leg(), header, trace, chain, extensions(), any::<Vec<u8>>()).prop_map(
        |(
            leg,
            ([message, target_node, sender_node], type_hint, flags, codec),
            trace,
            chain,
            extensions,
            payload,
        )| {
            Envelope {
                leg,
                target_node: NodeId::new(target_node),
                sender_node: NodeId::new(sender_node),
                message: WireId::new(message),
                type_hint,
                flags: MessageFlags::from_bits(flags).unwrap(),
                codec: CodecId(codec),
                trace,
                chain,
                extensions,
                payload: payload.into(),
            }
        },
    )
}

/// The layout in the module's table, byte by byte: a change here is a change of protocol.
/// Proves: C12
#[test]
fn the_bytes_of_version_1_are_fixed() {
    let expected: &[&[u8]] = &[
        &[0xA1, 0b0000_0100, 1, 0, 1],
        &[9, 0, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &[8, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 2, 0, 0, 0, 1, 0],
        &[0x2c, 1, 0, 0, 0, 0, 0, 0],
        b"\x00\x01n\x01K\x01a",
        b"\x00\x01n\x01L\x01b",
        &[0],
        b"\x05hello",
    ];
    assert_eq!(request().encode().unwrap(), expected.concat());
}

#[test]
fn the_time_to_live_stands_at_a_fixed_place() {
    let ttl_of = |envelope: &Envelope| {
        let bytes = envelope.encode().unwrap();
        Envelope::ttl_place(&bytes).map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
    };
    let mut envelope = request();
    assert_eq!(ttl_of(&envelope), Some(300));
    assert_eq!(ttl_of(&envelope.respond(Bytes::new()).unwrap()), None);
    envelope.leg = Leg::OneWay { ttl: Some(Millis(7)), target: actor("n::K/a"), sender: None };
    assert_eq!(ttl_of(&envelope), Some(7));
    envelope.leg = Leg::OneWay { ttl: None, target: actor("n::K/a"), sender: None };
    assert_eq!(ttl_of(&envelope), None);
    assert_eq!(Envelope::ttl_place(b""), None);
    assert_eq!(Envelope::ttl_place(&[0, 0]), None);
}

/// Proves: R33, R69, R70, R72
#[test]
fn a_response_swaps_the_ends_and_keeps_the_correlation_id() {
    let mut request = request();
    request.chain = CallChain::empty().push(1);
    let response = request.respond(Bytes::from_static(b"yes")).unwrap();
    assert_eq!(response.direction(), Direction::Response);
    assert_eq!(response.correlation(), request.correlation());
    assert_eq!((response.target(), response.sender()), (request.sender(), request.target()));
    assert_eq!((response.target_node, response.sender_node), (request.sender_node, request.target_node));
    assert_eq!((response.message, response.codec), (request.message, request.codec));
    assert_eq!(response.payload, "yes");
    assert!(response.chain.is_empty());
}

/// Proves: R66, R73
#[test]
fn only_a_request_can_be_answered() {
    let mut one_way = request();
    one_way.leg = Leg::OneWay { ttl: None, target: actor("n::K/a"), sender: Some(actor("n::L/b")) };
    assert_eq!(one_way.correlation(), None);
    assert_eq!(one_way.respond(Bytes::new()), None);
    let response = request().respond(Bytes::new()).unwrap();
    assert_eq!(response.respond(Bytes::new()), None);
}

/// Proves: R69
#[test]
fn a_caller_outside_any_actor_is_answered_by_its_node_and_correlation_id() {
    let mut request = request();
    request.leg = Leg::Request {
        correlation: CorrelationId::new(1, 2, 3),
        ttl: Millis(1),
        target: actor("n::K/a"),
        sender: None,
    };
    let response = request.respond(Bytes::new()).unwrap();
    assert_eq!((response.target(), response.sender()), (None, request.target()));
    assert_eq!(decode(response.encode().unwrap()), Ok(response));
}

/// Proves: R98
#[test]
fn a_named_actor_travels_as_its_uri() {
    let path = ActorPath::local("bank", "/greeter").unwrap();
    let mut named = request();
    named.leg = Leg::OneWay { ttl: None, target: path.clone().into(), sender: None };
    let bytes = named.encode().unwrap();
    assert!(bytes.windows(path.to_uri().len()).any(|window| window == path.to_uri().as_bytes()));
    assert_eq!(decode(bytes), Ok(named));
}

#[test]
fn the_longest_path_and_id_fit_into_the_header() {
    let address = NodeAddress::new(&"h".repeat(253), 65_535).unwrap();
    let path = "/".to_string() + &" ".repeat(511);
    let path = ActorPath::remote(&"s".repeat(64), address, &path).unwrap();
    let id = Namespace::new(&"n".repeat(25)).unwrap().actor_id(&"K".repeat(28), &"é".repeat(100)).unwrap();
    let mut long = request();
    long.leg = Leg::OneWay { ttl: None, target: path.into(), sender: Some(id.into()) };
    assert_eq!(decode(long.encode().unwrap()), Ok(long));
}

/// Proves: R67
#[test]
fn a_target_that_is_no_actor_id_is_refused() {
    let mut bytes = request().encode().unwrap().to_vec();
    let kind = bytes.windows(2).position(|pair| pair == b"\x01K").unwrap() + 1;
    bytes[kind] = b'/';
    let error = ActorIdError::InvalidCharacter { field: IdField::Kind, character: '/', at: 0 };
    assert_eq!(decode(bytes), Err(EnvelopeError::InvalidActorId(error)));
}

#[test]
fn each_fault_has_its_error() {
    use EnvelopeError::*;
    let good = request().encode().unwrap();
    let broken = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        decode(bytes)
    };
    let header = EnvelopePart::Header;
    assert_eq!(broken(0, 0xA2), Err(BadVersion { found: 0xA2 }));
    assert_eq!(broken(1, 0b0000_0111), Err(Malformed { part: header }), "no such direction");
    assert_eq!(broken(1, 0b1000_0100), Err(Malformed { part: header }), "reserved bit");
    assert_eq!(broken(1, 0b0010_0100), Err(Malformed { part: header }), "ttl bit on a request");
    assert_eq!(broken(2, 0x10), Err(InvalidFlags(UnknownFlags { bits: 0x10 })));
    assert_eq!(broken(45, 2), Err(Malformed { part: EnvelopePart::Address }), "no such address");
    let chain = good.len() - 7;
    let error = TooLarge { part: EnvelopePart::CallChain, len: 9, max: 8 };
    assert_eq!(broken(chain, 9), Err(error));
    assert_eq!(broken(good.len() - 6, 4), Err(TrailingBytes { count: 1 }));
    assert_eq!(broken(good.len() - 6, 6), Err(Truncated { part: EnvelopePart::Payload }));
    assert_eq!(decode(Bytes::new()), Err(Truncated { part: header }));
}

#[test]
fn a_zero_trace_is_refused() {
    let mut traced = request();
    traced.trace = Some(TraceContext::new(1, 1, 0).unwrap());
    let mut bytes = traced.encode().unwrap().to_vec();
    let trace = bytes.len() - 7 - 25;
    bytes[trace] = 0;
    assert_eq!(decode(bytes), Err(EnvelopeError::InvalidTrace(TraceContextError::ZeroId)));
}

#[test]
fn a_length_over_its_bound_is_refused_before_it_is_believed() {
    let mut bytes = request().encode().unwrap().to_vec();
    bytes.truncate(bytes.len() - 6);
    put_long_length(&mut bytes, 64 << 20);
    assert_eq!(decode(bytes.clone()), Err(EnvelopeError::Truncated { part: EnvelopePart::Payload }));
    bytes.truncate(bytes.len() - 4);
    put_long_length(&mut bytes, (64 << 20) + 1);
    let (part, len, max) = (EnvelopePart::Payload, (64 << 20) + 1, 64 << 20);
    assert_eq!(decode(bytes), Err(EnvelopeError::TooLarge { part, len, max }));
}

fn put_long_length(bytes: &mut Vec<u8>, len: u64) {
    let mut length = BytesMut::new();
    put_varint(&mut length, len);
    assert_eq!(length.len(), 4);
    bytes.extend_from_slice(&length);
}

#[test]
fn an_envelope_that_does_not_fit_writes_nothing() {
    let mut large = request();
    large.payload = Bytes::from(alloc::vec![0; Envelope::MAX_PAYLOAD + 1]);
    let mut out = BytesMut::from(&b"before"[..]);
    let result = large.encode_into(&mut out);
    assert!(matches!(result, Err(EnvelopeError::TooLarge { part: EnvelopePart::Payload, .. })));
    assert_eq!(out, "before");
}

#[test]
fn the_payload_is_not_copied() {
    let bytes = request().encode().unwrap();
    let payload = Envelope::decode(&bytes).unwrap().payload;
    assert!(bytes.as_ptr_range().contains(&payload.as_ptr()));
}

/// Proves: R103
#[test]
fn the_envelope_carries_a_codec_it_does_not_know() {
    let mut custom = request();
    custom.codec = CodecId::FIRST_CUSTOM;
    let decoded = decode(custom.encode().unwrap()).unwrap();
    assert_eq!(decoded.codec, CodecId(128));
    assert!(Codec::from_id(decoded.codec).is_err());
}

/// Proves: R61, R109
#[test]
fn the_type_hint_names_the_type_of_a_json_payload() {
    let mut hinted = request();
    hinted.message = wire_id("bank.Deposit");
    hinted.type_hint = Some(TypeHint::new("bank.Deposit").unwrap());
    hinted.codec = Codec::Json.id();
    hinted.payload = Codec::Json.encode(&[1, 2]).unwrap().into();
    let decoded = decode(hinted.encode().unwrap()).unwrap();
    assert_eq!(decoded.type_hint.as_ref().map(TypeHint::as_str), Some("bank.Deposit"));
    let codec = Codec::from_id(decoded.codec).unwrap();
    assert_eq!(codec.decode::<[u8; 2]>(&decoded.payload), Ok([1, 2]));
}

/// Proves: R499
#[test]
fn a_transaction_context_travels_in_the_extension_area() {
    const TRANSACTION: u16 = 1;
    let mut envelope = request();
    envelope.extensions.insert(TRANSACTION, Bytes::from_static(b"tx-7")).unwrap();
    envelope.extensions.insert(0xffff, Bytes::from_static(b"of a later version")).unwrap();
    let decoded = decode(envelope.encode().unwrap()).unwrap();
    assert_eq!(decoded.extensions.get(TRANSACTION).unwrap(), "tx-7");
    assert_eq!(decoded.payload, "hello", "an unknown tag does not disturb what follows");
}

proptest! {
    /// Proves: R56, R57, R58, R59, R60, R62, R63, R71, R98, R108, C12
    #[test]
    fn an_envelope_survives_the_wire(envelope in envelope()) {
        prop_assert_eq!(decode(envelope.encode().unwrap()), Ok(envelope));
    }

    /// Proves: R64
    #[test]
    fn every_request_that_decodes_has_a_time_to_live(envelope in envelope()) {
        let decoded = decode(envelope.encode().unwrap()).unwrap();
        if decoded.direction() == Direction::Request {
            prop_assert!(decoded.ttl().is_some());
        }
    }

    /// Proves: R79
    #[test]
    fn a_peer_cannot_send_interleave_without_read_only(bits in 0_u8..16) {
        let mut bytes = request().encode().unwrap().to_vec();
        bytes[2] = bits;
        let flags = decode(bytes).unwrap().flags;
        prop_assert_eq!(flags.contains(MessageFlags::READ_ONLY), bits & 0b11 != 0);
    }

    /// Proves: R69, R70
    #[test]
    fn every_response_fits_its_request(envelope in envelope(), payload in any::<Vec<u8>>()) {
        let Some(response) = envelope.respond(payload.into()) else {
            prop_assert_ne!(envelope.direction(), Direction::Request);
            return Ok(());
        };
        prop_assert_eq!(response.correlation(), envelope.correlation());
        prop_assert_eq!((response.target(), response.sender()), (envelope.sender(), envelope.target()));
        prop_assert_eq!(response.target_node, envelope.sender_node);
        prop_assert_eq!(response.sender_node, envelope.target_node);
        prop_assert_eq!(decode(response.encode().unwrap()), Ok(response));
    }

    #[test]
    fn a_cut_envelope_is_truncated(envelope in envelope(), cut in any::<proptest::sample::Index>()) {
        let bytes = envelope.encode().unwrap();
        let cut = decode(bytes.slice(..cut.index(bytes.len())));
        let truncated = matches!(cut, Err(EnvelopeError::Truncated { .. }));
        prop_assert!(truncated, "{cut:?}");
    }

    #[test]
    fn a_longer_envelope_has_trailing_bytes(envelope in envelope(), tail in proptest::collection::vec(any::<u8>(), 1..9)) {
        let bytes = [&envelope.encode().unwrap()[..], &tail].concat();
        prop_assert_eq!(decode(bytes), Err(EnvelopeError::TrailingBytes { count: tail.len() }));
    }

    #[test]
    fn decoding_any_bytes_never_panics(mut bytes in any::<Vec<u8>>()) {
        let _ = decode(bytes.clone());
        bytes.insert(0, VERSION);
        let _ = decode(bytes);
    }

    #[test]
    fn decoding_a_damaged_envelope_never_panics(
        envelope in envelope(), damage in any::<(proptest::sample::Index, u8)>(),
    ) {
        let mut bytes = envelope.encode().unwrap().to_vec();
        let at = damage.0.index(bytes.len());
        bytes[at] = damage.1;
        if let Ok(decoded) = decode(bytes) {
            prop_assert_eq!(decode(decoded.encode().unwrap()), Ok(decoded));
        }
    }
}
