//! Draws frames for property tests. They own their parts; [`OwnedFrame::borrow`] gives the frame.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::call::{Queue, UnknownMessage};

#[derive(Clone, Debug)]
pub(in super::super) struct OwnedHead {
    ttl: Option<u32>,
    flags: MessageFlags,
    numbers: (u8, u16, u64, u16, u64),
    key: String,
    trace: Option<TraceContext>,
    chain: Vec<u64>,
}

impl OwnedHead {
    pub(in super::super) fn borrow(&self) -> Head<'_> {
        let (codec, kind, number, message, generation) = self.numbers;
        Head {
            ttl: self.ttl.map(|ttl| Millis(ttl.into())),
            flags: self.flags,
            codec: CodecId(codec),
            shard: ShardRef { kind, number },
            message,
            generation: Generation::new(generation),
            key: KeyText::new(&self.key).unwrap(),
            trace: self.trace,
            chain: self.chain.iter().fold(CallChain::empty(), |chain, &token| chain.push(token)),
        }
    }
}

#[derive(Clone, Debug)]
pub(in super::super) enum OwnedFrame {
    Ask(u64, OwnedHead, Vec<u8>),
    Tell(OwnedHead, Vec<u8>),
    Return(ReturnReason, Option<u64>, OwnedHead, Vec<u8>),
    Reply(u64, u8, Vec<u8>),
    Fail(u64, CallError),
    Envelope(Vec<u8>),
    Service(u64, u32, u16, Vec<u8>),
    /// A frame that borrows nothing.
    Plain(Frame<'static>),
}

impl OwnedFrame {
    pub(in super::super) fn borrow(&self) -> Frame<'_> {
        let call = |id: &u64| CorrelationId::from_u64(*id);
        match self {
            Self::Ask(id, head, payload) => {
                Frame::Ask(Asked { call: call(id), head: head.borrow(), payload })
            }
            Self::Tell(head, payload) => Frame::Tell(Told { head: head.borrow(), payload }),
            Self::Return(reason, id, head, payload) => Frame::Return(Returned {
                reason: *reason,
                call: id.as_ref().map(call),
                head: head.borrow(),
                payload,
            }),
            Self::Reply(id, codec, payload) => {
                Frame::Reply { call: call(id), codec: CodecId(*codec), payload }
            }
            Self::Fail(id, error) => Frame::Fail { call: call(id), error: error.clone() },
            Self::Envelope(bytes) => Frame::Envelope(bytes),
            Self::Service(id, ttl, service, payload) => {
                Frame::Service { call: call(id), ttl: Millis((*ttl).into()), service: *service, payload }
            }
            Self::Plain(frame) => frame.clone(),
        }
    }
}

/// Any frame of any kind.
pub(in super::super) fn frame() -> impl Strategy<Value = OwnedFrame> {
    prop_oneof![
        (any::<u64>(), head(), payload()).prop_map(|(id, head, rest)| OwnedFrame::Ask(id, head, rest)),
        (head(), payload()).prop_map(|(head, rest)| OwnedFrame::Tell(head, rest)),
        (reason(), option::of(any::<u64>()), head(), payload())
            .prop_map(|(reason, id, head, rest)| OwnedFrame::Return(reason, id, head, rest)),
        (any::<u64>(), any::<u8>(), payload())
            .prop_map(|(id, codec, rest)| OwnedFrame::Reply(id, codec, rest)),
        (any::<u64>(), error()).prop_map(|(id, error)| OwnedFrame::Fail(id, error)),
        payload().prop_map(OwnedFrame::Envelope),
        (any::<u64>(), 0..NO_TTL, any::<u16>(), payload())
            .prop_map(|(id, ttl, service, rest)| OwnedFrame::Service(id, ttl, service, rest)),
        plain().prop_map(OwnedFrame::Plain),
    ]
}

pub(in super::super) fn head() -> impl Strategy<Value = OwnedHead> {
    let trace = (1_u128.., 1_u64.., any::<u8>())
        .prop_map(|(trace_id, span_id, flags)| TraceContext::new(trace_id, span_id, flags).unwrap());
    let key = prop_oneof![9 => "\\PC{0,20}", 1 => "[a-z]{255}"];
    let flags = (0_u16..16).prop_map(|bits| MessageFlags::from_bits(bits).unwrap());
    (
        option::of(0..NO_TTL),
        flags,
        any::<(u8, u16, u64, u16, u64)>(),
        key,
        option::of(trace),
        vec(any::<u64>(), 0..9),
    )
        .prop_map(|(ttl, flags, numbers, key, trace, chain)| OwnedHead {
            ttl,
            flags,
            numbers,
            key,
            trace,
            chain,
        })
}

fn plain() -> impl Strategy<Value = Frame<'static>> {
    let shard = || any::<(u16, u64)>().prop_map(|(kind, number)| ShardRef { kind, number });
    let generation = || any::<u64>().prop_map(Generation::new);
    let hint = || {
        (any::<u64>(), generation())
            .prop_map(|(owner, generation)| Hint { owner: NodeId::new(owner), generation })
    };
    prop_oneof![
        any::<u64>().prop_map(|id| Frame::Cancel { call: CorrelationId::from_u64(id) }),
        any::<(u64, bool)>().prop_map(|(transfer, done)| match done {
            true => Frame::LargeDone { transfer },
            false => Frame::LargeGone { transfer },
        }),
        (any::<u64>(), option::of(any::<u64>())).prop_map(|(transfer, call)| Frame::LargeHere {
            transfer,
            call: call.map(CorrelationId::from_u64)
        }),
        (any::<u64>(), reason()).prop_map(|(transfer, reason)| Frame::LargeBack { transfer, reason }),
        (shard(), generation()).prop_map(|(shard, generation)| Frame::Settle { shard, generation }),
        (shard(), generation(), option::of(hint())).prop_map(|(shard, generation, hint)| Frame::Settled {
            shard,
            generation,
            hint
        }),
        (shard(), hint()).prop_map(|(shard, hint)| Frame::Notice { shard, hint }),
        Just(Frame::Bye),
        Just(Frame::ByeAck),
        Just(Frame::Void),
    ]
}

fn reason() -> impl Strategy<Value = ReturnReason> {
    prop_oneof![
        Just(ReturnReason::NotOwner),
        Just(ReturnReason::Overflow),
        Just(ReturnReason::Sticky),
        Just(ReturnReason::Fenced),
    ]
}

fn error() -> impl Strategy<Value = CallError> {
    prop_oneof![
        any::<bool>().prop_map(|started| CallError::Timeout { started }),
        any::<u32>().prop_map(|bound| CallError::Overloaded { queue: Queue::Ingress, bound }),
        any::<String>().prop_map(|text| CallError::NotServing { reason: text.into() }),
        any::<(String, String)>().prop_map(|(kind, message)| {
            CallError::UnknownMessage(Box::new(UnknownMessage { kind: kind.into(), message: message.into() }))
        }),
        Just(CallError::CallCycle),
    ]
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}
