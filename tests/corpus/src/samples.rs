//! Good values of everything that travels: what the seeds of the corpus are made of.

use std::collections::BTreeSet;

use archipelago_protocol::call::{CallError, Queue, UnknownMessage};
use archipelago_protocol::identity::{CorrelationId, Generation, Kind, Namespace, NodeId, NodeInfo};
use archipelago_protocol::link::{Asked, Frame, Head, Hint, KeyText, ReturnReason, Returned, ShardRef, Told};
use archipelago_protocol::message::{
    CallChain, CodecId, Envelope, Extensions, Leg, MessageFlags, Target, TraceContext, TypeHint, WireId,
    wire_id,
};
use archipelago_protocol::peer::{AttemptId, Hello, KindEntry, LaneEnds, PeerKind, Seat, Versions};
use archipelago_protocol::time::Millis;
use bytes::Bytes;

/// A member of a cluster, on the link between the control arbiters.
pub(crate) fn hello() -> Hello {
    Hello {
        versions: Versions { oldest: 1, newest: 1 },
        cluster: "bank".into(),
        namespace: Namespace::new("prod").expect("a name"),
        datacenter: "north".into(),
        node: node(),
        kind: PeerKind::Member,
        lane: LaneEnds { from: Seat::Control, to: Seat::Control },
        attempt: AttemptId(1),
        expects: None,
        seats: vec![4710, 4711],
        kinds: vec![kind("Account", &["bank.Deposit", "bank.Withdraw"]), kind("Clerk", &[])],
        store: Some("etcd:1".into()),
        extensions: Vec::new(),
    }
}

/// A node.
pub(crate) fn node() -> NodeInfo {
    NodeInfo {
        id: NodeId::new(7),
        name: "blue".into(),
        address: "10.0.0.7:4710".parse().expect("an address"),
        roles: BTreeSet::from(["frontend".into()]),
        version: "0.1.0".into(),
        kinds: Default::default(),
    }
}

fn kind(name: &str, messages: &[&str]) -> KindEntry {
    let message = |name: &&str| (wire_id(name), TypeHint::new(name).expect("a name"));
    KindEntry { name: Kind::new(name).expect("a name"), messages: messages.iter().map(message).collect() }
}

/// Hellos that differ in what they say and in whether they fit [`hello`].
pub(crate) fn hellos() -> Vec<Hello> {
    let fits = Hello { node: NodeInfo { id: NodeId::new(8), ..node() }, ..hello() };
    let datacenter = Hello { kind: PeerKind::Datacenter, datacenter: "south".into(), ..fits.clone() };
    let client =
        Hello { kind: PeerKind::Client, kinds: Vec::new(), seats: Vec::new(), store: None, ..fits.clone() };
    let data = LaneEnds { from: Seat::Data(0), to: Seat::Data(3) };
    let later = Hello {
        versions: Versions { oldest: 2, newest: 9 },
        extensions: vec![(1, Bytes::from_static(b"new")), (700, Bytes::new())],
        ..fits.clone()
    };
    let seat =
        Hello { lane: data, expects: Some(NodeId::new(7)), attempt: AttemptId(u64::MAX), ..fits.clone() };
    vec![fits, hello(), datacenter, client, later, seat]
}

/// One frame of each kind, and some of the same kind that differ in their parts.
pub(crate) fn frames() -> Vec<Frame<'static>> {
    let (call, shard) = (CorrelationId::new(3, 5, 1), ShardRef { kind: 1, number: 700 });
    let hint = Hint { owner: NodeId::new(9), generation: Generation::new(12) };
    let generation = Generation::new(11);
    let mut frames = vec![
        Frame::Ask(Asked { call, head: head(), payload: b"hello" }),
        Frame::Ask(Asked { call, head: full_head(), payload: b"" }),
        Frame::Tell(Told { head: full_head(), payload: b"[1,2]" }),
        Frame::Reply { call, codec: CodecId::JSON, payload: b"null" },
        Frame::Cancel { call },
        Frame::Return(Returned {
            reason: ReturnReason::Sticky,
            call: Some(call),
            head: head(),
            payload: b"x",
        }),
        Frame::Return(Returned { reason: ReturnReason::Fenced, call: None, head: full_head(), payload: b"" }),
        Frame::Settle { shard, generation },
        Frame::Settled { shard, generation, hint: None },
        Frame::Settled { shard, generation, hint: Some(hint) },
        Frame::Notice { shard, hint },
        Frame::Bye,
        Frame::ByeAck,
        Frame::Envelope(b"\xa1"),
        Frame::LargeDone { transfer: 4 },
        Frame::LargeHere { transfer: u64::MAX, call: None },
        Frame::Void,
        Frame::Service { call, ttl: Millis(2_000), service: 1, payload: &[1, 0, 0] },
    ];
    frames.extend(errors().into_iter().map(|error| Frame::Fail { call, error }));
    frames.push(Frame::LargeBack { transfer: 5, reason: ReturnReason::NotOwner });
    frames.push(Frame::LargeGone { transfer: 6 });
    frames
}

fn head() -> Head<'static> {
    Head {
        ttl: None,
        flags: MessageFlags::empty(),
        codec: CodecId::POSTCARD,
        shard: ShardRef { kind: 0, number: 0xcbf2_9ce4_8422_2325 },
        message: 1,
        generation: Generation::new(4),
        key: KeyText::new("alice@example.org").expect("short"),
        trace: None,
        chain: CallChain::empty(),
    }
}

fn full_head() -> Head<'static> {
    Head {
        ttl: Some(Millis(4_999)),
        flags: MessageFlags::ALWAYS_INTERLEAVE | MessageFlags::SUPPRESS_KEEP_ALIVE,
        key: KeyText::new("gr\u{fc}n/7").expect("short"),
        trace: TraceContext::new(0x0af7_6519_16cd, 0xb7ad_6b71, 1).ok(),
        chain: (0..8).fold(CallChain::empty(), CallChain::push),
        ..head()
    }
}

/// One failure of each form.
pub(crate) fn errors() -> Vec<CallError> {
    vec![
        CallError::Timeout { started: true },
        CallError::Overloaded { queue: Queue::Route, bound: 1_000 },
        CallError::InvalidId { reason: "empty".into() },
        CallError::UnknownMessage(Box::new(UnknownMessage { kind: "K".into(), message: "m".into() })),
        CallError::Unbound,
        CallError::Codec { reason: "ends early".into(), started: false },
        CallError::ConnectionLost { node: NodeId::new(7) },
        CallError::TooLarge { max: 64 << 20, started: true },
    ]
}

/// A request, a response and one-way messages, with little and with everything in them.
pub(crate) fn envelopes() -> Vec<Envelope> {
    let target = Target::Actor("prod::Account/7".parse().expect("an id"));
    let sender = Target::Path("archipelago://bank@10.0.0.7:80/a/b%20c".parse().expect("a path"));
    let request = envelope(Leg::Request {
        correlation: CorrelationId::new(1, 2, 3),
        ttl: Millis(300),
        target: target.clone(),
        sender: Some(sender.clone()),
    });
    let response = request.respond(Bytes::from_static(b"done"));
    let plain = envelope(Leg::OneWay { ttl: None, target: sender.clone(), sender: None });
    let timed = envelope(Leg::OneWay { ttl: Some(Millis(u64::MAX)), target, sender: Some(sender) });
    let mut extensions = Extensions::new();
    for (tag, value) in [(1, &b"transaction"[..]), (Extensions::FIRST_CUSTOM, b"")] {
        extensions.insert(tag, Bytes::from_static(value)).expect("they fit");
    }
    let full = Envelope {
        type_hint: TypeHint::new("bank.Deposit").ok(),
        flags: MessageFlags::READ_ONLY,
        trace: TraceContext::new(1, 2, 0).ok(),
        chain: (1..9).fold(CallChain::empty(), CallChain::push),
        extensions,
        ..timed.clone()
    };
    [request, plain, timed, full].into_iter().chain(response).collect()
}

fn envelope(leg: Leg) -> Envelope {
    Envelope {
        leg,
        target_node: NodeId::new(7),
        sender_node: NodeId::new(8),
        message: WireId::new(9),
        type_hint: None,
        flags: MessageFlags::empty(),
        codec: CodecId::POSTCARD,
        trace: None,
        chain: CallChain::empty(),
        extensions: Extensions::new(),
        payload: Bytes::from_static(b"hello"),
    }
}
